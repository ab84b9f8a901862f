/**
 * What the rest of a program sees of an election: kubernetes-plugin 6.
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";
import { Pulse } from "./pulse.ts";
import { HeldTerm, sendInstant, type Term } from "./term.ts";

/** The state of an election, as this replica sees it. */
export interface LeaderState {
  /** This replica led when the state was told. For a decision ask {@linkcode Leadership.isLeader}. */
  readonly leading: boolean;
  /** The holder that was seen last; empty when nobody holds the Lease or nothing was seen. */
  readonly holder: string;
  /**
   * The monotonic instant, in milliseconds, at which belief ends without a renewal; `null` when there is none. During a
   * stop it is still told, as long as the Lease is kept for work that is ending.
   */
  readonly validUntil: number | null;
  /** Work of an ended term is unsettled: this replica does not campaign, and is not healthy. */
  readonly draining: boolean;
}

/** The handle of an election. All holders of it see the same state. */
export interface Leadership {
  /** The identity of this replica in the Lease. */
  readonly identity: string;
  /** The name of the Lease. */
  readonly leaseName: string;
  /** The holder that was seen last; empty when nobody holds the Lease or nothing was seen. */
  readonly holder: string;
  /** The state at this moment. */
  readonly state: LeaderState;
  /** The term in force; `null` for a follower. */
  readonly term: Term | null;
  /**
   * Says whether this replica leads, by the clock of this very moment: a starved event loop cannot leave a stale yes.
   * False after the elector ended, for whatever reason.
   */
  isLeader(): boolean;
  /**
   * Tells the state now and after each change. A slow reader misses states in between and never the newest. It ends when
   * the elector ends or `signal` aborts.
   */
  subscribe(signal: AbortSignal): AsyncGenerator<LeaderState, void>;
  /**
   * Waits until this replica leads.
   *
   * @returns False when the elector ended first.
   * @throws The reason of `signal` when it aborts first.
   */
  waitUntilLeader(signal: AbortSignal): Promise<boolean>;
  /**
   * Waits until this replica does not lead; at the latest the end of belief ends it, and the end of the elector.
   *
   * @throws The reason of `signal` when it aborts first.
   */
  waitUntilFollower(signal: AbortSignal): Promise<void>;
}

/** Something that campaigns for a Lease: the elector, or {@linkcode staticLeadership}. */
export interface Candidate {
  /** The handle for the rest of the program. */
  readonly leadership: Leadership;
  /** Begins to campaign. */
  start(): void;
  /**
   * The terms of this replica, the one in force first. It ends when the candidate ended or `signal` aborts. The body of a
   * `for await` counts as work of its term: the Lease is not released, and no new term begins, before it is done.
   */
  terms(signal?: AbortSignal): AsyncGenerator<Term, void>;
  /**
   * Ends the term, waits until its work has settled while it keeps the Lease, and releases the Lease.
   *
   * @param budget When it aborts, the candidate stops at once and does *not* release: unsettled work keeps the protection
   * of the Lease until that expires.
   */
  stop(budget: AbortSignal): Promise<void>;
}

const quiet: LeaderState = { leading: false, holder: "", validUntil: null, draining: false };

/** The one state that all handles see. The elector writes it. */
export class LeadershipCell implements Leadership {
  readonly identity: string;
  readonly leaseName: string;
  readonly #clock: Clock;
  readonly #changes = new Pulse();
  #state = quiet;
  #term: HeldTerm | null = null;
  #closed = false;

  constructor(identity: string, leaseName: string, clock: Clock) {
    this.identity = identity;
    this.leaseName = leaseName;
    this.#clock = clock;
  }

  get holder(): string {
    return this.#state.holder;
  }

  get state(): LeaderState {
    return this.#state;
  }

  get term(): Term | null {
    return this.isLeader() ? this.#term : null;
  }

  isLeader(): boolean {
    return this.#term !== null && this.#term.isLeading();
  }

