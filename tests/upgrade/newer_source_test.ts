import assert from "node:assert/strict";
import { readShared } from "../checks/text.ts";
import { GATE_MEMBER, newerSource, RECORD_MEMBER } from "./newer_source.ts";

Deno.test("the newer version differs from the present source in the codecs and rules of records and gate alone", async () => {
  const texts = await readShared();
  const newer = newerSource(texts);
  const changed = [...newer].filter(([path, text]) => texts.get(path) !== text);
  assert.deepEqual(changed.map(([path]) => path).toSorted(), [
    "lib/group/gate_lease.ts",
    "lib/lease/rules.ts",
    "lib/records/record.ts",
  ]);
  const text = changed.map(([, text]) => text).join("\n");
  assert(text.includes(`${RECORD_MEMBER}?: number`) && text.includes(`${GATE_MEMBER}?: number`));
});

Deno.test("a source that has changed where it is edited is refused, and so is one that was edited before", async () => {
  const texts = await readShared();
  const broken = new Map(texts).set("lib/lease/rules.ts", "");
  assert.throws(() => newerSource(broken), /'lib\/lease\/rules.ts' must have the text once/);
  const absent = new Map(texts);
  absent.delete("lib/group/gate_lease.ts");
  assert.throws(() => newerSource(absent), RangeError);
});
