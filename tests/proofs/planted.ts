/**
 * Mistakes that are planted into the shipped files, each with the theorem that must fail for it.
 *
 * @module
 */

import { IN_GATE } from "./planted/gate.ts";
import { IN_GRACE_PERIOD } from "./planted/grace_period.ts";
import { IN_POLICY } from "./planted/policy.ts";

/** One mistake as a line of a table: what is wrong, what is replaced, by what, and the theorem that must fail. */
export type Row = readonly [name: string, find: string, replace: string, breaks: string];

/** One mistake. */
export interface Planted {
  /** What is wrong, in a sentence. */
  readonly name: string;
  /** The shipped file. */
  readonly file: string;
  /** A text that stands there once. */
  readonly find: string;
  /** What stands there instead. */
  readonly replace: string;
  /** The theorem that must be refuted. */
  readonly breaks: string;
}

/** A change after which every function answers as before for every argument in range. */
export interface Equivalent extends Omit<Planted, "breaks"> {
  /** The function that was changed. */
  readonly changes: string;
  /** Why nobody can tell. */
  readonly reason: string;
}

const POLICY = "lib/election/policy.ts";
const GATE = "lib/group/gate.ts";
const GRACE_PERIOD = "lib/manifests/grace_period.ts";

/** Mistakes that a theorem must catch. */
export const PLANTED: readonly Planted[] = [
  ...IN_POLICY.map((row) => mistakeIn(POLICY, row)),
  ...IN_GATE.map((row) => mistakeIn(GATE, row)),
  ...IN_GRACE_PERIOD.map((row) => mistakeIn(GRACE_PERIOD, row)),
];

/** Changes that nobody can tell, as the prover shows for each. */
export const EQUIVALENT: readonly Equivalent[] = [
  {
    name: "one hour exactly is multiplied instead of capped",
    file: POLICY,
    find: "recordSeconds >= quotient(MAX_LEASE_MS, 1000)",
    replace: "recordSeconds > quotient(MAX_LEASE_MS, 1000)",
    changes: "effectiveDurationMs",
    reason: "3,600 seconds times 1,000 is the cap",
  },
  {
    name: "an age of 0 comes from the other branch",
    file: POLICY,
    find: "nowMs >= changedAtMs ?",
    replace: "nowMs > changedAtMs ?",
    changes: "observedAgeMs",
    reason: "a difference of equal times is 0",
  },
  {
    name: "the count at the limit is compared for equality",
    file: POLICY,
    find: "mine || current >= MAX_TRANSITIONS",
    replace: "mine || current > MAX_TRANSITIONS - 1",
    changes: "nextTransitions",
    reason: "counts are integers",
  },
  {
    name: "row 3 asks for a difference only",
    file: GATE,
    find: "status.generation > gate.observedGeneration",
    replace: "status.generation !== gate.observedGeneration",
    changes: "effectiveGeneration",
    reason: "row 2 has dealt with every smaller one",
  },
  {
    name: "a sum that is exactly the highest comes from the other branch",
    file: GRACE_PERIOD,
    find: "other > MAX_GRACE_SECONDS - one",
    replace: "other >= MAX_GRACE_SECONDS - one",
    changes: "saturatingSum",
    reason: "that sum is the highest",
  },
];

function mistakeIn(file: string, [name, find, replace, breaks]: Row): Planted {
  return { name, file, find, replace, breaks };
}

/**
 * Plants a mistake.
 *
 * @throws {Error} What is to be replaced does not stand in the text exactly once.
 */
export function plant(text: string, { name, find, replace }: Planted | Equivalent): string {
  const parts = text.split(find);
  if (parts.length !== 2) {
    throw new Error(`Cannot plant '${name}' as '${find}' stands ${parts.length - 1} times there`);
  }
  return parts.join(replace);
}
