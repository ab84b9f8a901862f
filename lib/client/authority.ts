/**
 * A lease that is held: a value that knows until when it counts, keeps itself alive, and says when it is over.
 *
 * What is guaranteed: the signal aborts two stop margins before another one may hold the lease, provided that this process
 * runs at that moment; a process that was stopped finds {@linkcode Authority.isValid} false when it goes on. What is not:
 * after a revocation another one may be at work already. Only the fence protects in between, so hand it to whatever the
 * work writes to.
 *
 * @module
 */

import type { CancelTimer, Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import type { GrantedBody } from "./answers.ts";
import type { DeployCalls, LeaseKind } from "./calls.ts";
import { AuthorityLostError, NotRenewedError, type Phase } from "./errors.ts";
import { keepAlive, type Renewable, type RenewalOutcome } from "./heartbeat.ts";
import {
  deadlineOnSend,
  deadlineOnSuccess,
  judgeRenewal,
  type LeaseTiming,
  type LossReason,
  mayWork,
  nextRenewalMs,
  type OwnDeadline,
  ownDeadline,
  pauseMs,
  renewalLimitMs,
} from "./rules.ts";

/** Whether DDL may have begun, shared by the leases of one deployment. */
export class DdlMark {
  #phase: Phase = "before-ddl";

  /** `after-ddl` once {@linkcode DdlMark.enter} was called. */
  get phase(): Phase {
    return this.#phase;
  }

  /** DDL is about to begin. There is no way back. */
  enter(): void {
    this.#phase = "after-ddl";
  }
}

/** What an {@linkcode Authority} is made of. */
export interface AuthorityParts {
  readonly calls: Pick<DeployCalls, "renew" | "release">;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly kind: LeaseKind;
  readonly operationId: string;
  readonly timing: LeaseTiming;
  readonly mark: DdlMark;
  /** When the grant was sent, in milliseconds on the monotonic clock. */
  readonly sentMs: number;
  readonly granted: GrantedBody;
  /** The header `X-Lease-Fence`; empty when the service has none. */
  readonly fence: string;
  /** The site with the primary, under the generation of the grant. */
  readonly activeSite: string;
  /** Is told each new deadline. It must not throw. */
  readonly onDeadline?: (deadline: OwnDeadline) => void;
  /** Is called once, when the lease is over. */
  readonly onEnd?: () => void;
}

/** How long a release is tried, in milliseconds: the service's own limit for a request, and a little more. */
const RELEASE_MS = 12_000;

/** The longest single try of a release. */
const RELEASE_TRY_MS = 4_000;

/** A lease that is held. It renews itself from the start. */
export class Authority implements Renewable, AsyncDisposable {
  readonly kind: LeaseKind;
  readonly operationId: string;
  /** The secret that renews and releases the lease. */
  readonly token: string;
  /**
   * The fencing token: rises with every grant. `null` when the service gives none. What the work writes to can keep the
   * greatest pair of generation and fence that it saw, and refuse a lower one.
   */
  readonly fence: bigint | null;
  /** The generation of the group's topology under which the lease counts. */
  readonly topologyGeneration: number;
  /** The site with the primary. */
  readonly activeSite: string;
  readonly #parts: AuthorityParts;
  readonly #controller = new AbortController();
  readonly #beating: Promise<void>;
  #expiresAt: string;
  #deadlineMs: number;
  #renewalDueMs: number;
  #cancelStop: CancelTimer = () => {};
  #renewing: Promise<RenewalOutcome> | null = null;
  #releasing: Promise<boolean> | null = null;

  constructor(parts: AuthorityParts) {
    this.#parts = parts;
    const { granted, sentMs, timing } = parts;
    this.kind = parts.kind;
    this.operationId = parts.operationId;
    this.token = granted.token;
    this.fence = /^\d+$/.test(parts.fence) ? BigInt(parts.fence) : null;
    this.topologyGeneration = granted.topologyGeneration;
    this.activeSite = parts.activeSite;
    this.#expiresAt = granted.expiresAt;
    this.#deadlineMs = deadlineOnSuccess(sentMs, timing.ttlMs);
    this.#renewalDueMs = nextRenewalMs(sentMs, timing.ttlMs);
    this.#deadlineMoved();
    this.#beating = keepAlive(this, parts);
  }

  /**
   * Aborts when authority is over, with an {@linkcode AuthorityLostError}. Pass it to everything that works under the
   * lease.
   */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The end of the lease as the service told it last, RFC 3339. For people: work by {@linkcode Authority.deadline}. */
  get expiresAt(): string {
    return this.#expiresAt;
  }

  /** The instants at which this process stops by itself. */
  get deadline(): OwnDeadline {
    return ownDeadline(this.#deadlineMs, this.#parts.timing.stopMarginMs);
  }

  /** When the next renewal is due, in milliseconds on the monotonic clock. */
  get renewalDueMs(): number {
    return this.#renewalDueMs;
  }

  /** Whether DDL may have begun. */
  get phase(): Phase {
    return this.#parts.mark.phase;
  }

  /**
   * Says that DDL begins now: after this a loss means that the schema must be looked at by hand.
   *
   * @throws {AuthorityLostError} Authority is over. No DDL must begin.
   */
  enteringDdl(): void {
    if (!this.isValid()) this.#lose("deadline");
    this.signal.throwIfAborted();
    this.#parts.mark.enter();
  }

  /** True while work may go on. It asks the clock, so that a process that was stopped does not believe in the past. */
  isValid(): boolean {
    return !this.signal.aborted && mayWork(this.deadline, this.#parts.clock.monotonic());
  }

  /**
   * Renews now, and does not wait for the heartbeat.
   *
   * @throws {AuthorityLostError} Authority is over.
   * @throws {NotRenewedError} The service did not renew it; the old deadline stays, and the heartbeat tries on.
   */
  async renewNow(): Promise<void> {
    const outcome = await this.renewOnce();
    if (outcome.type === "lost") throw outcome.error;
    if (outcome.type === "not_renewed") throw new NotRenewedError(this.operationId, outcome.answer);
  }

  /** Renews once, or joins the renewal that is under way: there are never two at a time. It never throws. */
  renewOnce(): Promise<RenewalOutcome> {
    this.#renewing ??= this.#renew().finally(() => this.#renewing = null);
    return this.#renewing;
  }

  /** Ends authority for a reason that was learned elsewhere, for example by a look at the group. */
  lose(reason: LossReason): void {
    this.#lose(reason);
  }

  /**
   * Gives the lease back, and stops renewing it. It tries for up to 12 s, and no longer than the lease lasts.
   *
   * @returns True when the service confirmed it. False when it did not: the lease then ends with its ttl. It never throws.
   */
  release(): Promise<boolean> {
    this.#releasing ??= this.#release();
    return this.#releasing;
  }

  /** Stops renewing and does not give the lease back: it ends with its ttl, and keeps others out until then. */
  async leaveToExpire(): Promise<void> {
    this.#lose("released");
    await this.#beating;
  }

  /** Releases the lease. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  async #renew(): Promise<RenewalOutcome> {
    const { calls, clock, timing } = this.#parts;
    if (!this.isValid()) this.#lose("deadline");
    if (this.signal.aborted) return this.#lost();
    const { stopAtMs } = this.deadline;
    const limitMs = renewalLimitMs(timing.ttlMs, stopAtMs, clock.monotonic());
    const body = { token: this.token, ttlSeconds: timing.ttlMs / 1_000 };
    this.#moveDeadline(deadlineOnSend(this.#deadlineMs, clock.monotonic(), timing.ttlMs));
    let reply;
    try {
      reply = await calls.renew(this.kind, this.operationId, body, limitMs, this.signal);
    } catch {
      // The token file could not be read, or the lease ended meanwhile.
      return this.signal.aborted ? this.#lost() : notRenewed("no_credential", 0);
    }
    // What came back after the end changes nothing.
    if (this.signal.aborted) return this.#lost();
    const { sentMs, answer } = reply;
    const verdict = judgeRenewal(answer, this.topologyGeneration);
    if (verdict.type === "lost") {
      this.#lose(verdict.reason);
      return this.#lost();
    }
    if (verdict.type === "not_renewed") {
      return notRenewed(answer.type, "retryAfterMs" in answer ? answer.retryAfterMs : 0);
    }
    this.#expiresAt = verdict.expiresAt;
    this.#renewalDueMs = nextRenewalMs(sentMs, timing.ttlMs);
    this.#moveDeadline(deadlineOnSuccess(sentMs, timing.ttlMs));
    return this.signal.aborted ? this.#lost() : { type: "renewed" };
  }

  #moveDeadline(deadlineMs: number): void {
    if (deadlineMs === this.#deadlineMs) return;
    this.#deadlineMs = deadlineMs;
    this.#deadlineMoved();
  }

  #deadlineMoved(): void {
    this.#cancelStop();
    const { clock, onDeadline } = this.#parts;
    const left = this.deadline.stopAtMs - clock.monotonic();
    if (left <= 0) return this.#lose("deadline");
    this.#cancelStop = clock.timer(left, () => this.#lose("deadline"));
    onDeadline?.(this.deadline);
  }

  #lose(reason: LossReason): void {
    if (this.signal.aborted) return;
    this.#cancelStop();
    const { mark, onEnd } = this.#parts;
    onEnd?.();
    this.#controller.abort(new AuthorityLostError(this.operationId, reason, mark.phase));
  }

  #lost(): RenewalOutcome {
    const error: unknown = this.signal.reason;
    if (!(error instanceof AuthorityLostError)) throw error;
    return { type: "lost", error };
  }

  async #release(): Promise<boolean> {
    this.#lose("released");
    // The renewal under way ends with the signal, so that it cannot come after the release.
    await this.#beating;
    await this.#renewing;
    const { calls, clock, entropy } = this.#parts;
    const untilMs = Math.min(this.#deadlineMs, clock.monotonic() + RELEASE_MS);
    for (let failures = 1;; failures++) {
      const limitMs = Math.min(RELEASE_TRY_MS, untilMs - clock.monotonic());
      if (limitMs <= 0) return false;
      let retryAfterMs = 0;
      try {
        const { answer } = await calls.release(this.kind, this.operationId, this.token, limitMs);
        if (answer.type === "success") return true;
        if (isFinal(answer.type)) return false;
        if ("retryAfterMs" in answer) retryAfterMs = answer.retryAfterMs;
      } catch {
        // The token file could not be read: it may be replaced at this moment.
      }
      const pause = pauseMs(failures, retryAfterMs, entropy.fraction());
      const left = Math.max(0, untilMs - clock.monotonic());
      await new Promise<void>((resolve) => clock.timer(Math.min(pause, left), resolve));
    }
  }
}

function notRenewed(answer: string, retryAfterMs: number): RenewalOutcome {
  return { type: "not_renewed", answer, retryAfterMs };
}

/** Answers to a release that another try would not change. */
function isFinal(type: string): boolean {
  return type === "token_mismatch" || type === "not_found" || type === "invalid_request" ||
    type === "revoked" || type === "held";
}
