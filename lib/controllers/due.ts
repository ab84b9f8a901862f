/**
 * When to look at a group again: pure functions.
 *
 * Lease time is known within bounds that narrow with every answer. So the moment at which an expiry is certain cannot be
 * told ahead: the wait goes to the first moment at which it can be, and from there in small steps, none of which asks the
 * API server.
 *
 * @module
 */

import type { LeaseTimeReading } from "../lease_time/estimator.ts";
import type { Due } from "./group_controller.ts";

/** The longest wait in one piece, in milliseconds: timers of a longer time are not portable. */
export const LONGEST_WAIT_MS = 600_000;
/** The step while an instant has perhaps passed: half of the 100 ms within which an expiry is to be stored. */
const STEP_MS = 50;
/** The wait while lease time is not known. */
const UNKNOWN_TIME_MS = 1_000;

/** An instant to wait for: lease time in milliseconds since 1970, or monotonic milliseconds. */
export type Instant =
  | { readonly type: "lease_time"; readonly afterMs: number }
  | { readonly type: "monotonic"; readonly atMs: number };

/** Fixes what a controller asked for at the time at which it asked. */
export function instantsOf({ afterMs, inMs }: Due, monotonicMs: number): readonly Instant[] {
  const instants: Instant[] = [];
  if (afterMs !== undefined) instants.push({ type: "lease_time", afterMs });
  if (inMs !== undefined) instants.push({ type: "monotonic", atMs: monotonicMs + inMs });
  return instants;
}

/**
 * Milliseconds to wait before the instant is looked at again; 0 when it has come.
 *
 * @param reading Lease time as it is known now, or `null`.
 */
export function waitMs(
  instant: Instant,
  reading: LeaseTimeReading | null,
  monotonicMs: number,
): number {
  if (instant.type === "monotonic") return atMost(instant.atMs - monotonicMs);
  if (reading === null) return UNKNOWN_TIME_MS;
  if (reading.earliestMs > instant.afterMs) return 0;
  // An instant has passed only when it is over, so that the equal millisecond still counts (deploy-api 7).
  const untilPossible = instant.afterMs - reading.latestMs + 1;
  if (untilPossible > 0) return atMost(untilPossible);
  return Math.min(STEP_MS, instant.afterMs - reading.earliestMs + 1);
}

function atMost(ms: number): number {
  return Math.max(0, Math.min(ms, LONGEST_WAIT_MS));
}
