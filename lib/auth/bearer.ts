/**
 * The bearer token of a request: deploy-api 3.
 *
 * @module
 */

/** The longest token that is looked at, in bytes. */
export const MAX_TOKEN_BYTES = 16_384;

/**
 * Takes the token out of an `Authorization` header: two fields, the scheme `Bearer` in any case, and a token of at most
 * {@linkcode MAX_TOKEN_BYTES}.
 *
 * @param header The header as HTTP libraries give it: each byte one character. `null` and `undefined` when it is missing.
 * @returns The token, or `null`: 401 `unauthorized`, without a review.
 */
export function bearerToken(header: string | null | undefined): string | null {
  const fields = header?.split(/\s+/).filter((field) => field !== "") ?? [];
  const [scheme, token] = fields;
  if (fields.length !== 2 || scheme?.toLowerCase() !== "bearer" || token === undefined) return null;
  return token.length <= MAX_TOKEN_BYTES ? token : null;
}
