/**
 * What the controller of the `planned-failover` annotation does next: pure functions of what it read. deploy-api 8.1 to
 * 8.3, state protocol 2.2.
 *
 * @module
 */

import { CONCURRENT_OPERATION } from "../group/admission_rules.ts";
import type { PlannedAdmission } from "../group/gate_lease.ts";
import { operationPhase } from "../group/phases.ts";
import {
  COOLDOWN_ACTIVE,
  deferredByCooldown,
  deferredByHold,
  DEPLOYMENT_HOLD,
  failed,
  formatRequest,
  isFirstDeferral,
  parseRequest,
  type PlannedRequest,
  type PlannedStatusChange,
  validateRequest,
  type Validation,
} from "../group/planned_request.ts";
import { type MysqlFailoverGroup, PLANNED_FAILOVER_ANNOTATION } from "../group/types.ts";
import { expiresAtMs, type LeaseRecord } from "../records/record.ts";

/** What the controller read. */
export interface PlannedSnapshot {
  readonly group: MysqlFailoverGroup;
  /** The admission in the gate that a controller of this service made, or `null`. */
  readonly own: PlannedAdmission | null;
  /** Why an admission would be refused whatever the holds are, own admissions left aside; or `""`. */
  readonly refusal: string;
  /** The earliest hold that is stored as active, or `null`. */
  readonly hold: LeaseRecord | null;
  /** Bounds on the time now, in milliseconds since 1970. */
  readonly earliestMs: number;
  readonly latestMs: number;
}

/** What is to be done. */
export type PlannedDecision =
  | { readonly type: "nothing" }
  /** The gate carries what was admitted and is not wanted any more: take it back, and decide again. */
  | { readonly type: "withdraw"; readonly admission: PlannedAdmission }
  /** The annotation goes. `told` is false for one that was served already. */
  | { readonly type: "discard"; readonly why: "second" | "invalid" | "served" | "already_active" }
  | {
    readonly type: "defer";
    readonly change: PlannedStatusChange;
    readonly reason: string;
    /** An Event is due, and a count for a hold. */
    readonly first: boolean;
    /** The annotation that must be there again before status says `Deferred`; `null` when it is there. */
    readonly restore: string | null;
    /** Look again when this instant has passed, in milliseconds since 1970. */
    readonly untilMs: number;
  }
  | {
    readonly type: "fail";
    readonly change: PlannedStatusChange;
    readonly reason: string;
    readonly target: string;
  }
  /** Nothing may be written now: try again after a pause. */
  | { readonly type: "refused"; readonly reason: string }
  | {
    readonly type: "admit";
    readonly request: PlannedRequest;
    /** An admission that an earlier process left, to be carried on. */
    readonly left: PlannedAdmission | null;
  };

/**
 * True when nothing that the watches show can be work for this controller, so that an idle group costs no call.
 *
 * @param ownAdmission Whether the gate carries an admission of a controller of this service.
 * @param anyHold Whether a hold is stored as active.
 */
export function nothingToLookAt(
  group: MysqlFailoverGroup,
  ownAdmission: boolean,
  anyHold: boolean,
): boolean {
  const phase = group.status?.plannedFailover?.phase ?? "";
  return annotationOf(group) === undefined && phase !== "Deferred" && !ownAdmission &&
    !(anyHold && beforeDraining(phase));
}

/** Decides. */
export function decidePlanned(snapshot: PlannedSnapshot): PlannedDecision {
  const { group, own } = snapshot;
  const value = annotationOf(group);
  const phase = group.status?.plannedFailover?.phase ?? "";
  const request = value === undefined ? null : parseRequest(value);

  if (operationPhase(group, "PlannedFailover") === "admitted") {
    // The phase is there, so the admission has done its work.
    if (own !== null) return { type: "withdraw", admission: own };
    return decideUnderWay(snapshot, phase, request);
  }
  const verdict = request && validateRequest(group, request, snapshot.earliestMs);
  if (own !== null) {
    // A hold that is there now came after this admission, and is being taken back.
    const carryOn = own.state === "admitted" && verdict?.type === "accepted" &&
      snapshot.refusal === "";
    return carryOn && request !== null
      ? { type: "admit", request, left: own }
      : { type: "withdraw", admission: own };
  }
  if (value === undefined) {
    return phase === "Deferred" ? fail(snapshot, null, "Cancelled") : { type: "nothing" };
  }
  if (request === null || verdict === null) {
    return phase === "Deferred"
      ? fail(snapshot, null, "InvalidAnnotation")
      : { type: "discard", why: "invalid" };
  }
  return decideRequest(snapshot, phase, request, verdict);
}

