/**
 * A report from what the deployment API shows to a caller: pure. The API shows neither who holds a lease nor the gate.
 *
 * @module
 */

import type { GroupView } from "../client/answers.ts";
import { expiresAtMs, type LeaseKind } from "../records/record.ts";
import { type OperationFacts, operationsOf } from "./operations.ts";
import { inPlainWords } from "./reasons.ts";
import type { GroupStatus, LeaseStatus, StatusReport } from "./report.ts";

/**
 * Tells what the API answered.
 *
 * @param nowMs This machine's wall time, in milliseconds since 1970: the answer brings no other.
 */
export function apiReport(view: GroupView, nowMs: number): StatusReport {
  const leases = view.leases.flatMap((lease) => leaseStatus(lease, nowMs) ?? []);
  const { namespace, group: name, activeSite, topologyGeneration, stable, unstableReason } = view;
  return reportOf(nowMs, {
    namespace,
    name,
    readable: true,
    activeSite,
    topologyGeneration,
    stable,
    unstableReason,
    closedReason: unstableReason,
    why: unstableReason === "" ? "" : inPlainWords(unstableReason),
    leases,
    operations: operationsOf(factsOf(view), leases, false),
    admission: null,
    pendingTopology: null,
    problems: [],
  });
}

/** Tells of a group that the API closes whole, since nobody knows now where it is: 423 to a look. */
export function closedReport(name: string, reason: string, nowMs: number): StatusReport {
  return reportOf(nowMs, {
    namespace: "",
    name,
    readable: true,
    activeSite: "",
    topologyGeneration: null,
    stable: false,
    unstableReason: reason,
    closedReason: reason,
    why: inPlainWords(reason),
    leases: [],
    operations: [],
    admission: null,
    pendingTopology: null,
    problems: ["The API shows no leases while it is closed: ask again in a moment"],
  });
}

function reportOf(nowMs: number, group: GroupStatus): StatusReport {
  const at = Temporal.Instant.fromEpochMilliseconds(Math.floor(nowMs)).toString();
  return { source: "api", at, groups: [group], problems: [] };
}

/** `null` for a lease of a kind, or with an expiry, that is not known here: a newer service may have more. */
function leaseStatus(
  { kind, operationId, instance, expiresAt, topologyGeneration }: GroupView["leases"][number],
  nowMs: number,
): LeaseStatus | null {
  const endMs = expiryOf(expiresAt);
  if (!isKind(kind) || endMs === null) return null;
  return {
    kind,
    operationId,
    instance,
    holder: null,
    state: "active",
    stored: true,
    reason: "",
    topologyGeneration,
    createdAt: null,
    expiresAt,
    ageSeconds: null,
    leftSeconds: Math.floor((endMs - nowMs) / 1_000),
  };
}

function isKind(kind: string): kind is LeaseKind {
  return kind === "migration" || kind === "failover-hold";
}

function expiryOf(expiresAt: string): number | null {
  try {
    return expiresAtMs({ expiresAt });
  } catch {
    return null;
  }
}

function factsOf({ operations }: GroupView): OperationFacts {
  const { plannedFailover, updatePhase, restoreInPlace, dragonflyUpgrade } = operations;
  return {
    requested: null,
    plannedFailover: { ...plannedFailover, target: "", retryAfter: "" },
    updatePhase,
    restoreInPlace,
    dragonflyUpgrade,
  };
}
