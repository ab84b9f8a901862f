/** docs/fencing.md shows the files that the tests of this folder run. */

import assert from "node:assert/strict";

const ROOT = new URL("../../", import.meta.url);
const EXAMPLE = new URL("deploy/examples/fence/", ROOT);

const blocksOf = (page: string, language: string) =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))]
    .map(([, block = ""]) => block);

/** A page is formatted by itself: how far a line is indented says nothing. */
const flat = (text: string) => text.replaceAll(/^ +/gm, "");

async function filesOf(ending: string): Promise<string[]> {
  const texts: string[] = [];
  for await (const { name } of Deno.readDir(EXAMPLE)) {
    if (name.endsWith(ending)) texts.push(await Deno.readTextFile(new URL(name, EXAMPLE)));
  }
  return texts;
}

Deno.test("what the page on fencing shows stands in the files of the example, or in the operator of the tests", async () => {
  const page = await Deno.readTextFile(new URL("docs/fencing.md", ROOT));
  const operator = await Deno.readTextFile(new URL("database_operator.ts", import.meta.url));
  const sql = await filesOf(".sql");
  const [decides, migration, promotion, ...others] = blocksOf(page, "sql");
  assert.deepEqual(others, []);
  for (const block of [decides, migration]) {
    const wanted = flat(block ?? "missing");
    assert.ok(sql.some((text) => flat(text).includes(wanted)), wanted);
  }
  for (const statement of (promotion ?? "missing").trim().split("\n")) {
    const words = statement.replace(/\d+\)?;$|;$/, "");
    assert.ok(operator.includes(words), words);
  }

  const [install, script, ...more] = blocksOf(page, "sh");
  assert.deepEqual(more, []);
  assert.deepEqual(await filesOf(".sh"), [script]);
  const installed = [...(install ?? "").matchAll(/deploy\/examples\/fence\/(\S+)/g)];
  assert.deepEqual(installed.map(([, name]) => name), ["fence.sql", "protect_table.sql"]);
});
