/**
 * Whether a failed request is sent again. Pure.
 *
 * A request is sent again only when it is certain that the server did not run it, or when running it twice does no harm:
 * - 401, once, when the credentials can be renewed: it was not run.
 * - 429, or 503 with `Retry-After`, at most three times, when that time fits into the call's own: it was not run.
 * - a read that got no answer, once, when the connection had served before: servers close idle connections.
 *
 * A write that got no answer is never sent again: it may have been stored.
 *
 * @module
 */

import type { KubeError } from "./errors.ts";

/** A request that failed. */
export interface Failure {
  readonly error: KubeError;
  /** False when the connection broke before the head of an answer came. */
  readonly answered: boolean;
  /** True when the connection had served the request before this one. */
  readonly servedBefore: boolean;
}

/** What was done for this call so far. */
export interface Tries {
  readonly refusals: number;
  readonly refreshed: boolean;
  readonly resent: boolean;
}

/** A call of which nothing was sent yet. */
export const NO_TRIES: Tries = { refusals: 0, refreshed: false, resent: false };

/** What is done about a failure. */
export type NextStep =
  | { readonly step: "fail" }
  | { readonly step: "refresh"; readonly tries: Tries }
  | { readonly step: "wait"; readonly waitMs: number; readonly tries: Tries }
  | { readonly step: "resend"; readonly tries: Tries };

/** How often a server may say "not now" before the caller is told. */
export const MAX_REFUSALS = 3;

/**
 * Decides what is done about a failed request.
 *
 * @param failure What happened.
 * @param writes True when the call changes what is stored.
 * @param tries What was done for the call so far.
 * @param leftMs Milliseconds until the call's time is over.
 */
export function nextStep(
  { error, answered, servedBefore }: Failure,
  writes: boolean,
  tries: Tries,
  leftMs: number,
): NextStep {
  if (!answered) {
    return !writes && servedBefore && !tries.resent
      ? { step: "resend", tries: { ...tries, resent: true } }
      : { step: "fail" };
  }
  if (error.status === 401 && !tries.refreshed) {
    return { step: "refresh", tries: { ...tries, refreshed: true } };
  }
  const refused = error.status === 429 || error.status === 503;
  const waitMs = error.retryAfterMs;
  if (refused && waitMs !== null && waitMs < leftMs && tries.refusals < MAX_REFUSALS) {
    return { step: "wait", waitMs, tries: { ...tries, refusals: tries.refusals + 1 } };
  }
  return { step: "fail" };
}
