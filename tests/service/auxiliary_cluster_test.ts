import assert from "node:assert/strict";
import { once } from "node:events";
// @ts-types="@types/ws"
import { WebSocket } from "ws";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { rbacRules } from "../../lib/manifests/rbac.ts";
import { serviceRoles } from "../../lib/manifests/service/roles.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { mustSucceed } from "../cluster/raw_client.ts";
import { ServiceProcess } from "./service_process.ts";
import { Workplace } from "./workplace.ts";

const clusterTest = useCluster({ audit: true });
const { signal } = new AbortController();

/** What the auxiliary views need besides what the deployment API does, as the generated roles grant it. */
const auxiliaryRules = serviceRoles({
  deployApi: false,
  plannedOperations: false,
  keyringEscrow: null,
  auxiliary: true,
  statusPage: false,
  own: {},
}).flatMap(({ rules }) => rules);

async function get(
  service: ServiceProcess,
  listener: "metrics" | "probes" | "auxiliary",
  path: string,
) {
  const response = await fetch(`http://${service.address(listener)}${path}`);
  return { status: response.status, text: await response.text() };
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const limit = performance.now() + 20_000;
  while (!await holds()) {
    if (performance.now() > limit) throw new Error(`Cannot wait any longer until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

async function backup(cluster: Cluster, namespace: string, name: string, completionTime: string) {
  const path = `/apis/shipstream.io/v1alpha1/namespaces/${namespace}/mysqlbackups`;
  const labels = {
    "shipstream.io/failover-group": "orders",
    "shipstream.io/backup-profile": "daily",
  };
  const object = {
    apiVersion: "shipstream.io/v1alpha1",
    kind: "MysqlBackup",
    metadata: { name, labels },
  };
  mustSucceed(await cluster.admin("POST", path, { body: object }), "create the backup");
  const status = { phase: "Succeeded", completionTime };
  const patch = { body: { status }, contentType: "application/merge-patch+json" };
  mustSucceed(await cluster.admin("PATCH", `${path}/${name}/status`, patch), "finish the backup");
}

clusterTest(
  "a leader and a follower both serve all plain ports, and tell a change of status at once",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "auxiliary");
    const { namespace } = place;
    await cluster.grant({
      subject: { namespace, serviceAccount: "holdfast" },
      rules: auxiliaryRules,
    });
    await backup(cluster, namespace, "newer", "2026-01-02T00:00:00Z");
    await backup(cluster, namespace, "older", "2026-01-01T00:00:00Z");
    const services = await Promise.all([place.startService(), place.startService()]);
    const deployers = await Promise.all(services.map((service) => place.client(service)));
    const statuses = async () =>
      (await Promise.all(deployers.map((client) => client.observe()))).map(({ status }) => status);
    await until("one leads", async () => (await statuses()).includes(200));
    assert.deepEqual((await statuses()).toSorted(), [200, 503]);

    const key = `${namespace}/orders`;
    const query = `namespace=${namespace}&group=orders`;
    const clients = await Promise.all(services.map(async (service) => {
      await until(
        "the groups are known",
        async () => (await get(service, "auxiliary", "/status")).text.includes(key),
      );
      const [status, site, cutoff] = await Promise.all(
        ["/status", `/active-site?${query}`, `/pitr-cutoff?${query}&profile=daily`].map((path) =>
          get(service, "auxiliary", path)
        ),
      );
      assert.equal(JSON.parse(status?.text ?? "")[key].activeSite, "iad");
      assert.equal(
        site?.text,
        `{"namespace":"${namespace}","group":"orders","activeSite":"iad"}\n`,
      );
      assert.equal(JSON.parse(cutoff?.text ?? "").cutoffTime, "2026-01-01T00:00:00Z");
      assert.equal((await get(service, "auxiliary", "/deploy/v1/groups/orders")).status, 404);

      for (const path of ["/healthz", "/readyz"]) {
        for (const listener of ["probes", "auxiliary"] as const) {
          assert.deepEqual(await get(service, listener, path), { status: 200, text: "ok" });
        }
      }
      const { text } = await get(service, "metrics", "/metrics");
      for (
        const name of [
          "process_resident_memory_bytes",
          "process_cpu_seconds_total",
          "process_start_time_seconds",
          "holdfast_event_loop_lag_seconds_count",
          "bloodraven_websocket_connected_clients",
        ]
      ) {
        const value = new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1];
        assert.ok(Number(value) >= 0, `${name} ${value}`);
      }
      const socket = new WebSocket(`ws://${service.address("auxiliary")}/ws/status`);
      const messages: Record<string, unknown>[] = [];
      socket.on("message", (data) => {
        const message = JSON.parse(String(data));
        if (message.namespace === namespace) messages.push(message);
      });
      await once(socket, "open");
      await until("the first message", () => messages.length === 1);
      return { socket, messages };
    }));

    const patch = { status: { activeSite: "pdx", updatePhase: "UpdatingReplicas" } };
    await cluster.adminApi.patch(
      MYSQL_FAILOVER_GROUPS,
      { namespace, name: "orders" },
      { type: "merge", body: patch },
      { signal, subresource: "status" },
    );
    for (const { messages } of clients) {
      await until("the change is told", () => messages.length >= 2);
      assert.deepEqual(
        [messages[0]?.activeSite, messages[1]?.activeSite, messages[1]?.updatePhase],
        ["iad", "pdx", "UpdatingReplicas"],
      );
    }
    for (const { socket } of clients) socket.terminate();
  },
);

clusterTest(
  "the auxiliary views need what the generated role grants: groups by list and watch, backups by list",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "auxiliary-role");
    const { namespace } = place;
    const subject = { namespace, serviceAccount: "viewer" };
    await cluster.createServiceAccount(namespace, "viewer");
    await cluster.grant({ subject, rules: auxiliaryRules });
    const leaseName = "holdfast.shipstream.io";
    await cluster.grant({ subject, namespace, rules: rbacRules({ leaseName, events: true }) });
    const kubeconfig = await Deno.makeTempFile({ prefix: "holdfast-" });
    await Deno.writeTextFile(
      kubeconfig,
      cluster.kubeconfig({ token: await cluster.token(subject) }, namespace),
    );
    await using service = await ServiceProcess.start({
      ...place.serviceOptions({ HOLDFAST__DEPLOY_API__ENABLED: "false" }),
      kubeconfig,
    });
    await until(
      "the groups are known",
      async () => (await get(service, "auxiliary", "/status")).text.includes(`${namespace}/orders`),
    );
    const query = `namespace=${namespace}&group=orders&profile=daily`;
    assert.deepEqual(await get(service, "auxiliary", `/pitr-cutoff?${query}`), {
      status: 200,
      text: `{"namespace":"${namespace}","group":"orders","profile":"daily"}\n`,
    });
    await Deno.remove(kubeconfig);
    const user = `system:serviceaccount:${namespace}:viewer`;
    let used: string[] = [];
    // The log is written a moment later than the answer, and a watch is there once its stream has begun.
    await until("the log has it", async () => {
      const entries = (await cluster.auditLog()).filter((entry) => entry.user === user);
      assert.deepEqual(entries.filter(({ status }) => status === 403), []);
      used = entries.filter(({ group }) => group === "shipstream.io")
        .map(({ resource, verb }) => `${verb} ${resource}`);
      return new Set(used).size >= 3;
    });
    assert.deepEqual([...new Set(used)].toSorted(), [
      "list mysqlbackups",
      "list mysqlfailovergroups",
      "watch mysqlfailovergroups",
    ]);
  },
);
