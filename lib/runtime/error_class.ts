/**
 * What may be told of an error.
 *
 * @module
 */

/** The class of an error, for logs and spans: never its text, which may hold what must not be told. `unknown` is no error. */
export function errorClass(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}
