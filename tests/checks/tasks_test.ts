import assert from "node:assert/strict";
import { z } from "zod";
import manifest from "../../deno.json" with { type: "json" };
import { ROOT } from "./shell.ts";

const tasks = z.record(z.string(), z.strictObject({ description: z.string(), command: z.string() }))
  .parse(manifest.tasks);

const read = (path: string) => Deno.readTextFile(new URL(path, ROOT));

/** The rows of a table of tasks: name and what it does. */
function rowsOf(markdown: string): Record<string, string> {
  const rows = markdown.matchAll(/^\| `([\w-]+)`\s*\| (.+?)\s*\|$/gm);
  return Object.fromEntries([...rows].map(([, name, text]) => [name, text]));
}

/** The tasks that a text tells people to run. */
function mentionsIn(markdown: string): string[] {
  return [...markdown.matchAll(/\b(?:deno(?:@[\d.]+)?) task ([a-z][\w-]*)/g)]
    .map(([, name = ""]) => name);
}

Deno.test("the table of tasks in CONTRIBUTING is that of deno.json, word for word", async () => {
  const [, table = ""] = (await read("CONTRIBUTING.md")).split(/^\| Task\s*\|/m);
  const [rows = ""] = table.split("\n## ");
  const expected = Object.entries(tasks).map(([name, { description }]) => [name, description]);
  assert.deepEqual(Object.entries(rowsOf(rows)), expected);
});

Deno.test("every task that a document names exists", async () => {
  for (const path of ["README.md", "CONTRIBUTING.md", "CLAUDE.md", "CHANGELOG.md", ".ci/run"]) {
    const unknown = mentionsIn(await read(path)).filter((name) => !(name in tasks));
    assert.deepEqual(unknown, [], path);
  }
});

Deno.test("a planted row and a planted task that do not exist are seen", () => {
  assert.deepEqual(rowsOf("| `gone` | Was here once |\n"), { gone: "Was here once" });
  assert.deepEqual(mentionsIn("`npx -y deno@2.9.6 task gone` or `deno task lost --once`"), [
    "gone",
    "lost",
  ]);
});

Deno.test("the documents and CI name one version of Deno", async () => {
  const versions = new Set<string>();
  for (const path of ["README.md", "CONTRIBUTING.md", "CLAUDE.md", ".ci/run"]) {
    for (const [, version = ""] of (await read(path)).matchAll(/\bdeno@(\d+\.\d+\.\d+)/g)) {
      versions.add(version);
    }
  }
  assert.deepEqual([...versions], [Deno.version.deno]);
});
