import assert from "node:assert/strict";
import { promiseOffences } from "./promises.ts";
import { type Offence, readSources } from "./syntax.ts";

const PLANTED = "tests/checks/planted/";

/** The lines that say of themselves that they break a rule. */
function marked(file: string, text: string): string[] {
  return text.split("\n").flatMap((line, index) => {
    const rule = /\/\/ (no-\w+-promises)$/.exec(line)?.[1];
    return rule === undefined ? [] : [`${file}:${index + 1} ${rule}`];
  });
}

function place({ file, line, message }: Offence): string {
  return `${file}:${line} ${message.split(":")[0]}`;
}

Deno.test("no promise is left alone, and each planted one is found", async () => {
  const sources = await readSources("main.ts", "lib", "handlers", "deploy", "tests");
  const offences = await promiseOffences([...sources.keys()]);

  const planted = [...sources].filter(([file]) => file.startsWith(PLANTED));
  const expected = planted.flatMap(([file, text]) => marked(file, text));
  assert.ok(expected.length > 20, "the planted promises were not read");
  assert.deepEqual(
    offences.filter(({ file }) => file.startsWith(PLANTED)).map(place).sort(),
    expected.sort(),
  );

  assert.deepEqual(offences.filter(({ file }) => !file.startsWith(PLANTED)), []);
});
