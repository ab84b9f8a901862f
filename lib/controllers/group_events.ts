/**
 * The Events on a group that this project writes: deploy-api 12, and the one of a status that went backwards.
 *
 * @module
 */

import type { MysqlFailoverGroup } from "../group/types.ts";
import { GROUP_API_VERSION, GROUP_KIND } from "../records/names.ts";
import type { Stored } from "../kube/api.ts";
import type { LeaseRecord } from "../records/record.ts";
import type { GroupIdentity } from "../records/store.ts";
import type { EventReport, EventSubject } from "./events.ts";

/** A lease was revoked: the note gives kind, operation, instance and reason, in this order. */
export function leaseRevoked(group: GroupIdentity, record: LeaseRecord): EventReport {
  const { kind, operationId, instance, reason = "operator_revoked" } = record;
  return {
    regarding: groupSubject(group),
    type: "Warning",
    reason: "DeploymentLeaseRevoked",
    action: "Revoke",
    note: `The ${kind} lease of operation ${operationId} for ${instance} was revoked: ${reason}`,
  };
}

/** Status went backwards and stayed there, so that was taken as a change of topology: state protocol 2.1, row 2. */
export function topologyRewound({ metadata, status }: Stored<MysqlFailoverGroup>): EventReport {
  const { namespace = "", name, uid } = metadata;
  return {
    regarding: groupSubject({ namespace, name, uid }),
    type: "Warning",
    reason: "DeploymentTopologyRewound",
    action: "Revoke",
    note: `The status went back to topology generation ${
      status?.topologyGeneration ?? 0
    } and stayed there, so the leases of the group were ended`,
  };
}

/** A group as Events name it. */
export function groupSubject({ namespace, name, uid }: GroupIdentity): EventSubject {
  return { apiVersion: GROUP_API_VERSION, kind: GROUP_KIND, namespace, name, uid };
}
