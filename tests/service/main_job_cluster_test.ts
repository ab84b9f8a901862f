import assert from "node:assert/strict";
import { MYSQL_DATABASES, MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { type Answer, grantedBody } from "./deployment_client.ts";
import { Workplace } from "./workplace.ts";

const { signal } = new AbortController();

clusterTest(
  "the main job: grant, refuse, renew, observe, release, grant to the next",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "main-job");
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);

    const granted = await client.grant("op-1", "tenant");
    assert.equal(granted.status, 201, granted.text);
    const { token, topologyGeneration } = grantedBody.parse(granted.body);
    assert.equal(topologyGeneration, 7);
    assert.match(granted.headers.get("X-Lease-Fence") ?? "", /^\d+$/);

    const held = await client.grant("op-2", "billing");
    assert.equal(held.status, 409);
    assert.deepEqual(held.body, {
      error: "held",
      holder: { expiresAt: granted.body.expiresAt, instance: "tenant", operationId: "op-1" },
    });
    assert.ok(Number(held.headers.get("Retry-After")) >= 1);

    const renewed = await client.renew("op-1", token, { ttlSeconds: 60 });
    assert.equal(renewed.status, 200, renewed.text);
    assert.deepEqual(Object.keys(renewed.body), ["expiresAt", "topologyGeneration"]);
    const endOf = ({ body }: Answer) => Date.parse(String(body.expiresAt));
    assert.ok(endOf(renewed) > endOf(granted));

    const seen = await client.observe();
    assert.equal(seen.status, 200, seen.text);
    assert.equal(seen.body.stable, true);
    assert.deepEqual(seen.body.leases, [{
      kind: "migration",
      operationId: "op-1",
      instance: "tenant",
      expiresAt: renewed.body.expiresAt,
      topologyGeneration: 7,
    }]);

    assert.equal((await client.release("op-1", token)).status, 204);
    const next = await client.grant("op-2", "billing");
    assert.equal(next.status, 201, next.text);
    assert.ok(
      BigInt(next.headers.get("X-Lease-Fence") ?? 0) >
        BigInt(granted.headers.get("X-Lease-Fence") ?? 0),
    );
  },
);

clusterTest("a token of another audience is 401, and a stranger is 403", async (cluster) => {
  await using place = await Workplace.open(cluster, "strangers");
  const service = await place.startService();
  const client = await place.client(service);
  await place.untilLeading(client);

  const elsewhere = await place.client(service, { audience: "somewhere-else" });
  const unauthorized = await elsewhere.observe();
  assert.deepEqual([unauthorized.status, unauthorized.body], [401, { error: "unauthorized" }]);

  const stranger = await place.client(service, { serviceAccount: "stranger" });
  for (const answer of [await stranger.observe(), await stranger.grant("op", "tenant")]) {
    assert.deepEqual([answer.status, answer.body], [403, { error: "forbidden" }]);
  }
  const line = await service.logged((found) => found.msg === "deploy api" && found.status === 403);
  assert.equal(line.namespace, "");
});

clusterTest("a declaration that is removed counts on the very next request", async (cluster) => {
  await using place = await Workplace.open(cluster, "undeclared");
  const { namespace } = place;
  const service = await place.startService();
  const client = await place.client(service);
  await place.untilLeading(client);
  const { token } = grantedBody.parse((await client.grant("op-1", "tenant")).body);

  for (const name of ["tenant", "billing"]) {
    await cluster.adminApi.patch(MYSQL_DATABASES, { namespace, name }, {
      type: "merge",
      body: { spec: { deploymentClients: [] } },
    }, { signal });
  }
  const renewed = await client.renew("op-1", token);
  assert.deepEqual([renewed.status, renewed.body], [403, { error: "forbidden" }]);
});

clusterTest(
  "members of a group and a database that we do not know survive all our writes",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "unknown");
    const { namespace } = place;
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);
    const granted = await client.grant("op-1", "tenant");
    const { token } = grantedBody.parse(granted.body);
    await client.renew("op-1", token);
    await client.release("op-1", token);

    const group = await cluster.adminApi.get(MYSQL_FAILOVER_GROUPS, { namespace, name: "orders" }, {
      signal,
    });
    const database = await cluster.adminApi.get(MYSQL_DATABASES, { namespace, name: "tenant" }, {
      signal,
    });
    for (const object of [group, database]) {
      assert.deepEqual(object.spec?.memberOfANewerOperator, { kept: true });
    }
  },
);

clusterTest(
  "a service that is killed while a lease is held comes back to it, and the same token renews it",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "killed");
    const quick = {
      HOLDFAST__KUBERNETES__LEADER_ELECTION__LEASE_DURATION_SECS: "3",
      HOLDFAST__KUBERNETES__LEADER_ELECTION__RENEW_DEADLINE_SECS: "2",
      HOLDFAST__KUBERNETES__LEADER_ELECTION__RETRY_PERIOD_SECS: "1",
    };
    const first = await place.startService(quick);
    const before = await place.client(first);
    await place.untilLeading(before);
    const { token } = grantedBody.parse((await before.grant("op-1", "tenant")).body);
    first.kill("SIGKILL");
    await first.ended();

    const second = await place.startService(quick);
    const after = await place.client(second);
    await place.untilLeading(after);
    const renewed = await after.renew("op-1", token);
    assert.equal(renewed.status, 200, renewed.text);
    const held = await after.grant("op-2", "billing");
    assert.equal(held.body.error, "held");
  },
);

clusterTest(
  "a service that is asked to stop gives up the lead and ends with 0",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "stopped");
    const first = await place.startService();
    const client = await place.client(first);
    await place.untilLeading(client);
    first.kill("SIGTERM");
    assert.equal(await first.ended(), 0);
    // The election Lease is free: the next one need not wait for it to run out.
    const lease = await cluster.adminApi.get(LEASES, {
      namespace: place.namespace,
      name: "holdfast.shipstream.io",
    }, { signal });
    assert.equal(lease.spec?.holderIdentity ?? "", "");
  },
);
