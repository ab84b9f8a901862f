/**
 * A term: the time from taking the lead to losing it, as a value.
 *
 * @module
 */

import type { CancelTimer, Clock } from "../runtime/clock.ts";
import { LeadershipLostError, type LossReason } from "./loss.ts";
import { believes, clockJumped } from "./policy.ts";

/** One term of leading. */
export interface Term {
  /**
   * The fencing token: the `resourceVersion` of the write that took the Lease, a decimal string. It rises with every
   * term of any replica, also when the Lease was deleted and made anew. Give it to whatever the work writes to, and let
   * that refuse a lower one: no election can do that for it.
   */
  readonly token: string;
  /** Aborts with a {@linkcode LeadershipLostError} when the work of this term must end. */
  readonly signal: AbortSignal;
  /** The monotonic instant, in milliseconds, at which belief ends without a renewal; `null` when it has no end. */
  readonly validUntil: number | null;
  /**
   * Says whether this replica still holds the Lease, by the clock of this very moment. Ask before each step that must not
   * be done twice. During a stop it stays true while the Lease is kept for work that is still ending, although
   * {@linkcode Term.signal} has aborted.
   */
  isValid(): boolean;
  /**
   * Registers work: the Lease is not released, and this replica does not campaign again, before it has settled. The
   * outcome is not looked at here.
   *
   * @throws {LeadershipLostError} The term is over and nothing waits for its work any more: do not start it.
   */
  waitUntil(work: Promise<unknown>): void;
  /**
   * Gives the lead up: {@linkcode Term.signal} aborts with `resigned`, the work gets its time to settle, and the Lease is
   * released. This replica campaigns again one lease duration later. Later calls do nothing.
   */
  resign(): void;
}

/** What a {@linkcode HeldTerm} is made of. */
export interface HeldTermOptions {
  readonly token: string;
  readonly leaseName: string;
  readonly clock: Clock;
  /** How long belief lasts after a write was sent, in milliseconds; `null` for ever. */
  readonly renewMs: number | null;
  readonly sent: SendInstant;
  /** Called after every change: lost, ending, settled, renewed. */
  readonly onChange: () => void;
}

/** When a request was sent, on both clocks. */
export interface SendInstant {
  /** Whole monotonic milliseconds, rounded down: belief is never longer for it. */
  readonly atMs: number;
  /** Wall time minus monotonic time, in whole milliseconds. */
  readonly wallOffsetMs: number;
}

/** Reads both clocks just before a request is sent. */
export function sendInstant(clock: Clock): SendInstant {
  const monotonic = clock.monotonic();
  return {
    atMs: Math.floor(monotonic),
    wallOffsetMs: Math.round(clock.wall() - monotonic),
  };
}

/**
 * The term of the elector's side. Belief lives here, so that it ends at its deadline by a timer of its own, and at the
 * latest when somebody asks, whatever the elector's loop is waiting for.
 */
export class HeldTerm implements Term {
  readonly token: string;
  readonly #options: HeldTermOptions;
  readonly #ended = new AbortController();
  readonly #authority = new AbortController();
  readonly #work = new Set<Promise<unknown>>();
  #sent: SendInstant;
  #lost: LossReason | null = null;
  #refused = false;
  #closed = false;
  #cancelDeadline: CancelTimer = () => {};

  constructor(options: HeldTermOptions) {
    this.token = options.token;
    this.#options = options;
    this.#sent = options.sent;
    this.#armDeadline();
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Aborts when belief is over: what was sent for this term is then pointless. */
  get authority(): AbortSignal {
    return this.#authority.signal;
  }

  get validUntil(): number | null {
    const { renewMs } = this.#options;
    return renewMs === null ? null : this.#sent.atMs + renewMs;
  }

  /** When the last acknowledged write was sent. */
  get sentAtMs(): number {
    return this.#sent.atMs;
  }

  /** Why belief is over; `null` while it lasts. */
  get lost(): LossReason | null {
    return this.#lost;
  }

  /** Why the work was told to end; `null` before. */
  get endReason(): LossReason | null {
    const reason: unknown = this.signal.reason;
    return reason instanceof LeadershipLostError ? reason.reason : null;
  }

  /** True when no registered work is unsettled. */
  get settled(): boolean {
    return this.#work.size === 0;
  }

  isValid(): boolean {
    this.#check();
    return this.#lost === null;
  }

  /** True when belief lasts and the work was not told to end. */
  isLeading(): boolean {
    return this.isValid() && !this.signal.aborted;
  }

  waitUntil(work: Promise<unknown>): void {
    if (this.#closed) {
      throw new LeadershipLostError(this.#options.leaseName, this.#lost ?? "stopped");
    }
    this.#work.add(work);
    const settle = () => {
      this.#work.delete(work);
      if (this.settled) this.#options.onChange();
    };
    work.then(settle, settle);
  }

  resign(): void {
    this.end("resigned");
  }

  /** Tells the work to end. Belief goes on, so that the work can end under the Lease's protection. */
  end(reason: LossReason): void {
    if (this.signal.aborted) return;
    this.#ended.abort(new LeadershipLostError(this.#options.leaseName, reason));
    this.#options.onChange();
  }

  /** Ends belief, and tells the work to end. */
  lose(reason: LossReason): void {
    if (this.#lost !== null) return;
    this.#lost = reason;
    this.#cancelDeadline();
    const error = new LeadershipLostError(this.#options.leaseName, reason);
    this.#ended.abort(error);
    this.#authority.abort(error);
    this.#options.onChange();
  }

  /** Nothing waits for this term's work any more. */
  close(): void {
    this.#closed = true;
  }

  /** Makes belief longer after an acknowledged write; belief that is over does not come back. */
  extend(sent: SendInstant): void {
    this.#check();
    if (this.#lost !== null) return;
    this.#sent = sent;
    this.#refused = false;
    this.#armDeadline();
    this.#options.onChange();
  }

  /** Remembers that the API server refused the last renewal, for the reason of a later loss. */
  noteFailure(refused: boolean): void {
    this.#refused = refused;
  }

  #check(): void {
    const { clock, renewMs } = this.#options;
    if (this.#lost !== null || renewMs === null) return;
    const now = sendInstant(clock);
    const belief = { holderIsMe: true, acknowledged: true, sentMs: this.#sent.atMs };
    if (!believes(belief, renewMs, Math.ceil(clock.monotonic()))) {
      this.lose(this.#refused ? "forbidden" : "renew_deadline");
    } else if (clockJumped(this.#sent.wallOffsetMs, now.wallOffsetMs)) {
      this.lose("clock_jump");
    }
  }

  #armDeadline(): void {
    const { validUntil } = this;
    if (validUntil === null) return;
    const { clock } = this.#options;
    this.#cancelDeadline();
    this.#cancelDeadline = clock.timer(
      Math.max(0, validUntil - clock.monotonic()),
      () => this.#check(),
    );
  }
}
