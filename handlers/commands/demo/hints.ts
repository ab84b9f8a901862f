/**
 * What a user can copy after the story: the same steps with `curl`, and a look from the operator's side with `kubectl`.
 *
 * @module
 */

import { REVOKE_ANNOTATION } from "../../../lib/group/types.ts";
import { GROUP } from "./cast.ts";

/** What the lines name. */
export interface HintParts {
  /** The demo's folder. */
  readonly folder: string;
  /** The URL of the group. */
  readonly groupUrl: string;
  /** The URL of the service's metrics. */
  readonly metricsUrl: string;
}

/** The file in the demo's folder with the authority that signed all certificates. */
export const CA_FILE = "ca.crt";

/** The file with the bearer token of a database's deployment client. */
export function tokenFile(database: string): string {
  return `${database}.token`;
}

/** The file with the same token as a request header: `curl -H @FILE` keeps it out of the list of processes. */
export function headerFile(database: string): string {
  return `${database}.header`;
}

/** The text of such a file. */
export function renderHeader(token: string): string {
  return `Authorization: Bearer ${token}\n`;
}

/** The line before the lines for `curl`. */
export const CURL_TITLE = "With curl, from top to bottom in another terminal:";

/** The line before the lines for `kubectl`. */
export const KUBECTL_TITLE = "From the operator's side, with kubectl:";

/** A command of each step. `orders-app` is the holder, `billing-app` the second one. */
export function curlLines({ folder, groupUrl, metricsUrl }: HintParts): readonly string[] {
  const orders = curl("orders-app");
  const billing = curl("billing-app");
  return [
    `D=${shellQuoted(folder)} G=${shellQuoted(groupUrl)}`,
    "# 1. Look at the group",
    `${orders} "$G"`,
    "# 2. orders-app takes the lease for 120 s. The token in the answer is its secret",
    `LEASE=$(${orders} "$G/leases" -d '${grantBody("curl-1", "orders-app")}'); echo "$LEASE"`,
    `TOKEN=$(echo "$LEASE" | grep -oE '[0-9a-f]{64}')`,
    "# 3. billing-app is refused, and told who holds the lease and until when",
    `${billing} "$G/leases" -d '${grantBody("curl-2", "billing-app")}'`,
    "# 4. orders-app renews",
    `${orders} -X PUT "$G/leases/migration/curl-1" -d '{"token":"'"$TOKEN"'","ttlSeconds":120}'`,
    "# 5. Anybody who may deploy sees the holder",
    `${billing} "$G"`,
    "# 6. orders-app releases",
    `${orders} -X DELETE "$G/leases/migration/curl-1" -H "X-Lease-Token: $TOKEN"`,
    "# 7. Now billing-app gets it",
    `LEASE=$(${billing} "$G/leases" -d '${grantBody("curl-2", "billing-app")}'); echo "$LEASE"`,
    `TOKEN=$(echo "$LEASE" | grep -oE '[0-9a-f]{64}')`,
    "# 8. billing-app releases: the group is free",
    `${billing} -X DELETE "$G/leases/migration/curl-2" -H "X-Lease-Token: $TOKEN"`,
    "# What the service counts",
    `curl -sS --noproxy '*' ${shellQuoted(metricsUrl)} | grep ^bloodraven_deploy`,
  ];
}

/** What somebody who runs the databases does. */
export function kubectlLines({ folder }: HintParts): readonly string[] {
  return [
    `export KUBECONFIG=${shellQuoted(`${folder}/kubeconfig`)}`,
    "# The group, its databases, and the Leases with all state",
    "kubectl get mysqlfailovergroups,mysqldatabases,leases",
    "# Watch the Leases while the lines for curl run (Ctrl+C ends it)",
    "kubectl get lease -w",
    "# Take all leases of the group back. The service does it and removes the annotation; a renewal",
    "# of a revoked lease is answered 409 'revoked', and its operationId is not granted again",
    `kubectl annotate mysqlfailovergroup ${GROUP.name} ${REVOKE_ANNOTATION}=now`,
  ];
}

function curl(database: string): string {
  return `curl -sS -w '%{http_code}\\n' --noproxy '*' --cacert "$D/${CA_FILE}" -H @"$D/${
    headerFile(database)
  }"`;
}

function grantBody(operationId: string, instance: string): string {
  return JSON.stringify({ kind: "migration", operationId, instance, ttlSeconds: 120 });
}

/** A word that the shell takes as it is. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
