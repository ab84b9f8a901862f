/**
 * Randomness that comes out the same in every run.
 *
 * @module
 */

import type { Entropy } from "../runtime/entropy.ts";
import { toHex } from "../runtime/entropy.ts";

/**
 * An {@linkcode Entropy} that follows from a seed, so that a test or a simulation can be run again. It is **not** secret:
 * whoever sees some of its numbers can compute the next.
 *
 * The generator is SplitMix32: a counter through a mixing function, even enough for jitter, names and test keys.
 *
 * @param seed Any number; its lower 32 bits count. The same seed gives the same sequence.
 */
export function seededEntropy(seed: number): Entropy {
  let counter = seed >>> 0;

  function next(): number {
    counter = (counter + 0x9e3779b9) >>> 0;
    let mixed = counter;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  }

  function bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => next() >>> 24);
  }

  function uuid(): string {
    const raw = bytes(16);
    // Version 4 and the variant of RFC 9562 have fixed bits.
    raw[6] = ((raw[6] ?? 0) & 0x0f) | 0x40;
    raw[8] = ((raw[8] ?? 0) & 0x3f) | 0x80;
    return toHex(raw).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }

  return { bytes, uuid, fraction: () => next() / 0x1_0000_0000 };
}
