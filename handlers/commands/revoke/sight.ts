/**
 * What `holdfast revoke` sees of a group.
 *
 * @module
 */

import { GroupNotFoundError } from "../../../lib/group/topology.ts";
import {
  MYSQL_FAILOVER_GROUPS,
  type MysqlFailoverGroup,
  REVOKE_ANNOTATION,
} from "../../../lib/group/types.ts";
import type { ObjectName, Stored } from "../../../lib/kube/api.ts";
import { NotFoundError } from "../../../lib/kube/errors.ts";
import { LEASES } from "../../../lib/kube/resources.ts";
import { timeForView } from "../../../lib/lease_time/lease_time.ts";
import { ALL_LEASES_SELECTOR, clusterReport } from "../../../lib/status/cluster_report.ts";
import type { GroupStatus } from "../../../lib/status/report.ts";
import type { AdministratorCluster } from "../administrator.ts";
import type { System } from "../system.ts";

/** The group that is meant, in its cluster. */
export interface Place {
  readonly system: System;
  readonly cluster: AdministratorCluster;
  readonly name: Required<ObjectName>;
}

/** A group at one moment. */
export interface Sight {
  readonly group: Stored<MysqlFailoverGroup>;
  /** With all that has ended. */
  readonly status: GroupStatus;
}

/** Looks at the group and its leases. @throws {GroupNotFoundError} */
export async function look({ system, cluster, name }: Place, signal: AbortSignal): Promise<Sight> {
  const { api, leaseTime } = cluster;
  try {
    const { namespace } = name;
    // The group first: a lease that is granted in between is then seen, and its group is not older than it looks.
    const group = await api.get(MYSQL_FAILOVER_GROUPS, name, { signal });
    const leases = await api.list(LEASES, {
      namespace,
      labelSelector: ALL_LEASES_SELECTOR,
      signal,
    });
    const snapshot = { groups: { items: [group], undecodable: [] }, leases };
    const report = clusterReport(snapshot, timeForView(system.clock, leaseTime), { all: true });
    const [status] = report.groups;
    if (status === undefined) throw new Error("Cannot show the group as its report is empty");
    return { group, status };
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    throw new GroupNotFoundError(name.namespace, name.name);
  }
}

/** The value of the revoke annotation; `undefined` when nobody asks for a revocation. */
export function requestOn({ metadata }: MysqlFailoverGroup): string | undefined {
  return metadata.annotations?.[REVOKE_ANNOTATION];
}
