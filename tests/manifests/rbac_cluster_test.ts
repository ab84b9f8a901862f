/** The generated Role on a real API server: enough for the plugin's work, and no more than that. */

import assert from "node:assert/strict";
import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { configSchema } from "../../lib/config/schema.ts";
import type { KubeApi } from "../../lib/kube/api.ts";
import { CONFIG_MAPS, EVENTS, ForbiddenError, LEASES, PODS } from "../../lib/kube/mod.ts";
import { rbacNeedsOf, rbacObjects, rbacRules } from "../../lib/manifests/mod.ts";
import { LEADER_LABEL } from "../../lib/plugin/leader_label.ts";
import { startKubernetes } from "../../lib/plugin/start.ts";
import { TestSystem } from "../../lib/testing/test_system.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { mustSucceed } from "../cluster/raw_client.ts";
import { MemoryLog } from "../election/world.ts";
import { eventually } from "../host/support.ts";

const clusterTest = useCluster({ crds: false, audit: true });
const never = new AbortController().signal;
const call = { signal: never };

/**
 * Applies what is generated for a configuration; gives a client of the application's service account.
 *
 * @param without Verbs that are left out of every rule.
 */
async function install(
  cluster: Cluster,
  namespace: string,
  kubernetes: Record<string, unknown>,
  without: readonly string[] = [],
) {
  const config = configSchema.parse({ kubernetes });
  await cluster.createNamespace(namespace);
  await cluster.createServiceAccount(namespace, "web");
  const base = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const [generated, binding] = rbacObjects({ name: "web", namespace }, rbacNeedsOf(config));
  const rules = generated?.rules.map((rule) => ({
    ...rule,
    verbs: rule.verbs.filter((verb) => !without.includes(verb)),
  }));
  const role = { ...generated, rules };
  mustSucceed(await cluster.admin("POST", `${base}/roles`, { body: role }), "make the Role");
  mustSucceed(
    await cluster.admin("POST", `${base}/rolebindings`, { body: binding }),
    "make the RoleBinding",
  );
  const token = await cluster.token({ namespace, serviceAccount: "web" });
  const api = cluster.caller({ token }).api();
  // The authorizer learns of a new Role a moment after it is stored.
  await eventually(async () => {
    try {
      await api.get(LEASES, { namespace, name: "web" }, call);
      return true;
    } catch (error) {
      return !(error instanceof ForbiddenError);
    }
  }, "the Role is in force");
  return { config, api };
}

/** Makes a pod. Nothing runs it. */
function makePod(cluster: Cluster, namespace: string, name: string) {
  const spec = {
    serviceAccountName: "web",
    automountServiceAccountToken: false,
    containers: [{ name: "app", image: "none" }],
  };
  return cluster.adminApi.create(PODS, { metadata: { name, namespace }, ...{ spec } }, call);
}

const ALL = {
  leader_election: {
    enabled: true,
    lease_name: "web",
    lease_duration_secs: 3,
    renew_deadline_secs: 2,
    retry_period_secs: 1,
    label_leader: true,
  },
  config_maps: { watch: ["settings", "absent"] },
};

