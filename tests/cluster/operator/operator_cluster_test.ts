/**
 * An operator in another language beside the real service: docs/operator-integration.md is enough to write one.
 *
 * @module
 */

import assert from "node:assert/strict";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../../lib/group/types.ts";
import { LEASES } from "../../../lib/kube/resources.ts";
import { gateName } from "../../../lib/records/names.ts";
import { type DeploymentClient, grantedBody } from "../../service/deployment_client.ts";
import { setStatus } from "../../service/orders.ts";
import { Workplace } from "../../service/workplace.ts";
import type { Cluster } from "../cluster.ts";
import { hasCluster, useCluster } from "../cluster_test_support.ts";
import {
  buildOperator,
  hasGo,
  type OperatorOptions,
  OperatorProcess,
  operatorRules,
} from "./operator_process.ts";

const { signal } = new AbortController();
const options = { signal };
const clusterTest = useCluster();
const canRun = hasCluster && await hasGo();
let folder = "";

if (canRun) {
  Deno.test.beforeAll(async () => {
    folder = await Deno.makeTempDir({ prefix: "holdfast-operator-" });
    await buildOperator(`${folder}/operator`);
  });
  Deno.test.afterAll(async () => {
    await Deno.remove(folder, { recursive: true });
  });
}

interface Scene {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly client: DeploymentClient;
  readonly startOperator: (
    operation: OperatorOptions["operation"],
    step?: boolean,
  ) => OperatorProcess;
  readonly hold: (operation: string) => Promise<() => Promise<void>>;
}

/** The service and a client, and the operator's own account with the rights that the page names. */
function scene(name: string, body: (scene: Scene) => Promise<void>): void {
  if (!canRun) return;
  clusterTest(name, async (cluster) => {
    await using place = await Workplace.open(cluster, "operator");
    const { namespace } = place;
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);
    const subject = { namespace, serviceAccount: "operator" };
    await cluster.createServiceAccount(namespace, "operator");
    await cluster.grant({ subject, rules: operatorRules });
    const kubeconfig = `${folder}/${namespace}`;
    const token = await cluster.token(subject);
    await Deno.writeTextFile(kubeconfig, cluster.kubeconfig({ token }, namespace));
    const program = `${folder}/operator`;
    await body({
      cluster,
      namespace,
      client,
      startOperator: (operation, step) =>
        new OperatorProcess({ program, kubeconfig, namespace, operation, step }),
      hold: async (operation) => {
        assert.equal((await client.grant(operation, "tenant")).status, 201);
        const kind = "failover-hold";
        const held = await client.grant(operation, "tenant", { kind });
        assert.equal(held.status, 201, held.text);
        const { token } = grantedBody.parse(held.body);
        return async () => {
          assert.equal((await client.release(operation, token, { kind })).status, 204);
        };
      },
    });
  });
}

type Status = NonNullable<MysqlFailoverGroup["status"]>;

async function status({ cluster, namespace }: Scene): Promise<Status> {
  const name = { namespace, name: "orders" };
  return (await cluster.adminApi.get(MYSQL_FAILOVER_GROUPS, name, options)).status ?? {};
}

