/**
 * What the body of a function may refer to, and what it leaves behind to be shown.
 *
 * @module
 */

import type { Type } from "./types.ts";
import type { Parameter } from "./values.ts";

/** Something that must hold for every input in range. */
export interface Obligation {
  /** A term over the parameters of the function. */
  readonly term: string;
  readonly line: number;
  /** What must hold, for people. */
  readonly what: string;
}

/** A function that can be called in a term. */
export interface Callee {
  readonly file: string;
  readonly name: string;
  readonly parameters: readonly Parameter[];
  readonly result: Type;
  /** The predicate over the same parameters that says which arguments are in range; `null` without one. */
  readonly range: string | null;
}

/** What a body may refer to. */
export interface Surroundings {
  findType(name: string): Type | undefined;
  /** A number with a name at the top of the file. */
  findConstant(name: string): number | undefined;
  findFunction(name: string): Callee | undefined;
  /** The symbol that stands for a string. */
  literal(text: string): string;
  /** False in theorems: they compute with unbounded integers, and may multiply two of them. */
  readonly shipped: boolean;
  /** The name of the function. Only two helpers may divide. */
  readonly functionName: string;
  /**
   * Takes the conclusion of this `implies(premise, conclusion)`, counted from 0, for false. A theorem that still holds
   * has a premise that no input fulfils.
   */
  readonly withoutConclusion: number | null;
}
