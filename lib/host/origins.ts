/**
 * Which pages may open a WebSocket: a browser sends the page's origin and lets any page try, so the server must judge.
 *
 * @module
 */

/** What a request to open a WebSocket says of where it is from. */
export interface UpgradeOrigin {
  /** The `Origin` header. `null` where there is none: browsers always send it, programs rarely. */
  readonly origin: string | null;
  /** The `Host` header: who the client thinks that it asks. */
  readonly host: string | null;
}

/** Says whether a request may open a WebSocket. */
export type OriginRule = (request: UpgradeOrigin) => boolean;

/** Stands for every origin in a list. */
export const ANY_ORIGIN = "*";

/** Says whether a text is an origin: scheme and host, and a port where it is not the scheme's own. */
export function isOrigin(text: string): boolean {
  return /^https?:\/\/[^/?#@\s]+$/i.test(text) && normalized(text) !== null;
}

/**
 * The rule of a list (deploy-api 14): with `*` everybody may connect; else only the origins of the list, and a request
 * without an origin may not.
 *
 * @param list Origins, or `*`.
 */
export function allowedOrigins(list: readonly string[]): OriginRule {
  if (list.includes(ANY_ORIGIN)) return () => true;
  const allowed = new Set(list.map(normalized));
  return ({ origin }) => {
    const own = origin === null ? null : normalized(origin);
    return own !== null && allowed.has(own);
  };
}

/** The rule for a page's own WebSocket: the page was loaded from the host that it asks, over plain HTTP or behind TLS. */
export const sameOrigin: OriginRule = ({ origin, host }) => {
  if (origin === null || host === null || host === "") return false;
  const own = normalized(origin);
  return own !== null &&
    [`http://${host}`, `https://${host}`].some((page) => normalized(page) === own);
};

/** One text for one origin: lower case, and without the scheme's own port. `null` for what is no web origin. */
function normalized(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { origin } = new URL(text);
  return origin === "null" ? null : origin;
}