/** The status, once it is as it must become. */
async function statusWhere(scene: Scene, wanted: (now: Status) => boolean): Promise<Status> {
  const until = performance.now() + 30_000;
  for (;;) {
    const now = await status(scene);
    if (wanted(now)) return now;
    if (performance.now() > until) throw new Error(`Cannot go on with ${JSON.stringify(now)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function planned({ cluster, namespace }: Scene): Promise<unknown> {
  const name = { namespace, name: gateName("orders") };
  const { metadata } = await cluster.adminApi.get(LEASES, name, options);
  const text = metadata.annotations?.["bloodraven.shipstream.io/deployment-gate"] ?? "{}";
  return JSON.parse(text).planned;
}

scene(
  "item 41: an ordered update of a Go operator waits for a hold, and refuses grants from its admission on",
  async (on) => {
    const release = await on.hold("op-1");
    await using operator = on.startOperator("OrderedUpdate", true);
    assert.equal((await operator.says("deferred")).detail, "op-1");
    assert.equal((await status(on)).updatePhase ?? "", "");
    assert.equal(operator.states.includes("admitted"), false);

    await release();
    await operator.says("admitted");
    const refused = await on.client.grant("op-1", "tenant", { kind: "failover-hold" });
    assert.deepEqual([refused.status, refused.body.reason], [423, "OrderedUpdate"]);
    const observed = await on.client.observe();
    assert.deepEqual([observed.status, observed.body.reason], [423, "OrderedUpdate"]);

    await operator.goOn();
    await operator.says("cleared");
    assert.equal((await status(on)).updatePhase, "UpdateReplica");
    assert.equal(await planned(on), null);
    const unstable = await on.client.grant("op-1", "tenant", { kind: "failover-hold" });
    assert.deepEqual([unstable.status, unstable.body.reason], [423, "OrderedUpdate"]);
    assert.equal(await operator.ended(), 0);
  },
);

scene(
  "item 40: a restore of a Go operator waits in Preflight with its message, and its Fencing ends the leases",
  async (on) => {
    const release = await on.hold("op-1");
    await using operator = on.startOperator("RestoreInPlace");
    await operator.says("deferred");
    // It says so first, and then shows it in status.
    const { restoreInPlace } = await statusWhere(
      on,
      (now) => now.restoreInPlace?.phase === "Preflight",
    );
    assert.match(
      restoreInPlace?.message ?? "",
      /^DeploymentHold: .*op-1 of tenant .*\d{4}-\d\d-\d\dT/,
    );

    await release();
    await operator.says("cleared");
    assert.equal((await status(on)).restoreInPlace?.phase, "Fencing");
    assert.equal((await status(on)).topologyGeneration, 8);
    const observed = await on.client.observe();
    assert.deepEqual([observed.body.topologyGeneration, observed.body.leases], [8, []]);
    assert.equal(await operator.ended(), 0);
  },
);

scene(
  "an operator that died between its admission and its phase is withdrawn by its next process",
  async (on) => {
    await using first = on.startOperator("OrderedUpdate", true);
    await first.says("admitted");
    first.kill();
    await first.ended();
    assert.notEqual(await planned(on), null);

    await using second = on.startOperator("OrderedUpdate", true);
    await second.says("withdrawn");
    await second.says("admitted");
    await second.goOn();
    await second.says("phase");
    assert.equal(await second.ended(), 0);
    assert.equal((await status(on)).updatePhase, "UpdateReplica");
  },
);

scene(
  "an admission that was withdrawn while its operator was frozen leads to no phase",
  async (on) => {
    await using operator = on.startOperator("OrderedUpdate", true);
    await operator.says("admitted");
    // The leader of the service takes it back after 10 s.
    const until = performance.now() + 30_000;
    while (await planned(on) !== null) {
      if (performance.now() > until) throw new Error("Cannot go on as nobody withdraws");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const release = await on.hold("op-1");
    await operator.goOn();
    await operator.says("given up");
    assert.equal(await operator.ended(), 0);
    assert.equal((await status(on)).updatePhase ?? "", "");
    await release();
  },
);

scene("an operator waits while another planned operation is under way", async (on) => {
  const name = { namespace: on.namespace, name: "orders" };
  const failover = { plannedFailover: { phase: "Deferred", target: "pdx" } };
  await setStatus(on.cluster.adminApi, name, failover, signal);
  await using operator = on.startOperator("OrderedUpdate");
  assert.equal((await operator.says("refused")).detail, "ConcurrentOperation");
  await setStatus(on.cluster.adminApi, name, { plannedFailover: null }, signal);
  await operator.says("cleared");
});
