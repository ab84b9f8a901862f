/**
 * Who can reach the service, and who trusts it: its Service, the NetworkPolicies on the way of each client, and the
 * sidecars of encrypted groups. Pure functions.
 *
 * @module
 */

import { shown } from "../status/words.ts";
import type {
  ClientFacts,
  ClusterFacts,
  PodFacts,
  ServicePlace,
  SidecarFacts,
} from "./cluster_facts.ts";
import { type Finding, ok, unseen, waiting, warning, wrong } from "./finding.ts";
import type { NetworkPolicy } from "./kinds.ts";
import { isolating, type Labels, lets, type WantedPort } from "./network_rules.ts";
import { type Looked, notSeen } from "./unseen_rules.ts";

/** What a client's namespace and pods carry, to pass the NetworkPolicy of the contract (deploy-api 15.4). */
const NAMESPACE_LABEL = "shipstream.io/mysql-client";
const POD_LABEL = "bloodraven.shipstream.io/deploy-client";

/** Whether callers find a pod behind the name that they know. */
export function serviceFindings({ services, pods, place }: ClusterFacts): readonly Finding[] {
  return place.services.map((name, at) => {
    const check = at === 0 ? "service" : "service-all";
    const sight = services[at] ?? { type: "absent" };
    const full = `'${place.namespace}/${name}'`;
    if (sight.type === "unseen") {
      const right = { verb: "get", resource: `services in '${place.namespace}'` };
      return notSeen({ check, what: `The Service ${full}`, right }, sight.why);
    }
    if (sight.type === "absent") {
      return wrong(
        check,
        `There is no Service ${full}`,
        "Apply 'holdfast manifests service', or give your values with -f when they name another one",
      );
    }
    if (pods.type !== "seen") return waiting(check, `What is behind the Service ${full}`);
    const found = pods.value.filter(({ labels }) => hasAll(labels, sight.value));
    if (found.length > 0) {
      return ok(check, `The Service ${full} selects ${namesOf(found)}`);
    }
    return wrong(
      check,
      `The Service ${full} selects no pod`,
      pods.value.length === 0
        ? "See that the Deployment runs, and that its labels are those of the selector"
        : "No pod is labelled as the leader: see 'leader', and whether the service account may patch pods",
    );
  });
}

function hasAll(labels: Labels, wanted: Labels): boolean {
  return Object.entries(wanted).every(([key, value]) => labels[key] === value);
}

function namesOf(pods: readonly PodFacts[]): string {
  return pods.map(({ name }) => `'${shown(name)}'`).join(", ");
}

/** Whether the NetworkPolicies let each client in that a database names. */
export function networkFindings(facts: ClusterFacts): readonly Finding[] {
  const { policies, pods, clients, place } = facts;
  const check = "network";
  const look = (what: string, resource: string): Looked => ({
    check,
    what,
    right: { verb: "list", resource },
  });
  if (policies.type !== "seen") {
    const why = policies.type === "unseen" ? policies.why : "not_found";
    return [notSeen(look("Whether a NetworkPolicy is in the way", "networkpolicies"), why)];
  }
  if (clients.type !== "seen") {
    const why = clients.type === "unseen" ? clients.why : "not_found";
    return [notSeen(look("Who may deploy", "mysqldatabases.shipstream.io"), why)];
  }
  if (clients.value.length === 0) {
    return [warning(
      "clients",
      "No MysqlDatabase names a service account that may deploy",
      "Name it in 'spec.deploymentClients' of the database",
    )];
  }
  const onService = isolatingService(policies.value, pods.type === "seen" ? pods.value : []);
  return clients.value.flatMap((client) => [
    accountFinding(client),
    pods.type === "seen" && pods.value.length > 0
      ? reachFinding(client, onService, place)
      : waiting(`network-${nameOf(client)}`, "Whether a NetworkPolicy lets it in"),
  ]);
}

function isolatingService(
  policies: readonly NetworkPolicy[],
  pods: readonly PodFacts[],
): readonly NetworkPolicy[] {
  return [...new Set(pods.flatMap(({ labels }) => isolating(policies, labels)))];
}

function nameOf({ namespace, serviceAccount }: ClientFacts): string {
  return shown(`${namespace}/${serviceAccount}`);
}

function accountFinding(client: ClientFacts): Finding {
  const { account, databases } = client;
  const check = `client-${nameOf(client)}`;
  const where = databases.map((name) => `'${shown(name)}'`).join(", ");
  if (account.type === "absent") {
    return warning(
      check,
      `The service account '${nameOf(client)}', which ${where} names, is not there`,
      "Correct 'spec.deploymentClients', or make the service account",
    );
  }
  if (account.type === "unseen") {
    const right = { verb: "get", resource: "serviceaccounts" };
    return notSeen({ check, what: `The service account '${nameOf(client)}'`, right }, account.why);
  }
  return ok(check, `The service account '${nameOf(client)}' may deploy to ${where}`);
}

