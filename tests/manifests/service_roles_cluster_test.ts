/** The generated roles of the service on a real API server: enough for all that it does, and nothing beside that. */

import assert from "node:assert/strict";
import { tokenSecretName } from "../../lib/escrow/names.ts";
import {
  MYSQL_FAILOVER_GROUPS,
  PLANNED_FAILOVER_ANNOTATION,
  REVOKE_ANNOTATION,
} from "../../lib/group/types.ts";
import { LEASES, PODS, SECRETS } from "../../lib/kube/mod.ts";
import { LEADER_LABEL } from "../../lib/plugin/leader_label.ts";
import { DEPLOYMENT_GROUP_LABEL, holdName, slotName } from "../../lib/records/names.ts";
import type { AuditEntry } from "../cluster/audit_log.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { type DeploymentClient, grantedBody } from "../service/deployment_client.ts";
import type { ServiceProcess } from "../service/service_process.ts";
import { type BoundRule, eventually, rulesOf, ServicePlace } from "./service_place.ts";

const clusterTest = useCluster({ audit: true });
const { signal } = new AbortController();
const call = { signal };
const ESCROW_TOKEN = "0123456789abcdef".repeat(4);

/** All that can be switched on, with times that let it happen within a test. */
const everything = ({ data }: { data: string }) => ({
  auxiliary: {
    deployAPI: { enabled: true },
    escrowTLS: { enabled: true, existingSecret: "tls" },
  },
  keyringEscrow: { enabled: true, namespaces: [data] },
  plannedOperations: { enabled: true },
  config: {
    deploy_api: { terminal_hold_retention: "1s" },
    auxiliary: { status_page: true },
    kubernetes: {
      leader_election: { lease_duration_secs: 9, renew_deadline_secs: 6, retry_period_secs: 1 },
    },
  },
});

/** What the API server answers to who may not. */
const DENIED: ReadonlySet<number> = new Set([401, 403]);

/** What a rule grants, one verb of one resource each, and whether a request used it. */
function unused(rules: readonly BoundRule[], entries: readonly AuditEntry[]): readonly string[] {
  return rules.flatMap(({ namespace, rule }) =>
    rule.apiGroups.flatMap((group) =>
      rule.resources.flatMap((resource) =>
        rule.verbs.filter((verb) =>
          !entries.some((entry) =>
            entry.group === group && entry.resource === resource && !DENIED.has(entry.status) &&
            (namespace === undefined || entry.namespace === namespace) &&
            (rule.resourceNames === undefined || rule.resourceNames.includes(entry.name)) &&
            // A PUT that makes an object asks for both verbs.
            (entry.verb === verb ||
              verb === "create" && entry.verb === "update" && entry.status === 201)
          )
        ).map((verb) => `${verb} ${resource} in ${namespace ?? "the cluster"}`)
      )
    )
  );
}

async function annotate(place: ServicePlace, name: string, value: string | null): Promise<void> {
  const body = { metadata: { annotations: { [name]: value } } };
  const group = { namespace: place.data, name: "orders" };
  await place.cluster.adminApi.patch(MYSQL_FAILOVER_GROUPS, group, { type: "merge", body }, call);
}

async function granted(client: DeploymentClient, ...wish: Parameters<DeploymentClient["grant"]>) {
  const answer = await client.grant(...wish);
  assert.equal(answer.status, 201, answer.text);
  return grantedBody.parse(answer.body);
}

async function untilLeading(client: DeploymentClient): Promise<void> {
  await eventually("it leads", async () => (await client.observe()).status === 200);
}

