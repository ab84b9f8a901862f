/**
 * What a token says of itself, before anyone has checked it.
 *
 * It is never believed, only held against the token: one that says that it has expired, or that it is for somebody else,
 * would be refused by a review too. So a flood of such tokens costs the API server nothing (difference 12).
 *
 * @module
 */

import { z } from "zod";

/**
 * How far this machine's clock may be ahead, in milliseconds, before it would refuse a token that is still good. A token
 * that is let through wrongly costs one review; one that is refused wrongly costs a deployment.
 */
export const EXPIRY_LEEWAY_MS = 60_000;

const claimsSchema = z.looseObject({
  exp: z.number().optional().catch(undefined),
  sub: z.string().optional().catch(undefined),
  aud: z.union([z.string().transform((one) => [one]), z.array(z.string())]).optional()
    .catch(undefined),
});

/**
 * True when a token is a JWT whose own claims say that a review must refuse it. False for anything else, also for what is
 * no JWT at all: then a review decides.
 *
 * @param audience The audience that is asked for. A JWT without `aud` (an old kind of token) is not refused here.
 * @param wallMs This machine's wall clock. It is the one place where it takes part in a refusal, with
 * {@linkcode EXPIRY_LEEWAY_MS}; lease time may not be known yet when the first request comes.
 */
export function refusedByOwnClaims(token: string, audience: string, wallMs: number): boolean {
  const claims = readClaims(token);
  if (claims === null) return false;
  if (claims.exp !== undefined && claims.exp * 1000 + EXPIRY_LEEWAY_MS <= wallMs) return true;
  return claims.aud !== undefined && claims.aud.length > 0 && !claims.aud.includes(audience);
}

/** What a token says of itself. Times are seconds since 1970. */
export type TokenClaims = z.infer<typeof claimsSchema>;

/** Reads what a token says of itself; `null` when it is no JWT. Its signature is not looked at. */
export function readClaims(token: string): TokenClaims | null {
  const parts = token.split(".");
  const payload = parts[1];
  if (parts.length !== 3 || payload === undefined) return null;
  try {
    const bytes = Uint8Array.fromBase64(payload, { alphabet: "base64url" });
    const claims = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return claimsSchema.safeParse(claims).data ?? null;
  } catch {
    return null; // No JWT: the review decides.
  }
}
