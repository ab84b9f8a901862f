/**
 * Which planned operation a group's status shows, and how far it is: what the state protocol (2.2) calls a phase.
 *
 * @module
 */

import type { StatusFacts } from "./gate.ts";
import type { MysqlFailoverGroup } from "./types.ts";

/** The operations that a hold delays, under the names that 423 answers and the gate use (deploy-api 7.7). */
export type PlannedOperation = "PlannedFailover" | "OrderedUpdate" | "RestoreInPlace";

/** All of {@linkcode PlannedOperation}, in the order in which {@linkcode admittedPhase} looks. */
export const PLANNED_OPERATIONS: readonly PlannedOperation[] = [
  "PlannedFailover",
  "OrderedUpdate",
  "RestoreInPlace",
];

/**
 * How far an operation is.
 *
 * - `idle`: never started, or ended.
 * - `waiting`: asked for and not admitted (`Deferred`, `Preflight`).
 * - `admitted`: in a phase that only an admission writes.
 */
export type OperationPhase = "idle" | "waiting" | "admitted";

const FAILOVER_IN_FLIGHT: ReadonlySet<string> = new Set([
  "Pending",
  "Validating",
  "Draining",
  "WaitingForLag",
  "WaitingForDragonflySync",
  "PromotingDragonfly",
  "Promoting",
  "Resuming",
  "Deferred",
]);

/** True for the phases of a planned failover that has begun and not ended, `Deferred` included: deploy-api 5, row 3. */
export function plannedFailoverInFlight(phase: string | null | undefined): boolean {
  return FAILOVER_IN_FLIGHT.has(phase ?? "");
}

/** How far an operation is, by the group's status. */
export function operationPhase(
  group: MysqlFailoverGroup,
  operation: PlannedOperation,
): OperationPhase {
  if (operation === "PlannedFailover") {
    const phase = group.status?.plannedFailover?.phase;
    if (!plannedFailoverInFlight(phase)) return "idle";
    return phase === "Deferred" ? "waiting" : "admitted";
  }
  if (operation === "OrderedUpdate") return group.status?.updatePhase ? "admitted" : "idle";
  const phase = group.status?.restoreInPlace?.phase ?? "";
  if (phase === "" || phase === "Succeeded" || phase === "Failed") return "idle";
  return phase === "Preflight" ? "waiting" : "admitted";
}

/** The first operation that status shows in a phase which only an admission writes, or `null`. */
export function admittedPhase(group: MysqlFailoverGroup): PlannedOperation | null {
  return PLANNED_OPERATIONS.find((operation) => operationPhase(group, operation) === "admitted") ??
    null;
}

/** What the generation table needs of a group's status. */
export function statusFacts(group: MysqlFailoverGroup): StatusFacts {
  const restore = group.status?.restoreInPlace?.phase;
  return {
    site: group.status?.activeSite ?? "",
    generation: group.status?.topologyGeneration ?? 0,
    restoreInFlight: restore === "Fencing" || restore === "Restoring" || restore === "Resuming",
  };
}
