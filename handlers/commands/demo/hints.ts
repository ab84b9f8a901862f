/**
 * What a user can copy after the story: the same steps with `curl`, a look from the operator's side with `kubectl`, and a
 * planned failover that waits for a deployment, with both.
 *
 * @module
 */

import { PLANNED_FAILOVER_ANNOTATION, REVOKE_ANNOTATION } from "../../../lib/group/types.ts";
import type { LeaseKind } from "../../../lib/records/names.ts";
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

/** The line before the lines of a planned failover. */
export const PLANNED_TITLE = "A planned failover that waits, in the terminal of the lines above:";

/** A command of each step of the first part. `orders-app` is the holder, `billing-app` the second one. */
export function curlLines({ folder, groupUrl, metricsUrl }: HintParts): readonly string[] {
  const orders = curl("orders-app");
  const billing = curl("billing-app");
  return [
    `D=${shellQuoted(folder)} G=${shellQuoted(groupUrl)}`,
    "# 1. Look at the group",
    `${orders} "$G"`,
    "# 2. orders-app takes the lease for 120 s. The token in the answer is its secret",
    ...take("TOKEN", orders, grantBody("curl-1", "orders-app")),
    "# 3. billing-app is refused, and told who holds the lease and until when",
    `${billing} "$G/leases" -d ${grantBody("curl-2", "billing-app")}`,
    "# 4. orders-app renews",
    `${orders} -X PUT "$G/leases/migration/curl-1" -d ${renewBody("TOKEN")}`,
    "# 5. Anybody who may deploy sees the holder",
    `${billing} "$G"`,
    "# 6. orders-app releases",
    `${orders} -X DELETE "$G/leases/migration/curl-1" -H "X-Lease-Token: $TOKEN"`,
    "# 7. Now billing-app gets it",
    ...take("TOKEN", billing, grantBody("curl-2", "billing-app")),
    "# 8. billing-app releases: the group is free",
    `${billing} -X DELETE "$G/leases/migration/curl-2" -H "X-Lease-Token: $TOKEN"`,
    "# What the service counts",
    `curl -sS --noproxy '*' ${shellQuoted(metricsUrl)} | grep ^bloodraven_deploy`,
  ];
}

/**
 * The steps of the second part, to be done again and again: each time the other site becomes the active one, and the
 * operations are new.
 */
export function plannedLines(): readonly string[] {
  const group = `mysqlfailovergroup ${GROUP.name}`;
  const orders = curl("orders-app");
  const operation = `'"$OP"'`;
  const wait = (member: string, wanted: string) =>
    `kubectl wait ${group} --for=jsonpath='{.status.plannedFailover.${member}}'=${wanted} --timeout=30s`;
  return [
    "OP=curl-$(date +%s)",
    "# 9-10. orders-app takes the lease and a hold, for 120 s each",
    ...take("TOKEN", orders, grantBody(operation, "orders-app")),
    ...take("HOLD", orders, grantBody(operation, "orders-app", "failover-hold")),
    "# 11. Ask for a planned failover to the site that is not active, and watch it wait",
    `TO=$(kubectl get ${group} -o jsonpath='{.status.sites[?(@.state=="read-only")].name}')`,
    `kubectl annotate ${group} ${PLANNED_FAILOVER_ANNOTATION}=$TO`,
    wait("reason", "DeploymentHold"),
    `kubectl get ${group} -o jsonpath='{.status.plannedFailover}{"\\n"}'`,
    "# 12. orders-app renews the hold: the failover waits on",
    `${orders} -X PUT "$G/leases/failover-hold/$OP" -d ${renewBody("HOLD")}`,
    "# 13. billing-app is refused: the group is not stable",
    `${curl("billing-app")} "$G/leases" -d ${grantBody("curl-2", "billing-app")}`,
    "# 14-15. orders-app releases the hold, and the primary moves",
    `${orders} -X DELETE "$G/leases/failover-hold/$OP" -H "X-Lease-Token: $HOLD"`,
    wait("phase", "Succeeded"),
    "# 16. The lease from before is revoked",
    `${orders} -X PUT "$G/leases/migration/$OP" -d ${renewBody("TOKEN")}`,
    "# What the group and the Leases went through",
    "kubectl get events.events.k8s.io",
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

/** Takes a lease, shows the answer, and keeps its token in a variable. */
function take(variable: string, call: string, body: string): readonly string[] {
  return [
    `LEASE=$(${call} "$G/leases" -d ${body}); echo "$LEASE"`,
    `${variable}=$(echo "$LEASE" | grep -oE '[0-9a-f]{64}')`,
  ];
}

/** The body of a grant, as a word of the shell. @param operationId As it stands between single quotes. */
function grantBody(operationId: string, instance: string, kind: LeaseKind = "migration"): string {
  return `'{"kind":"${kind}","operationId":"${operationId}","instance":"${instance}","ttlSeconds":120}'`;
}

function renewBody(variable: string): string {
  return `'{"token":"'"$${variable}"'","ttlSeconds":120}'`;
}

/** A word that the shell takes as it is. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
