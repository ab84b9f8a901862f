/**
 * Who this program is to the API server.
 *
 * @module
 */

/** Gives each request the headers that say who sends it. */
export interface Credentials {
  /**
   * The headers of the next request. Their values are secret.
   *
   * @param signal Ends the wait for them.
   */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /**
   * Gets the credentials anew, after the server refused them (401).
   *
   * @param signal Ends the wait for them.
   * @returns True when it is worth to send the request once again.
   */
  refresh(signal: AbortSignal): Promise<boolean>;
}

/** Credentials that are a part of the connection (a client certificate), or none at all. */
export const NO_CREDENTIALS: Credentials = {
  headers: () => Promise.resolve({}),
  refresh: () => Promise.resolve(false),
};

/**
 * A bearer token that does not change.
 *
 * @param token The token, without the word `Bearer`.
 */
export function staticToken(token: string): Credentials {
  const headers = { authorization: `Bearer ${token}` };
  return {
    headers: () => Promise.resolve(headers),
    refresh: () => Promise.resolve(false),
  };
}
