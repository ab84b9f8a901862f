/**
 * The origin of a web page, as it is written in the configuration and sent by browsers.
 *
 * @module
 */

/** Stands for every origin in a list. */
export const ANY_ORIGIN = "*";

/** Scheme and host, and a port where it is not the scheme's own. */
const ORIGIN = /^https?:\/\/[^/?#@\\\s]+$/i;

/**
 * Reads an origin.
 *
 * @returns One text for one origin: in lower case, and without the scheme's own port. `null` for what is none.
 */
export function webOrigin(text: string): string | null {
  return ORIGIN.test(text) && URL.canParse(text) ? new URL(text).origin : null;
}
