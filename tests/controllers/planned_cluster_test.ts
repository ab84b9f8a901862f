/**
 * The planned-failover annotation, served by the program as a process on a real API server.
 *
 * @module
 */

import assert from "node:assert/strict";
import { MYSQL_FAILOVER_GROUPS, PLANNED_FAILOVER_ANNOTATION } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { DEPLOYMENT_GATE_ANNOTATION, gateName } from "../../lib/records/names.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { grantedBody } from "../service/deployment_client.ts";
import { setStatus } from "../service/orders.ts";
import { Workplace } from "../service/workplace.ts";

const { signal } = new AbortController();
const options = { signal };
const clusterTest = useCluster();
const enabled = { HOLDFAST__PLANNED_OPERATIONS__ENABLED: "true" };
const hold = { kind: "failover-hold", ttlSeconds: 5 };

/** A place in which the service may write the status of groups, as docs/operations.md says. */
async function openPlace(cluster: Cluster): Promise<Workplace> {
  const place = await Workplace.open(cluster, "planned");
  await cluster.grant({
    subject: { namespace: place.namespace, serviceAccount: "holdfast" },
    rules: [{
      apiGroups: ["shipstream.io"],
      resources: ["mysqlfailovergroups/status"],
      verbs: ["patch"],
    }],
  });
  return place;
}

async function group({ cluster, namespace }: Workplace) {
  return await cluster.adminApi.get(MYSQL_FAILOVER_GROUPS, { namespace, name: "orders" }, options);
}

async function ask({ cluster, namespace }: Workplace, value: string): Promise<void> {
  const annotations = { [PLANNED_FAILOVER_ANNOTATION]: value };
  await cluster.adminApi.patch(MYSQL_FAILOVER_GROUPS, { namespace, name: "orders" }, {
    type: "merge",
    body: { metadata: { annotations } },
  }, options);
}

async function until<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const deadlineMs = performance.now() + 30_000;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (performance.now() > deadlineMs) throw new Error(`Cannot go on as it did not come: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function untilPhase(place: Workplace, phase: string) {
  return await until(`phase ${phase}`, async () => {
    const found = (await group(place)).status?.plannedFailover;
    return found?.phase === phase ? found : null;
  });
}

/** Waits until neither the request nor the admission is there any more: both go after the phase is written. */
async function untilHandedOver(place: Workplace): Promise<void> {
  const { cluster, namespace } = place;
  await until("the end of the hand-over", async () => {
    const gate = { namespace, name: gateName("orders") };
    const { annotations } = (await cluster.adminApi.get(LEASES, gate, options)).metadata;
    const { planned } = JSON.parse(annotations?.[DEPLOYMENT_GATE_ANNOTATION] ?? "{}");
    const asked = (await group(place)).metadata.annotations?.[PLANNED_FAILOVER_ANNOTATION];
    return planned === null && asked === undefined ? true : null;
  });
}

clusterTest(
  "items 67 and 68: a planned failover waits for a hold, goes on when its dead owner's time is over, and completes",
  async (cluster) => {
    await using place = await openPlace(cluster);
    const service = await place.startService(enabled);
    const client = await place.client(service);
    await place.untilLeading(client);
    assert.equal((await client.grant("op-1", "tenant")).status, 201);
    const held = await client.grant("op-1", "tenant", hold);
    const { expiresAt } = grantedBody.parse(held.body);
    await ask(place, "pdx:maxLagWait=90s");

    const deferred = await untilPhase(place, "Deferred");
    assert.equal(deferred.reason, "DeploymentHold");
    assert.equal(deferred.retryAfter, `${expiresAt.slice(0, 19)}Z`);
    const refused = await client.grant("op-2", "billing");
    assert.deepEqual([refused.status, refused.body.reason], [423, "PlannedFailover"]);

    const pending = await untilPhase(place, "Pending");
    assert(Date.now() >= Date.parse(expiresAt), "it began before the hold was over");
    assert.deepEqual([pending.maxLagWait, pending.startTime], ["1m30s", deferred.startTime]);
    await untilHandedOver(place);

    // The operator carries it out.
    await setStatus(cluster.adminApi, { namespace: place.namespace, name: "orders" }, {
      activeSite: "pdx",
      topologyGeneration: 8,
      sites: [{ name: "iad", state: "read-only", replicating: true }, {
        name: "pdx",
        state: "writable",
      }],
      plannedFailover: { phase: "Succeeded" },
    }, signal);
    const after = await client.grant("op-2", "billing");
    assert.deepEqual([after.status, after.body.topologyGeneration], [201, 8]);
  },
);

clusterTest(
  "item 38: a renewal moves the end of the deferral on, and a release ends it",
  async (cluster) => {
    await using place = await openPlace(cluster);
    const service = await place.startService(enabled);
    const client = await place.client(service);
    await place.untilLeading(client);
    assert.equal((await client.grant("op-1", "tenant")).status, 201);
    const held = await client.grant("op-1", "tenant", { ...hold, ttlSeconds: 60 });
    const { token } = grantedBody.parse(held.body);
    await ask(place, "pdx");
    const { retryAfter } = await untilPhase(place, "Deferred");
    const renewed = await client.renew("op-1", token, { ...hold, ttlSeconds: 120 });
    assert.equal(renewed.status, 200, renewed.text);
    await until("a later end", async () => {
      const now = (await untilPhase(place, "Deferred")).retryAfter;
      return now === retryAfter ? null : true;
    });
    assert.equal((await client.release("op-1", token, hold)).status, 204);
    await untilPhase(place, "Pending");
  },
);