  async *subscribe(signal: AbortSignal): AsyncGenerator<LeaderState, void> {
    let told: LeaderState | null = null;
    while (!signal.aborted) {
      const seen = this.#changes.count;
      if (this.#state !== told) {
        told = this.#state;
        yield told;
      } else if (this.#closed) return;
      else await this.#changes.wait(seen, { signal });
    }
  }

  async waitUntilLeader(signal: AbortSignal): Promise<boolean> {
    for (;;) {
      signal.throwIfAborted();
      const seen = this.#changes.count;
      if (this.#closed) return false;
      if (this.isLeader()) return true;
      await this.#changes.wait(seen, { signal });
    }
  }

  async waitUntilFollower(signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const seen = this.#changes.count;
      if (!this.isLeader()) return;
      const atMs = this.#term?.validUntil ?? null;
      await this.#changes.wait(
        seen,
        atMs === null ? { signal } : { signal, until: { clock: this.#clock, atMs } },
      );
    }
  }

  /** The terms, as {@linkcode Candidate.terms} tells them. */
  async *terms(signal?: AbortSignal): AsyncGenerator<Term, void> {
    let last: HeldTerm | null = null;
    while (!signal?.aborted) {
      const seen = this.#changes.count;
      const term = this.#term;
      if (term !== null && term !== last && this.isLeader()) {
        last = term;
        let endBody = () => {};
        term.waitUntil(new Promise<void>((resolve) => endBody = resolve));
        try {
          yield term;
        } finally {
          endBody();
        }
      } else if (this.#closed) return;
      else await this.#changes.wait(seen, signal === undefined ? {} : { signal });
    }
  }

  /** Writes the term and the state, and tells those who wait when something changed. */
  publish(term: HeldTerm | null, state: LeaderState): void {
    const before = this.#state;
    const same = term === this.#term && before.leading === state.leading &&
      before.holder === state.holder && before.validUntil === state.validUntil &&
      before.draining === state.draining;
    if (same) return;
    this.#term = term;
    this.#state = state;
    this.#changes.fire();
  }

  /** Ends it for ever: nobody leads through this handle any more. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#state = { ...this.#state, leading: false, validUntil: null };
    this.#changes.fire();
  }
}

/** The options of {@linkcode staticLeadership}. */
export interface StaticLeadershipOptions {
  readonly clock: Clock;
  /** The identity that the handle shows. */
  readonly identity: string;
  /** The name of the Lease that the handle shows. No such Lease is written. */
  readonly leaseName: string;
  /** False for a replica that never leads. @default {true} */
  readonly leading?: boolean;
}

/**
 * An election with one candidate and no cluster: for one node, for local development, and for tests. It leads from the
 * start until it is stopped or its term resigns; its one term has no deadline and the token `1`.
 *
 * ```ts
 * import { TestClock } from "@holdfast/holdfast/testing";
 *
 * const candidate = staticLeadership({
 *   clock: new TestClock(),
 *   identity: "dev",
 *   leaseName: "app",
 * });
 * candidate.start();
 * candidate.leadership.isLeader(); // true
 * ```
 */
export function staticLeadership(options: StaticLeadershipOptions): Candidate {
  return new StaticCandidate(options);
}

class StaticCandidate implements Candidate {
  readonly #cell: LeadershipCell;
  readonly #options: StaticLeadershipOptions;
  readonly #changes = new Pulse();
  #term: HeldTerm | null = null;

  constructor(options: StaticLeadershipOptions) {
    this.#options = options;
    this.#cell = new LeadershipCell(options.identity, options.leaseName, options.clock);
  }

  get leadership(): Leadership {
    return this.#cell;
  }

  start(): void {
    const { clock, leaseName, leading = true } = this.#options;
    if (!leading || this.#term !== null) return;
    this.#term = new HeldTerm({
      token: "1",
      leaseName,
      clock,
      renewMs: null,
      sent: sendInstant(clock),
      onChange: () => this.#publish(),
    });
    this.#publish();
  }

  terms(signal?: AbortSignal): AsyncGenerator<Term, void> {
    return this.#cell.terms(signal);
  }

  async stop(budget: AbortSignal): Promise<void> {
    const term = this.#term;
    term?.end("stopped");
    while (term !== null && !term.settled && !budget.aborted) {
      await this.#changes.wait(this.#changes.count, { signal: budget });
    }
    term?.lose("stopped");
    term?.close();
    this.#cell.close();
  }

  #publish(): void {
    const leading = this.#term?.isLeading() ?? false;
    this.#cell.publish(this.#term, {
      leading,
      holder: leading ? this.#options.identity : "",
      validUntil: null,
      draining: !leading && this.#term?.settled === false,
    });
    this.#changes.fire();
  }
}
