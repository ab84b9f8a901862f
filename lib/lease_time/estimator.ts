/**
 * What time the API server's clock shows, from the `Date` headers of its answers: pure functions. State protocol 2.5.
 *
 * One answer bounds the server's clock from both sides. The header says whole seconds, rounded down, and the server wrote it
 * after the request was sent and before the answer was received. So at some instant between the two, the clock showed at
 * least `Date` and less than `Date` + 1 s. As an *offset* of the server's clock against our monotonic one:
 *
 *     Date − received ≤ offset < Date + 1 s − sent
 *
 * - Several answers from one steady clock all hold, so their **intersection** does, and it is narrow: the fractions of a
 *   second that `Date` leaves out differ.
 * - When no offset fits all of them, the clock was set, or there are several servers. Then the **hull** is taken: it holds
 *   the newest answer, whatever came before.
 * - Two clocks do not run at the same rate. A bound of age *a* is widened by *a* × {@linkcode MAX_DRIFT}.
 * - An answer counts for {@linkcode WINDOW_MS}.
 *
 * What is not covered: steps of less than about a second leave bounds that still fit together. Then the estimate is off
 * by up to the width of one answer's bound (1 s and its round trip) until the older bounds are out of the window.
 *
 * @module
 */

import type { AnswerObservation } from "../kube/api.ts";

/** How long an answer counts, in milliseconds. */
export const WINDOW_MS = 60_000;

/** How much two steady clocks may gain on each other, per unit of time: the fastest that NTP slews a clock. */
export const MAX_DRIFT = 500e-6;

/** Answers are kept together by this many milliseconds, so that a reading costs the same under any load. */
const BUCKET_MS = 1_000;

/** Bounds on the time that the API server's clock shows, in milliseconds since 1970. */
export interface LeaseTimeReading {
  /** It shows this or later: expiry is judged by it. */
  readonly earliestMs: number;
  /** It shows this or earlier: new expiries count from it. */
  readonly latestMs: number;
  /** Half the width. */
  readonly uncertaintyMs: number;
}

/** Bounds on the offset of the server's clock against the monotonic clock, in milliseconds. */
export interface OffsetBound {
  readonly lowMs: number;
  readonly highMs: number;
  /** The monotonic instant from which on the bound is widened. */
  readonly atMs: number;
}

/**
 * The bounds of some answers that came close to one another: the tightest and the widest of either side. The members are
 * those of an {@linkcode OffsetBound} brought to monotonic instant 0, so that bounds of different age compare.
 */
export interface BoundBucket {
  /** Which piece of {@linkcode WINDOW_MS} the answers came in. */
  readonly index: number;
  readonly lowestMs: number;
  readonly highestLowMs: number;
  readonly lowestHighMs: number;
  readonly highestMs: number;
}

/**
 * The bounds that one answer gives, or `null` when it has no readable `Date`, or instants that cannot be.
 */
export function offsetBound(answer: AnswerObservation): OffsetBound | null {
  const { sentMs, receivedMs, serverDateMs } = answer;
  if (serverDateMs === null || !(receivedMs >= sentMs) || !Number.isFinite(serverDateMs)) {
    return null;
  }
  return {
    lowMs: serverDateMs - receivedMs,
    // The server may have written the header at once, and its clock may have gained on ours since.
    highMs: serverDateMs + 1000 - sentMs + (receivedMs - sentMs) * MAX_DRIFT,
    atMs: receivedMs,
  };
}

/**
 * Adds a bound to the buckets of a window and drops those that are too old.
 *
 * @param buckets In any order; they are not changed.
 * @param nowMs The monotonic instant now.
 */
export function addBound(
  buckets: readonly BoundBucket[],
  bound: OffsetBound,
  nowMs: number,
): readonly BoundBucket[] {
  const low = bound.lowMs + bound.atMs * MAX_DRIFT;
  const high = bound.highMs - bound.atMs * MAX_DRIFT;
  const index = Math.floor(bound.atMs / BUCKET_MS);
  const same = buckets.find((bucket) => bucket.index === index);
  const merged: BoundBucket = {
    index,
    lowestMs: Math.min(same?.lowestMs ?? low, low),
    highestLowMs: Math.max(same?.highestLowMs ?? low, low),
    lowestHighMs: Math.min(same?.lowestHighMs ?? high, high),
    highestMs: Math.max(same?.highestMs ?? high, high),
  };
  return [...inWindow(buckets, nowMs).filter((bucket) => bucket.index !== index), merged];
}

/**
 * What the server's clock shows now, or `null` when no answer counts any more.
 *
 * @param nowMs The monotonic instant now, not before any bound's.
 */
export function estimate(
  buckets: readonly BoundBucket[],
  nowMs: number,
): LeaseTimeReading | null {
  const counted = inWindow(buckets, nowMs);
  if (counted.length === 0) return null;
  const widening = nowMs * MAX_DRIFT;
  const low = Math.max(...counted.map((bucket) => bucket.highestLowMs)) - widening;
  const high = Math.min(...counted.map((bucket) => bucket.lowestHighMs)) + widening;
  if (low <= high) return reading(nowMs + low, nowMs + high);
  return reading(
    nowMs + Math.min(...counted.map((bucket) => bucket.lowestMs)) - widening,
    nowMs + Math.max(...counted.map((bucket) => bucket.highestMs)) + widening,
  );
}

/** A reading of these bounds. */
export function reading(earliestMs: number, latestMs: number): LeaseTimeReading {
  return { earliestMs, latestMs, uncertaintyMs: (latestMs - earliestMs) / 2 };
}

/** A bucket counts until the first of its answers would be out of the window: never longer than one of them. */
function inWindow(buckets: readonly BoundBucket[], nowMs: number): readonly BoundBucket[] {
  return buckets.filter((bucket) => bucket.index * BUCKET_MS + WINDOW_MS >= nowMs);
}
