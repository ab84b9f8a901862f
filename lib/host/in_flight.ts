/**
 * Counts the work in flight, so that a stop can wait for it.
 *
 * @module
 */

/** Work in flight. */
export class InFlight {
  #count = 0;
  #idle: PromiseWithResolvers<void> | null = null;

  /** How much is in flight. */
  get count(): number {
    return this.#count;
  }

  /** Counts one piece of work from its start until it settles. */
  async track<T>(work: () => T | Promise<T>): Promise<T> {
    this.#count++;
    try {
      return await work();
    } finally {
      this.#count--;
      if (this.#count === 0) {
        this.#idle?.resolve();
        this.#idle = null;
      }
    }
  }

  /** Settles once nothing is in flight, or when the signal aborts: then what is left goes on by itself. */
  async settled(signal: AbortSignal): Promise<void> {
    if (this.#count === 0 || signal.aborted) return;
    this.#idle ??= Promise.withResolvers();
    const idle = this.#idle.promise;
    const gaveUp = Promise.withResolvers<void>();
    const giveUp = () => gaveUp.resolve();
    signal.addEventListener("abort", giveUp, { once: true });
    await Promise.race([idle, gaveUp.promise]);
    signal.removeEventListener("abort", giveUp);
  }
}
