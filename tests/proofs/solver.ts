/**
 * Z3, as a thing that is asked one question after the other and then goes away.
 *
 * @module
 */

import { init, killThreads } from "z3-solver";
import { type Expression, parseExpressions } from "./smt.ts";

/** How long one question may take, in milliseconds. What takes longer counts as not proven. */
const QUESTION_LIMIT_MS = 20_000;

type Z3 = Awaited<ReturnType<typeof init>>;

/** Answers questions in SMT-LIB. Ends its threads when it is disposed of. */
export class Solver implements AsyncDisposable {
  readonly #z3: Z3;
  readonly #limitMs: number;

  private constructor(z3: Z3, limitMs: number) {
    this.#z3 = z3;
    this.#limitMs = limitMs;
  }

  /**
   * Loads Z3, which takes half a second and 160 MB.
   *
   * @param limitMs How long one question may take, in milliseconds. @default {20000}
   */
  static async start(limitMs = QUESTION_LIMIT_MS): Promise<Solver> {
    return new Solver(await init(), limitMs);
  }

  /**
   * Runs a script in a fresh context.
   *
   * @returns What it printed.
   */
  async ask(script: string): Promise<Expression[]> {
    const { Z3 } = this.#z3;
    const config = Z3.mk_config();
    const context = Z3.mk_context(config);
    Z3.del_config(config);
    try {
      const limited = `(set-option :timeout ${this.#limitMs})\n${script}`;
      return parseExpressions(await Z3.eval_smtlib2_string(context, limited));
    } finally {
      Z3.del_context(context);
    }
  }

  /** Ends the threads of Z3, which a process would otherwise wait for. */
  async [Symbol.asyncDispose](): Promise<void> {
    await killThreads(this.#z3.em);
  }
}