/** A run that was admitted: only a hold that no admission of ours has seen can still delay it, before it drains. */
function decideUnderWay(
  { group, hold, latestMs }: PlannedSnapshot,
  phase: string,
  request: PlannedRequest | null,
): PlannedDecision {
  const known = group.status?.plannedFailover;
  if (annotationOf(group) !== undefined) {
    const served = beforeDraining(phase) && request?.target === known?.target;
    return { type: "discard", why: served ? "served" : "second" };
  }
  if (hold === null || !beforeDraining(phase)) return { type: "nothing" };
  const restore = formatRequest(known?.target ?? "", known?.maxLagWait ?? "");
  const again = parseRequest(restore) ?? { target: known?.target ?? "", maxLagWaitMs: null };
  return defer({ group, hold, latestMs }, again, restore);
}

function decideRequest(
  snapshot: PlannedSnapshot,
  phase: string,
  request: PlannedRequest,
  verdict: Validation,
): PlannedDecision {
  const { group, refusal, hold, latestMs } = snapshot;
  if (refusal !== "") {
    // Two that wait would wait for each other for ever: a restore in `Preflight` refuses us, and our `Deferred` it.
    const waitsForUs = refusal === CONCURRENT_OPERATION && phase === "Deferred" && hold === null &&
      operationPhase(group, "RestoreInPlace") === "waiting";
    return waitsForUs && verdict.type === "rejected"
      ? fail(snapshot, request, verdict.reason)
      : { type: "refused", reason: refusal };
  }
  // Before everything else, so that a nonsense target waits too and fails only then (deploy-api 8.2).
  if (hold !== null) return defer({ group, hold, latestMs }, request, null);
  switch (verdict.type) {
    case "accepted":
      return { type: "admit", request, left: null };
    case "already_active":
      return phase === "Deferred"
        ? fail(snapshot, request, "AlreadyActive")
        : { type: "discard", why: "already_active" };
    case "rejected":
      return fail(snapshot, request, verdict.reason);
    case "cooldown":
      return {
        type: "defer",
        change: deferredByCooldown(group, request, verdict.untilMs, latestMs),
        reason: COOLDOWN_ACTIVE,
        first: isFirstDeferral(group, COOLDOWN_ACTIVE),
        restore: null,
        untilMs: verdict.untilMs,
      };
  }
}

function defer(
  { group, hold, latestMs }: {
    readonly group: MysqlFailoverGroup;
    readonly hold: LeaseRecord;
    readonly latestMs: number;
  },
  request: PlannedRequest,
  restore: string | null,
): PlannedDecision {
  return {
    type: "defer",
    change: deferredByHold(group, request, hold, latestMs),
    reason: DEPLOYMENT_HOLD,
    first: isFirstDeferral(group, DEPLOYMENT_HOLD),
    restore,
    untilMs: expiresAtMs(hold),
  };
}

function fail(
  { group, latestMs }: PlannedSnapshot,
  request: PlannedRequest | null,
  reason: string,
): PlannedDecision {
  const target = request?.target ?? group.status?.plannedFailover?.target ?? "";
  return { type: "fail", change: failed(group, request, reason, latestMs), reason, target };
}

/** True in the phases in which a run can still go back to `Deferred`: deploy-api 8.3. */
function beforeDraining(phase: string): boolean {
  return phase === "Pending" || phase === "Validating";
}

/** The value of the annotation, or `undefined`. */
export function annotationOf({ metadata }: MysqlFailoverGroup): string | undefined {
  return metadata.annotations?.[PLANNED_FAILOVER_ANNOTATION];
}
