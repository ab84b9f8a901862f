/**
 * The group that tests and examples use: `orders` with its sites, its databases and their deployment clients, as the
 * operator would have them in a cluster.
 *
 * @module
 */

import {
  MYSQL_DATABASES,
  MYSQL_FAILOVER_GROUPS,
  type MysqlDatabase,
  type MysqlFailoverGroup,
} from "../../lib/group/types.ts";
import type { KubeApi, Stored } from "../../lib/kube/api.ts";

const API_VERSION = "shipstream.io/v1alpha1";

/** Who may deploy: a service account. */
export interface DeploymentClient {
  readonly namespace: string;
  readonly serviceAccount: string;
}

/** What {@linkcode seedOrders} makes. */
export interface OrdersOptions {
  readonly namespace: string;
  /** @default {"orders"} */
  readonly group?: string;
  /** The databases of the group, by name, with their clients. */
  readonly databases: Readonly<Record<string, readonly DeploymentClient[]>>;
  readonly signal: AbortSignal;
}

/** A healthy status: `iad` active and writable, `pdx` replicating, generation 7. */
export const stableStatus = {
  activeSite: "iad",
  topologyGeneration: 7,
  conditions: [{
    type: "Ready",
    status: "True",
    reason: "TopologyPolled",
    message: "",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  }],
  sites: [
    { name: "iad", state: "writable", replicating: false },
    { name: "pdx", state: "read-only", replicating: true, secondsBehindSource: 0 },
  ],
};

/** A group as a user would write it. It carries members that this project does not know. */
export function ordersGroup(namespace: string, name = "orders"): MysqlFailoverGroup {
  return {
    apiVersion: API_VERSION,
    kind: "MysqlFailoverGroup",
    metadata: { name, namespace },
    spec: {
      sites: [{ name: "iad", role: "primary-candidate" }, {
        name: "pdx",
        role: "primary-candidate",
      }],
      memberOfANewerOperator: { kept: true },
    },
  };
}

/** A database as a user would write it. */
export function ordersDatabase(
  namespace: string,
  name: string,
  group: string,
  deploymentClients: readonly DeploymentClient[],
): MysqlDatabase {
  return {
    apiVersion: API_VERSION,
    kind: "MysqlDatabase",
    metadata: { name, namespace },
    spec: {
      groupRef: { name: group },
      deploymentClients: deploymentClients.map((client) => ({ ...client })),
      memberOfANewerOperator: { kept: true },
    },
  };
}

/** Makes a stable group and its databases. */
export async function seedOrders(
  api: KubeApi,
  { namespace, group = "orders", databases, signal }: OrdersOptions,
): Promise<Stored<MysqlFailoverGroup>> {
  const options = { signal };
  await api.create(MYSQL_FAILOVER_GROUPS, ordersGroup(namespace, group), options);
  for (const [name, clients] of Object.entries(databases)) {
    const database = ordersDatabase(namespace, name, group, clients);
    await api.create(MYSQL_DATABASES, database, options);
  }
  return await setStatus(api, { namespace, name: group }, stableStatus, signal);
}

/** Writes members of a group's status, as its operator would. */
export async function setStatus(
  api: KubeApi,
  name: { readonly namespace: string; readonly name: string },
  status: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<Stored<MysqlFailoverGroup>> {
  return await api.patch(
    MYSQL_FAILOVER_GROUPS,
    name,
    { type: "merge", body: { status } },
    { signal, subresource: "status" },
  );
}
