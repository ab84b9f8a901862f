/**
 * A memory with an end.
 *
 * @module
 */

/** A map that forgets what was set longest ago. */
export class RecentlyUsed<V> {
  readonly #entries = new Map<string, V>();
  readonly #most: number;

  /** @param most How many entries are kept, 1 or more. */
  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: V): void {
    this.#entries.delete(key); // A map keeps the order of insertion, so that the oldest is first.
    this.#entries.set(key, value);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#most && oldest !== undefined) this.#entries.delete(oldest);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}
