/**
 * What is asked of a group or done to it, and what that waits for: deploy-api 8. Pure functions.
 *
 * @module
 */

import { plannedFailoverInFlight } from "../group/phases.ts";
import { COOLDOWN_ACTIVE, DEPLOYMENT_HOLD, parseRequest } from "../group/planned_request.ts";
import { type MysqlFailoverGroup, PLANNED_FAILOVER_ANNOTATION } from "../group/types.ts";
import type { LeaseStatus, OperationStatus } from "./report.ts";

/** What is known of a group's operations, wherever that is from. */
export interface OperationFacts {
  /** The value of the `planned-failover` annotation; `null` when there is none, or it is not shown. */
  readonly requested: string | null;
  readonly plannedFailover: {
    readonly phase: string;
    readonly reason: string;
    /** Empty where it is not shown. */
    readonly target: string;
    /** RFC 3339, or empty. */
    readonly retryAfter: string;
  };
  readonly updatePhase: string;
  readonly restoreInPlace: string;
  readonly dragonflyUpgrade: string;
}

/** What a group's own object tells. */
export function operationFacts({ metadata, status }: MysqlFailoverGroup): OperationFacts {
  const planned = status?.plannedFailover;
  return {
    requested: metadata.annotations?.[PLANNED_FAILOVER_ANNOTATION] ?? null,
    plannedFailover: {
      phase: planned?.phase ?? "",
      reason: planned?.reason ?? "",
      target: planned?.target ?? "",
      retryAfter: planned?.retryAfter ?? "",
    },
    updatePhase: status?.updatePhase ?? "",
    restoreInPlace: status?.restoreInPlace?.phase ?? "",
    dragonflyUpgrade: status?.dragonfly?.upgrade?.phase ?? "",
  };
}

/** The phases in which these operations have ended: deploy-api 5, rows 6 and 8, and 8.2. */
const ENDED: ReadonlySet<string> = new Set(["Succeeded", "Failed"]);

/**
 * The operations of a group.
 *
 * @param leases Those of the group. Planned operations wait for the holds among them that are stored as active.
 * @param all Ended operations too.
 */
export function operationsOf(
  facts: OperationFacts,
  leases: readonly LeaseStatus[],
  all: boolean,
): readonly OperationStatus[] {
  const holds = leases.filter(isInTheWay).map(holdInWords);
  const { updatePhase, restoreInPlace, dragonflyUpgrade } = facts;
  const found = [
    plannedFailover(facts, holds),
    plain("OrderedUpdate", updatePhase, []),
    // Only `Preflight` asks for the holds: deploy-api 8.5.
    plain("RestoreInPlace", restoreInPlace, restoreInPlace === "Preflight" ? holds : []),
    plain("DragonflyUpgrade", dragonflyUpgrade, []),
  ];
  return found.filter((operation) => operation !== null)
    .filter(({ ended }) => all || !ended);
}

/** A hold blocks until its stored state is terminal: state protocol 2.2. */
function isInTheWay({ kind, state, stored }: LeaseStatus): boolean {
  return kind === "failover-hold" && (state === "active" || !stored);
}

function holdInWords({ operationId, instance, expiresAt, leftSeconds }: LeaseStatus): string {
  const until = leftSeconds < 0 ? `over since ${expiresAt}` : `until ${expiresAt} unless renewed`;
  return `the failover hold of operation ${operationId} for ${instance}, ${until}`;
}

function plannedFailover(
  { requested, plannedFailover }: OperationFacts,
  holds: readonly string[],
): OperationStatus | null {
  const { phase, reason, target, retryAfter } = plannedFailover;
  const asked = requested === null ? "" : parseRequest(requested)?.target ?? "";
  const inFlight = plannedFailoverInFlight(phase);
  if (requested !== null && !inFlight) {
    const nobody = "the operator, or the service, to take the request up";
    return {
      operation: "PlannedFailover",
      phase: "Requested",
      reason: "",
      target: asked,
      ended: false,
      waitsFor: holds.length > 0 ? holds : [nobody],
    };
  }
  if (phase === "") return null;
  const ended = !inFlight;
  const waitsFor = phase !== "Deferred"
    ? []
    : reason === COOLDOWN_ACTIVE
    ? [`the cooldown after the last failover${retryAfter === "" ? "" : `, until ${retryAfter}`}`]
    : reason === DEPLOYMENT_HOLD && holds.length === 0
    ? ["its next look: the hold that delayed it is gone"]
    : holds;
  return { operation: "PlannedFailover", phase, reason, target: target || asked, ended, waitsFor };
}

function plain(
  operation: OperationStatus["operation"],
  phase: string,
  waitsFor: readonly string[],
): OperationStatus | null {
  if (phase === "") return null;
  return { operation, phase, reason: "", target: "", ended: ENDED.has(phase), waitsFor };
}
