/** deploy-api 16.5: what a real API server stores, and what it refuses. */

import assert from "node:assert/strict";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { setStatus } from "../service/orders.ts";
import { clientOf, openRealGroup, type RealGroup, serviceOver } from "./real_storage.ts";
import { readAsReference, referenceHash, referenceLease, referenceName } from "./reference_form.ts";
import { granted, HOLD, mustBe, mustBeRevoked, REVOKE } from "./support.ts";

const { signal } = new AbortController();
const DAY_MS = 24 * 3600 * 1000;
const GROUP_PATH = "mysqlfailovergroups";

const slot = referenceName("orders", "migration");

/** Reads a Lease as the reference would, with its projection in `spec`. */
async function stored({ cluster, namespace }: RealGroup, name = slot) {
  const group = await cluster.adminApi.get(MYSQL_FAILOVER_GROUPS, { namespace, name: "orders" }, {
    signal,
  });
  const lease = await cluster.adminApi.get(LEASES, { namespace, name }, { signal });
  const record = readAsReference(lease, { name: "orders", uid: group.metadata.uid });
  return { record, duration: lease.spec?.leaseDurationSeconds };
}

async function annotate({ cluster, namespace }: RealGroup, value: string | null): Promise<void> {
  await cluster.adminApi.patch(MYSQL_FAILOVER_GROUPS, { namespace, name: "orders" }, {
    type: "merge",
    body: { metadata: { annotations: { [REVOKE]: value } } },
  }, { signal });
}

/** Each way in which a lease ends, long after its time is over where that is possible. */
const ends = {
  async expired(group: RealGroup, client: Awaited<ReturnType<typeof clientOf>>) {
    await group.clock.advance(31_000);
    mustBe(await client.observe(), 200);
  },
  async released(_group: RealGroup, client: Awaited<ReturnType<typeof clientOf>>, token: string) {
    mustBe(await client.release("op-1", token), 204);
  },
  async topology_changed(group: RealGroup, client: Awaited<ReturnType<typeof clientOf>>) {
    const { cluster, namespace } = group;
    const name = { namespace, name: "orders" };
    await setStatus(cluster.adminApi, name, { topologyGeneration: 8 }, signal);
    mustBe(await client.observe(), 200);
  },
  async operator_revoked(group: RealGroup, client: Awaited<ReturnType<typeof clientOf>>) {
    await annotate(group, "true");
    mustBe(await client.observe(), 200);
  },
};

for (const [how, end] of Object.entries(ends)) {
  clusterTest(
    `deploy-api 16 item 61: a record that is ${how} persists with a duration of 1`,
    async (cluster) => {
      const group = await openRealGroup(cluster, "ends");
      using service = serviceOver(group);
      const client = await clientOf(service, group);
      const token = await granted(client);
      const { record: before } = await stored(group);
      // The last second of its time: the projection is at its floor.
      await group.clock.advance(29_500);
      await end(group, client, token);
      const { record, duration } = await stored(group);
      const { state, reason, ...rest } = record;
      const { state: _, ...was } = before;
      assert.deepEqual(rest, was, "neither expiry nor generation changed");
      assert.equal(duration, 1);
      assert.equal(reason ?? state, how);
    },
  );
}

clusterTest(
  "deploy-api 16 item 61: a tombstone that is written a day later persists and still fences",
  async (cluster) => {
    const group = await openRealGroup(cluster, "tombstone");
    using service = serviceOver(group);
    const client = await clientOf(service, group);
    const token = await granted(client);
    await annotate(group, "true");
    mustBeRevoked(await client.renew("op-1", token), "operator_revoked");
    await annotate(group, null);
    await group.clock.advance(DAY_MS);

    const next = await granted(client, "op-2");
    const archived = await stored(group, referenceName("orders", "migration", "op-1"));
    assert.deepEqual([archived.record.state, archived.duration], ["revoked", 1]);
    mustBe(await client.release("op-2", next), 204);
    mustBeRevoked(await client.renew("op-1", token), "operator_revoked");
    mustBeRevoked(await client.grant("op-1", "tenant"), "operator_revoked");
  },
);

