import assert from "node:assert/strict";
import { fromEnvironment } from "../../handlers/commands/client.ts";
import type { HoldfastClient } from "../../lib/client/client.ts";
import { AuthorityLostError, HeldError, NotAuthorizedError } from "../../lib/client/errors.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { setStatus } from "../service/orders.ts";
import { callerOf } from "./real_caller.ts";

const { signal } = new AbortController();

clusterTest(
  "a client of the environment takes, renews and releases over verified TLS",
  async (cluster) => {
    await using caller = await callerOf(cluster, "sdk-main");
    const client = await fromEnvironment(caller.settings);
    const view = await client.observe();
    assert.deepEqual([view.group, view.stable], ["orders", true]);

    const lease = await client.acquire({ operationId: "op-1", ttlSeconds: 8 });
    assert.ok(lease.fence !== null && lease.fence > 0n);
    const before = lease.deadline.deadlineMs;
    await lease.renewNow();
    assert.ok(lease.deadline.deadlineMs > before);
    const other = await fromEnvironment({ ...caller.settings, instance: "billing" });
    await assert.rejects(other.acquire({ operationId: "op-2" }), (error) => {
      assert.ok(error instanceof HeldError);
      assert.equal(error.holder.operationId, "op-1");
      return true;
    });
    assert.equal(await lease.release(), true);
    const result = await other.deploy({ operationId: "op-2" }, (authority) => {
      authority.enteringDdl();
      return authority.fence;
    });
    assert.ok(result !== null && result > lease.fence);
    assert.deepEqual((await client.observe()).leases, []);
  },
);

clusterTest(
  "an emergency failover ends the work, and its operation stays refused",
  async (cluster) => {
    await using caller = await callerOf(cluster, "sdk-failover");
    const client: HoldfastClient = await fromEnvironment(caller.settings);
    const name = { namespace: caller.namespace, name: "orders" };
    const working = client.deploy({ operationId: "op-1", ttlSeconds: 8 }, async (authority) => {
      await setStatus(cluster.adminApi, name, { activeSite: "pdx", topologyGeneration: 8 }, signal);
      await new Promise<void>((done) => authority.signal.addEventListener("abort", () => done()));
    });
    await assert.rejects(working, (error) => {
      assert.ok(error instanceof AuthorityLostError);
      assert.equal(error.reason, "topology_changed");
      return true;
    });
  },
);

clusterTest(
  "a stranger's token gets nothing, and the file is read for each request",
  async (cluster) => {
    await using caller = await callerOf(cluster, "sdk-strangers");
    await caller.writeToken("stranger");
    const client = await fromEnvironment(caller.settings);
    await assert.rejects(client.observe(), NotAuthorizedError);
    await caller.writeToken("deployer");
    assert.equal((await client.observe()).group, "orders");
  },
);
