/**
 * Asks the solver whether a theorem can be false.
 *
 * @module
 */

import type { SourceTexts } from "../checks/syntax.ts";
import { readInputs } from "./counter_example.ts";
import { and, apply, type Expression, symbol } from "./smt.ts";
import type { Solver } from "./solver.ts";
import type { Obligation } from "./surroundings.ts";
import { rolesOf, type Subject } from "./theorems.ts";
import { type TranslatedFunction, Translation } from "./translation.ts";
import { sortOf } from "./types.ts";
import { flatten, functionSymbol } from "./values.ts";

/** An argument of a call, as JavaScript has it. */
export type Argument = Scalar | Readonly<Record<string, Scalar>>;
/** One value. */
export type Scalar = number | boolean | string;

/** What became of a theorem. */
export type Verdict =
  | { readonly kind: "proven" }
  /** These arguments make it false. */
  | {
    readonly kind: "refuted";
    readonly inputs: readonly Argument[];
    /** The step that goes wrong, for a theorem about the steps of a function. */
    readonly broken: Obligation | null;
  }
  /** It holds, but no input fulfils a premise: it says nothing. */
  | { readonly kind: "empty" }
  /** The solver could not tell in time. */
  | { readonly kind: "unknown" };

/** One theorem. */
export interface Theorem {
  readonly name: string;
  /** What it says, in a sentence. */
  readonly statement: string;
  /** The function that must answer true, or whose steps must go well. */
  readonly subject: TranslatedFunction;
  /** True for one about each step of a function of the product. */
  readonly ofSteps: boolean;
}

/** One theorem, and what became of it. */
export interface Proof {
  readonly theorem: Theorem;
  readonly verdict: Verdict;
  readonly elapsedMs: number;
}

/** Simplifies before it searches, which is thirty times as fast as the search alone. */
const TACTIC = "(then simplify propagate-values solve-eqs elim-uncnstr smt)";

/** The theorems about one shipped file. */
export class Prover {
  readonly #solver: Solver;
  readonly #translation: Translation;
  /** All theorems, in the order of the files; those about steps come first. */
  readonly theorems: readonly Theorem[];

  /**
   * @param texts The files' texts.
   * @throws {OutsideSubsetError} The shipped file left the provable subset.
   */
  constructor(solver: Solver, subject: Subject, texts: SourceTexts) {
    this.#solver = solver;
    this.#translation = new Translation(texts, rolesOf(subject));
    const steps = this.#translation.functionsOf(subject.file)
      .filter(({ obligations }) => obligations.length > 0)
      .map((each): Theorem => ({
        name: `everyStepOf_${each.name}`,
        statement:
          "No step leaves the safe integers, divides by 0, or calls with arguments out of range.",
        subject: each,
        ofSteps: true,
      }));
    const said = this.#translation.functionsOf(subject.theorems)
      .filter(({ exported }) => exported)
      .map((each): Theorem => ({
        name: each.name,
        statement: each.documentation,
        subject: each,
        ofSteps: false,
      }));
    this.theorems = [...steps, ...said];
  }

  /**
   * Tries to prove a theorem.
   *
   * @param nowMs Tells the time, in milliseconds, to say how long it took.
   */
  async prove(theorem: Theorem, nowMs: () => number): Promise<Proof> {
    const startedMs = nowMs();
    const verdict = theorem.ofSteps
      ? await this.#proveSteps(theorem.subject)
      : await this.#proveStatement(theorem.subject);
    return { theorem, verdict, elapsedMs: nowMs() - startedMs };
  }

  async #proveStatement(subject: TranslatedFunction): Promise<Verdict> {
    const call = apply(functionSymbol(subject.file, subject.name), ...namesOf(subject));
    const variants = this.#translation.withoutConclusions(subject);
    const verdict = await this.#refute(subject, apply("not", call), []);
    if (verdict.kind !== "proven") return verdict;
    for (const variant of variants) {
      const weaker = apply("not", apply(variant, ...namesOf(subject)));
      const { kind } = await this.#refute(subject, weaker, []);
      if (kind === "proven") return { kind: "empty" };
      if (kind === "unknown") return { kind };
    }
    return verdict;
  }

  async #proveSteps(subject: TranslatedFunction): Promise<Verdict> {
    const { obligations, range } = subject;
    const inRange = range === null ? "true" : apply(range, ...namesOf(subject));
    const allHold = and(obligations.map(({ term }) => term));
    const verdict = await this.#refute(
      subject,
      apply("and", inRange, apply("not", allHold)),
      obligations,
    );
    if (verdict.kind !== "proven") return verdict;
    const { kind } = await this.#refute(subject, inRange, []);
    return kind === "refuted" ? verdict : { kind: kind === "proven" ? "empty" : kind };
  }

  /** Looks for inputs that make a term true. None is a proof. */
  async #refute(
    subject: TranslatedFunction,
    wanted: string,
    obligations: readonly Obligation[],
  ): Promise<Verdict> {
    const inputs = subject.parameters.flatMap(flatten);
    const numbers = inputs.filter(([, { kind }]) => kind === "integer");
    const literals = [...this.#translation.literals.keys()];
    const looked = [
      ...inputs.map(([name]) => symbol(name)),
      ...literals,
      ...obligations.map(({ term }) => term),
    ];
    const answers = await this.#solver.ask([
      this.#translation.script([wanted, ...looked]),
      ...inputs.map(([name, type]) => `(declare-const ${symbol(name)} ${sortOf(type)})`),
      ...numbers.map(([name]) => `(assert ${apply("safe", symbol(name))})`),
      `(assert ${wanted})`,
      `(check-sat-using ${TACTIC})`,
      ...(looked.length > 0 ? [`(get-value (${looked.join(" ")}))`] : []),
    ].join("\n"));
    const [answer, model] = answers;
    if (answer === "unsat") return { kind: "proven" };
    if (answer === "unknown") return { kind: "unknown" };
    if (answer !== "sat") {
      throw new Error(`Cannot ask about '${subject.name}': ${JSON.stringify(answers)}`);
    }
    const values = pairsOf(model);
    const named = new Map([...this.#translation.literals.values()].map((text, index) => {
      return [String(values[inputs.length + index]), text];
    }));
    const held = values.slice(inputs.length + literals.length);
    return {
      kind: "refuted",
      inputs: readInputs(subject.parameters, values, named),
      broken: obligations.find((_, index) => held[index] === "false") ?? null,
    };
  }
}

function namesOf({ parameters }: TranslatedFunction): string[] {
  return parameters.flatMap(flatten).map(([name]) => symbol(name));
}

/** The second of each pair in an answer of `get-value`. */
function pairsOf(model: Expression | undefined): Expression[] {
  if (model === undefined || typeof model === "string") return [];
  return model.map((pair) => typeof pair === "string" ? pair : pair[1] ?? "");
}