/** A deployment from its first look to its release, a hold that is removed later, and a revocation. */
async function deploy(place: ServicePlace, client: DeploymentClient): Promise<void> {
  const { cluster, data: namespace } = place;
  const { token } = await granted(client, "op-1", "tenant");
  const hold = await granted(client, "op-1", "tenant", { kind: "failover-hold" });
  assert.equal((await client.renew("op-1", token)).status, 200);

  // A Lease of the reference operator has no label of ours: the leader adds it.
  const slot = { namespace, name: slotName("orders") };
  const body = { metadata: { labels: { [DEPLOYMENT_GROUP_LABEL]: null } } };
  await cluster.adminApi.patch(LEASES, slot, { type: "merge", body }, call);
  await eventually("the Lease is adopted", async () => {
    const { labels } = (await cluster.adminApi.get(LEASES, slot, call)).metadata;
    return labels?.[DEPLOYMENT_GROUP_LABEL] === "orders";
  });

  assert.equal((await client.release("op-1", hold.token, { kind: "failover-hold" })).status, 204);
  assert.equal((await client.release("op-1", token)).status, 204);
  await eventually("the hold is removed", async () => {
    const { items } = await cluster.adminApi.list(LEASES, { namespace, ...call });
    return !items.some(({ metadata }) => metadata.name === holdName("orders", "op-1"));
  });

  await granted(client, "op-2", "tenant");
  await annotate(place, REVOKE_ANNOTATION, "true");
  await eventually("the revocation is served", async () => {
    const group = { namespace, name: "orders" };
    const { annotations } =
      (await cluster.adminApi.get(MYSQL_FAILOVER_GROUPS, group, call)).metadata;
    return annotations?.[REVOKE_ANNOTATION] === undefined;
  });
  assert.equal((await client.grant("op-2", "tenant")).status, 409);
}

/** A planned failover that is asked for until it is the operator's. */
async function plan(place: ServicePlace): Promise<void> {
  await annotate(place, PLANNED_FAILOVER_ANNOTATION, "pdx");
  const group = { namespace: place.data, name: "orders" };
  await eventually("the planned failover is Pending", async () => {
    const { status } = await place.cluster.adminApi.get(MYSQL_FAILOVER_GROUPS, group, call);
    return status?.plannedFailover?.phase === "Pending";
  });
}

