/**
 * How the engine of the shipped program keeps its memory small.
 *
 * Each request leaves garbage that lives for as long as the API server takes to answer: long enough to be taken for old. By
 * itself the engine lets that grow to many times what is in use before it looks. The service has little that is in use, so
 * looking early costs little: see docs/adr/0166.
 *
 * @module
 */

/** What V8 is told. */
export const ENGINE: readonly string[] = [
  // The old generation may grow by a tenth of what was in use, and not by a factor.
  "--heap-growing-percent=10",
  // Megabytes of a half of the young generation.
  "--max-semi-space-size=1",
];

/** The flag that tells Deno, for `run` and for `compile`. */
export const ENGINE_FLAG = `--v8-flags=${ENGINE.join(",")}`;
