/**
 * One queue per group: requests of one group take turns, requests of different groups never wait for one another.
 *
 * The queue is a courtesy and not a lock: it saves conflicts inside one process. Safety between processes rests on
 * resource versions alone (state protocol 2.3).
 *
 * @module
 */

/** A place in a queue; give it back when the work is done. */
export interface Place extends Disposable {
  /** True when other work of the group was under way, so that the turn had to be waited for. */
  readonly waited: boolean;
}

interface Waiting {
  readonly start: (place: Place) => void;
}

/** First come, first served, per key. A waiter that gives up leaves the line. */
export class KeyedQueue {
  readonly #lines = new Map<string, Waiting[]>();

  /**
   * Waits for a turn.
   *
   * ```ts
   * const queue = new KeyedQueue();
   * using _place = await queue.enter("database/orders", new AbortController().signal);
   * ```
   *
   * @param key What is taken in turn.
   * @param signal Leaves the line: the promise then rejects with the signal's reason.
   */
  enter(key: string, signal: AbortSignal): Promise<Place> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const line = this.#lines.get(key);
    if (line === undefined) {
      this.#lines.set(key, []);
      return Promise.resolve(this.#place(key, false));
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        start: (place) => {
          signal.removeEventListener("abort", giveUp);
          resolve(place);
        },
      };
      const giveUp = () => {
        const at = line.indexOf(waiting);
        if (at >= 0) line.splice(at, 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", giveUp, { once: true });
      line.push(waiting);
    });
  }

  /** How many keys are in use: 0 when nothing runs. */
  get size(): number {
    return this.#lines.size;
  }

  #place(key: string, waited: boolean): Place {
    let over = false;
    return {
      waited,
      [Symbol.dispose]: () => {
        if (over) return;
        over = true;
        const next = this.#lines.get(key)?.shift();
        if (next === undefined) this.#lines.delete(key);
        else next.start(this.#place(key, true));
      },
    };
  }
}
