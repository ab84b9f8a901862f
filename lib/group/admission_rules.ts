/**
 * What a planner decides: pure functions of what it read. State protocol 2.2; `admission.ts` reads and writes.
 *
 * @module
 */

import { byExpiry, expiresAtMs, type LeaseRecord } from "../records/record.ts";
import type { Admission } from "./allowance.ts";
import type { LeaseInstant } from "../lease_time/lease_time.ts";
import type { PlannedAdmission } from "./gate_lease.ts";
import { operationPhase, PLANNED_OPERATIONS, type PlannedOperation } from "./phases.ts";
import type { MysqlFailoverGroup } from "./types.ts";

/** The reason of a 423 that only planners see: another planned operation is under way (deploy-api 7.7). */
export const CONCURRENT_OPERATION = "ConcurrentOperation";

/** What the first step of an admission read, the gate before the group. */
export interface PlannerSnapshot {
  readonly group: MysqlFailoverGroup;
  readonly planned: PlannedAdmission | null;
  /** What the generation table concludes of the two. */
  readonly admission: Pick<Admission, "revocationRequested" | "topologyBlocked">;
}

/**
 * The reason for which an operation may not be admitted whatever the holds are, or `""`: deploy-api 7.7, and step 1 of
 * the state protocol. Unlike a grant, it does not ask how old the observations are.
 *
 * @param operation What is to be admitted. Its own `Deferred` or `Preflight` waits for just this and refuses nothing.
 */
export function refusalReason(
  { group, planned, admission }: PlannerSnapshot,
  operation: PlannedOperation,
): string {
  if (admission.revocationRequested) return "DeploymentRevocationPending";
  const inTheWay = PLANNED_OPERATIONS.some((other) =>
    other !== operation && operationPhase(group, other) !== "idle"
  );
  if (inTheWay) return CONCURRENT_OPERATION;
  if (admission.topologyBlocked === "TopologyPersistencePending") return admission.topologyBlocked;
  if (planned !== null) return planned.operation;
  return operationPhase(group, operation) === "admitted" ? operation : "";
}

/** What the holds of a group say to a planner. */
export type HoldsVerdict<T> =
  /** None is left. */
  | { readonly type: "free" }
  /** The earliest to end. */
  | { readonly type: "held"; readonly by: T }
  /** These ran out so long ago that the planner may write `expired` itself, and look again. */
  | { readonly type: "overdue"; readonly holds: readonly T[] };

/**
 * Judges the holds of a group. A hold blocks until its *stored* state is terminal, whatever the clock says: its holder may
 * be about to renew it. One whose expiry passed by more than twice the clock offset was left behind by a leader that is
 * gone, and the planner may end it.
 *
 * @param holds Every hold that is listed as active and owned by the group.
 * @param maxClockOffsetMs `deploy_api.max_clock_offset`, in milliseconds.
 */
export function judgeHolds<T extends { readonly record: LeaseRecord }>(
  holds: readonly T[],
  time: LeaseInstant,
  maxClockOffsetMs: number,
): HoldsVerdict<T> {
  const active = holds.filter(({ record }) => record.state === "active")
    .toSorted((a, b) => byExpiry(a.record, b.record));
  const overdue = active.filter(({ record }) =>
    time.certain && time.earliestMs > expiresAtMs(record) + 2 * maxClockOffsetMs
  );
  if (overdue.length > 0) return { type: "overdue", holds: overdue };
  const [by] = active;
  return by === undefined ? { type: "free" } : { type: "held", by };
}

/**
 * True when the gate still carries exactly this admission, so that its phase may be written. An admission that another
 * process took over carries another `by` and is not ours any more.
 */
export function stillAdmitted(planned: PlannedAdmission | null, mine: PlannedAdmission): boolean {
  return planned !== null && planned.id === mine.id && planned.by === mine.by &&
    planned.state === "admitted";
}

/** What to do about an admission that is found in a gate. */
export type LeftBehind = "leave" | "withdraw";

/** What this process knows of an admission that it found in a gate. */
export interface LeftBehindFacts {
  readonly planned: Pick<PlannedAdmission, "state">;
  /** Milliseconds for which this process has seen this same admission, on its monotonic clock. */
  readonly seenForMs: number;
}

/** Milliseconds after which an admission that nobody cleared is taken back: state protocol 2.2. */
export const LEFT_BEHIND_MS = 10_000;

/**
 * Judges an admission that is still there. One that is being withdrawn is finished by whoever finds it; any other gets 10 s
 * for its phase and its clear. Once its phase is in status a withdrawal does no more than clear, so that is not asked.
 */
export function judgeLeftBehind({ planned, seenForMs }: LeftBehindFacts): LeftBehind {
  return planned.state === "withdrawing" || seenForMs >= LEFT_BEHIND_MS ? "withdraw" : "leave";
}
