import type { Stored } from "../../lib/kube/api.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../lib/group/types.ts";

/** What a test changes in the status or spec of {@linkcode healthyGroup}; members are replaced whole. */
export interface GroupChange {
  readonly annotations?: Record<string, string>;
  readonly spec?: Record<string, unknown>;
  readonly status?: Record<string, unknown>;
}

/** The healthy standby of {@linkcode healthyGroup}. */
export const STANDBY = { name: "pdx", state: "read-only", replicating: true };
/** The active site of {@linkcode healthyGroup}. */
export const ACTIVE = { name: "iad", state: "writable", replicating: false };
/** The condition that a stable group has. */
export const READY = { type: "Ready", status: "True", reason: "TopologyPolled" };

/** The group of the contract's own tests (deploy-api 16): `orders` in `database-ns`, stable, generation 7. */
export function healthyGroup(change: GroupChange = {}): Stored<MysqlFailoverGroup> {
  const metadata = {
    name: "orders",
    namespace: "database-ns",
    uid: "uid-1",
    resourceVersion: "10",
    ...(change.annotations && { annotations: change.annotations }),
  };
  const group = MYSQL_FAILOVER_GROUPS.parse({
    metadata,
    spec: {
      sites: [{ name: "iad", role: "primary-candidate" }, { name: "pdx", role: "dr-only" }],
      ...change.spec,
    },
    status: {
      activeSite: "iad",
      topologyGeneration: 7,
      sites: [ACTIVE, STANDBY],
      conditions: [READY],
      ...change.status,
    },
  });
  return { ...group, metadata: { ...group.metadata, ...metadata } };
}
