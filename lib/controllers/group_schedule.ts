/**
 * When which group is looked at: wake-ups are coalesced, a group is looked at by one pass at a time, failures back off per
 * group, and a few passes run at once.
 *
 * @module
 */

import type { LeaseClock } from "../lease_time/lease_time.ts";
import type { CancelTimer, Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import { type Instant, instantsOf, waitMs } from "./due.ts";
import type { GroupKey } from "./group_board.ts";
import type { Due } from "./group_controller.ts";

/** What one look at a group comes to. */
export type PassOutcome =
  | { readonly type: "done"; readonly dues: readonly Due[] }
  | { readonly type: "failed" }
  /** There is no such group (any more). */
  | { readonly type: "gone" };

/** What a {@linkcode GroupSchedule} is made of. */
export interface GroupScheduleParts {
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly time: LeaseClock;
  /**
   * Looks at a group. It must not throw. `begun` is to be called when it takes its sight of the group: what changes later
   * asks for another look.
   */
  readonly pass: (key: GroupKey, begun: () => void) => Promise<PassOutcome>;
}

/** How many groups are looked at at once, so that the start of a term does not flood the API server. */
const MAX_PASSES = 16;
/** The first pause after a failure, in milliseconds; also the least time between two failing looks. */
const FIRST_PAUSE_MS = 1_000;
/** The longest pause after a failure. */
const LONGEST_PAUSE_MS = 30_000;

/** One group that was woken, looked at, or waits. */
interface Entry {
  state: "idle" | "queued" | "running";
  /** Something changed since the running pass took its sight. */
  dirty: boolean;
  failures: number;
  /** The monotonic instant before which no pass begins, after a failure. */
  notBeforeMs: number;
  cancelTimer: CancelTimer;
}

/**
 * The pause after a failure: 1 s, doubled with each failure, at most 30 s; and up to a fifth more, so that many groups do
 * not come back at once.
 *
 * @param failures How many failures came before this one.
 * @param fraction A random number of 0 or more and below 1.
 * @returns Milliseconds.
 */
export function failurePauseMs(failures: number, fraction: number): number {
  const base = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 10), LONGEST_PAUSE_MS);
  return base * (1 + fraction / 5);
}

/** Looks at groups when they are due. */
export class GroupSchedule {
  readonly #parts: GroupScheduleParts;
  readonly #entries = new Map<GroupKey, Entry>();
  readonly #queue: GroupKey[] = [];
  readonly #passes = new Set<Promise<void>>();
  #stopped = false;

  constructor(parts: GroupScheduleParts) {
    this.#parts = parts;
  }

  /** Asks for a look at a group, at once or as soon as the running one is done. */
  wake(key: GroupKey): void {
    if (this.#stopped) return;
    const entry = this.#entries.get(key) ?? this.#add(key);
    if (entry.state === "running") entry.dirty = true;
    if (entry.state !== "idle") return;
    const pauseMs = entry.notBeforeMs - this.#parts.clock.monotonic();
    if (pauseMs > 0) this.#wakeIn(key, entry, pauseMs);
    else this.#enqueue(key, entry);
  }

  /** Ends all waiting, and waits for the passes that run. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#queue.length = 0;
    for (const entry of this.#entries.values()) entry.cancelTimer();
    await Promise.all(this.#passes);
    this.#entries.clear();
  }

  #add(key: GroupKey): Entry {
    const entry: Entry = {
      state: "idle",
      dirty: false,
      failures: 0,
      notBeforeMs: -Infinity,
      cancelTimer: () => {},
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #wakeIn(key: GroupKey, entry: Entry, delayMs: number): void {
    entry.cancelTimer();
    entry.cancelTimer = this.#parts.clock.timer(delayMs, () => this.wake(key));
  }

  #enqueue(key: GroupKey, entry: Entry): void {
    entry.cancelTimer();
    entry.state = "queued";
    this.#queue.push(key);
    this.#fill();
  }

  #fill(): void {
    while (this.#passes.size < MAX_PASSES) {
      const key = this.#queue.shift();
      const entry = key === undefined ? undefined : this.#entries.get(key);
      if (key === undefined || entry === undefined) return;
      entry.state = "running";
      const pass = this.#run(key, entry).finally(() => {
        this.#passes.delete(pass);
        this.#fill();
      });
      this.#passes.add(pass);
    }
  }

  async #run(key: GroupKey, entry: Entry): Promise<void> {
    const { clock, entropy, pass } = this.#parts;
    const outcome = await pass(key, () => entry.dirty = false);
    entry.state = "idle";
    if (this.#stopped) return;
    const now = clock.monotonic();
    if (outcome.type === "failed") {
      const pauseMs = failurePauseMs(entry.failures, entropy.fraction());
      entry.failures++;
      // A change may have put the fault right, so it need not wait out the whole pause.
      entry.notBeforeMs = now + FIRST_PAUSE_MS;
      this.#wakeIn(key, entry, entry.dirty ? FIRST_PAUSE_MS : pauseMs);
      return;
    }
    entry.failures = 0;
    entry.notBeforeMs = -Infinity;
    if (entry.dirty) this.#enqueue(key, entry);
    else if (outcome.type === "gone") this.#entries.delete(key);
    else this.#wait(key, entry, outcome.dues.flatMap((due) => instantsOf(due, now)));
  }

  /** Wakes the group when the first of these instants has come. */
  #wait(key: GroupKey, entry: Entry, instants: readonly Instant[]): void {
    if (instants.length === 0) return;
    const { clock, time } = this.#parts;
    const now = clock.monotonic();
    const reading = time.reading();
    const delayMs = Math.min(...instants.map((instant) => waitMs(instant, reading, now)));
    if (delayMs === 0) {
      this.wake(key);
      return;
    }
    entry.cancelTimer();
    entry.cancelTimer = clock.timer(delayMs, () => {
      // Only a call tells the time again, and a look makes one.
      if (time.reading() === null) this.wake(key);
      else this.#wait(key, entry, instants);
    });
  }
}
