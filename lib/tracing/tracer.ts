/**
 * Spans as the rest of the code sees them: injected like the clock and the log, so that a test sees them in memory.
 *
 * Tracing is off unless somebody gives a {@linkcode Tracer}. Without one the work is called as if nothing stood between:
 * there is no tracer that does nothing.
 *
 * @module
 */

/** A value that a span can carry. Never a token, a hash or the text of an upstream error. */
export type SpanValue = string | number | boolean;

/** What is known of a piece of work at its start. */
export type SpanValues = Readonly<Record<string, SpanValue>>;

/** A piece of work under way, as a trace shows it. */
export interface Span {
  /** Adds what became known. */
  set(name: string, value: SpanValue): void;
  /** The work did not reach its end, although it does not throw. @param errorClass The name of the class of errors. */
  fail(errorClass: string): void;
}

/** Makes spans. It never throws by itself. */
export interface Tracer {
  /**
   * Runs a piece of work under a span, which ends with it. What the work starts belongs to that span, requests too.
   *
   * @returns What the work answers.
   * @throws What the work throws. The span then has the class of the error, and not its text.
   */
  span<R>(name: string, values: SpanValues, work: (span: Span) => Promise<R>): Promise<R>;
}