function reachFinding(
  client: ClientFacts,
  policies: readonly NetworkPolicy[],
  place: ServicePlace,
): Finding {
  const check = `network-${nameOf(client)}`;
  const { namespace, namespaceLabels, pods } = client;
  if (policies.length === 0) {
    return ok(check, "No NetworkPolicy isolates the service, so every pod can reach it");
  }
  if (namespaceLabels.type === "absent") {
    return wrong(
      check,
      `There is no namespace '${shown(namespace)}'`,
      "Correct 'spec.deploymentClients'",
    );
  }
  if (namespaceLabels.type === "unseen") {
    const right = { verb: "get", resource: "namespaces" };
    return notSeen(
      { check, what: `The labels of the namespace '${shown(namespace)}'`, right },
      namespaceLabels.why,
    );
  }
  const port: WantedPort = { number: place.port, name: place.portName };
  const mayEnter = (podLabels: Labels) =>
    lets(policies, {
      namespaceLabels: namespaceLabels.value,
      podLabels,
      isLocal: namespace === place.namespace,
    }, port);
  const todo =
    `Label the namespace ${NAMESPACE_LABEL}=true, and the pod (the template of its Job) ${POD_LABEL}=true`;
  const running = pods.type === "seen" ? pods.value : [];
  const shut = running.filter(({ labels }) => !mayEnter(labels));
  if (shut.length > 0) {
    return wrong(check, `No NetworkPolicy lets ${namesOf(shut)} of '${shown(namespace)}' in`, todo);
  }
  if (running.length > 0) return ok(check, `The NetworkPolicy lets ${namesOf(running)} in`);
  if (!mayEnter({ [POD_LABEL]: "true" })) {
    return wrong(
      check,
      `No NetworkPolicy lets pods of the namespace '${
        shown(namespace)
      }' in, also not with the label ${POD_LABEL}=true`,
      todo,
    );
  }
  return unseen(
    check,
    `No pod of the service account runs now; one with the label ${POD_LABEL}=true is let in`,
    `See that the pod (the template of its Job) has this label`,
  );
}

function secretFinding(
  check: string,
  group: string,
  secret: string,
  authorities: number,
  isTrusted: boolean,
): Finding {
  const what = `'ca.crt' of the Secret '${shown(secret)}' of the encrypted group '${shown(group)}'`;
  if (isTrusted) return ok(check, `${what} has the authority that signed the certificate`);
  if (authorities > 0) {
    return wrong(
      check,
      `${what} does not have the authority that signed the certificate, so its sidecars refuse the service`,
      "Put both authorities into it, or have both certificates issued by one",
    );
  }
  return unseen(
    check,
    `${what} cannot be read, or holds no certificate`,
    `Look as somebody with the verb "get" on secrets in the namespace of the group`,
  );
}

/** Whether the sidecars of encrypted groups trust the service, as far as it can be seen. */
export function sidecarFindings({ sidecars, secret }: ClusterFacts): readonly Finding[] {
  const check = "sidecar-trust";
  if (sidecars.type !== "seen") {
    const right = { verb: "list", resource: "mysqlfailovergroups.shipstream.io" };
    const why = sidecars.type === "unseen" ? sidecars.why : "not_found";
    return [notSeen({ check, what: "Which groups are encrypted", right }, why)];
  }
  if (sidecars.value.length === 0) return [ok(check, "No group is encrypted at rest")];
  const hasCertificate = secret.type === "seen" && secret.value.certificate !== null;
  return sidecars.value.map((one) =>
    hasCertificate
      ? sidecarFinding(one)
      : waiting(`${check}-${shown(one.group)}`, "What the sidecars trust")
  );
}

function sidecarFinding({ group, secret, authorities, isTrusted, pods }: SidecarFacts): Finding {
  const check = `sidecar-trust-${shown(group)}`;
  if (secret !== "") return secretFinding(check, group, secret, authorities, isTrusted);
  const limits =
    "which of the mounted files its sidecars read, and what their image trusts, cannot be seen from here";
  const todo =
    "See that the outcome of 'bloodraven_keyring_escrow_pushes_total' on the sidecars is success; else give them the authority of the service's certificate";
  if (pods.type === "unseen") {
    const right = { verb: "list", resource: "pods" };
    return notSeen(
      { check, what: `The pods of the encrypted group '${shown(group)}'`, right },
      pods.why,
    );
  }
  if (isTrusted) {
    return ok(
      check,
      `The pods of the encrypted group '${
        shown(group)
      }' mount the authority that signed the certificate; ${limits}`,
    );
  }
  if (authorities > 0) {
    return warning(
      check,
      `The pods of the encrypted group '${
        shown(group)
      }' mount authorities, and none of them signed the certificate; ${limits}`,
      todo,
    );
  }
  return unseen(
    check,
    `The pods of the encrypted group '${
      shown(group)
    }' mount no authority that can be read; ${limits}`,
    todo,
  );
}