clusterTest("the Role is enough for all the work of the plugin", async (cluster) => {
  const namespace = "enough";
  const { config, api } = await install(cluster, namespace, ALL);
  const { adminApi } = cluster;
  const settings = { name: "settings", namespace };
  await adminApi.create(CONFIG_MAPS, { metadata: settings, data: { a: "1" } }, call);
  const log = new MemoryLog();
  const start = async (name: string) => {
    const { metadata: { uid } } = await makePod(cluster, namespace, name);
    return await startKubernetes({
      config,
      system: new TestSystem({ clock: systemClock, entropy: systemEntropy }),
      logger: log,
      signal: never,
      connector: () => api,
      podInfo: { name, namespace, uid, labels: {}, inCluster: true },
    });
  };
  const first = await start("web-1");
  assert.equal(await first.leadership?.waitUntilLeader(never), true);
  const { configMaps } = first;
  await eventually(() => configMaps?.value("settings", "a") === "1", "the map is read");
  await eventually(() => configMaps?.isSynced("absent") ?? false, "the other is missed");
  const patch = { type: "merge", body: { data: { a: "2" } } } as const;
  await adminApi.patch(CONFIG_MAPS, settings, patch, call);
  await eventually(() => configMaps?.value("settings", "a") === "2", "the change is seen");
  const label = async () =>
    (await adminApi.get(PODS, { name: "web-1", namespace }, call)).metadata.labels?.[LEADER_LABEL];
  await eventually(async () => await label() === "true", "the pod is labelled");
  assert.equal((await first.health()).status, "up");

  // A waiting replica hears of the release by its watch. With `watch` alone, or without, it would poll for a second.
  const second = await start("web-2");
  await eventually(() => second.leadership?.holder !== "", "the second one sees the holder");
  await first.shutdown(never);
  const releasedMs = systemClock.monotonic();
  assert.equal(await second.leadership?.waitUntilLeader(never), true);
  assert.ok(systemClock.monotonic() - releasedMs < 500);
  assert.equal(await label(), undefined);
  await second.shutdown(never);
  const { items } = await adminApi.list(EVENTS, { namespace, ...call });
  const reasons = items.filter(({ regarding }) => regarding?.name === "web-1").map(({ reason }) =>
    reason
  );
  assert.deepEqual(reasons.sort(), ["LeaderElected", "Started", "Stopping"]);
  const failures = (await first.metrics.snapshot()).filter(({ name, value }) =>
    /_(errors|failed)_total$/.test(name) && value > 0
  );
  assert.deepEqual(failures, []);
  assert.deepEqual(log.at("warn"), []);
});

clusterTest("the Role is minimal: nothing beside that work is allowed", async (cluster) => {
  const namespace = "minimal";
  const { api } = await install(cluster, namespace, ALL);
  await cluster.createNamespace("elsewhere");
  const lease = (name: string, at = namespace) => ({ metadata: { name, namespace: at } });
  const denied: Record<string, (api: KubeApi) => Promise<unknown>> = {
    "create another Lease by name": (api) => api.createNamed(LEASES, lease("other"), call),
    "create a Lease without a name": (api) => api.create(LEASES, lease("web"), call),
    "read another Lease": (api) => api.get(LEASES, { name: "other", namespace }, call),
    "create the Lease in another namespace": (api) =>
      api.createNamed(LEASES, lease("web", "elsewhere"), call),
    "read the Lease in another namespace": (api) =>
      api.get(LEASES, { name: "web", namespace: "elsewhere" }, call),
    "list all Leases": (api) => api.list(LEASES, { namespace, ...call }),
    "delete the Lease": (api) =>
      api.delete(LEASES, { name: "web", namespace }, { uid: "u", resourceVersion: "1" }, call),
    "list all ConfigMaps": (api) => api.list(CONFIG_MAPS, { namespace, ...call }),
    "list a ConfigMap that is not followed": (api) =>
      api.list(CONFIG_MAPS, { namespace, fieldSelector: "metadata.name=secret", ...call }),
    "read a ConfigMap": (api) => api.get(CONFIG_MAPS, { name: "settings", namespace }, call),
    "list the ConfigMap in another namespace": (api) =>
      api.list(CONFIG_MAPS, {
        namespace: "elsewhere",
        fieldSelector: "metadata.name=settings",
        ...call,
      }),
    "list Events": (api) => api.list(EVENTS, { namespace, ...call }),
    "list pods": (api) => api.list(PODS, { namespace, ...call }),
  };
  for (const [what, act] of Object.entries(denied)) {
    await assert.rejects(act(api), ForbiddenError, what);
  }
});

clusterTest("the rule on the Lease carries each call of the election", async (cluster) => {
  // Create by PUT, read, renew, and look for news.
  const namespace = "verbs";
  const { api } = await install(cluster, namespace, ALL);
  const name = { name: "web", namespace };
  const created = await api.createNamed(LEASES, { metadata: name }, call);
  await api.get(LEASES, name, call);
  const { resourceVersion } = created.metadata;
  const body = { metadata: { resourceVersion }, spec: { leaseTransitions: 1 } };
  await api.patch(LEASES, name, { type: "merge", body }, call);
  const stop = new AbortController();
  const watch = api.watch(LEASES, {
    namespace,
    fieldSelector: "metadata.name=web",
    signal: stop.signal,
  });
  const seen: string[] = [];
  for await (const event of watch) {
    seen.push(event.type);
    if (event.type === "initial") {
      const labels = { metadata: { labels: { seen: "true" } } };
      await api.patch(LEASES, name, { type: "merge", body: labels }, call);
    } else stop.abort();
  }
  assert.deepEqual(seen, ["initial", "modified"]);
});

