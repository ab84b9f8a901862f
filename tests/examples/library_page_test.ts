/** The tests that docs/library.md shows are run as they stand there. */

import assert from "node:assert/strict";
import { pathOf, ROOT } from "../checks/shell.ts";

/** The examples of a page that are whole tests. */
function testsIn(markdown: string): string[] {
  return [...markdown.matchAll(/^```ts\n([\s\S]*?)^```$/gm)]
    .map(([, code = ""]) => code)
    .filter((code) => code.includes("Deno.test("));
}

Deno.test("the example test of docs/library.md passes as it stands there", async () => {
  const examples = testsIn(await Deno.readTextFile(new URL("docs/library.md", ROOT)));
  assert.equal(examples.length, 1);
  const folder = await Deno.makeTempDir();
  try {
    const file = `${folder}/example_test.ts`;
    await Deno.writeTextFile(file, examples.join("\n"));
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        "test",
        "--config",
        pathOf(new URL("deno.json", ROOT)),
        "--allow-all",
        "--no-lock",
        "--no-check",
        file,
      ],
      env: { NO_COLOR: "1" },
      stdin: "null",
    }).output();
    const output = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    assert.ok(success, output);
    assert.match(output, /1 passed/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("an example that is no test is not taken for one", () => {
  assert.deepEqual(testsIn("```ts\nconst a = 1;\n```\n\n```ts\nDeno.test('x', () => {});\n```\n"), [
    "Deno.test('x', () => {});\n",
  ]);
});
