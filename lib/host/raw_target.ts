/**
 * The request line as the client sent it.
 *
 * A URL folds `/./`, `/../` and `%2e%2e` away, and hono answers HEAD with the handler of GET. So what decides about paths
 * and methods reads the request line here, before any of that (design section 3, difference 17).
 *
 * @module
 */

import type { IncomingMessage } from "node:http";

/** What a listener hands to its handler beside the request: hono's bindings. */
export interface ListenerEnv {
  /** The request as the server read it. Absent where there is no socket: `app.request()` in tests. */
  readonly incoming?: Pick<IncomingMessage, "method" | "url" | "socket">;
}

/** A request line without its version. */
export interface RawTarget {
  /** As sent: in capitals for every standard method. */
  readonly method: string;
  /** Path and query, not decoded, not normalized. Scheme and authority of the absolute form are left out. */
  readonly target: string;
}

/** Scheme and authority of the absolute form, which every server must take (RFC 9112, 3.2.2). */
const SCHEME_AND_AUTHORITY = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;

/**
 * Gives the method and the target before any normalization.
 *
 * ```ts
 * import { Hono } from "hono";
 *
 * const app = new Hono<{ Bindings: ListenerEnv }>();
 * app.get("/livez", (c) => {
 *   const { method } = rawTarget(c.env, c.req.raw);
 *   return method === "GET" ? c.text("ok") : c.notFound(); // hono brings HEAD here too
 * });
 * ```
 *
 * @param env What the listener handed over; `c.env` in hono.
 * @param request Stands in where there is no socket. Its URL is already normalized.
 */
export function rawTarget(env: ListenerEnv | undefined, request: Request): RawTarget {
  const incoming = env?.incoming;
  const sent = incoming?.url ?? request.url;
  const path = sent.replace(SCHEME_AND_AUTHORITY, "");
  return {
    method: incoming?.method ?? request.method,
    target: path === sent || path.startsWith("/") ? path : `/${path}`,
  };
}
