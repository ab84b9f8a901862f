/**
 * This process's hold on the Lease: what it claimed, what it holds, and what it is not sure of.
 *
 * @module
 */

import type { CallOptions } from "../kube/api.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import { compareVersions } from "../kube/versions.ts";
import type { LeaseRecord } from "./lease_codec.ts";
import { judgeFailure, type LeaseStore } from "./lease_store.ts";
import { LeaseObservation, type Move } from "./observation.ts";
import { type Claim, isMine, nextTransitions } from "./policy.ts";

/** The duration that a released Lease gives, in milliseconds. kubernetes-plugin 5. */
const RELEASED_DURATION_MS = 1_000;

/** What a {@linkcode LeaseHold} is made of. */
export interface LeaseHoldOptions {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly identity: string;
  /** This process's own lease duration, in milliseconds. */
  readonly leaseMs: number;
}

/** Reads and writes one Lease, and knows which record in it is this process's own. */
export class LeaseHold {
  readonly #options: LeaseHoldOptions;
  readonly #observation: LeaseObservation;
  /** Record times are one reading of the wall clock plus monotonic time, so that they never go back. */
  readonly #epochMs: number;
  #claim: Claim;
  /** The version of the Lease that the claim was made for; `null` for one that was missing. */
  #claimBase: string | null = null;
  #held: LeaseRecord | null = null;
  #sure = true;

  constructor(options: LeaseHoldOptions) {
    const { clock, identity, leaseMs } = options;
    this.#options = options;
    this.#observation = new LeaseObservation(leaseMs);
    this.#epochMs = clock.wall() - clock.monotonic();
    this.#claim = { identity, made: false, acquiredMicros: 0 };
  }

  /** The Lease as it was seen last; `null` when it is missing or was not seen. */
  get seen(): LeaseRecord | null {
    return this.#observation.record;
  }

  /** The Lease as this process holds it, in the version that it wrote or saw last; `null` when it holds none. */
  get held(): LeaseRecord | null {
    return this.#held;
  }

  /** False when a write of this process may have been stored without its knowledge: look before the next write. */
  get sure(): boolean {
    return this.#sure;
  }

  /** What to do about the Lease as it was seen last. */
  move(nowMs: number): Move {
    return this.#observation.move(this.#claim, nowMs);
  }

  /** The instant from which a look may lead to a write; 0 when it may at any time. */
  actableAtMs(): number {
    const { record } = this.#observation;
    return record !== null && isMine(record, this.#claim) ? 0 : this.#observation.takeableAtMs();
  }

  /** Reads the Lease. */
  async look(call: CallOptions): Promise<void> {
    const record = await this.#options.store.read(call);
    if (record === null) this.missing();
    else this.#found(record);
  }

  /** The watch told the Lease. What is older than what is known is passed over: the watch lags behind reads and writes. */
  told(record: LeaseRecord): void {
    const known = this.seen;
    if (known?.uid === record.uid) {
      const order = compareVersions(record.version, known.version);
      if (order !== null && order <= 0) return;
    }
    this.#found(record);
  }

  /** The Lease is gone. */
  missing(): void {
    this.#observation.missing(this.#claim, this.#seenMs());
    this.#held = null;
    // A create whose outcome is unknown may still be stored.
    this.#sure ||= this.#claimBase !== null;
  }

  /** Takes the Lease as it was seen last, or creates it. */
  take(call: CallOptions): Promise<LeaseRecord> {
    const known = this.seen;
    this.#makeClaim(known);
    return this.#writeHeld(
      known,
      known === null ? 0 : nextTransitions(false, known.transitions),
      call,
    );
  }

  /** Renews the Lease in the version that is held, or was seen to be held. */
  renew(held: LeaseRecord, call: CallOptions): Promise<LeaseRecord> {
    return this.#writeHeld(held, nextTransitions(true, held.transitions), call);
  }

  /** Frees the Lease. */
  async free(held: LeaseRecord, call: CallOptions): Promise<void> {
    const nowMicros = this.#nowMicros();
    this.#found(
      await this.#attempt(() =>
        this.#options.store.write(
          {
            holder: "",
            durationMs: RELEASED_DURATION_MS,
            acquiredMicros: nowMicros,
            renewedMicros: nowMicros,
            transitions: held.transitions,
          },
          held,
          call,
        )
      ),
    );
  }

  async #writeHeld(
    known: LeaseRecord | null,
    transitions: number,
    call: CallOptions,
  ): Promise<LeaseRecord> {
    const { store, leaseMs } = this.#options;
    const spec = {
      holder: this.#claim.identity,
      durationMs: leaseMs,
      acquiredMicros: this.#claim.acquiredMicros,
      renewedMicros: this.#nowMicros(),
      transitions,
    };
    const written = await this.#attempt(() =>
      known === null ? store.create(spec, call) : store.write(spec, known, call)
    );
    this.#found(written);
    return written;
  }

  /** Makes one write; what is known afterwards follows from how it ended. */
  async #attempt(write: () => Promise<LeaseRecord>): Promise<LeaseRecord> {
    try {
      const written = await write();
      this.#sure = true;
      return written;
    } catch (error) {
      const { type, mayHaveLanded } = judgeFailure(error);
      // Who won a race only a look tells: it may have been an earlier try of our own.
      if (type !== "other" || mayHaveLanded) this.#sure = false;
      throw error;
    }
  }

  /**
   * Draws the acquire time by which this process knows its own record again. For one and the same version it stays the
   * same while an earlier try is in doubt: whichever of them is stored, it is known as ours.
   */
  #makeClaim(known: LeaseRecord | null): void {
    const base = known?.version ?? null;
    if (this.#claim.made && !this.#sure && this.#claimBase === base) return;
    this.#claimBase = base;
    this.#claim = {
      identity: this.#claim.identity,
      made: true,
      acquiredMicros: this.#nowMicros() + Math.floor(this.#options.entropy.fraction() * 1_000),
    };
  }

  #found(record: LeaseRecord): void {
    this.#observation.found(record, this.#claim, this.#seenMs());
    this.#held = isMine(record, this.#claim) ? record : null;
    // A write under the version that is still there may yet be stored; one under an older version cannot be.
    this.#sure ||= this.#held !== null || record.version !== this.#claimBase;
  }

  /** The time for a record, in microseconds since 1970, on the millisecond. */
  #nowMicros(): number {
    return Math.floor(this.#epochMs + this.#options.clock.monotonic()) * 1_000;
  }

  /** The instant at which something was seen: rounded up, so that its age is never too great. */
  #seenMs(): number {
    return Math.ceil(this.#options.clock.monotonic());
  }
}
