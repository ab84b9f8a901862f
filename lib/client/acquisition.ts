/**
 * Taking a lease: look, ask, and bear what is in the way.
 *
 * @module
 */

import { endsInMs, type GrantedBody, type GroupView } from "./answers.ts";
import { Authority, DdlMark } from "./authority.ts";
import type { DeployCalls, LeaseKind, Reply } from "./calls.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import {
  type HoldfastError,
  OperationInUseError,
  UnreachableError,
  UnstableError,
} from "./errors.ts";
import { blocked, blockedBy, blockedByHolder, type Step, tryUntilDone } from "./patience.ts";
import {
  grantLimitMs,
  judgeGrant,
  judgeView,
  type LeaseTiming,
  mayWork,
  type OwnDeadline,
} from "./rules.ts";

/** The most milliseconds that a look may take: a connection that swallows it leaves time for another one. */
export const LOOK_MS = 5_000;

/**
 * How often a grant is sent at once while it meets replicas that do not lead. An address that sends connections to the
 * replicas in turn would otherwise take each look to the leader, and each grant behind it past the leader, for ever.
 */
const LEADER_TRIES = 4;

/** What a lease is taken with. */
export interface AcquisitionParts {
  readonly calls: DeployCalls;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly group: string;
  readonly instance: string;
  /** Is told each look, so that held leases learn of a new generation. */
  readonly onView: (view: GroupView) => void;
}

/** What is wanted, checked. */
export interface Acquisition {
  readonly kind: LeaseKind;
  readonly operationId: string;
  readonly timing: LeaseTiming;
  readonly waitMs: number;
  readonly maxLagSeconds: number | null;
  readonly mark?: DdlMark;
  readonly signal?: AbortSignal;
  readonly onWaiting?: (why: HoldfastError) => void;
  readonly onDeadline?: (deadline: OwnDeadline) => void;
  readonly onEnd?: () => void;
}

/**
 * Takes a lease.
 *
 * A grant that was sent is waited for even when the signal aborts meanwhile, and its lease is then given back: else it
 * would keep others out, held by nobody, until its ttl is over.
 *
 * @throws {HoldfastError} @throws The signal's reason.
 */
export async function takeLease(
  parts: AcquisitionParts,
  wanted: Acquisition,
): Promise<Authority> {
  const { calls, group, instance } = parts;
  const { kind, operationId, timing, maxLagSeconds, signal } = wanted;
  let grantLost = false;

  return await tryUntilDone(parts, wanted, async (leftMs): Promise<Step<Authority>> => {
    const asked = { group, instance, operationId, grantLost };
    const look = await calls.observe(Math.min(LOOK_MS, leftMs), signal);
    if (look.answer.type !== "success") return blockedBy(look.answer, asked);
    const view = look.answer.body;
    parts.onView(view);
    const verdict = judgeView(view, { kind, operationId, maxLagSeconds, grantLost });
    switch (verdict.type) {
      case "held":
        return blockedByHolder(
          group,
          verdict.holder,
          endsInMs(verdict.holder, look.answer.dateMs),
        );
      case "unstable":
        return blocked(new UnstableError(group, verdict.reason), false);
      case "lagging": {
        const detail =
          `a replica is ${verdict.seconds} s behind, at most ${maxLagSeconds} s are allowed`;
        return blocked(new UnstableError(group, "ReplicationLag", detail), false);
      }
      case "free":
        return await ask(view);
    }
  });

  async function ask(view: GroupView): Promise<Step<Authority>> {
    signal?.throwIfAborted();
    const ttlSeconds = timing.ttlMs / 1_000;
    const body = { kind, operationId, instance, ttlSeconds };
    let reply = await calls.grant(body, grantLimitMs(timing.ttlMs));
    for (let tries = 1; reply.answer.type === "not_leader" && tries < LEADER_TRIES; tries++) {
      reply = await calls.grant(body, grantLimitMs(timing.ttlMs));
    }
    const verdict = judgeGrant(reply.answer, grantLost);
    if (verdict.type === "lost_answer") grantLost = true;
    if (verdict.type === "operation_in_use") throw new OperationInUseError(operationId);
    if (reply.answer.type !== "success") {
      return blockedBy(reply.answer, { group, instance, operationId, grantLost });
    }
    grantLost = false;
    const authority = start(reply, reply.answer.body, reply.answer.fence, view);
    if (signal?.aborted) {
      await authority.release();
      throw signal.reason;
    }
    // The primary moved between the look and the grant, or the answer took too long: look again.
    if (
      authority.topologyGeneration !== view.topologyGeneration ||
      !mayWork(authority.deadline, parts.clock.monotonic())
    ) {
      await authority.release();
      return blocked(new UnreachableError("timeout", "", false), true);
    }
    return { type: "done", value: authority };
  }

  function start(
    { sentMs }: Reply<GrantedBody>,
    granted: GrantedBody,
    fence: string,
    { activeSite }: GroupView,
  ): Authority {
    const { mark = new DdlMark(), onDeadline, onEnd } = wanted;
    const { clock, entropy } = parts;
    return new Authority({
      calls,
      clock,
      entropy,
      kind,
      operationId,
      timing,
      mark,
      sentMs,
      granted,
      fence,
      activeSite,
      onDeadline,
      onEnd,
    });
  }
}
