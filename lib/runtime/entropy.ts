/**
 * Randomness as the rest of the code sees it: injected like the clock, so that a simulation can be run again from a seed.
 *
 * @module
 */

/** A source of randomness. The one of production is cryptographic for all three. */
export interface Entropy {
  /** `length` random bytes. */
  bytes(length: number): Uint8Array;
  /** A random UUID, version 4, in lower case. */
  uuid(): string;
  /** A number of 0 or more and below 1: for jitter, never for secrets. */
  fraction(): number;
}

/** Writes bytes as lower-case hexadecimal digits, two a byte. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
