/**
 * Resource versions as numbers that can be compared.
 *
 * Since Kubernetes 1.35 the resource versions of one store are decimal strings whose order is the order of the writes.
 * They are 64 bits wide, so they are compared as text: a JavaScript number would lose their last digits.
 *
 * @module
 */

const DECIMAL = /^[1-9][0-9]*$/;

/**
 * Compares two resource versions of the same store.
 *
 * @returns A negative number, 0 or a positive number as `a` is older than, the same as or newer than `b`; `null` when
 * one of them is not a decimal string without leading zeros, and so cannot be compared.
 */
export function compareVersions(a: string, b: string): number | null {
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return null;
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** True when both versions can be compared and `version` is older than `known`: the store went back in time. */
export function isRewound(version: string, known: string): boolean {
  const order = compareVersions(version, known);
  return order !== null && order < 0;
}
