import assert from "node:assert/strict";
import { diagnosticsIn } from "./doc_examples.ts";

Deno.test("each diagnostic of the compiler is told apart, and its summary is left out", () => {
  const output = `Check lib/a.ts
TS2304 [ERROR]: Cannot find name 'api'.
await api.get();
      ~~~
    at file:///repo/lib/a.ts#1-5.ts:2:7

TS6133 [ERROR]: 'x' is declared but its value is never read.
    at file:///repo/lib/a.ts#1-5.ts:3:7

Found 2 errors.

error: Type checking failed.
`;
  const [first = "", second = "", ...more] = diagnosticsIn(output);
  assert.match(first, /^TS2304.*'api'[\s\S]*#1-5\.ts:2:7$/);
  assert.match(second, /^TS6133[\s\S]*#1-5\.ts:3:7$/);
  assert.deepEqual(more, []);
});
