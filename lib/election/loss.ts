/**
 * Why a term ends.
 *
 * @module
 */

/**
 * Why a term ended:
 * - `renew_deadline`: no write was acknowledged within the renew deadline.
 * - `forbidden`: the same, and the API server refused the last try: the Role lacks a rule.
 * - `conflict`: somebody else wrote the Lease.
 * - `other_holder`: another replica holds the Lease.
 * - `deleted`: the Lease is gone.
 * - `clock_jump`: the wall clock jumped against the monotonic clock, so this machine may have stood still.
 * - `stopped`: the elector stops.
 * - `resigned`: the work gave the lead up, for example since a leader task failed.
 */
export type LossReason =
  | "clock_jump"
  | "conflict"
  | "deleted"
  | "forbidden"
  | "other_holder"
  | "renew_deadline"
  | "resigned"
  | "stopped";

const wishes: Readonly<Record<LossReason, string>> = {
  renew_deadline: "the renew deadline passed without an acknowledged write",
  forbidden: "the API server refuses the renewal; add the verb to the Role",
  conflict: "the Lease was written by somebody else",
  other_holder: "another replica holds the Lease",
  deleted: "the Lease was deleted",
  clock_jump: "the wall clock jumped, so this machine may have stood still",
  stopped: "the elector stops",
  resigned: "the lead was given up",
};

/** The reason with which the signal of a term aborts. */
export class LeadershipLostError extends Error {
  override readonly name = "LeadershipLostError";
  /** The name of the Lease. */
  readonly leaseName: string;
  /** Why the term ended, by which code decides. */
  readonly reason: LossReason;

  constructor(leaseName: string, reason: LossReason) {
    super(`Cannot go on as the leader of ${leaseName}: ${wishes[reason]}`);
    this.leaseName = leaseName;
    this.reason = reason;
  }
}

/** Says whether an error is the usual way to stop at a signal that aborted: its reason, or an abort of the platform. */
export function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === "AbortError");
}
