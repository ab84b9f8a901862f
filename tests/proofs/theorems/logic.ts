/**
 * What theorems are made of. A theorem is a function of the provable subset that answers true for every input: the prover
 * translates it together with the functions that it calls, and a counter-example is a plain call of it.
 *
 * @module
 */

/** The latest time, in milliseconds on the clock of a process, that the proofs cover: 71,000 years. */
export const LATEST_MS = 2_251_799_813_685_248;

/** The highest generation that the proofs cover. An operator that counts every millisecond needs 71,000 years for it. */
export const HIGHEST_GENERATION = 2_251_799_813_685_248;

/** The longest duration, in seconds, that manifests can tell: the highest integer that a number of JavaScript holds exactly. */
export const HIGHEST_SECONDS = 9_007_199_254_740_991;

/** Says that a conclusion holds wherever its premise does. The prover also shows that each premise can be fulfilled. */
export function implies(premise: boolean, conclusion: boolean): boolean {
  return !premise || conclusion;
}

/** A moment on the monotonic clock of a process. */
export function isTime(ms: number): boolean {
  return ms >= 0 && ms <= LATEST_MS;
}

/** A difference between two clocks. */
export function isOffset(ms: number): boolean {
  return ms >= -LATEST_MS && ms <= LATEST_MS;
}

/** A duration of a manifest. */
export function isSeconds(seconds: number): boolean {
  return seconds >= 0 && seconds <= HIGHEST_SECONDS;
}

/** A generation that an operator or a gate has counted. */
export function isGeneration(count: number): boolean {
  return count >= 0 && count <= HIGHEST_GENERATION;
}
