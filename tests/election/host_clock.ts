/**
 * The clock of one machine among several: it can be stopped, suspended, and have its wall clock set.
 *
 * @module
 */

import type { CancelTimer, Clock } from "../../lib/runtime/clock.ts";
import type { TestClock } from "../../lib/testing/test_clock.ts";

/** `stopped`: the process stands still and time goes on (SIGSTOP). `suspended`: monotonic time stands still too. */
export type Standstill = "stopped" | "suspended";

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
  cancelled: boolean;
}

/** A machine's clock on top of the true time. While it stands still, none of its timers fires. */
export class HostClock implements Clock {
  readonly #truth: TestClock;
  #standstill: Standstill | null = null;
  #sinceMs = 0;
  #missedMs = 0;
  #wallOffsetMs = 0;
  readonly #held: Timer[] = [];

  constructor(truth: TestClock) {
    this.#truth = truth;
  }

  get stands(): boolean {
    return this.#standstill !== null;
  }

  monotonic(): number {
    const now = this.#standstill === "suspended" ? this.#sinceMs : this.#truth.monotonic();
    return now - this.#missedMs;
  }

  wall(): number {
    return this.#truth.wall() + this.#wallOffsetMs;
  }

  timer(delayMs: number, callback: () => void): CancelTimer {
    const timer = { dueMs: this.monotonic() + delayMs, callback, cancelled: false };
    this.#schedule(timer);
    return () => timer.cancelled = true;
  }

  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  stand(standstill: Standstill): void {
    this.#standstill = standstill;
    this.#sinceMs = this.#truth.monotonic();
  }

  goOn(): void {
    if (this.#standstill === "suspended") {
      this.#missedMs += this.#truth.monotonic() - this.#sinceMs;
    }
    this.#standstill = null;
    for (const timer of this.#held.splice(0)) this.#schedule(timer);
  }

  #schedule(timer: Timer): void {
    this.#truth.timer(Math.max(0, timer.dueMs - this.monotonic()), () => {
      if (timer.cancelled) return;
      if (this.#standstill !== null) this.#held.push(timer);
      else if (this.monotonic() < timer.dueMs) this.#schedule(timer);
      else timer.callback();
    });
  }
}