clusterTest(
  "a lease of the reference in real storage is honoured, adopted, renewed and released",
  async (cluster) => {
    const group = await openRealGroup(cluster, "drop-in");
    const { namespace } = group;
    const { metadata } = await cluster.adminApi.get(MYSQL_FAILOVER_GROUPS, {
      namespace,
      name: "orders",
    }, { signal });
    const theirs = {
      kind: "migration",
      operationId: "theirs",
      instance: "tenant",
      expiresAt: new Date(group.clock.wall() + 20_000).toISOString().replace("Z", "123457Z"),
      topologyGeneration: 7,
      namespace,
      serviceAccount: "deployer",
      tokenHash: referenceHash("secret"),
      createdAt: "2026-01-01T00:00:00Z",
      state: "active",
    } as const;
    const renewTime = new Date(group.clock.wall()).toISOString().replace("Z", "000Z");
    for (const kind of ["migration", "failover-hold"] as const) {
      const place = {
        namespace,
        group: "orders",
        uid: metadata.uid,
        renewTime,
        leaseDurationSeconds: 20,
      };
      await cluster.adminApi.create(LEASES, referenceLease({ ...theirs, kind }, place), { signal });
    }
    using service = serviceOver(group);
    const client = await clientOf(service, group);
    assert.equal(Array(mustBe(await client.observe(), 200).body.leases).flat().length, 2);
    mustBe(await client.grant("op-2", "tenant"), 409, "held");
    for (const kind of ["migration", "failover-hold"] as const) {
      const name = referenceName("orders", kind, kind === "migration" ? undefined : "theirs");
      mustBe(await client.renew("theirs", "secret", { kind, ttlSeconds: 60 }), 200);
      assert.equal((await stored(group, name)).record.state, "active");
      mustBe(await client.release("theirs", "secret", { kind }), 204);
      assert.equal((await stored(group, name)).record.state, "released");
    }
    mustBe(await client.grant("op-2", "tenant"), 201);
  },
);

clusterTest("a hold that ended leaves the list that a planner reads", async (cluster) => {
  const group = await openRealGroup(cluster, "planner");
  using service = serviceOver(group);
  const client = await clientOf(service, group);
  await granted(client);
  await granted(client, "op-1", HOLD);
  const active = async () => {
    const { items } = await cluster.adminApi.list(LEASES, {
      namespace: group.namespace,
      labelSelector: "bloodraven.shipstream.io/deployment-kind=failover-hold," +
        "bloodraven.shipstream.io/deployment-state=active",
      signal,
    });
    return items.length;
  };
  assert.equal(await active(), 1);
  await group.clock.advance(31_000);
  mustBe(await client.observe(), 200);
  assert.equal(await active(), 0);
});

clusterTest(
  "deploy-api 16 item 63: a definition refuses deployment clients that are not whole",
  async (cluster) => {
    const { namespace } = await openRealGroup(cluster, "clients");
    const good = { namespace: "app-ns", serviceAccount: "deployer" };
    const path = `/apis/shipstream.io/v1alpha1/namespaces/${namespace}/mysqldatabases`;
    const rows: readonly (readonly [string, unknown[], number])[] = [
      ["a client that is whole", [good], 201],
      ["no namespace", [{ serviceAccount: "deployer" }], 422],
      ["no service account", [{ namespace: "app-ns" }], 422],
      ["an upper-case namespace", [{ ...good, namespace: "App" }], 422],
      ["an upper-case service account", [{ ...good, serviceAccount: "Deployer" }], 422],
      ["a namespace with a dot", [{ ...good, namespace: "app.ns" }], 422],
      ["an empty namespace", [{ ...good, namespace: "" }], 422],
      ["a namespace twice", [good, { ...good, serviceAccount: "other" }], 422],
    ];
    for (const [index, [what, deploymentClients, status]] of rows.entries()) {
      const answer = await cluster.admin("POST", path, {
        body: {
          apiVersion: "shipstream.io/v1alpha1",
          kind: "MysqlDatabase",
          metadata: { name: `client-${index}`, namespace },
          spec: { groupRef: { name: "orders" }, deploymentClients },
        },
      });
      assert.equal(answer.status, status, `${what}: ${JSON.stringify(answer.body)}`);
    }
  },
);

clusterTest(
  "deploy-api 16 item 64: a generation is at least 0, may be 2^40, and lives in the status alone",
  async (cluster) => {
    const group = await openRealGroup(cluster, "generation");
    const { namespace } = group;
    const path = `/apis/shipstream.io/v1alpha1/namespaces/${namespace}/${GROUP_PATH}/orders`;
    const patch = async (to: string, body: unknown) =>
      await cluster.admin("PATCH", to, { body, contentType: "application/merge-patch+json" });
    assert.equal(
      (await patch(`${path}/status`, { status: { topologyGeneration: -1 } })).status,
      422,
    );
    assert.equal((await patch(path, { status: { topologyGeneration: 9 } })).status, 200);
    const name = { namespace, name: "orders" };
    const unchanged = await cluster.adminApi.get(MYSQL_FAILOVER_GROUPS, name, { signal });
    assert.equal(unchanged.status?.topologyGeneration, 7);

    await setStatus(cluster.adminApi, name, { topologyGeneration: 2 ** 40 }, signal);
    using service = serviceOver(group);
    const client = await clientOf(service, group);
    const token = await granted(client);
    const renewed = mustBe(await client.renew("op-1", token), 200);
    assert.equal(renewed.body.topologyGeneration, 2 ** 40);
    assert.equal((await stored(group)).record.topologyGeneration, 2 ** 40);
  },
);
