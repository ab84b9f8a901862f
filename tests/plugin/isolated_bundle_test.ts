import assert from "node:assert/strict";
import { z } from "zod";

const PROGRAM = new URL("isolated_program.ts", import.meta.url).pathname;

const Report = z.strictObject({
  turns: z.number(),
  leads: z.boolean(),
  sameToken: z.boolean(),
  tableLength: z.number(),
  leadsStill: z.boolean(),
  code: z.number(),
});

async function deno(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

Deno.test("a whole application in one file runs its isolated task in a worker of that file, and keeps the lead", async () => {
  const folder = await Deno.makeTempDir({ prefix: "holdfast-bundle-" });
  try {
    const bundle = `${folder}/app.js`;
    await deno("bundle", "--platform", "deno", "--minify", PROGRAM, "-o", bundle);
    const alone = ["--no-config", "--no-remote", "--no-npm", "--allow-read", "--allow-env"];
    const { turns, ...rest } = Report.parse(JSON.parse(await deno("run", ...alone, bundle)));
    assert.deepEqual(rest, {
      leads: true,
      sameToken: true,
      tableLength: "orders".length,
      leadsStill: false,
      code: 0,
    });
    // The task computes all the time. The program has 250 turns, and a few on the busiest machine.
    assert.ok(turns >= 25, `${turns} turns`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
