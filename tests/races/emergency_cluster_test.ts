/** Emergency failover needs nobody's leave: the operator writes, whatever becomes of the service. */

import assert from "node:assert/strict";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { gateName, holdName, slotName } from "../../lib/records/names.ts";
import { parseRecord } from "../../lib/records/record.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { member } from "../cluster/raw_client.ts";
import type { Answer } from "../service/deployment_client.ts";
import { setStatus } from "../service/orders.ts";
import { Workplace } from "../service/workplace.ts";

const { signal } = new AbortController();
const ANNOTATION = "bloodraven.shipstream.io/deployment-lease";
const GATE_ANNOTATION = "bloodraven.shipstream.io/deployment-gate";

/** A write to an API server on a busy machine; a wait for any part of ours would take seconds. */
const AT_ONCE_MS = 1_000;

/** The database operator, with the rights of its own role and no more. */
async function operatorOf(cluster: Cluster, namespace: string) {
  const subject = { namespace, serviceAccount: "operator" };
  await cluster.createServiceAccount(namespace, subject.serviceAccount);
  await cluster.grant({
    subject,
    namespace,
    rules: [
      { apiGroups: ["shipstream.io"], resources: ["mysqlfailovergroups"], verbs: ["get"] },
      { apiGroups: ["shipstream.io"], resources: ["mysqlfailovergroups/status"], verbs: ["patch"] },
    ],
  });
  return cluster.caller({ token: await cluster.token(subject) }).api();
}

async function storedRecord({ cluster, namespace }: Workplace, name: string) {
  const { metadata } = await cluster.adminApi.get(LEASES, { namespace, name }, { signal });
  return parseRecord(metadata.annotations?.[ANNOTATION] ?? "");
}

/** Leaves an admission in the gate, of a planner that is frozen too. */
async function admit({ cluster, namespace }: Workplace): Promise<void> {
  const name = { namespace, name: gateName("orders") };
  const gate = await cluster.adminApi.get(LEASES, name, { signal });
  const planned = {
    operation: "PlannedFailover",
    id: crypto.randomUUID(),
    by: "frozen",
    since: new Date().toISOString(),
    state: "admitted",
  };
  const record = { ...JSON.parse(gate.metadata.annotations?.[GATE_ANNOTATION] ?? "{}"), planned };
  await cluster.adminApi.patch(LEASES, name, {
    type: "merge",
    body: { metadata: { annotations: { [GATE_ANNOTATION]: JSON.stringify(record) } } },
  }, { signal });
}

async function failOver(place: Workplace, operator: Awaited<ReturnType<typeof operatorOf>>) {
  const name = { namespace: place.namespace, name: "orders" };
  const group = await operator.get(MYSQL_FAILOVER_GROUPS, name, { signal });
  const [from, to] = group.status?.activeSite === "iad" ? ["iad", "pdx"] : ["pdx", "iad"];
  const topologyGeneration = (group.status?.topologyGeneration ?? 0) + 1;
  const startedMs = performance.now();
  await setStatus(operator, name, {
    activeSite: to,
    topologyGeneration,
    sites: [
      { name: to, state: "writable", replicating: false },
      { name: from, state: "read-only", replicating: true },
    ],
  }, signal);
  const tookMs = performance.now() - startedMs;
  assert.ok(tookMs < AT_ONCE_MS, `the operator's write took ${tookMs} ms`);
  return topologyGeneration;
}

/** Asks again while the service finds out whether it still leads. */
async function served(ask: () => Promise<Answer>): Promise<Answer> {
  const untilMs = performance.now() + 60_000;
  for (;;) {
    const answer = await ask();
    if (answer.body.error !== "not_leader") return answer;
    assert.ok(performance.now() < untilMs, "nobody leads");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

clusterTest(
  "a service that is frozen with leases and an admission delays no failover, and extends nothing when it thaws",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "emergency");
    const operator = await operatorOf(cluster, place.namespace);
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);

    const cases = [[false, false], [true, false], [true, false], [true, true]] as const;
    for (const [withRequestUnderWay, withAdmission] of cases) {
      const operation = crypto.randomUUID();
      const names = [slotName("orders"), holdName("orders", operation)];
      const migration = await client.grant(operation, "tenant", { ttlSeconds: 120 });
      assert.equal(migration.status, 201, migration.text);
      const hold = { kind: "failover-hold", ttlSeconds: 120 };
      const held = await client.grant(operation, "tenant", hold);
      assert.equal(held.status, 201, held.text);

      const renewal = () =>
        client.renew(operation, String(migration.body.token), { ttlSeconds: 120 });
      const underWay = withRequestUnderWay ? renewal() : null;
      if (underWay !== null) {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
      }
      service.kill("SIGSTOP");
      if (withAdmission) await admit(place);
      const frozen = await Promise.all(names.map((name) => storedRecord(place, name)));
      const generation = await failOver(place, operator);
      service.kill("SIGCONT");

      const revoked = {
        error: "revoked",
        reason: "topology_changed",
        topologyGeneration: generation,
      };
      const early = await underWay;
      // A renewal that was under way may have been confirmed before the freeze, and at no time after the failover.
      if (early !== null && early.status !== 200) {
        assert.ok(early.status === 503 || early.body.error === "revoked", early.text);
      }
      const answer = await served(renewal);
      assert.deepEqual([answer.status, answer.body], [409, revoked]);
      const onHold = await served(() => client.renew(operation, String(held.body.token), hold));
      assert.deepEqual([onHold.status, onHold.body], [409, revoked]);
      for (const [index, name] of names.entries()) {
        const { expiresAt, state, reason } = await storedRecord(place, name);
        assert.deepEqual([state, reason], ["revoked", "topology_changed"]);
        // The request that was under way may have had its write on the wire when the process was stopped.
        if (!withRequestUnderWay) assert.equal(expiresAt, frozen[index]?.expiresAt);
      }
    }
  },
);

clusterTest(
  "nothing of ours stands in the way of a group: no webhook, no finalizer, no blocking owner",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "no-webhook");
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);
    const granted = await client.grant("op-1", "tenant");
    assert.equal(granted.status, 201, granted.text);
    assert.equal((await client.grant("op-1", "tenant", { kind: "failover-hold" })).status, 201);

    for (const kind of ["validating", "mutating"]) {
      const path = `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations`;
      const { body } = await cluster.admin("GET", path);
      assert.deepEqual(member(body, "items"), []);
    }
    const { namespace } = place;
    const name = { namespace, name: "orders" };
    const group = await cluster.adminApi.get(MYSQL_FAILOVER_GROUPS, name, { signal });
    assert.equal(group.metadata.finalizers, undefined);
    const ours = [gateName("orders"), slotName("orders"), holdName("orders", "op-1")];
    for (const name of ours) {
      const { metadata } = await cluster.adminApi.get(LEASES, { namespace, name }, { signal });
      assert.equal(metadata.finalizers, undefined);
      for (const owner of metadata.ownerReferences ?? []) {
        assert.notEqual(owner.blockOwnerDeletion, true);
      }
    }
    // And so it can be deleted while leases are held.
    await cluster.adminApi.delete(MYSQL_FAILOVER_GROUPS, name, group.metadata, { signal });
    assert.equal((await client.renew("op-1", String(granted.body.token))).status, 404);
  },
);
