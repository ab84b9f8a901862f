import assert from "node:assert/strict";
import { hasSomethingToRun } from "./runnable.ts";
import { parse } from "./syntax.ts";

function runs(text: string): boolean {
  return parse(new Map([["lib/x.ts", text]])).files.some(hasSomethingToRun);
}

Deno.test("a file of types, imports and re-exports has nothing to run", () => {
  assert.equal(runs(`export interface A {} type B = A; export type { B };`), false);
  assert.equal(
    runs(`export * from "./a.ts"; import type { C } from "./c.ts"; declare const d: C;`),
    false,
  );
});

Deno.test("a file with a function, a class or a constant has something to run", () => {
  for (
    const text of ["export const a = 1;", "function f() {}", "class C {}", "enum E { A }", "f();"]
  ) {
    assert.equal(runs(text), true, text);
  }
});
