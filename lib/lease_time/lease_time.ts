/**
 * Lease time: the API server's clock, as far as this process knows it. State protocol 2.5.
 *
 * A leader with a wrong clock would take a living lease from its holder. So no decision reads this machine's clock: expiry
 * is judged by the earliest time that the server's clock can show, and new expiries count from the latest.
 *
 * @module
 */

import type { AnswerObservation } from "../kube/api.ts";
import type { Clock } from "../runtime/clock.ts";
import {
  addBound,
  type BoundBucket,
  estimate,
  type LeaseTimeReading,
  offsetBound,
  reading,
} from "./estimator.ts";

/** The time, as far as it is known: the API server's clock shows a value from `earliestMs` to `latestMs`. */
export interface LeaseInstant {
  /** Milliseconds since 1970; expiry is judged by it. */
  readonly earliestMs: number;
  /** Milliseconds since 1970; new expiries count from it. */
  readonly latestMs: number;
  /** False when the two are too far apart (`max_clock_offset`): then nobody's expired lease is taken away. */
  readonly certain: boolean;
}

export type { LeaseTimeReading };

/** Milliseconds by which the two clocks of this machine may part before what was learnt is dropped. */
const MAX_JUMP_MS = 1_000;

/** Where decisions take the time from. */
export interface LeaseClock {
  /**
   * Bounds on the time now, or `null` when they are not known: no answer of the API server in the last minute, or the
   * machine was paused or its clock set since. Any call to the API server ends that.
   */
  reading(): LeaseTimeReading | null;
}

/** Learns lease time from the answers of the API server. Give {@linkcode LeaseTime.observe} to the `KubeApi`. */
export class LeaseTime implements LeaseClock {
  readonly #clock: Clock;
  #buckets: readonly BoundBucket[] = [];
  /** Wall clock minus monotonic clock when this was last looked at. */
  #wallOffsetMs: number;
  /** Answers to requests that were sent up to this monotonic instant do not count. */
  #countsFromMs: number;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
    this.#wallOffsetMs = clock.wall() - clock.monotonic();
    this.#countsFromMs = -Infinity;
  }

  /** Takes an answer into account. It can be handed over as it is: `new HttpApi({ observer: leaseTime.observe, … })`. */
  readonly observe = (answer: AnswerObservation): void => {
    this.#dropAfterJump();
    const bound = offsetBound(answer);
    // Over a pause the monotonic clock stood still: such an answer would say that the server's clock is behind.
    if (bound === null || answer.sentMs <= this.#countsFromMs) return;
    this.#buckets = addBound(this.#buckets, bound, this.#clock.monotonic());
  };

  reading(): LeaseTimeReading | null {
    this.#dropAfterJump();
    return estimate(this.#buckets, this.#clock.monotonic());
  }

  /**
   * Seconds by which this machine's wall clock is ahead of lease time (behind, when negative), for
   * `holdfast_clock_offset_seconds`; `null` while lease time is not known.
   */
  offsetSeconds(): number | null {
    const now = this.reading();
    return now && (this.#clock.wall() - (now.earliestMs + now.latestMs) / 2) / 1000;
  }

  /** Seconds of uncertainty, for `holdfast_clock_uncertainty_seconds`; `null` while lease time is not known. */
  uncertaintySeconds(): number | null {
    const now = this.reading();
    return now && now.uncertaintyMs / 1000;
  }

  /** A paused machine shows itself by a wall clock that went on while the monotonic one stood still. */
  #dropAfterJump(): void {
    const monotonicMs = this.#clock.monotonic();
    const wallOffsetMs = this.#clock.wall() - monotonicMs;
    if (Math.abs(wallOffsetMs - this.#wallOffsetMs) > MAX_JUMP_MS) {
      this.#buckets = [];
      this.#countsFromMs = monotonicMs;
    }
    this.#wallOffsetMs = wallOffsetMs;
  }
}

/**
 * The time of the API server; this machine's own where no answer told it. For a view only: what is written is judged by
 * lease time alone.
 */
export function timeForView(clock: Pick<Clock, "wall">, leaseTime: LeaseClock): LeaseInstant {
  const found = leaseTime.reading();
  if (found === null) {
    const now = clock.wall();
    return { earliestMs: now, latestMs: now, certain: false };
  }
  return { earliestMs: found.earliestMs, latestMs: found.latestMs, certain: true };
}

/** One instant for a reading, in milliseconds since 1970. For a view only, as the reading itself. */
export function middleOf({ earliestMs, latestMs }: LeaseInstant): number {
  return (earliestMs + latestMs) / 2;
}

/** Lease time without uncertainty: the clock's own wall time. For tests, where the API server has the same clock. */
export function exactLeaseTime(clock: Clock): LeaseClock {
  return {
    reading() {
      const now = clock.wall();
      return reading(now, now);
    },
  };
}
