/**
 * Who sends when: many clients with much to send must not hold up the event loop, on which a leader renews its Lease.
 *
 * @module
 */

import type { CancelTimer, Clock } from "../runtime/clock.ts";

/** Something that sends a bounded part of what it has. It asks for its next turn by itself. */
export interface Sender {
  /** Sends a part. It must not throw. */
  send(): void;
}

/** How many senders have their turn before everything else has its own. */
const SENDERS_PER_TURN = 4;

/** Milliseconds until the next turn: the shortest wait that lets everything else go first. */
const PAUSE_MS = 1;

/** Gives senders their turns, one after the other, and the event loop its own between them. */
export class SendTurns {
  readonly #clock: Clock;
  readonly #ready = new Set<Sender>();
  #cancel: CancelTimer | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Gives a sender its turn as soon as those before it had theirs. One that waits already keeps its place. */
  add(sender: Sender): void {
    this.#ready.add(sender);
    this.#plan();
  }

  /** Takes a sender out. */
  remove(sender: Sender): void {
    this.#ready.delete(sender);
    if (this.#ready.size > 0) return;
    this.#cancel?.();
    this.#cancel = null;
  }

  #plan(): void {
    this.#cancel ??= this.#clock.timer(PAUSE_MS, () => {
      this.#cancel = null;
      this.#run();
      if (this.#ready.size > 0) this.#plan();
    });
  }

  #run(): void {
    let left = SENDERS_PER_TURN;
    for (const sender of this.#ready) {
      this.#ready.delete(sender);
      sender.send();
      left--;
      if (left === 0) return;
    }
  }
}
