/**
 * What may be told of a fault of the platform.
 *
 * @module
 */

/** The platform's name of a fault: letters alone, so that no text of another program comes through. Else empty. */
export function safeFaultCode(code: unknown): string {
  return typeof code === "string" && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : "";
}
