/**
 * Requests to an API server with nothing in between: for the set-up of a cluster, and for the tests of what the server
 * does with requests that `KubeApi` rules out.
 *
 * @module
 */

import type { SendRequest } from "../../lib/kube/mod.ts";

/** An answer as it came. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The decoded JSON, or the text when it is not JSON. */
  readonly body: unknown;
}

/** What a request carries beside its method and path. */
export interface RawRequest {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, where there is no `body`. */
  readonly text?: string;
  /** @default {"application/json"} */
  readonly contentType?: string;
}

/** Sends one request. `path` is the path with its query. It rejects when no answer comes within 30 s. */
export type RawClient = (method: string, path: string, request?: RawRequest) => Promise<RawAnswer>;

const LIMIT_MS = 30_000;

/**
 * Makes a client.
 *
 * @param url The base URL of the server, without a slash at its end.
 * @param send Sends a request: with a certificate, in process, or however.
 * @param token The bearer token, where the connection itself says nothing of the user.
 */
export function rawClient(url: string, send: SendRequest, token?: string): RawClient {
  return async (method, path, request = {}) => {
    const headers = new Headers({ accept: "application/json" });
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    const body = request.body === undefined ? request.text : JSON.stringify(request.body);
    if (body !== undefined) {
      headers.set("content-type", request.contentType ?? "application/json");
    }
    const controller = new AbortController();
    const timer = setTimeout(
      () => controller.abort(new Error(`Cannot ${method} ${path}: no answer in ${LIMIT_MS} ms`)),
      LIMIT_MS,
    );
    try {
      const response = await send(
        new Request(`${url}${path}`, {
          method,
          headers,
          body,
          signal: controller.signal,
        }),
      );
      const text = await response.text();
      return { status: response.status, headers: response.headers, body: decode(text) };
    } finally {
      clearTimeout(timer);
    }
  };
}

/**
 * Insists on success: for a step that a test only prepares with.
 *
 * @throws {Error} The answer has another status than 2xx; the error holds the answer's text.
 */
export function mustSucceed(answer: RawAnswer, what: string): RawAnswer {
  if (answer.status >= 200 && answer.status < 300) return answer;
  throw new Error(`Cannot ${what}: status ${answer.status}: ${JSON.stringify(answer.body)}`);
}

/** Reads the member at `path` of decoded JSON; `undefined` where there is none. */
export function member(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value;
  for (const step of path) {
    if (typeof current !== "object" || current === null) return undefined;
    current = new Map(Object.entries(current)).get(String(step));
  }
  return current;
}

function decode(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
