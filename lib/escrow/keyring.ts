/**
 * What becomes of a keyring: which payload is one, which version it gets, and which versions go. Pure.
 *
 * Versions are numbers in the names of Secrets, and a name exists once. So two replicas that store at the same time cannot
 * take one number, and numbers only rise. From that follows why a stale list does no harm: what is not among the newest
 * versions of one list is not among those of a later list either.
 *
 * @module
 */

import { sha256 } from "@noble/hashes/sha2.js";
import { toHex } from "../runtime/entropy.ts";

/** The most bytes that a keyring may have, and the most that the body of a request may have. */
export const MAX_KEYRING_BYTES: number = 256 * 1024;

/** How many versions of a keyring are kept: deploy-api 13. */
export const KEPT_VERSIONS = 5;

/** What a payload comes to. */
export type Payload =
  | { readonly type: "ok"; readonly keyring: string; readonly digest: string }
  | { readonly type: "not_base64" | "empty" | "too_large" | "digest_mismatch" };

/**
 * Reads a keyring that was sent.
 *
 * @param encoded Standard base64, padded. Line breaks in it count for nothing.
 * @param claimed The digest that the sender says it has: `sha256:` and 64 hexadecimal digits, or the digits alone. Empty
 * when it says none.
 * @returns The keyring in base64 without line breaks, with its digest.
 */
export function readPayload(encoded: string, claimed: string): Payload {
  const keyring = encoded.replace(/[\r\n]/g, "");
  const bytes = decodeBase64(keyring);
  if (bytes === null) return { type: "not_base64" };
  if (bytes.length === 0) return { type: "empty" };
  if (bytes.length > MAX_KEYRING_BYTES) return { type: "too_large" };
  const digest = digestOf(bytes);
  const wanted = claimed.toLowerCase();
  if (wanted !== "" && wanted !== digest && `sha256:${wanted}` !== digest) {
    return { type: "digest_mismatch" };
  }
  return { type: "ok", keyring, digest };
}

/** The digest of what a Secret holds; `null` when it holds no base64. */
export function storedDigest(encoded: string | undefined): string | null {
  const bytes = decodeBase64(encoded ?? "");
  return bytes === null ? null : digestOf(bytes);
}

/** Decodes standard, padded base64; `null` when it is none. */
export function decodeBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${toHex(sha256(bytes))}`;
}

/** One version, as a list shows it. */
export interface KeyringVersion {
  readonly version: number;
  /** The uid of its Secret. */
  readonly uid: string;
  /** The digest of what it holds, `null` when it holds nothing that can be read. */
  readonly digest: string | null;
  /** True when the group as it is now controls it, and nobody deletes it: it stays as long as the group. */
  readonly lasting: boolean;
}

/** What is to be done with a keyring. */
export type VersionDecision =
  /** The newest version holds it. */
  | { readonly type: "stored"; readonly version: number }
  /** It is to become this version. */
  | { readonly type: "create"; readonly version: number };

/**
 * Decides from a list of versions.
 *
 * @param versions All that exist, in any order.
 * @param taken The highest number that was found to be taken, though no list showed it; 0 when there is none.
 */
export function decideVersion(
  versions: readonly KeyringVersion[],
  digest: string,
  taken: number,
): VersionDecision {
  const [newest] = newestFirst(versions);
  if (newest?.lasting && newest.digest === digest) {
    return { type: "stored", version: newest.version };
  }
  return { type: "create", version: Math.max(newest?.version ?? 0, taken) + 1 };
}

/**
 * True when a version that was just written is among those that are kept, in a list that was made after the write.
 *
 * A write that was long under way may arrive when newer versions have come and its number has been cleared away: it would
 * be removed at once, and its keyring would be lost.
 */
export function isKept(versions: readonly KeyringVersion[], uid: string): boolean {
  return lastingNewestFirst(versions).slice(0, KEPT_VERSIONS).some((found) => found.uid === uid);
}

/** The versions that go: the group's own, but for the newest {@linkcode KEPT_VERSIONS}. */
export function outdated<V extends KeyringVersion>(versions: readonly V[]): readonly V[] {
  return lastingNewestFirst(versions).slice(KEPT_VERSIONS);
}

function lastingNewestFirst<V extends KeyringVersion>(versions: readonly V[]): V[] {
  return newestFirst(versions.filter(({ lasting }) => lasting));
}

function newestFirst<V extends KeyringVersion>(versions: readonly V[]): V[] {
  return [...versions].sort((a, b) => b.version - a.version);
}
