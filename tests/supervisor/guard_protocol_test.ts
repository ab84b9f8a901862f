import assert from "node:assert/strict";
import fc from "fast-check";
import { formatLine, parseOrder, parseReport } from "../../lib/supervisor/guard_protocol.ts";
import { TextLines } from "../../lib/supervisor/text_lines.ts";

const order = fc.oneof(
  fc.record({
    type: fc.constant("kill-at" as const),
    atMs: fc.double({ noNaN: true, noDefaultInfinity: true }).map((one) => one + 0),
  }, { noNullPrototype: true }),
  fc.record({
    type: fc.constant("start" as const),
    path: fc.string({ unit: "binary" }),
    args: fc.array(fc.string({ unit: "binary" })),
    env: fc.dictionary(fc.stringMatching(/^[A-Z]\w*$/), fc.string(), { noNullPrototype: true }),
  }, { noNullPrototype: true }),
);

Deno.test("an order is one line and comes back as it was, whatever is in it", () => {
  fc.assert(fc.property(order, (one) => {
    const line = formatLine(one);
    assert.equal(line.indexOf("\n"), line.length - 1);
    assert.deepEqual(parseOrder(line.trimEnd()), one);
  }));
});

Deno.test("what is no order and no report is null", () => {
  const wrong = [
    "",
    "kill",
    "{}",
    "null",
    "{",
    `{"type":"kill-at"}`,
    `{"type":"kill-at","atMs":"1"}`,
    `{"type":"kill-at","atMs":null}`,
    `{"type":"start","path":"x"}`,
    `{"type":"kill-at","atMs":1,"more":1}`,
  ];
  for (const line of wrong) assert.equal(parseOrder(line), null, line);
  for (const pid of [-1, 0, 1, 1.5]) {
    assert.equal(parseReport(`{"type":"started","pid":${pid}}`), null, `${pid} is no group`);
  }
  assert.deepEqual(parseReport(`{"type":"started","pid":2}`), { type: "started", pid: 2 });
});

Deno.test("lines are cut where they end, however the text arrives; what is not ended is none", async () => {
  const parts = ["a", "b\nc\n", "\nd", "e\n", "cut off"];
  const lines: string[] = [];
  for await (const line of ReadableStream.from(parts).pipeThrough(new TextLines())) {
    lines.push(line);
  }
  assert.deepEqual(lines, ["ab", "c", "", "de"]);
});