clusterTest(
  "without the verb `watch`, or without `list` too, the elector works and polls",
  async (cluster) => {
    for (
      const [namespace, without] of [["polls", ["watch"]], ["polls-2", ["watch", "list"]]] as const
    ) {
      // Without ConfigMaps: those need both verbs.
      const { config, api } = await install(
        cluster,
        namespace,
        { leader_election: { ...ALL.leader_election, label_leader: false } },
        without,
      );
      const lease = { namespace, fieldSelector: "metadata.name=web", signal: never };
      for await (const event of api.watch(LEASES, lease)) {
        if (event.type === "initial") continue;
        assert.ok(event.type === "failed" && event.error instanceof ForbiddenError);
        break;
      }
      const start = (name: string) =>
        startKubernetes({
          config,
          system: new TestSystem({ clock: systemClock, entropy: systemEntropy }),
          logger: new MemoryLog(),
          signal: never,
          connector: () => api,
          podInfo: { name, namespace, labels: {}, inCluster: true },
        });
      const first = await start("web-1");
      assert.equal(await first.leadership?.waitUntilLeader(never), true);
      const second = await start("web-2");
      await eventually(() => second.leadership?.holder !== "", "the second one sees the holder");
      assert.equal(second.leadership?.isLeader(), false);
      await first.shutdown(never);
      // It looks again after its retry period of a second, and needs no longer than that and its jitter.
      const releasedMs = systemClock.monotonic();
      assert.equal(await second.leadership?.waitUntilLeader(never), true);
      assert.ok(systemClock.monotonic() - releasedMs < 2_500);
      await second.shutdown(never);
    }
  },
);

clusterTest(
  "each verb of the Role is used and no other is asked for, as the audit log shows",
  async (cluster) => {
    const namespace = "audited";
    const { config, api } = await install(cluster, namespace, ALL);
    const { adminApi } = cluster;
    const { metadata: { uid } } = await makePod(cluster, namespace, "web-1");
    // What this test itself asked for with the account does not count.
    const before = (await cluster.auditLog()).length;
    const replica = await startKubernetes({
      config,
      system: new TestSystem({ clock: systemClock, entropy: systemEntropy }),
      logger: new MemoryLog(),
      signal: never,
      connector: () => api,
      podInfo: { name: "web-1", namespace, uid, labels: {}, inCluster: true },
    });
    const { leadership } = replica;
    assert.equal(await leadership?.waitUntilLeader(never), true);
    const { token } = leadership?.term ?? {};
    // It leads once more, so one and the same Event comes twice.
    const lease = { name: "web", namespace };
    const { metadata } = await adminApi.get(LEASES, lease, call);
    await adminApi.delete(LEASES, lease, {
      uid: metadata.uid,
      resourceVersion: metadata.resourceVersion,
    }, call);
    await eventually(
      () => leadership?.isLeader() === true && leadership.term?.token !== token,
      "it leads again",
    );
    await eventually(() => replica.configMaps?.isSynced("absent") ?? false, "the maps are read");
    await replica.shutdown(never);

    const user = `system:serviceaccount:${namespace}:web`;
    const used = new Set<string>();
    for (const entry of (await cluster.auditLog()).slice(before)) {
      if (entry.user !== user || entry.resource === "") continue;
      used.add(`${entry.resource}.${entry.group} ${entry.verb}`);
      // A PUT that made the object was asked for both verbs; the log has the one of the request.
      if (entry.verb === "update" && entry.status === 201) {
        used.add(`${entry.resource}.${entry.group} create`);
      }
    }
    const granted = rbacRules(rbacNeedsOf(config)).flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => `${resource}.${group} ${verb}`))
      )
    );
    assert.deepEqual([...used].sort(), granted.sort());
  },
);
