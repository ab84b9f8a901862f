/**
 * Turns what the solver found into a test case that can be run.
 *
 * @module
 */

import type { Argument, Proof, Scalar } from "./prover.ts";
import type { Expression } from "./smt.ts";
import type { ScalarType } from "./types.ts";
import type { Parameter } from "./values.ts";

/**
 * Reads the arguments that the solver found.
 *
 * @param values One value for each member of each parameter.
 * @param texts The solver's names of the strings that stand in the source.
 */
export function readInputs(
  parameters: readonly Parameter[],
  values: readonly Expression[],
  texts: ReadonlyMap<string, string>,
): Argument[] {
  const rest = [...values];
  const next = (type: ScalarType) => readScalar(type, rest.shift() ?? "", texts);
  return parameters.map(({ type }) =>
    type.kind === "record"
      ? Object.fromEntries([...type.members].map(([name, inner]) => [name, next(inner)]))
      : next(type)
  );
}

function readScalar(
  type: ScalarType,
  value: Expression,
  texts: ReadonlyMap<string, string>,
): Scalar {
  switch (type.kind) {
    case "integer":
      return typeof value === "string" ? Number(value) : -Number(value[1]);
    case "boolean":
      return value === "true";
    case "union":
      return String(value).slice(String(value).lastIndexOf("=") + 1);
    case "string":
      return texts.get(String(value)) ?? String(value).replace(/^.*!/, "text-");
  }
}

/** Writes a refuted theorem as a test file in the root of the repository, which fails as long as the theorem is false. */
export function testCase({ theorem, verdict }: Proof): string {
  if (verdict.kind !== "refuted") return "";
  const { file, name, line } = theorem.subject;
  const given = verdict.inputs.map((input) => Deno.inspect(input, { compact: true })).join(", ");
  return theorem.ofSteps
    ? [
      `// ${file}:${verdict.broken?.line ?? line}: ${verdict.broken?.what ?? "a step goes wrong"}`,
      `import { callChecked } from "./tests/proofs/checked_call.ts";`,
      "",
      `Deno.test("${theorem.name}", async () => {`,
      `  await callChecked("${file}", "${name}", ${given});`,
      "});",
    ].join("\n")
    : [
      `import assert from "node:assert/strict";`,
      `import { ${name} } from "./${file}";`,
      "",
      `Deno.test("${name}", () => {`,
      `  assert.ok(${name}(${given}));`,
      "});",
    ].join("\n");
}