/** Six keyrings of a site: the first one is removed. */
async function escrow(place: ServicePlace, service: ServiceProcess): Promise<void> {
  const { cluster, data: namespace } = place;
  const site = { namespace, group: "orders", site: "iad" };
  const name = tokenSecretName(site);
  const data = { token: btoa(ESCROW_TOKEN) };
  await cluster.adminApi.create(SECRETS, { metadata: { namespace, name }, data }, call);
  const body = { spec: { encryptionAtRest: { enabled: true } } };
  const group = { namespace, name: "orders" };
  await cluster.adminApi.patch(MYSQL_FAILOVER_GROUPS, group, { type: "merge", body }, call);
  for (let version = 1; version <= 6; version++) {
    const response = await fetch(`https://${service.address("tls")}/keyring/escrow`, {
      method: "POST",
      headers: { authorization: `Bearer ${ESCROW_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify({ ...site, keyring: btoa(`keyring ${version}`) }),
      client: place.http,
      signal: AbortSignal.timeout(10_000),
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    assert.equal(JSON.parse(text).version, version);
  }
}

/** The views on the auxiliary port. */
async function look(place: ServicePlace, service: ServiceProcess): Promise<void> {
  const cutoff = `/pitr-cutoff?namespace=${place.data}&group=orders&profile=daily`;
  for (const path of ["/status", cutoff]) {
    const response = await fetch(`http://${service.address("auxiliary")}${path}`, {
      signal: AbortSignal.timeout(10_000),
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
  }
}

clusterTest(
  "deploy-api 16 item 62, difference 18: the generated roles are enough for all that the service does, and no verb of theirs goes unused",
  async (cluster) => {
    await using place = await ServicePlace.open(cluster, everything);
    const service = await place.start();
    const client = await place.client(service);
    await untilLeading(client);
    await eventually("the leader's pod is labelled", async () => {
      const { items } = await cluster.adminApi.list(PODS, { namespace: place.own, ...call });
      return items.some(({ metadata }) => metadata.labels?.[LEADER_LABEL] === "true");
    });
    await deploy(place, client);
    await escrow(place, service);
    await look(place, service);
    await plan(place);

    // It leads twice, so an Event is told again: that is a patch of the first one.
    const lease = { namespace: place.own, name: "holdfast.shipstream.io" };
    const { metadata } = await cluster.adminApi.get(LEASES, lease, call);
    const { uid, resourceVersion } = metadata;
    await cluster.admin(
      "DELETE",
      `/apis/coordination.k8s.io/v1/namespaces/${place.own}/leases/${lease.name}`,
      {
        body: { preconditions: { uid, resourceVersion } },
      },
    ).then(({ status }) => assert.ok([200, 409].includes(status)));
    await eventually("it leads again, and an Event says so", async () => {
      const entries = await cluster.auditLog();
      return entries.some(({ user, verb, resource, namespace }) =>
        user === place.user && verb === "patch" && resource === "events" && namespace === place.own
      );
    });

    const entries = (await cluster.auditLog()).filter(({ user }) => user === place.user);
    assert.deepEqual(unused(rulesOf(place.objects), entries), []);
    const planted = { apiGroups: [""], resources: ["pods"], verbs: ["patch", "delete"] };
    assert.deepEqual(unused([{ namespace: place.own, rule: planted }], entries), [
      `delete pods in ${place.own}`,
    ]);
    const denied = entries.filter(({ status }) => DENIED.has(status));
    assert.deepEqual(denied.map(({ verb, requestUri }) => `${verb} ${requestUri}`), []);
    const troubles = service.lines.filter(({ level }) => level === "ERROR" || level === "error");
    assert.deepEqual(troubles, []);
  },
);

clusterTest(
  "difference 18: what the roles do not name is forbidden, also where the service does something like it",
  async (cluster) => {
    await using place = await ServicePlace.open(cluster, everything);
    const { own, data } = place;
    const token = await cluster.token({ namespace: own, serviceAccount: place.account });
    const caller = cluster.caller({ token });
    await cluster.createNamespace("elsewhere");
    const core = (namespace: string, rest: string) => `/api/v1/namespaces/${namespace}/${rest}`;
    const api = (group: string, rest: string) => `/apis/${group}/${rest}`;
    const shipstream = `namespaces/${data}/mysqlfailovergroups/orders`;
    const forbidden: readonly (readonly [verb: string, path: string])[] = [
      // Secrets: those of groups alone, and what is stored is never changed.
      ["GET", core("elsewhere", "secrets/any")],
      ["GET", core("elsewhere", "secrets")],
      ["GET", core(own, "secrets/tls")],
      ["GET", "/api/v1/secrets"],
      ["POST", core("elsewhere", "secrets")],
      ["PUT", core(data, "secrets/any")],
      ["PATCH", core(data, "secrets/any")],
      ["DELETE", core(data, "secrets")],
      ["GET", core(data, "secrets?watch=true")],
      // What belongs to the operator, and to those who deploy.
      ["PUT", api("shipstream.io/v1alpha1", shipstream)],
      ["DELETE", api("shipstream.io/v1alpha1", shipstream)],
      ["PUT", api("shipstream.io/v1alpha1", `${shipstream}/status`)],
      ["POST", api("shipstream.io/v1alpha1", `namespaces/${data}/mysqlfailovergroups`)],
      ["PATCH", api("shipstream.io/v1alpha1", `namespaces/${data}/mysqldatabases/tenant`)],
      ["POST", api("shipstream.io/v1alpha1", `namespaces/${data}/mysqldatabases`)],
      ["PATCH", api("shipstream.io/v1alpha1", `namespaces/${data}/mysqlbackups/any`)],
      ["GET", api("shipstream.io/v1alpha1", `namespaces/${data}/mysqlbackups/any`)],
      ["DELETE", api("coordination.k8s.io/v1", `namespaces/${data}/leases`)],
      // Pods: the label of its own, and no more.
      ["PATCH", core(data, "pods/any")],
      ["GET", core(own, "pods")],
      ["POST", core(own, "pods")],
      ["DELETE", core(own, "pods/any")],
      ["POST", core(own, "pods/any/exec")],
      ["PATCH", core(own, "pods/any/status")],
      // Rights of its own, and those of others.
      ["POST", core(own, `serviceaccounts/${place.account}/token`)],
      ["POST", core(data, "serviceaccounts/deployer/token")],
      ["PATCH", api("rbac.authorization.k8s.io/v1", `clusterroles/${place.account}`)],
      ["POST", api("rbac.authorization.k8s.io/v1", "clusterrolebindings")],
      ["POST", api("authorization.k8s.io/v1", "subjectaccessreviews")],
      // Whatever is about other things.
      ["GET", core(own, "configmaps")],
      ["GET", "/api/v1/nodes"],
      ["GET", "/api/v1/namespaces"],
      ["GET", api("events.k8s.io/v1", `namespaces/${data}/events`)],
      ["PATCH", api("apps/v1", `namespaces/${own}/deployments/${place.account}`)],
      ["GET", api("apiextensions.k8s.io/v1", "customresourcedefinitions")],
      ["GET", "/metrics"],
    ];
    const answers = await Promise.all(forbidden.map(async ([method, path]) => {
      const body = method === "GET" || method === "DELETE" ? {} : { body: { metadata: {} } };
      const contentType = method === "PATCH" ? { contentType: "application/merge-patch+json" } : {};
      const { status } = await caller.raw(method, path, { ...body, ...contentType });
      return [method, path, status];
    }));
    assert.deepEqual(answers, forbidden.map(([method, path]) => [method, path, 403]));
  },
);

clusterTest(
  "difference 18: with the deployment API off, the service may touch no Lease but its own, and no token",
  async (cluster) => {
    await using place = await ServicePlace.open(cluster, () => ({}));
    const service = await place.start({ HOLDFAST__DEPLOY_API__ENABLED: "false" });
    await eventually("it leads", async () => {
      const lease = { namespace: place.own, name: "holdfast.shipstream.io" };
      const { items } = await cluster.adminApi.list(LEASES, { namespace: place.own, ...call });
      return items.some(({ metadata, spec }) =>
        metadata.name === lease.name && (spec?.holderIdentity ?? "") !== ""
      );
    });
    const token = await cluster.token({ namespace: place.own, serviceAccount: place.account });
    const { raw } = cluster.caller({ token });
    const leases = "/apis/coordination.k8s.io/v1";
    const review = "/apis/authentication.k8s.io/v1/tokenreviews";
    for (
      const [method, path] of [
        ["GET", `${leases}/leases`],
        ["GET", `${leases}/namespaces/${place.own}/leases`],
        ["PUT", `${leases}/namespaces/${place.own}/leases/other`],
        ["GET", `${leases}/namespaces/${place.data}/leases/holdfast.shipstream.io`],
        ["DELETE", `${leases}/namespaces/${place.own}/leases/holdfast.shipstream.io`],
        ["POST", review],
      ] as const
    ) {
      const body = method === "GET" || method === "DELETE" ? {} : { body: { metadata: {} } };
      assert.equal((await raw(method, path, body)).status, 403, `${method} ${path}`);
    }
    assert.deepEqual(service.lines.filter(({ level }) => /warn|error/i.test(level)), []);
  },
);

clusterTest(
  "the reference's rule set, on request, carries a whole deployment too",
  async (cluster) => {
    await using place = await ServicePlace.open(cluster, (places) => ({
      ...everything(places),
      rbac: { rules: "reference" },
    }));
    const service = await place.start();
    const client = await place.client(service);
    await untilLeading(client);
    await deploy(place, client);
    await plan(place);
    const entries = (await cluster.auditLog()).filter(({ user }) => user === place.user);
    assert.deepEqual(entries.filter(({ status }) => DENIED.has(status)), []);
  },
);

clusterTest(
  "without an election the service has no right on any Lease, and serves its escrow and its views",
  async (cluster) => {
    await using place = await ServicePlace.open(cluster, ({ data }) => ({
      leaderElection: { enabled: false },
      auxiliary: { escrowTLS: { enabled: true, existingSecret: "tls" } },
      keyringEscrow: { enabled: true, namespaces: [data] },
    }));
    assert.ok(!JSON.stringify(rulesOf(place.objects)).includes("leases"));
    const service = await place.start({ HOLDFAST__DEPLOY_API__ENABLED: "false" });
    await escrow(place, service);
    await look(place, service);
    const ready = await fetch(`http://${service.address("probes")}/readyz`, {
      signal: AbortSignal.timeout(10_000),
    });
    assert.equal(ready.status, 200, await ready.text());
    const entries = (await cluster.auditLog()).filter(({ user }) => user === place.user);
    assert.deepEqual(entries.filter(({ status }) => DENIED.has(status)), []);
    assert.deepEqual(service.lines.filter(({ level }) => /error/i.test(level)), []);
  },
);
