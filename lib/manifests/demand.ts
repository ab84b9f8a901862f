/**
 * What is wrong with the wishes that manifests are made from, and how it is told.
 *
 * @module
 */

import { isDnsLabel } from "../config/rules.ts";

/** Manifests cannot be made from what is wished. The message names the field, its value, and what would be right. */
export class ManifestError extends RangeError {
  override readonly name = "ManifestError";
  /** The field that is wrong. */
  readonly field: string;

  /** @param field The field. @param message What is wrong with it. */
  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/**
 * Refuses a value that is not right.
 *
 * @param what What cannot be made of it, such as "a Role".
 * @param right Whether the value is right.
 * @param wish What would be right, to follow "must be".
 * @throws {ManifestError} It is not.
 */
export function demand(
  what: string,
  field: string,
  value: unknown,
  right: boolean,
  wish: string,
): void {
  if (right) return;
  const shown = typeof value === "number" ? String(value) : JSON.stringify(value);
  throw new ManifestError(
    field,
    `Cannot make ${what} as '${field}' must be ${wish}: current value is ${shown}`,
  );
}

/**
 * Refuses a name that is no DNS-1035 label, which a Service needs, or a namespace that is no DNS-1123 label.
 *
 * @throws {ManifestError} One of the two is not.
 */
export function demandSubject(what: string, name: string, namespace: string): void {
  const isName = isDnsLabel(name) && /^[a-z]/.test(name);
  demand(what, "name", name, isName, "a DNS label that begins with a letter");
  demand(what, "namespace", namespace, isDnsLabel(namespace), "a DNS label");
}
