/**
 * The rules of leader election: pure functions, and nothing else.
 *
 * PROVEN. A proof reads the syntax tree of this very file, translates every function to SMT, and shows the invariants of
 * kubernetes-plugin 17 for every input in range, and that no step leaves the safe integers. So this file may use only
 * what that translation covers:
 *
 * - exported top-level functions over integers, booleans, string unions and flat readonly objects of these;
 * - plain strings, compared with `===` and `!==` and nothing else;
 * - `const`, `if`, `return`, conditional expressions, comparisons, `&&`, `||`, `!`, `+`, `-`, `*` by a constant,
 *   `Math.min`, `Math.max`, division and remainder through {@linkcode quotient} and {@linkcode remainder}, and calls of
 *   functions of this file;
 * - an absent value is a boolean beside the value. No loop, no mutation, no library, no clock.
 *
 * All times are whole milliseconds on one monotonic clock of this process. No rule looks at a time that another machine
 * wrote.
 *
 * @module
 */

/** The longest lease: one hour, in milliseconds. A longer one would keep a dead holder's place for too long. */
export const MAX_LEASE_MS = 3_600_000;

/** The jitter of a pause is at most the pause divided by this. */
export const JITTER_DIVISOR = 5;

/** The highest count of transitions that the API server stores (a signed 32-bit integer). */
export const MAX_TRANSITIONS = 2_147_483_647;

/** A larger step, in milliseconds, of the wall clock against the monotonic clock means that the machine stood still. */
export const MAX_CLOCK_JUMP_MS = 1_000;

/** The longest time that the tasks of an ended term get to stop, in milliseconds. kubernetes-plugin 7. */
export const MAX_TASK_STOP_MS = 10_000;

/**
 * The remainder of a division by a positive divisor.
 *
 * @param dividend Any integer.
 * @param divisor 1 or more.
 * @returns 0 or more, and below the divisor.
 */
export function remainder(dividend: number, divisor: number): number {
  const rest = dividend % divisor;
  return rest < 0 ? rest + divisor : rest;
}

/**
 * Division by a positive divisor, rounded down. Exact for all safe integers: what is divided is a multiple of the divisor
 * that lies nearer to 0 than the dividend.
 *
 * @param dividend Any integer.
 * @param divisor 1 or more.
 */
export function quotient(dividend: number, divisor: number): number {
  const rest = dividend % divisor;
  const towardsZero = (dividend - rest) / divisor;
  return rest < 0 ? towardsZero - 1 : towardsZero;
}

/** The three times of an election, in milliseconds. */
export interface Timing {
  /** Others may take the Lease when it has not changed for this long. */
  readonly leaseMs: number;
  /** How long a holder believes in its lead after it sent its last good write. */
  readonly renewMs: number;
  /** The pause between two tries, before jitter. */
  readonly retryMs: number;
}

/** Which rule a {@linkcode Timing} breaks first; `none` when it is valid. */
export type TimingProblem =
  | "none"
  | "retry_not_positive"
  | "lease_above_maximum"
  | "lease_not_above_renew"
  | "renew_not_above_retry";

/**
 * Finds the first rule that a timing breaks: kubernetes-plugin 4, "Timing valid".
 *
 * The order matters: once the lease is at most one hour and the others are below it, no product can leave the safe
 * integers.
 */
export function timingProblem(timing: Timing): TimingProblem {
  if (timing.retryMs <= 0) return "retry_not_positive";
  if (timing.leaseMs > MAX_LEASE_MS) return "lease_above_maximum";
  if (timing.leaseMs <= timing.renewMs) return "lease_not_above_renew";
  if (timing.retryMs >= timing.renewMs) return "renew_not_above_retry";
  if (timing.renewMs * 5 <= timing.retryMs * 6) return "renew_not_above_retry";
  return "none";
}

/** Says whether a timing keeps all rules. */
export function timingValid(timing: Timing): boolean {
  return timingProblem(timing) === "none";
}

/**
 * Adds jitter to a pause, so that replicas do not ask in step.
 *
 * @param baseMs 0 to one hour.
 * @param random Any integer of 0 or more.
 * @returns From `baseMs` to `baseMs` plus a fifth of it.
 */
export function jittered(baseMs: number, random: number): number {
  return baseMs + remainder(random, quotient(baseMs, JITTER_DIVISOR) + 1);
}

/** What a Lease says about its holder. */
export interface HolderView {
  /** The holder's identity; empty when it is free. */
  readonly holder: string;
  /** The holder's acquire time in microseconds since 1970; any negative number when there is none. */
  readonly acquiredMicros: number;
}

/** What this process last wrote, or tried to write, to take the Lease. */
export interface Claim {
  /** This process's identity. */
  readonly identity: string;
  /** False before the first try. */
  readonly made: boolean;
  /** The acquire time of that try in microseconds since 1970, the last digits random. */
  readonly acquiredMicros: number;
}

/**
 * Says whether this process holds the Lease. The identity alone does not tell: a second process may be configured with
 * the same one, and an earlier process may have left it.
 */
