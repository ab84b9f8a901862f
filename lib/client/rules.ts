/**
 * The rules of a client that holds a lease: deploy-api 16.8. Pure: what is known goes in, what to do comes out.
 *
 * The argument about clocks: a lease that the service granted ends at its own `expiresAt`, which counts from a moment
 * *after* the request was sent. So a deadline that counts from the sending, on this machine's monotonic clock, comes
 * first. The stop margin covers what is left: the difference between the clocks that may judge the expiry, and the time
 * that work needs to stop.
 *
 * @module
 */

import type { Answer, GrantedBody, GroupView, Holder, RenewedBody } from "./answers.ts";

/** The shortest and the longest lease that the service grants, in seconds: deploy-api 2.2. */
export const TTL_SECONDS = { least: 5, most: 120 } as const;

/** How far the clock that judges expiry may be off, in milliseconds: the service's `deploy_api.max_clock_offset`. */
export const MAX_CLOCK_OFFSET_MS = 1_000;

/** How long a lease lasts, and how much earlier its holder stops. All in milliseconds. */
export interface LeaseTiming {
  /** From the sending of a request. */
  readonly ttlMs: number;
  /** Work is asked to stop two margins before the deadline, and is cut off one margin before it. */
  readonly stopMarginMs: number;
}

/** The instants at which authority ends, in milliseconds on the monotonic clock. */
export interface OwnDeadline {
  /** The signal aborts, and a child process is asked to end: two margins before the deadline. */
  readonly stopAtMs: number;
  /** A child process is killed: one margin before the deadline. */
  readonly killAtMs: number;
  /** From here on another one may hold the lease. */
  readonly deadlineMs: number;
}

/** The stop margin unless one is given: the greatest of 2 s, a sixth of the ttl, and twice the clock's offset. */
export function defaultStopMarginMs(ttlMs: number, maxClockOffsetMs: number): number {
  return Math.max(2_000, ttlMs / 6, 2 * maxClockOffsetMs);
}

/** What is wrong with a {@linkcode LeaseTiming}. */
export type TimingProblem =
  | "none"
  | "ttl_not_whole"
  | "ttl_out_of_range"
  | "margin_below_offset"
  | "ttl_too_short";

/**
 * Judges a timing. A ttl is too short when, after the first renewal is due and one more second, the work would have to
 * stop already: then one lost answer ends it.
 */
export function timingProblem(timing: LeaseTiming, maxClockOffsetMs: number): TimingProblem {
  const { ttlMs, stopMarginMs } = timing;
  if (!Number.isSafeInteger(ttlMs / 1_000)) return "ttl_not_whole";
  if (ttlMs < TTL_SECONDS.least * 1_000 || ttlMs > TTL_SECONDS.most * 1_000) {
    return "ttl_out_of_range";
  }
  if (!(stopMarginMs >= 2 * maxClockOffsetMs)) return "margin_below_offset";
  if (ttlMs / 3 + 1_000 > ttlMs - 2 * stopMarginMs) return "ttl_too_short";
  return "none";
}

/** The deadline once a request for a lease was answered with success: it counts from the sending, never from the answer. */
export function deadlineOnSuccess(sentMs: number, ttlMs: number): number {
  return sentMs + ttlMs;
}

/**
 * The deadline as soon as a renewal is on its way. Its answer may get lost and its effect not, and the effect may be a
 * shorter lease. So it can only come nearer.
 */
export function deadlineOnSend(currentMs: number, sentMs: number, ttlMs: number): number {
  return Math.min(currentMs, sentMs + ttlMs);
}

/** The instants that follow from a deadline. */
export function ownDeadline(deadlineMs: number, stopMarginMs: number): OwnDeadline {
  return {
    stopAtMs: deadlineMs - 2 * stopMarginMs,
    killAtMs: deadlineMs - stopMarginMs,
    deadlineMs,
  };
}

/** The deadline of an authority that needs both leases: whichever comes first. */
export function earlier(a: OwnDeadline, b: OwnDeadline): OwnDeadline {
  return {
    stopAtMs: Math.min(a.stopAtMs, b.stopAtMs),
    killAtMs: Math.min(a.killAtMs, b.killAtMs),
    deadlineMs: Math.min(a.deadlineMs, b.deadlineMs),
  };
}

/** True while work may go on. */
export function mayWork(deadline: OwnDeadline, nowMs: number): boolean {
  return nowMs < deadline.stopAtMs;
}

/** When the next renewal is due after one that was sent at `sentMs` and answered with success. */
export function nextRenewalMs(sentMs: number, ttlMs: number): number {
  return sentMs + ttlMs / 3;
}

/**
 * How long one renewal may take: short enough that a connection that swallows it leaves time for another one.
 *
 * @returns Milliseconds, at least 0.
 */
export function renewalLimitMs(ttlMs: number, stopAtMs: number, nowMs: number): number {
  return Math.max(0, Math.min(Math.max(1_000, ttlMs / 6), stopAtMs - nowMs));
}

/**
 * How long a grant may take. An answer that comes later would leave little time for work, and a lost one is recovered by
 * another grant.
 *
 * @returns Milliseconds.
 */
export function grantLimitMs(ttlMs: number): number {
  return Math.min(ttlMs / 3, 5_000);
}

/** Why authority ended. `released` is the one that its holder chose. */
export type LossReason =
  | "deadline"
  | "topology_changed"
  | "operator_revoked"
  | "revoked"
  | "not_found"
  | "token_mismatch"
  | "released";

