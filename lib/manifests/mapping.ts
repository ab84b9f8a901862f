/**
 * Objects with members of any kind: values, and objects of the cluster.
 *
 * @module
 */

/** An object that is no list. */
export type Mapping = Readonly<Record<string, unknown>>;

/** True for an object that is no list. */
export function isMapping(value: unknown): value is Mapping {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
