/**
 * The one hash of this project, in the one form in which it is stored.
 *
 * @module
 */

import { sha256 } from "@noble/hashes/sha2.js";
import { toHex } from "../runtime/entropy.ts";

const utf8 = new TextEncoder();

/** SHA-256 of the UTF-8 form of a text, as 64 lower-case hexadecimal digits. */
export function sha256Hex(text: string): string {
  return toHex(sha256(utf8.encode(text)));
}

/** True for equal hashes. The time it takes does not depend on where they differ, so that answers tell nothing about one. */
export function isSameHash(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let index = 0; index < a.length; index++) {
    difference |= a.charCodeAt(index) ^ b.charCodeAt(index);
  }
  return difference === 0;
}
