/**
 * A whole deployment: the migration lease, the hold, the work under both, and their release.
 *
 * @module
 */

import { type Clock, sleep } from "../runtime/clock.ts";
import type { Authority, DdlMark } from "./authority.ts";
import { AuthorityLostError, type HoldfastError, type Phase, UnstableError } from "./errors.ts";
import { earlier, type LossReason, type OwnDeadline } from "./rules.ts";

/** What the work of a deployment is given. */
export class DeploymentAuthority {
  readonly operationId: string;
  /** The migration lease. */
  readonly migration: Authority;
  /** The hold; `null` when none was wanted. */
  readonly hold: Authority | null;
  /**
   * Aborts when either lease is over, with an {@linkcode AuthorityLostError}, or when the caller's own signal aborts.
   */
  readonly signal: AbortSignal;
  readonly #mark: DdlMark;

  constructor(
    parts: {
      readonly migration: Authority;
      readonly hold: Authority | null;
      readonly mark: DdlMark;
      readonly signal: AbortSignal | undefined;
    },
  ) {
    const { migration, hold, mark, signal } = parts;
    this.operationId = migration.operationId;
    this.migration = migration;
    this.hold = hold;
    this.#mark = mark;
    this.signal = AbortSignal.any(
      [migration.signal, hold?.signal, signal].filter((one) => one !== undefined),
    );
  }

  /** The fencing token of the migration lease: {@linkcode Authority.fence}. */
  get fence(): bigint | null {
    return this.migration.fence;
  }

  /** The generation under which both leases count. */
  get topologyGeneration(): number {
    return this.migration.topologyGeneration;
  }

  /** The site with the primary. */
  get activeSite(): string {
    return this.migration.activeSite;
  }

  /** When this process stops by itself: by the lease that ends first. */
  get deadline(): OwnDeadline {
    const { migration, hold } = this;
    return hold === null ? migration.deadline : earlier(migration.deadline, hold.deadline);
  }

  /** Whether DDL may have begun. */
  get phase(): Phase {
    return this.#mark.phase;
  }

  /** True once a lease is over. The signal may abort for the caller's own reason too, and both leases are there then. */
  get isLost(): boolean {
    return this.migration.signal.aborted || (this.hold?.signal.aborted ?? false);
  }

  /** True while work may go on. It asks the clock. */
  isValid(): boolean {
    return !this.signal.aborted && this.migration.isValid() && (this.hold?.isValid() ?? true);
  }

  /**
   * Says that DDL begins now. After this a loss means that the schema must be looked at by hand, and a failure leaves the
   * migration lease to expire.
   *
   * @throws {AuthorityLostError} Authority is over. No DDL must begin.
   */
  enteringDdl(): void {
    this.signal.throwIfAborted();
    this.hold?.enteringDdl();
    this.migration.enteringDdl();
  }

  /** Says that DDL was seen to have begun, by who cannot ask before. It never throws. */
  ddlHasBegun(): void {
    this.#mark.enter();
  }

  /** Renews both leases now. @throws {AuthorityLostError} @throws {NotRenewedError} */
  async renewNow(): Promise<void> {
    await Promise.all([this.migration.renewNow(), this.hold?.renewNow()]);
  }
}

/** What a loss means at the moment it happens. */
export interface Loss {
  readonly reason: LossReason;
  readonly phase: Phase;
  /** Milliseconds in which a fenced cleanup may still run; 0 after a revocation, when another one may be at work already. */
  readonly remainingMs: number;
  /** Aborts when these are over. */
  readonly signal: AbortSignal;
}

/** How a deployment is carried out. */
export interface DeploymentPlan {
  readonly clock: Clock;
  readonly mark: DdlMark;
  readonly signal: AbortSignal | undefined;
  readonly releaseOnFailure: boolean;
  readonly onLost: ((loss: Loss) => void | Promise<void>) | undefined;
  /** Takes the migration lease; waits for it for up to so many milliseconds. */
  readonly takeMigration: (waitMs: number) => Promise<Authority>;
  /** Takes the hold without waiting; `null` when none is wanted. */
  readonly takeHold: ((migration: Authority) => Promise<Authority>) | null;
  readonly waitMs: number;
  readonly onWaiting: ((why: HoldfastError) => void) | undefined;
  /** Is told once both leases are there. */
  readonly onReady: (authority: DeploymentAuthority) => void;
}

/** The pause, in milliseconds, before both leases are tried anew: they were free and only the second one was refused. */
const BETWEEN_TRIES_MS = 1_000;

const NEVER = new AbortController().signal;

