import assert from "node:assert/strict";
import * as testing from "@holdfast/holdfast/testing";
import { readShared } from "../checks/text.ts";
import { blocksIn, readDocument, tableRowsIn } from "./markdown.ts";

Deno.test("the examples of docs/testing.md are the tests in tests/docs/examples, each of them", async () => {
  const shown = blocksIn(await readDocument("docs/testing.md"))
    .filter(({ language }) => language === "ts").map(({ text }) => text);
  const files = [...await readShared()]
    .flatMap(([path, text]) => /^tests\/docs\/examples\/\w+_test\.ts$/.test(path) ? [text] : []);
  assert.ok(files.length >= 3);
  assert.deepEqual(shown.sort(), files.sort());
});

Deno.test("what docs/testing.md says is exported is exported", async () => {
  const [exports = ""] = (await readDocument("docs/testing.md")).split("\n## ");
  const names = tableRowsIn(exports).map(([name = ""]) => name.replaceAll("`", ""))
    .filter((name) => !name.startsWith("fake."));
  assert.ok(names.length >= 4);
  assert.deepEqual(names.filter((name) => !(name in testing)), []);
});
