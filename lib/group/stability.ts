/**
 * Whether a group is stable enough for a new lease: deploy-api 5.
 *
 * Renewals and releases do not ask: a deployment that holds a lease may keep it through a storm, and finish.
 *
 * @module
 */

import { plannedFailoverInFlight } from "./phases.ts";
import { type MysqlFailoverGroup, REVOKE_ANNOTATION } from "./types.ts";

type Status = NonNullable<MysqlFailoverGroup["status"]>;
type SiteStatus = NonNullable<Status["sites"]>[number];

/**
 * The first reason for which the group is unstable, in the contract's order, or `""` when it is stable. Replication lag
 * alone is no reason.
 */
export function unstableReason(group: MysqlFailoverGroup): string {
  if (group.metadata.annotations?.[REVOKE_ANNOTATION] !== undefined) {
    return "DeploymentRevocationPending";
  }
  const status = group.status ?? {};
  if (!status.activeSite) return "NoPrimary";
  return operationReason(group, status) || conditionReason(status) || siteReason(group, status);
}

/** Rows 3 to 8: something is being done to the group. */
function operationReason(group: MysqlFailoverGroup, status: Status): string {
  if (plannedFailoverInFlight(status.plannedFailover?.phase)) return "PlannedFailover";
  if (status.updatePhase) return "OrderedUpdate";
  // A group that starts from a backup is empty until that is done: a failed restore is no rest.
  const restored = group.spec?.initFromBackup
    ? status.restore?.phase === "Succeeded"
    : atRest(status.restore?.phase);
  if (!restored) return "Restore";
  if (!atRest(status.dragonfly?.upgrade?.phase)) return "DragonflyUpgrade";
  const dragonfly = status.dragonfly?.phase ?? "";
  if (dragonfly !== "" && dragonfly !== "Disabled" && dragonfly !== "Ready") {
    return `Dragonfly${dragonfly}`;
  }
  return atRest(status.restoreInPlace?.phase) ? "" : "RestoreInPlace";
}

/** True for an operation that was never started or has ended. An unknown phase is in flight. */
function atRest(phase: string | null | undefined): boolean {
  return !phase || phase === "Succeeded" || phase === "Failed";
}

/** Rows 9 and 10: what the operator concludes about the group. */
function conditionReason(status: Status): string {
  const degraded = condition(status, "Degraded");
  if (degraded?.status === "True" && degraded.reason !== "ReplicationLagging") {
    return degraded.reason || "Degraded";
  }
  for (const type of ["RecoveryPending", "Bootstrapping"]) {
    const found = condition(status, type);
    if (found?.status === "True") return found.reason || type;
  }
  return condition(status, "Ready")?.status === "True" ? "" : "NotReady";
}

/** The condition of a type; the first one, as Kubernetes' own helpers take it. */
export function condition(
  status: Status,
  type: string,
): NonNullable<Status["conditions"]>[number] | undefined {
  return status.conditions?.find((entry) => entry.type === type);
}

/** Rows 11 and 12: what the operator sees of each site. */
function siteReason(group: MysqlFailoverGroup, status: Status): string {
  const observed = status.sites ?? [];
  const names = new Set(observed.map((site) => site.name));
  if (group.spec?.sites?.some((site) => !names.has(site.name))) return "SiteNotObserved";
  for (const site of observed) {
    const reason = oneSiteReason(site, site.name === status.activeSite);
    if (reason !== "") return reason;
  }
  return "";
}

function oneSiteReason(site: SiteStatus, active: boolean): string {
  if (active && site.state !== "writable") return "NoPrimary";
  if (!active && site.state !== "read-only") return "SiteNotReady";
  if (site.recoveryState) return site.recoveryState;
  const convergence = site.sourceConvergenceState;
  if (convergence === "Pending" || convergence === "Blocked") {
    return `SourceConvergence${convergence}`;
  }
  return active || site.replicating === true ? "" : "ReplicationNotRunning";
}
