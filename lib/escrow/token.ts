/**
 * The token of a site: deploy-api 13. Pure.
 *
 * It is a secret of its own, in a Secret beside the keyring, and no token of a service account: nobody reviews it.
 *
 * @module
 */

import { isSameHash, sha256Hex } from "../records/sha256.ts";
import { decodeBase64 } from "./keyring.ts";

/** What stands for the token of a site that does not exist, so that its request costs the same work. Nobody can send it. */
const NOBODYS_TOKEN = "";

/**
 * Takes the token out of an `Authorization` header: the scheme `Bearer` in any case, and the rest of the header, trimmed.
 *
 * @returns The token, or `null` when there is none.
 */
export function escrowBearer(header: string | null): string | null {
  const token = /^bearer\s(.*)$/is.exec(header?.trim() ?? "")?.[1]?.trim() ?? "";
  return token === "" ? null : token;
}

/**
 * Reads the token of a site from its Secret.
 *
 * @param encoded The value of its key, in base64.
 * @returns 64 hexadecimal digits, or `null`: a Secret without a usable token lets nobody in.
 */
export function readToken(encoded: string | undefined): string | null {
  const bytes = decodeBase64(encoded ?? "");
  const token = bytes === null ? "" : new TextDecoder().decode(bytes).trim();
  return /^[0-9a-f]{64}$/i.test(token) ? token : null;
}

/**
 * Compares a token that was sent with the one of the site. It takes the same time whatever they are: their hashes are
 * compared to the last byte, also when there is no such site.
 */
export function tokenMatches(sent: string, expected: string | null): boolean {
  const isSame = isSameHash(sha256Hex(sent), sha256Hex(expected ?? NOBODYS_TOKEN));
  return isSame && expected !== null;
}
