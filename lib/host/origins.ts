/**
 * Which pages may open a WebSocket: a browser lets every page try and sends the page's origin, so the server must judge.
 *
 * @module
 */

import { ANY_ORIGIN, webOrigin } from "../config/web_origin.ts";

/** What a request to open a WebSocket says of where it is from. */
export interface UpgradeOrigin {
  /** The `Origin` header. `null` where there is none: browsers always send it, programs rarely. */
  readonly origin: string | null;
  /** The `Host` header: whom the client thinks that it asks. `null` where there is none. */
  readonly host: string | null;
}

/** Says whether a request may open a WebSocket. */
export type OriginRule = (request: UpgradeOrigin) => boolean;

/**
 * The rule of a list (deploy-api 14): with `*` everybody may connect; else only the origins of the list, and a request
 * without an origin may not.
 *
 * @param list Origins, or `*`. What is neither allows nobody.
 */
export function allowedOrigins(list: readonly string[]): OriginRule {
  if (list.includes(ANY_ORIGIN)) return () => true;
  const allowed = new Set(list.map(webOrigin));
  return ({ origin }) => {
    const own = origin === null ? null : webOrigin(origin);
    return own !== null && allowed.has(own);
  };
}

/** The rule for a page's own WebSocket: the page was loaded from the host that it asks, with TLS in front of it or not. */
export const sameOrigin: OriginRule = ({ origin, host }) => {
  const own = origin === null ? null : webOrigin(origin);
  return own !== null &&
    ["http", "https"].some((scheme) => webOrigin(`${scheme}://${host}`) === own);
};
