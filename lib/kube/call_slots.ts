/**
 * How many calls are under way at once.
 *
 * Without a limit an API server that becomes slow gets ever more calls, each on a socket of its own: the calls then run out
 * of time together, and what was a slow minute becomes an outage. A call that waits here was not sent: nobody asks whether
 * it landed, and it takes no socket out of use.
 *
 * @module
 */

/** How many calls are under way at once unless a limit is set. */
export const MAX_CONCURRENT_CALLS = 64;

/** Places for calls, first come, first served. */
export class CallSlots {
  readonly #most: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  /**
   * @param most How many calls may be under way, 1 or more.
   * @throws {RangeError} `most` is not a positive integer.
   */
  constructor(most: number) {
    if (!Number.isSafeInteger(most) || most < 1) {
      throw new RangeError(
        `Cannot limit calls as 'most' must be a positive integer: current value is ${most}`,
      );
    }
    this.#most = most;
  }

  /**
   * Waits for a place. Give it back when the call is over.
   *
   * @param signal Leaves the line: the promise then rejects with the signal's reason.
   */
  async enter(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    // Who waits is first: a place that was given back a moment ago is theirs.
    if (this.#taken >= this.#most) await this.#turn(signal);
    else this.#taken++;
    let over = false;
    return {
      [Symbol.dispose]: () => {
        if (over) return;
        over = true;
        const [next] = this.#waiting;
        if (next === undefined) this.#taken--;
        else next();
      },
    };
  }

  /** Resolves when the place of a call that is over was handed on. */
  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(start);
        reject(signal.reason);
      };
      const start = () => {
        this.#waiting.delete(start);
        signal.removeEventListener("abort", leave);
        resolve();
      };
      this.#waiting.add(start);
      signal.addEventListener("abort", leave, { once: true });
    });
  }
}
