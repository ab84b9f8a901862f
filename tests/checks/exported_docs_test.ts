import assert from "node:assert/strict";
import { exportedDocOffences } from "./exported_docs.ts";
import { parse, readSources } from "./syntax.ts";

const PLANTED: readonly string[] = [
  "export function f() {}",
  "export class C {}",
  "export interface I {}",
  "export type T = 1;",
  "export enum E {}",
  "export const c = 1;",
  "export default 1;",
  "export default function () {}",
  "function f() {} export { f };",
  "function f() {} export { f as g };",
  "/** @param a The first. */ export function f(a: number) { return a; }",
  "/** @throws {Error} */ export function f() {}",
  "/** */ export const c = 1;",
  "// not a doc comment\nexport const c = 1;",
];

const ALLOWED: readonly string[] = [
  "/** Does it. */ export function f() {}",
  "/** Does it. */ export function f(): void; export function f(a?: 1) { return a; }",
  "/** @throws {Error} When it is not there. */ export function f() {}",
  "/** Holds it. */ export const c = 1;",
  "/** Does it. */ function f() {} export { f };",
  `export * from "./other.ts"; export { f } from "./other.ts";`,
  "function own() {} const also = own;",
];

function offences(path: string, text: string) {
  return exportedDocOffences(parse(new Map([[path, text]])));
}

Deno.test("every planted export without a doc comment is found", () => {
  for (const text of PLANTED) assert.equal(offences("lib/x/y.ts", text).length, 1, text);
});

Deno.test("an export with a doc comment, and what is not exported, is let through", () => {
  for (const text of ALLOWED) assert.deepEqual(offences("lib/x/y.ts", text), [], text);
  assert.deepEqual(offences("handlers/http/y.ts", PLANTED[0] ?? ""), []);
});

Deno.test("every export of lib says what it does", async () => {
  const sources = await readSources("lib");
  assert.ok(sources.size > 10, "the sources were not found");
  assert.deepEqual(exportedDocOffences(parse(sources)), []);
});
