/**
 * The answers of the deployment API, to the byte: deploy-api 1.1, 1.5 and 2.
 *
 * @module
 */

import type { Refusal } from "../../lib/lease/rules.ts";
import { expiresAtMs } from "../../lib/records/record.ts";

const escapes: Readonly<Record<string, string>> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
};

/** Writes JSON as the reference's encoder does: five characters escaped, and a newline at the end. */
export function encodeJson(value: object): string {
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (found) => escapes[found] ?? found) +
    "\n";
}

/** The same value with the members of every object in alphabetical order: the form of a success. */
export function sortMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [
      name,
      sortMembers(member),
    ]),
  );
}

/** An answer with the headers that every answer carries. */
export function answer(
  status: number,
  body: object | null,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(body === null ? null : encodeJson(body), {
    status,
    headers: { "Content-Type": "application/json", "Cache-Control": "no-store", ...headers },
  });
}

/** A success: its members in alphabetical order. */
export function success(
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return answer(status, Object(sortMembers(body)), headers);
}

/** The answers that say nothing but their name. */
export const simpleErrors = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_too_large: 413,
  not_leader: 503,
  unavailable: 503,
} as const;

/** The name of a {@linkcode simpleErrors} answer. */
export type SimpleError = keyof typeof simpleErrors;

/** How soon a caller should come back: difference 16. Which is a promise of nothing. */
const RETRY_SOON = { "Retry-After": "1" };

/** A simple error answer. `not_leader` closes the connection, so that a client does not stick to a follower. */
export function simpleError(name: SimpleError, headers: Readonly<Record<string, string>> = {}) {
  const status = simpleErrors[name];
  return answer(status, { error: name }, {
    ...(status === 503 ? RETRY_SOON : {}),
    ...(name === "not_leader" ? { Connection: "close" } : {}),
    ...headers,
  });
}

/**
 * The answer to a refused lease request.
 *
 * @param nowMs The latest that the API server's clock can show: `Retry-After` of 409 `held` counts from it.
 */
export function refusalAnswer(refusal: Refusal, nowMs: number): Response {
  switch (refusal.type) {
    case "forbidden":
    case "not_found":
    case "unavailable":
      return simpleError(refusal.type);
    case "token_mismatch":
      return answer(403, { error: "token_mismatch" });
    case "held": {
      const { expiresAt, instance, operationId } = refusal.by;
      const seconds = Math.max(1, Math.ceil((expiresAtMs(refusal.by) - nowMs) / 1000));
      return answer(409, { error: "held", holder: { expiresAt, instance, operationId } }, {
        "Retry-After": String(seconds),
      });
    }
    case "revoked":
      return answer(409, {
        error: "revoked",
        reason: refusal.reason,
        ...(refusal.generation === 0 ? {} : { topologyGeneration: refusal.generation }),
      });
    case "unstable":
      return answer(
        423,
        { error: "unstable", reason: refusal.reason, retryAfterSeconds: 1 },
        RETRY_SOON,
      );
  }
}