export function isMine(record: HolderView, claim: Claim): boolean {
  return claim.made && record.holder === claim.identity &&
    record.acquiredMicros === claim.acquiredMicros;
}

/** What to do about a Lease that exists. */
export type Decision = "renew" | "acquire" | "wait";

/** What is known of a Lease that exists. */
export interface LeaseView {
  /** This process holds it. */
  readonly mine: boolean;
  /** Nobody holds it. */
  readonly free: boolean;
  /** For how long it has not changed, as this process saw it. */
  readonly ageMs: number;
  /** For how long it must not have changed before it may be taken. */
  readonly durationMs: number;
}

/** Decides about a Lease that exists: kubernetes-plugin 4, "Decision". */
export function decide(lease: LeaseView): Decision {
  if (lease.mine) return "renew";
  if (lease.free || lease.ageMs >= lease.durationMs) return "acquire";
  return "wait";
}

/** What is known of a holder whose Lease vanished under it. */
export interface VanishedHolder {
  /** False when this process saw no such holder: then nothing is known, and nothing is waited for. */
  readonly seen: boolean;
  /** How long ago this process learned that the Lease is gone. */
  readonly ageMs: number;
  /** The duration that the Lease gave that holder. */
  readonly durationMs: number;
}

/**
 * Says whether a holder whose Lease vanished may still believe in its lead. A Lease that vanished is not a release: the
 * holder may not have noticed yet.
 */
export function vanishedHolderMayBelieve(vanished: VanishedHolder): boolean {
  return vanished.seen && vanished.ageMs < vanished.durationMs;
}

/**
 * The duration that counts for a Lease.
 *
 * @param recordSeconds What the Lease says, in seconds; 0 when it says nothing.
 * @param fallbackMs This process's own duration.
 * @returns Milliseconds; a record's own duration is capped at one hour.
 */
export function effectiveDurationMs(recordSeconds: number, fallbackMs: number): number {
  if (recordSeconds <= 0) return fallbackMs;
  if (recordSeconds >= quotient(MAX_LEASE_MS, 1000)) return MAX_LEASE_MS;
  return recordSeconds * 1000;
}

/** The count of transitions to write: one more for another holder, up to the highest that can be stored. */
export function nextTransitions(mine: boolean, current: number): number {
  if (mine || current >= MAX_TRANSITIONS) return current;
  return current + 1;
}

/** What is known of a Lease from an earlier look. */
export interface Observation {
  /** False at the first look. */
  readonly seen: boolean;
  /** When it was last seen to change. */
  readonly changedAtMs: number;
}

/** When a Lease was last seen to change, after a look at `nowMs` that found it changed or not. */
export function observedAtMs(earlier: Observation, changed: boolean, nowMs: number): number {
  return !earlier.seen || changed ? nowMs : earlier.changedAtMs;
}

/** For how long a Lease has not changed; 0 when the clock is behind. */
export function observedAgeMs(nowMs: number, changedAtMs: number): number {
  return nowMs >= changedAtMs ? nowMs - changedAtMs : 0;
}

/** What belief in the own lead rests on. */
export interface Belief {
  /** The last answer that told who holds the Lease told that this process does. */
  readonly holderIsMe: boolean;
  /** A write of this process was acknowledged. */
  readonly acknowledged: boolean;
  /** When the request of the last acknowledged write was sent. */
  readonly sentMs: number;
}

/**
 * Says whether this process may believe that it leads. It counts from the moment of sending, so that a slow answer makes
 * belief shorter and never longer. At exactly the deadline it is over.
 */
export function believes(belief: Belief, renewMs: number, nowMs: number): boolean {
  return belief.holderIsMe && belief.acknowledged && nowMs < belief.sentMs + renewMs;
}

/**
 * Says whether the wall clock jumped against the monotonic clock: a monotonic clock that stood still while the machine
 * was suspended shows itself so.
 *
 * @param offsetBeforeMs Wall time minus monotonic time, then.
 * @param offsetNowMs Wall time minus monotonic time, now.
 */
export function clockJumped(offsetBeforeMs: number, offsetNowMs: number): boolean {
  return Math.max(offsetBeforeMs - offsetNowMs, offsetNowMs - offsetBeforeMs) > MAX_CLOCK_JUMP_MS;
}

/** The time that one request gets: three in a row fit into a renew deadline, so that one that hangs does not cost the lead. */
export function requestTimeoutMs(renewMs: number): number {
  return Math.max(1, quotient(renewMs, 3));
}

/**
 * The time that the tasks of an ended term get to stop: kubernetes-plugin 7. It is shorter than the time from the end of
 * belief to the first take-over, so that an old task is gone before another replica leads.
 */
export function taskStopTimeoutMs(leaseMs: number, renewMs: number): number {
  const gapMs = leaseMs - renewMs;
  return Math.min(MAX_TASK_STOP_MS, Math.max(1, gapMs - quotient(gapMs, 5)));
}
