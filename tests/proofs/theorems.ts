/**
 * Which files are proven, and by which theorems.
 *
 * @module
 */

import { readSources, type SourceTexts } from "../checks/syntax.ts";
import type { SourceRole } from "./translation.ts";

/** A file of the product with what is said of it. */
export interface Subject {
  /** The shipped file. */
  readonly file: string;
  /** For each of its functions the predicate that says which arguments are in range. */
  readonly ranges: string;
  /** Every function that this file exports is a theorem. */
  readonly theorems: string;
}

/** The subjects of the proofs. */
export const SUBJECTS: readonly Subject[] = [
  {
    file: "lib/election/policy.ts",
    ranges: "tests/proofs/theorems/policy_ranges.ts",
    theorems: "tests/proofs/theorems/policy.ts",
  },
  {
    file: "lib/group/gate.ts",
    ranges: "tests/proofs/theorems/gate_ranges.ts",
    theorems: "tests/proofs/theorems/gate.ts",
  },
  {
    file: "lib/manifests/grace_period.ts",
    ranges: "tests/proofs/theorems/grace_period_ranges.ts",
    theorems: "tests/proofs/theorems/grace_period.ts",
  },
];

const LOGIC = "tests/proofs/theorems/logic.ts";

/** What each file of a subject is for the translation. */
export function rolesOf({ file, ranges, theorems }: Subject): SourceRole[] {
  return [
    { file, shipped: true, ranges },
    ...[ranges, theorems, LOGIC].map((each) => ({ file: each, shipped: false })),
  ];
}

/** Reads the files of a subject as they are now. */
export function readSubject(subject: Subject): Promise<SourceTexts> {
  return readSources(...rolesOf(subject).map(({ file }) => file));
}
