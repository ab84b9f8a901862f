import assert from "node:assert/strict";
import fc from "fast-check";
import { LineSplitter } from "../../lib/kube/lines.ts";

Deno.test("lines come out whole, however the bytes are cut", () => {
  const line = fc.string({ unit: "grapheme" }).filter((text) =>
    text.trim() !== "" && !/[\n\uFEFF]/.test(text)
  );
  fc.assert(fc.property(fc.array(line), fc.array(fc.nat()), (lines, cuts) => {
    const bytes = new TextEncoder().encode(lines.map((text) => `${text}\n`).join(""));
    const places = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length]
      .sort((a, b) => a - b);
    const splitter = new LineSplitter();
    const seen: string[] = [];
    let from = 0;
    for (const to of places) {
      seen.push(...splitter.push(bytes.subarray(from, to)));
      from = to;
    }
    assert.deepEqual(seen, lines);
  }));
});

Deno.test("empty lines are left out, and a line without its end is kept back", () => {
  const splitter = new LineSplitter();
  const push = (text: string) => splitter.push(new TextEncoder().encode(text));
  assert.deepEqual(push("\n\r\n{}\n  \nx"), ["{}"]);
  assert.deepEqual(push(""), []);
  assert.deepEqual(push("y"), []);
  assert.deepEqual(push("\n"), ["xy"]);
});

Deno.test("a line of 16 MB in small chunks takes no time that grows with its square", () => {
  const splitter = new LineSplitter();
  const chunk = new Uint8Array(1_024).fill(97);
  for (let count = 0; count < 16_384; count++) splitter.push(chunk);
  const [line] = splitter.push(new Uint8Array([10]));
  assert.equal(line?.length, 16 * 1_024 * 1_024);
});
