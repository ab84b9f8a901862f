/**
 * Wakes all who wait for a change.
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";

/** What ends a wait beside the change itself. */
export interface WaitLimits {
  /** Ends the wait when it aborts. The wait resolves all the same: the caller looks at the signal. */
  readonly signal?: AbortSignal;
  /** Ends the wait at a monotonic instant. */
  readonly until?: { readonly clock: Clock; readonly atMs: number };
}

/**
 * A counter of changes that can be waited for.
 *
 * Read {@linkcode Pulse.count} first, look at the state then, and wait for another count: so no change between the look
 * and the wait is missed.
 */
export class Pulse {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  /** How often it fired. */
  get count(): number {
    return this.#count;
  }

  /** Tells of a change. */
  fire(): void {
    this.#count++;
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves once the count is another than `since`, or at the first of the limits. It never rejects. */
  wait(since: number, limits: WaitLimits = {}): Promise<void> {
    const { signal, until } = limits;
    if (this.#count !== since || signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal?.removeEventListener("abort", wake);
        cancel?.();
        resolve();
      };
      const cancel = until?.clock.timer(Math.max(0, until.atMs - until.clock.monotonic()), wake);
      this.#waiting.add(wake);
      signal?.addEventListener("abort", wake);
    });
  }
}