/** What an answer to a renewal means. */
export type RenewalVerdict =
  | { readonly type: "renewed"; readonly expiresAt: string }
  /** Authority is gone, at once and for good. */
  | { readonly type: "lost"; readonly reason: LossReason }
  /** The old deadline stays. */
  | { readonly type: "not_renewed" };

/** Judges the answer to a renewal of a lease that was granted under `generation`: deploy-api 16.8. */
export function judgeRenewal(answer: Answer<RenewedBody>, generation: number): RenewalVerdict {
  switch (answer.type) {
    case "success":
      return answer.body.topologyGeneration === generation
        ? { type: "renewed", expiresAt: answer.body.expiresAt }
        : { type: "lost", reason: "topology_changed" };
    case "not_found":
    case "token_mismatch":
      return { type: "lost", reason: answer.type };
    case "revoked":
      return { type: "lost", reason: answer.reason };
    case "held":
      return { type: "lost", reason: "revoked" };
    default:
      return { type: "not_renewed" };
  }
}

/** What a client wants of a group. */
export interface Wish {
  readonly kind: "migration" | "failover-hold";
  readonly operationId: string;
  /** The most seconds that a replica may lag; `null` for any. */
  readonly maxLagSeconds: number | null;
  /** A grant of this very operation was sent, and its answer got lost. */
  readonly grantLost: boolean;
}

/** What a look at a group means to who wants a lease. */
export type ViewVerdict =
  | { readonly type: "free" }
  | { readonly type: "held"; readonly holder: Holder }
  | { readonly type: "unstable"; readonly reason: string }
  | { readonly type: "lagging"; readonly seconds: number };

/**
 * Judges a look, so that a grant is not used as a probe (deploy-api 16.8).
 *
 * A migration lease of the same operation is somebody else's too, unless a grant of ours got lost: a grant would take the
 * lease from the one who works under it.
 */
export function judgeView(view: GroupView, wish: Wish): ViewVerdict {
  const migration = view.leases.find(({ kind }) => kind === "migration");
  const isOurs = migration?.operationId === wish.operationId && wish.grantLost;
  if (wish.kind === "migration" && migration !== undefined && !isOurs) {
    const { operationId, instance, expiresAt } = migration;
    return { type: "held", holder: { operationId, instance, expiresAt } };
  }
  if (!view.stable) return { type: "unstable", reason: view.unstableReason };
  const seconds = view.health.replicationLagSeconds;
  if (wish.maxLagSeconds !== null && seconds > wish.maxLagSeconds) {
    return { type: "lagging", seconds };
  }
  return { type: "free" };
}

/** What an answer to a grant means. */
export type GrantVerdict =
  | { readonly type: "granted" }
  /** The same operation had the lease already, and no grant of ours got lost: somebody else uses the operation. */
  | { readonly type: "operation_in_use" }
  /** It may have been stored. Only another grant gives its token. */
  | { readonly type: "lost_answer" }
  | { readonly type: "refused" };

/** Judges the answer to a grant. */
export function judgeGrant(answer: Answer<GrantedBody>, grantLost: boolean): GrantVerdict {
  switch (answer.type) {
    case "success":
      return answer.status === 201 || grantLost
        ? { type: "granted" }
        : { type: "operation_in_use" };
    case "unavailable":
    case "unexpected":
    case "no_answer":
      return { type: "lost_answer" };
    default:
      return { type: "refused" };
  }
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 2_000;

/**
 * The pause before another try: it doubles from 0.2 s to 2 s, is at least what the service asked for, and is cut at
 * random by up to a half of what is its own choice, so that clients do not come together.
 *
 * @param failures Tries in a row that failed, 1 or more.
 * @param retryAfterMs What the service asked for; 0 for nothing.
 * @param fraction A random number of 0 or more and below 1.
 */
export function pauseMs(failures: number, retryAfterMs: number, fraction: number): number {
  const own = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 10));
  return Math.max(own * (1 - fraction / 2), Math.min(retryAfterMs, LONGEST_PAUSE_MS));
}

/** How long before the end of another one's lease it is looked at often, in milliseconds. */
const NEAR_END_MS = 2_000;

/** How long after that end. Who still shows the lease then does not know the time well enough to end it. */
const PAST_END_MS = 5_000;

/** The pause between two looks near that end. */
const NEAR_END_PAUSE_MS = 250;

/**
 * The pause before another look at a lease that another one holds. A holder that lives renews long before its end. One that
 * comes near to it is probably dead, and whoever waits should not sleep past the moment at which the lease is free.
 *
 * @param ownMs The pause without that knowledge.
 * @param endsInMs Until the end of the lease, by the service's clock; `null` when it is not known.
 */
export function heldPauseMs(ownMs: number, endsInMs: number | null): number {
  if (endsInMs === null || endsInMs < -PAST_END_MS) return ownMs;
  return Math.min(ownMs, Math.max(NEAR_END_PAUSE_MS, endsInMs - NEAR_END_MS));
}

/**
 * The pause before a renewal is tried again. It never takes more than half of the time that is left, so that the service's
 * wish for patience does not cost the lease.
 */
export function renewalPauseMs(pause: number, stopAtMs: number, nowMs: number): number {
  return Math.max(0, Math.min(pause, (stopAtMs - nowMs) / 2));
}
