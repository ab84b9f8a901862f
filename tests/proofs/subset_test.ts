import assert from "node:assert/strict";
import { readSources } from "../checks/syntax.ts";
import { Translation } from "./translation.ts";
import { OutsideSubsetError } from "./types.ts";

const FILE = "lib/planted.ts";

function translate(text: string, roles = [{ file: FILE, shipped: true }]) {
  return new Translation(new Map([[FILE, text]]), roles).functionsOf(FILE);
}

/** The body of a function of `a`, `b` and `name`. */
const body = (statements: string) =>
  `export function f(a: number, b: number, name: string): number {\n  ${statements}\n}`;

/** What stands outside the provable subset: the source, the line, and what the compiler calls it. */
const OUTSIDE: readonly (readonly [name: string, text: string, line: number, construct: string])[] =
  [
    ["a loop", body("for (;;) {}"), 2, "ForStatement"],
    ["a while loop", body("while (a > b) {}\n  return a;"), 2, "WhileStatement"],
    ["a switch", body("switch (a) {}\n  return a;"), 2, "SwitchStatement"],
    ["a let", body("let c = a;\n  return c;"), 2, "FirstStatement"],
    ["two variables at once", body("const c = a, d = b;\n  return c + d;"), 2, "FirstStatement"],
    ["an assignment", body("a = b;\n  return a;"), 2, "ExpressionStatement"],
    ["a throw", body("throw a;"), 2, "ThrowStatement"],
    ["a power", body("return a ** 2;"), 2, "BinaryExpression"],
    ["a shift", body("return a << 2;"), 2, "BinaryExpression"],
    ["a loose comparison", body("return a == b ? 1 : 2;"), 2, "BinaryExpression"],
    ["a default for what is absent", body("return a ?? b;"), 2, "BinaryExpression"],
    ["a product of two unknowns", body("return a * b;"), 2, "BinaryExpression"],
    ["a division elsewhere", body("return a / 2;"), 2, "BinaryExpression"],
    ["a remainder elsewhere", body("return a % 2;"), 2, "BinaryExpression"],
    ["a plus before a value", body("return +a;"), 2, "PrefixUnaryExpression"],
    ["an increment", body("return a++;"), 2, "PostfixUnaryExpression"],
    ["a comparison of strings by order", body(`return name < "m" ? 1 : 2;`), 2, "Identifier"],
    ["a string without a type", body(`const c = "m";\n  return a;`), 2, "StringLiteral"],
    ["a length of a string", body("return name.length;"), 2, "PropertyAccessExpression"],
    ["a template", body("return `${a}` === name ? 1 : 2;"), 2, "TemplateExpression"],
    ["a fraction", body("return a + 0.5;"), 2, "FirstLiteralToken"],
    ["an unsafe number", body("return 9007199254740993;"), 2, "FirstLiteralToken"],
    ["another library", body("return Math.floor(a);"), 2, "CallExpression"],
    ["a function from elsewhere", body("return parseInt(name);"), 2, "CallExpression"],
    [
      "an argument that is left out",
      "export function g(a: number): number {\n  return a;\n}\n" + body("return g();"),
      5,
      "CallExpression",
    ],
    ["recursion", body("return f(a, b, name);"), 1, "FunctionDeclaration"],
    ["a global", body("return NaN;"), 2, "Identifier"],
    ["a number as a condition", body("return a ? 1 : 2;"), 2, "Identifier"],
    ["numbers and strings compared", body("return a === name ? 1 : 2;"), 2, "BinaryExpression"],
    ["an array", body("return [a][0];"), 2, "ElementAccessExpression"],
    ["an unchecked type", body("return a as number;"), 2, "AsExpression"],
    ["an arrow", body("const g = () => a;\n  return g();"), 2, "ArrowFunction"],
    [
      "an object without a type",
      body("const o = { a };\n  return o.a;"),
      2,
      "ObjectLiteralExpression",
    ],
    ["a path without an end", body("if (a > b) return a;"), 1, "Block"],
    ["a statement after the end", body("return a;\n  return b;"), 3, "ReturnStatement"],
    ["a return of nothing", body("return;"), 2, "ReturnStatement"],
    ["a wrong result", body("return a > b;"), 2, "ReturnStatement"],
    [
      "a function that is not exported",
      "function f(): number {\n  return 1;\n}",
      1,
      "FunctionDeclaration",
    ],
    [
      "an async function",
      "export async function f(): number {\n  return 1;\n}",
      1,
      "FunctionDeclaration",
    ],
    [
      "a generic function",
      "export function f<T>(a: number): number {\n  return a;\n}",
      1,
      "FunctionDeclaration",
    ],
    [
      "a parameter with a default",
      "export function f(a: number = 1): number {\n  return a;\n}",
      1,
      "Parameter",
    ],
    [
      "a parameter that may be absent",
      "export function f(a?: number): number {\n  return a;\n}",
      1,
      "Parameter",
    ],
    [
      "a type that is not written",
      "export function f(a: number) {\n  return a;\n}",
      1,
      "FunctionDeclaration",
    ],
    [
      "a type of no kind",
      "export function f(a: bigint): number {\n  return 1;\n}",
      1,
      "BigIntKeyword",
    ],
    [
      "a list as a type",
      "export function f(a: number[]): number {\n  return 1;\n}",
      1,
      "ArrayType",
    ],
    ["an import", `import { x } from "./x.ts";`, 1, "ImportDeclaration"],
    ["a class", "export class C {}", 1, "ClassDeclaration"],
    ["a variable at the top", "export let N = 1;", 1, "FirstStatement"],
    ["a constant that is no number", `export const N = "x";`, 1, "FirstStatement"],
    ["a member that changes", "export interface R {\n  a: number;\n}", 2, "PropertySignature"],
    [
      "a member that may be absent",
      "export interface R {\n  readonly a?: number;\n}",
      2,
      "PropertySignature",
    ],
    [
      "an object in an object",
      "export interface R {\n  readonly a: number;\n}\nexport interface S {\n  readonly r: R;\n}",
      5,
      "PropertySignature",
    ],
    [
      "an object that extends another",
      "export interface R extends S {\n  readonly a: number;\n}",
      1,
      "InterfaceDeclaration",
    ],
    ["a union with a number", `export type U = "a" | 1;`, 1, "LiteralType"],
    [
      "a string outside its union",
      `export type U = "a";\nexport function f(): U {\n  return "b";\n}`,
      3,
      "StringLiteral",
    ],
    [
      "an object with a spread",
      "export interface R {\n  readonly a: number;\n}\nexport function f(r: R): R {\n  return { ...r };\n}",
      5,
      "SpreadAssignment",
    ],
    [
      "an object without a member",
      "export interface R {\n  readonly a: number;\n}\nexport function f(): R {\n  return {};\n}",
      5,
      "ObjectLiteralExpression",
    ],
    [
      "objects compared",
      "export interface R {\n  readonly a: number;\n}\nexport function f(r: R, s: R): boolean {\n  return r === s;\n}",
      5,
      "BinaryExpression",
    ],
  ];