/** Takes the leases, does the work, and releases what may be released. */
export async function carryOut<T>(
  plan: DeploymentPlan,
  work: (authority: DeploymentAuthority) => T | Promise<T>,
): Promise<T> {
  const authority = await takeBoth(plan);
  const loss = watchLoss(plan, authority);
  let failed = true;
  try {
    plan.onReady(authority);
    const value = await work(authority);
    failed = false;
    lookAtClock(authority);
    await loss.handled();
    if (loss.error !== null) throw lostError(plan, loss.error, undefined);
    return value;
  } catch (cause) {
    lookAtClock(authority);
    await loss.handled();
    if (loss.error === null || cause instanceof AuthorityLostError) throw cause;
    throw lostError(plan, loss.error, cause);
  } finally {
    loss.stop();
    await finish(plan, authority, failed || loss.error !== null);
  }
}

/** A process that was stopped may learn how its work ended before its timers say that it had lost its authority. */
function lookAtClock(authority: DeploymentAuthority): void {
  const { hold, migration } = authority;
  if (authority.isLost) return;
  if (!migration.isValid() || hold?.isValid() === false) migration.lose("deadline");
}

/** The loss as its caller sees it: with the phase as it is once the work has stopped. */
function lostError(
  { mark }: DeploymentPlan,
  { operationId, reason }: AuthorityLostError,
  cause: unknown,
): AuthorityLostError {
  return new AuthorityLostError(operationId, reason, mark.phase, { cause });
}

/**
 * A group that turned unstable between the two leases will be so for a while, and then has another generation. So the
 * migration lease is given back for that time.
 */
async function takeBoth(plan: DeploymentPlan): Promise<DeploymentAuthority> {
  const untilMs = plan.clock.monotonic() + plan.waitMs;
  for (;;) {
    const leftMs = Math.max(0, untilMs - plan.clock.monotonic());
    const migration = await plan.takeMigration(leftMs);
    try {
      const hold = await plan.takeHold?.(migration) ?? null;
      const { mark, signal } = plan;
      const authority = new DeploymentAuthority({ migration, hold, mark, signal });
      if (hold !== null && hold.topologyGeneration !== migration.topologyGeneration) {
        migration.lose("topology_changed");
      }
      if (authority.isValid()) return authority;
      await hold?.release();
      if (!authority.signal.aborted) migration.lose("deadline");
      throw authority.signal.reason;
    } catch (error) {
      await migration.release();
      const again = error instanceof UnstableError && plan.clock.monotonic() < untilMs;
      if (!again) throw error;
      plan.onWaiting?.(error);
      await sleep(plan.clock, BETWEEN_TRIES_MS, plan.signal ?? NEVER);
    }
  }
}

/** Calls `onLost` once when a lease ends by itself, and keeps the loss. */
function watchLoss({ clock, mark, onLost }: DeploymentPlan, authority: DeploymentAuthority) {
  let error: AuthorityLostError | null = null;
  let handling: Promise<void> = Promise.resolve();
  const leases = [authority.migration, authority.hold].filter((one) => one !== null);
  const onAbort = (event: Event) => {
    const reason: unknown = event.target instanceof AbortSignal ? event.target.reason : undefined;
    if (error !== null || !(reason instanceof AuthorityLostError)) return;
    error = reason;
    if (onLost !== undefined) handling = handle(reason, onLost);
  };
  for (const { signal } of leases) signal.addEventListener("abort", onAbort, { once: true });

  async function handle(
    { reason }: AuthorityLostError,
    tell: (loss: Loss) => void | Promise<void>,
  ): Promise<void> {
    const over = new AbortController();
    const remainingMs = reason === "deadline"
      ? Math.max(0, authority.deadline.killAtMs - clock.monotonic())
      : 0;
    const cancel = clock.timer(remainingMs, () => over.abort());
    if (remainingMs === 0) over.abort();
    try {
      await tell({ reason, phase: mark.phase, remainingMs, signal: over.signal });
    } catch {
      // What a cleanup does wrong must not hide the loss.
    } finally {
      cancel();
    }
  }

  return {
    /** The loss, when there was one. */
    get error(): AuthorityLostError | null {
      return error;
    },
    handled: () => handling,
    stop(): void {
      for (const { signal } of leases) signal.removeEventListener("abort", onAbort);
    },
  };
}

/**
 * The hold is always released. The migration lease is released when the outcome is recorded: after a success, after a
 * failure before DDL, and when the caller wishes it. Otherwise it keeps others out until its ttl is over.
 */
async function finish(
  { mark, releaseOnFailure }: DeploymentPlan,
  { migration, hold }: DeploymentAuthority,
  failed: boolean,
): Promise<void> {
  const isRecorded = !failed || mark.phase === "before-ddl" || releaseOnFailure;
  await Promise.all([
    hold?.release(),
    isRecorded ? migration.release() : migration.leaveToExpire(),
  ]);
}
