/**
 * What GET shows of a group: deploy-api 2.1.
 *
 * @module
 */

import type { Stored } from "../kube/api.ts";
import { byExpiry, type LeaseKind, type LeaseRecord } from "../records/record.ts";
import { condition, unstableReason } from "./stability.ts";
import type { MysqlFailoverGroup } from "./types.ts";

/** How the group is. */
export interface HealthView {
  readonly ready: boolean;
  /** Empty unless the group is degraded. */
  readonly degradedReason: string;
  /** Every site but the active one replicates, and no declared site is unobserved. */
  readonly replicationRunning: boolean;
  /** The largest lag of a site that is not active; 0 when none is known. */
  readonly replicationLagSeconds: number;
  readonly recoveryPending: boolean;
}

/** What is being done to the group; ended operations are shown too, and empty strings for those that never were. */
export interface OperationsView {
  readonly plannedFailover: { readonly phase: string; readonly reason: string };
  readonly updatePhase: string;
  readonly restoreInPlace: string;
  readonly dragonflyUpgrade: string;
}

/** What everyone may know of a lease. */
export interface LeaseView {
  readonly kind: LeaseKind;
  readonly operationId: string;
  readonly instance: string;
  readonly expiresAt: string;
  readonly topologyGeneration: number;
}

/** The members of the body of a GET. */
export interface GroupView {
  readonly group: string;
  readonly namespace: string;
  readonly activeSite: string;
  /** The effective generation. */
  readonly topologyGeneration: number;
  readonly health: HealthView;
  readonly operations: OperationsView;
  readonly stable: boolean;
  /** Empty when the group is stable. */
  readonly unstableReason: string;
  readonly leases: readonly LeaseView[];
}

/**
 * Shows a group.
 *
 * @param group The group, as the look that the answer stands on read it.
 * @param generation The effective generation.
 * @param leases The records that are active, in any order. The migration lease comes first, then the holds by expiry.
 */
export function groupView(
  group: Stored<MysqlFailoverGroup>,
  generation: number,
  leases: readonly LeaseRecord[],
): GroupView {
  const status = group.status ?? {};
  const reason = unstableReason(group);
  return {
    group: group.metadata.name,
    namespace: group.metadata.namespace ?? "",
    activeSite: status.activeSite ?? "",
    topologyGeneration: generation,
    health: healthView(group),
    operations: {
      plannedFailover: {
        phase: status.plannedFailover?.phase ?? "",
        reason: status.plannedFailover?.reason ?? "",
      },
      updatePhase: status.updatePhase ?? "",
      restoreInPlace: status.restoreInPlace?.phase ?? "",
      dragonflyUpgrade: status.dragonfly?.upgrade?.phase ?? "",
    },
    stable: reason === "",
    unstableReason: reason,
    leases: [
      ...leases.filter((lease) => lease.kind === "migration"),
      ...leases.filter((lease) => lease.kind !== "migration").toSorted(byExpiry),
    ].map(leaseView),
  };
}

function healthView(group: MysqlFailoverGroup): HealthView {
  const status = group.status ?? {};
  const sites = status.sites ?? [];
  const standbys = sites.filter((site) => site.name !== status.activeSite);
  const degraded = condition(status, "Degraded");
  return {
    ready: condition(status, "Ready")?.status === "True",
    degradedReason: degraded?.status === "True" ? degraded.reason ?? "" : "",
    replicationRunning: standbys.every((site) => site.replicating === true) &&
      sites.length >= (group.spec?.sites?.length ?? 0),
    replicationLagSeconds: Math.max(0, ...standbys.map((site) => site.secondsBehindSource ?? 0)),
    recoveryPending: condition(status, "RecoveryPending")?.status === "True" ||
      sites.some((site) =>
        Boolean(site.recoveryState) || site.sourceConvergenceState === "Pending" ||
        site.sourceConvergenceState === "Blocked"
      ),
  };
}

function leaseView(record: LeaseRecord): LeaseView {
  const { kind, operationId, instance, expiresAt, topologyGeneration } = record;
  return { kind, operationId, instance, expiresAt, topologyGeneration };
}
