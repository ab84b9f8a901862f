/**
 * What a candidate saw of the Lease, and since when.
 *
 * All times are whole milliseconds of this process's monotonic clock, rounded so that an age is never too great: when
 * something is seen, up; when an age is asked, down.
 *
 * @module
 */

import type { LeaseRecord } from "./lease_codec.ts";
import {
  type Claim,
  decide,
  effectiveDurationMs,
  isMine,
  observedAgeMs,
  observedAtMs,
  vanishedHolderMayBelieve,
} from "./policy.ts";

/** What to do about the Lease. */
export type Move = "renew" | "acquire" | "create" | "wait";

/** A holder whose Lease vanished under it. */
interface Vanished {
  readonly atMs: number;
  readonly durationMs: number;
}

/** Keeps what was seen of one Lease. Reads and watch events feed it alike. */
export class LeaseObservation {
  readonly #fallbackMs: number;
  #record: LeaseRecord | null = null;
  #changedAtMs = 0;
  #vanished: Vanished | null = null;

  /** @param fallbackMs The duration for a Lease that gives none, in milliseconds. */
  constructor(fallbackMs: number) {
    this.#fallbackMs = fallbackMs;
  }

  /** What was seen last; `null` when nothing was, or when the Lease is missing. */
  get record(): LeaseRecord | null {
    return this.#record;
  }

  /** The Lease was seen. Any other version counts as a change, whoever made it: the holder may be alive. */
  found(record: LeaseRecord, claim: Claim, nowMs: number): void {
    const before = this.#record;
    if (before !== null && before.uid !== record.uid) this.#vanish(before, claim, nowMs);
    const changed = before?.version !== record.version || before.uid !== record.uid;
    this.#changedAtMs = observedAtMs(
      { seen: before !== null, changedAtMs: this.#changedAtMs },
      changed,
      nowMs,
    );
    this.#record = record;
  }

  /** The Lease was seen to be missing. */
  missing(claim: Claim, nowMs: number): void {
    if (this.#record !== null) this.#vanish(this.#record, claim, nowMs);
    this.#record = null;
  }

  /** Decides what to do at this moment. */
  move(claim: Claim, nowMs: number): Move {
    const record = this.#record;
    const wished = record === null ? "create" : decide({
      mine: isMine(record, claim),
      free: record.holder === "",
      ageMs: observedAgeMs(nowMs, this.#changedAtMs),
      durationMs: this.#durationMs(record),
    });
    const mustWait = wished !== "renew" && vanishedHolderMayBelieve({
      seen: this.#vanished !== null,
      ageMs: observedAgeMs(nowMs, this.#vanished?.atMs ?? 0),
      durationMs: this.#vanished?.durationMs ?? 0,
    });
    return mustWait ? "wait" : wished;
  }

  /** The instant at which the Lease may be taken if nothing more is seen of it. */
  takeableAtMs(): number {
    const record = this.#record;
    const expiryMs = record === null || record.holder === ""
      ? 0
      : this.#changedAtMs + this.#durationMs(record);
    const vanished = this.#vanished;
    return Math.max(expiryMs, vanished === null ? 0 : vanished.atMs + vanished.durationMs);
  }

  #durationMs(record: LeaseRecord): number {
    return effectiveDurationMs(record.durationSeconds, this.#fallbackMs);
  }

  /** The holder may have renewed just before its Lease went, so its duration counts from now. */
  #vanish(before: LeaseRecord, claim: Claim, nowMs: number): void {
    if (before.holder === "" || isMine(before, claim)) return;
    const durationMs = this.#durationMs(before);
    const endsMs = this.#vanished === null ? 0 : this.#vanished.atMs + this.#vanished.durationMs;
    if (nowMs + durationMs > endsMs) this.#vanished = { atMs: nowMs, durationMs };
  }
}
