/**
 * Who and what the demo's story is about: the group `orders`, its two databases, and those who deploy to them, as a
 * database team would have them in a cluster.
 *
 * @module
 */

import { roleObjects } from "../../../lib/manifests/service/objects.ts";
import { serviceRoles } from "../../../lib/manifests/service/roles.ts";
import { GROUP_API_VERSION, GROUP_KIND } from "../../../lib/records/names.ts";

/** A service account. */
export interface Account {
  readonly namespace: string;
  readonly name: string;
}

/** A database, and the service account that may deploy to it. */
export interface Application {
  /** The name of the MysqlDatabase. It is the `instance` of requests. */
  readonly database: string;
  readonly account: Account;
}

/** The group of the story. */
export const GROUP = { namespace: "database", name: "orders" } as const;

/** The first who wants to migrate. */
export const ORDERS_APP: Application = {
  database: "orders-app",
  account: { namespace: "orders-app", name: "deployer" },
};

/** The second who wants to migrate. */
export const BILLING_APP: Application = {
  database: "billing-app",
  account: { namespace: "billing-app", name: "deployer" },
};

/** The service itself. Its election Lease is in its namespace. */
export const SERVICE_ACCOUNT: Account = { namespace: "holdfast", name: "holdfast" };

/** The Lease of its election, as `serve` names it by itself. */
const LEASE_NAME = "holdfast.shipstream.io";

/** Whom the tokens of deployment clients are for: the service. */
export const AUDIENCE = "bloodraven-deploy";

/** The site with the primary when the story begins. */
export const ACTIVE_SITE = "iad";

/** The site that replicates when the story begins. */
export const STANDBY_SITE = "pdx";

const SITES = [ACTIVE_SITE, STANDBY_SITE];

/** The objects of the story in the order in which they can be applied, after the definitions of their kinds. */
export function manifests(): readonly unknown[] {
  return [
    ...[SERVICE_ACCOUNT, ORDERS_APP.account, BILLING_APP.account].map(({ namespace, name }) => ({
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { namespace, name },
    })),
    ...serviceRights(),
    stableGroup(),
    databaseOf(ORDERS_APP),
    databaseOf(BILLING_APP),
  ];
}

/** What the service is allowed: the generated roles, and no more. */
function serviceRights(): readonly unknown[] {
  const installation = { ...SERVICE_ACCOUNT, labels: {} };
  return roleObjects(
    installation,
    SERVICE_ACCOUNT.name,
    serviceRoles({
      deployApi: true,
      plannedOperations: true,
      keyringEscrow: null,
      auxiliary: true,
      statusPage: true,
      own: { leaseName: LEASE_NAME },
    }),
  );
}

/** One site is writable, the other replicates, and nothing is under way. */
function stableGroup() {
  return {
    apiVersion: GROUP_API_VERSION,
    kind: GROUP_KIND,
    metadata: GROUP,
    spec: { sites: SITES.map((name) => ({ name, role: "primary-candidate" })) },
    status: {
      activeSite: ACTIVE_SITE,
      topologyGeneration: 7,
      conditions: [{
        type: "Ready",
        status: "True",
        reason: "TopologyPolled",
        message: "",
        lastTransitionTime: "2026-01-01T00:00:00Z",
      }],
      sites: [
        { name: ACTIVE_SITE, state: "writable", replicating: false },
        { name: STANDBY_SITE, state: "read-only", replicating: true, secondsBehindSource: 0 },
      ],
    },
  };
}

function databaseOf({ database, account }: Application) {
  return {
    apiVersion: GROUP_API_VERSION,
    kind: "MysqlDatabase",
    metadata: { namespace: GROUP.namespace, name: database },
    spec: {
      groupRef: { name: GROUP.name },
      deploymentClients: [{ namespace: account.namespace, serviceAccount: account.name }],
    },
  };
}
