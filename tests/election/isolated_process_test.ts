/** Isolated tasks in real workers: as files, and bundled into one file as the image has it. */

import assert from "node:assert/strict";

const PROGRAM = new URL("isolated_program.ts", import.meta.url).pathname;
const ONE_FILE = ["--no-config", "--no-remote", "--no-npm"];

interface Ending {
  readonly code: number;
  readonly lines: readonly string[];
}

async function deno(...args: string[]): Promise<Ending> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const text = new TextDecoder().decode(stdout);
  if (text === "" && code !== 0) assert.fail(new TextDecoder().decode(stderr));
  return { code, lines: text.trim().split("\n") };
}

/** Runs the tests with one way to start the program. */
async function shows(context: Deno.TestContext, run: (task: string) => Promise<Ending>) {
  await context.step(
    "a task that computes does not hold up the program, and sees the end",
    async () => {
      const { code, lines } = await run("valid");
      const turns = Number(/^(\d+) turns$/.exec(lines[0] ?? "")?.[1]);
      // The task computes all the time. The program has 50 turns, and a few on the busiest machine.
      assert.ok(turns >= 5, lines.join("; "));
      assert.deepEqual({ code, lines: lines.slice(1) }, {
        code: 0,
        lines: ["computed true", "done"],
      });
    },
  );

  await context.step("a task ends with its term", async () => {
    const { code, lines } = await run("patient");
    const ends =
      "ends as LeadershipLostError: Cannot go on as the leader of app: the elector stops";
    assert.deepEqual({ code, lines: lines.slice(1) }, { code: 0, lines: [ends, "done"] });
  });

  await context.step("a worker that answers is terminated with its timers", async () => {
    const warning = "A leader task did not stop in time, so its worker is ended";
    const expected = { code: 0, lines: [warning, "done"] };
    // On a machine that is too busy to let the worker answer within 100 ms the process ends, and rightly so.
    for (let attempt = 1;; attempt++) {
      const { code, lines } = await run("deaf");
      if (code === 1 && attempt < 5) continue;
      assert.deepEqual({ code, lines: lines.slice(1) }, expected);
      break;
    }
  });

  await context.step("a worker that never yields ends the process", async () => {
    const { code, lines } = await run("endless");
    assert.equal(code, 1);
    assert.deepEqual(lines.slice(1, 3), [
      "A leader task did not stop in time, so its worker is ended",
      "The worker of a leader task does not answer, so the process ends",
    ]);
    const tookMs = Number(/^exit 1 after (\d+) ms$/.exec(lines[3] ?? "")?.[1]);
    // 800 ms to stop and 100 ms to answer, and then what a busy machine adds.
    assert.ok(tookMs >= 899 && tookMs < 3_000, lines.join("; "));
  });

  await context.step("a worker that crashes fails its task and not the program", async () => {
    const { code, lines } = await run("crash");
    assert.equal(code, 0);
    assert.ok(
      lines.some((line) => /^failed: Error: .*out of nowhere/.test(line)),
      lines.join("; "),
    );
    assert.equal(lines.at(-1), "done");
  });
}

Deno.test("isolated tasks run in workers", (context) =>
  shows(context, (task) => deno("run", "--allow-read", PROGRAM, task)));

Deno.test("isolated tasks run in workers of a program that is bundled into one file", async (context) => {
  const folder = await Deno.makeTempDir();
  try {
    const bundle = `${folder}/program.js`;
    const { code } = await deno("bundle", "--platform", "deno", "--minify", PROGRAM, "-o", bundle);
    assert.equal(code, 0);
    await shows(context, (task) => deno("run", ...ONE_FILE, "--allow-read", bundle, task));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
