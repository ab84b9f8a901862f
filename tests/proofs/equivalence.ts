/**
 * Shows that two texts of one file say the same.
 *
 * @module
 */

import type { SourceTexts } from "../checks/syntax.ts";
import { and, apply, symbol } from "./smt.ts";
import type { Solver } from "./solver.ts";
import { rolesOf, type Subject } from "./theorems.ts";
import { Translation } from "./translation.ts";
import { type ScalarType, sortOf } from "./types.ts";
import { flatten, functionSymbol, unionMember } from "./values.ts";

/** Says whether a function answers as before for every argument in range when its file has another text. */
export async function isEquivalent(
  solver: Solver,
  subject: Subject,
  texts: SourceTexts,
  otherText: string,
  name: string,
): Promise<boolean> {
  const other = `other/${subject.file}`;
  const translation = new Translation(new Map([...texts, [other, otherText]]), [
    ...rolesOf(subject),
    { file: other, shipped: true },
  ]);
  const before = translation.function(subject.file, name);
  const after = translation.function(other, name);
  const inputs = before.parameters.flatMap(flatten);
  const given = inputs.map(([each]) => symbol(each));
  const membersOf = (type: typeof before.result): [string | undefined, ScalarType][] =>
    type.kind === "record" ? [...type.members] : [[undefined, type]];
  const afterTypes = membersOf(after.result);
  const same = membersOf(before.result).map(([member, type], index) =>
    equal(
      type,
      apply(functionSymbol(subject.file, name, member), ...given),
      afterTypes[index]?.[1] ?? type,
      apply(functionSymbol(other, name, member), ...given),
    )
  );
  const differ = apply("not", and(same));
  const range = before.range === null ? "true" : apply(before.range, ...given);
  const [answer] = await solver.ask([
    translation.script([differ, range]),
    ...inputs.map(([each, type]) => `(declare-const ${symbol(each)} ${sortOf(type)})`),
    ...inputs.filter(([, { kind }]) => kind === "integer")
      .map(([each]) => `(assert ${apply("safe", symbol(each))})`),
    `(assert ${range})`,
    `(assert ${differ})`,
    "(check-sat)",
  ].join("\n"));
  return answer === "unsat";
}

/** Each file has its own sort for a string union: their members are compared one by one. */
function equal(type: ScalarType, term: string, otherType: ScalarType, otherTerm: string): string {
  if (type.kind !== "union" || otherType.kind !== "union") return apply("=", term, otherTerm);
  return and(type.members.map((member) =>
    apply(
      "=",
      apply("=", term, unionMember(type, member)),
      apply("=", otherTerm, unionMember(otherType, member)),
    )
  ));
}
