/**
 * Time as the rest of the code sees it.
 *
 * Nothing outside `handlers/commands` reads a clock or sets a timer by itself: it gets a {@linkcode Clock}. So one test
 * clock drives everything, and a simulation runs the shipped code.
 *
 * @module
 */

/** Stops a timer. Calling it again, or after the timer fired, does nothing. */
export type CancelTimer = () => void;

/** The two clocks of a machine, and its timers. */
export interface Clock {
  /**
   * Milliseconds on a clock that never goes back and that nobody sets. Its zero has no meaning: only differences do.
   * Every deadline and every age is counted on it.
   */
  monotonic(): number;
  /**
   * Milliseconds since 1970-01-01T00:00:00Z, as this machine believes. For people, log lines and bounds on the server's
   * time: never for a decision.
   */
  wall(): number;
  /**
   * Calls `callback` once, `delayMs` milliseconds from now (0 or more; a fraction is rounded up).
   *
   * @returns A function that stops the timer.
   */
  timer(delayMs: number, callback: () => void): CancelTimer;
}

/**
 * Waits, or ends early when `signal` aborts.
 *
 * @param clock The clock that counts.
 * @param delayMs Milliseconds, 0 or more.
 * @param signal Ends the wait early: the promise then rejects with the signal's reason.
 */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.timer(delayMs, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** A limit on time that must be given back when the work is done, so that no timer outlives it. */
export interface Deadline extends Disposable {
  /** Aborts with the deadline's reason when the time is over, or with the parent's reason when that aborts first. */
  readonly signal: AbortSignal;
  /** The monotonic instant, in milliseconds, at which the time is over. */
  readonly at: number;
  /** True once the time itself ran out; false when the parent aborted first. */
  readonly expired: boolean;
}

/** The reason with which a {@linkcode Deadline} aborts its signal. */
export class DeadlineExceededError extends Error {
  override readonly name = "DeadlineExceededError";
  /** Milliseconds that were allowed. */
  readonly limitMs: number;

  constructor(limitMs: number) {
    super(`Cannot finish as the time is over: the limit is ${limitMs} ms`);
    this.limitMs = limitMs;
  }
}

/**
 * Stands for `AbortSignal.timeout` with an injected clock.
 *
 * ```ts
 * async function readWithin(clock: Clock, url: string, parent: AbortSignal): Promise<string> {
 *   using deadline = startDeadline(clock, 10_000, parent);
 *   return await (await fetch(url, { signal: deadline.signal })).text();
 * }
 * ```
 *
 * @param clock The clock that counts.
 * @param limitMs Milliseconds, 0 or more.
 * @param parent Aborts the deadline's signal too.
 */
export function startDeadline(clock: Clock, limitMs: number, parent?: AbortSignal): Deadline {
  const controller = new AbortController();
  let expired = false;
  const onParentAbort = () => {
    cancel();
    controller.abort(parent?.reason);
  };
  const cancel = clock.timer(limitMs, () => {
    expired = true;
    parent?.removeEventListener("abort", onParentAbort);
    controller.abort(new DeadlineExceededError(limitMs));
  });
  if (parent?.aborted) onParentAbort();
  else parent?.addEventListener("abort", onParentAbort, { once: true });
  return {
    signal: controller.signal,
    at: clock.monotonic() + limitMs,
    get expired() {
      return expired;
    },
    [Symbol.dispose]() {
      cancel();
      parent?.removeEventListener("abort", onParentAbort);
    },
  };
}
