/**
 * Z3, as a thing that is asked one question after the other and then goes away.
 *
 * @module
 */

import { init, killThreads } from "z3-solver";
import { type Expression, parseExpressions } from "./smt.ts";

/** How long one question may take, in milliseconds. What takes longer counts as not proven. */
const QUESTION_LIMIT_MS = 20_000;

/** Answers questions in SMT-LIB. Ends its threads when it is disposed of. */
export class Solver implements AsyncDisposable {
  readonly #z3: Awaited<ReturnType<typeof init>>;

  private constructor(z3: Awaited<ReturnType<typeof init>>) {
    this.#z3 = z3;
  }

  /** Loads Z3, which takes half a second and 160 MB. */
  static async start(): Promise<Solver> {
    return new Solver(await init());
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
      const limited = `(set-option :timeout ${QUESTION_LIMIT_MS})\n${script}`;
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
