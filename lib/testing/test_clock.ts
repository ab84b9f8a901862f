/**
 * A clock that stands still until a test moves it.
 *
 * @module
 */

// @ts-types="@types/sinonjs__fake-timers"
import FakeTimers from "@sinonjs/fake-timers";
import type { CancelTimer, Clock } from "../runtime/clock.ts";

/** What is used of the library's clock. Its own type does not say that an id that it gave fits what clears it. */
interface Timers {
  readonly now: number;
  setTimeout(callback: () => void, delayMs: number): unknown;
  clearTimeout(id: unknown): void;
  countTimers(): number;
  tickAsync(durationMs: number): Promise<number>;
}

/** The wall time at which a {@linkcode TestClock} starts unless told otherwise: 2026-01-01T00:00:00Z. */
export const TEST_EPOCH_MS = Date.UTC(2026, 0, 1);

/**
 * A {@linkcode Clock} for tests: nothing waits, and every run is the same.
 *
 * ```ts
 * const clock = new TestClock();
 * let rang = false;
 * clock.timer(5_000, () => rang = true);
 * await clock.advance(5_000); // rang is true, and promises that followed from it have settled
 * ```
 *
 * The wall clock follows the monotonic clock; {@linkcode TestClock.jumpWall} sets it apart, as a step of NTP or a paused
 * machine would.
 */
export class TestClock implements Clock {
  readonly #timers: Timers = FakeTimers.createClock(0);
  #wallOffsetMs: number;

  /** @param wallMs The wall time at the start, in milliseconds since 1970. @default {TEST_EPOCH_MS} */
  constructor(wallMs: number = TEST_EPOCH_MS) {
    this.#wallOffsetMs = wallMs;
  }

  monotonic(): number {
    return this.#timers.now;
  }

  wall(): number {
    return this.#timers.now + this.#wallOffsetMs;
  }

  timer(delayMs: number, callback: () => void): CancelTimer {
    const id = this.#timers.setTimeout(callback, Math.ceil(delayMs));
    return () => this.#timers.clearTimeout(id);
  }

  /**
   * Moves time on. Timers fire in order, each at its own instant, and the promises that they settle are followed before
   * the next one fires. In-process work settles; a real socket needs real time.
   *
   * @param durationMs Milliseconds, 0 or more; 0 only lets promises settle.
   */
  async advance(durationMs: number): Promise<void> {
    await this.#timers.tickAsync(durationMs);
  }

  /** Sets the wall clock on (or back, when negative) without moving monotonic time. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  /** How many timers wait. A test that ends with none has leaked none. */
  get pendingTimers(): number {
    return this.#timers.countTimers();
  }
}
