/**
 * How the objects of a group are called and labelled: deploy-api 6.1, and the state protocol for the gate and the group
 * label.
 *
 * Names and labels are read by people and by other programs (`kubectl`, dashboards, the reference operator), so they are
 * part of the wire contract.
 *
 * @module
 */

import { sha256Hex } from "./sha256.ts";

/** The kinds of deployment leases, as paths, bodies, labels and records name them. */
export type LeaseKind = "migration" | "failover-hold";

/** The API version of a group, as the owner references of its objects name it. */
export const GROUP_API_VERSION = "shipstream.io/v1alpha1";
/** The kind of a group, as the owner references of its objects name it. */
export const GROUP_KIND = "MysqlFailoverGroup";

/** The value of {@linkcode DEPLOYMENT_KIND_LABEL} on the gate: no lease kind, so no list of leases finds it. */
export const GATE_KIND = "gate";

/** Label: `migration`, `failover-hold`, or `gate`. */
export const DEPLOYMENT_KIND_LABEL = "bloodraven.shipstream.io/deployment-kind";
/** Label: the state of the record, so that a list costs what the group holds and not what it once held. */
export const DEPLOYMENT_STATE_LABEL = "bloodraven.shipstream.io/deployment-state";
/** Label of ours: {@linkcode groupLabelValue}, so that a list finds one group's objects. */
export const DEPLOYMENT_GROUP_LABEL = "bloodraven.shipstream.io/deployment-group";
/** Annotation: the record of a lease, as JSON (deploy-api 6.2). */
export const DEPLOYMENT_LEASE_ANNOTATION = "bloodraven.shipstream.io/deployment-lease";
/** Annotation of ours: the record of the gate, as JSON. */
export const DEPLOYMENT_GATE_ANNOTATION = "bloodraven.shipstream.io/deployment-gate";

/** Label selector: every deployment lease of a namespace, in any state; no gate. It is the contract's own labels alone. */
export const LEASES_OF_A_GROUP_SELECTOR = `${DEPLOYMENT_KIND_LABEL} in (migration,failover-hold)`;

const MAX_NAME_LENGTH = 63;
const KEPT_LENGTH = 38;

/**
 * The name of the Lease object of a kind: deploy-api 6.1.
 *
 * @param group The name of the MysqlFailoverGroup: a DNS-1123 subdomain.
 * @param kind A lease kind, or {@linkcode GATE_KIND}.
 * @param operationId Gives the object of one operation. Left out: the one object of the group.
 * @returns At most 63 characters.
 */
export function leaseName(
  group: string,
  kind: LeaseKind | typeof GATE_KIND,
  operationId?: string,
): string {
  const base = `bloodraven-deploy-${group}-${kind}`;
  return shortened(
    operationId === undefined ? base : `${base}-${sha256Hex(operationId).slice(0, 32)}`,
  );
}

/** The name of a group's one migration Lease: the mutex. */
export function slotName(group: string): string {
  return leaseName(group, "migration");
}

/** The name under which a revoked migration record is kept once another operation takes the slot. */
export function tombstoneName(group: string, operationId: string): string {
  return leaseName(group, "migration", operationId);
}

/** The name of one operation's failover hold. */
export function holdName(group: string, operationId: string): string {
  return leaseName(group, "failover-hold", operationId);
}

/** The name of a group's gate. */
export function gateName(group: string): string {
  return leaseName(group, GATE_KIND);
}

/**
 * The value of {@linkcode DEPLOYMENT_GROUP_LABEL}: the group's name, shortened by the same rule when it does not fit
 * into a label.
 */
export function groupLabelValue(group: string): string {
  return shortened(group);
}

/** The hash is of the whole name, so that two long names with the same beginning stay apart. */
function shortened(name: string): string {
  if (name.length <= MAX_NAME_LENGTH) return name;
  return `${name.slice(0, KEPT_LENGTH).replace(/[-.]+$/, "")}-${sha256Hex(name).slice(0, 24)}`;
}