for (const [name, text, line, construct] of OUTSIDE) {
  Deno.test(`outside the provable subset, with its line and its kind: ${name}`, () => {
    assert.throws(() => translate(text), (error: unknown) => {
      assert.ok(error instanceof OutsideSubsetError, String(error));
      assert.deepEqual([error.file, error.line, error.construct], [FILE, line, construct]);
      assert.match(error.message, new RegExp(`^Cannot translate ${FILE}:${line} as it is outside`));
      return true;
    });
  });
}

const RANGES = "tests/ranges.ts";
const withRanges = (ranges: string) =>
  new Translation(
    new Map([[FILE, "export function f(a: number): number {\n  return a;\n}"], [RANGES, ranges]]),
    [{ file: FILE, shipped: true, ranges: RANGES }, { file: RANGES, shipped: false }],
  ).functionsOf(FILE);

Deno.test("a shipped function of which nobody says what is in range is an error", () => {
  assert.equal(withRanges("export function f(_a: number): boolean {\n  return true;\n}").length, 1);
  assert.throws(() => withRanges(""), /tests\/ranges.ts has a 'f' that says what is in range/);
  assert.throws(
    () => withRanges("export function f(b: boolean): boolean {\n  return b;\n}"),
    /'f' of tests\/ranges.ts has the same parameters/,
  );
});

Deno.test("theorems may import and multiply, and shipped files may not", () => {
  const theorem =
    `import { f } from "../lib/planted.ts";\nexport function t(a: number, b: number): boolean {\n  return f(a) * b === a;\n}`;
  const texts = new Map([
    [FILE, "export function f(a: number): number {\n  return a;\n}"],
    ["tests/t.ts", theorem],
  ]);
  const as = (shipped: boolean) =>
    new Translation(texts, [{ file: FILE, shipped: true }, { file: "tests/t.ts", shipped }])
      .functionsOf("tests/t.ts");
  assert.deepEqual(as(false).map(({ name }) => name), ["t"]);
  assert.throws(() => as(true), OutsideSubsetError);
});

Deno.test("a theorem about what is not there is an error", () => {
  const as = (text: string) =>
    new Translation(new Map([["tests/t.ts", text], [FILE, ""]]), [
      { file: FILE, shipped: true },
      { file: "tests/t.ts", shipped: false },
    ]).functionsOf("tests/t.ts");
  assert.throws(
    () => as(`import { gone } from "../lib/planted.ts";`),
    /has it: Identifier 'gone'/,
  );
  assert.throws(() => as(`import all from "../lib/planted.ts";`), /an import names what it takes/);
  assert.throws(
    () => as(`import { f } from "../lib/other.ts";`),
    /Cannot find lib\/other.ts to prove/,
  );
});

Deno.test("the shipped files are inside the provable subset", async () => {
  for (const file of ["lib/election/policy.ts", "lib/group/gate.ts"]) {
    const translation = new Translation(await readSources(file), [{ file, shipped: true }]);
    assert.ok(translation.functionsOf(file).length >= 3);
  }
});
