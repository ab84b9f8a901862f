/**
 * Items of deploy-api 16 that are about the reference's own database operations. We own no database: each is restated for
 * what we have in its place, the gate and the controllers of the leader. And the differences that show in the leader alone.
 */

import assert from "node:assert/strict";
import { runLeaderTasks } from "../../lib/election/mod.ts";
import { clearTopologyPending, markTopologyPending } from "../../lib/group/pending.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { gateName, holdName, slotName } from "../../lib/records/names.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { PlannedRig } from "../controllers/planned_rig.ts";
import { Rig } from "../controllers/rig.ts";
import { inWorld, TIMING } from "../election/world.ts";
import { InProcessService, NAMESPACE, seedCluster, seedGroup } from "../service/in_process.ts";
import { setStatus as writeStatus } from "../service/orders.ts";
import { Between } from "./between.ts";
import {
  granted,
  HOLD,
  mustBe,
  mustBeRevoked,
  mustBeUnstable,
  setStatus,
  storedGroup,
  storedLease,
  storedRecord,
} from "./support.ts";

const { signal } = new AbortController();
const orders = { namespace: NAMESPACE, name: "orders" };
const STATUS_WRITE = /^PATCH .*mysqlfailovergroups\/orders\/status$/;

const failedOver = {
  activeSite: "pdx",
  sites: [
    { name: "iad", state: "read-only", replicating: true },
    { name: "pdx", state: "writable", replicating: false },
  ],
};

function generationOf(service: InProcessService): number | null | undefined {
  return storedLease(service, gateName("orders"))?.spec?.leaseTransitions;
}

Deno.test("deploy-api 16 item 35, restated: an operator's failover goes through while every call to a lease hangs", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  const hangs = service.fake.faults.add({ resource: "leases", fault: { type: "hang" } });
  const waiting = client.grant("op-2", "tenant");
  await service.clock.advance(0);
  // The group's turn is taken by that grant. The operator's write needs no turn.
  const status = { ...failedOver, topologyGeneration: 8 };
  await writeStatus(service.api, orders, status, signal);
  assert.equal(storedGroup(service).status?.activeSite, "pdx");
  await service.clock.advance(10_000);
  mustBe(await waiting, 503, "unavailable");
  hangs.remove();
  mustBeRevoked(await client.renew("op-1", token), "topology_changed", 8);
});

Deno.test("deploy-api 16 item 39, restated: the generation comes from status, a restart keeps it, and a failover meanwhile raises it", async () => {
  using first = new InProcessService();
  const { fake, clock } = first;
  const token = await granted(first.client());
  assert.equal(generationOf(first), 7);
  using second = new InProcessService({ fake, clock, seed: 2 });
  mustBe(await second.client().renew("op-1", token), 200);
  assert.equal(generationOf(second), 7);
  // While nobody runs, the primary moves, and status does not count it.
  setStatus(second, failedOver);
  using third = new InProcessService({ fake, clock, seed: 3 });
  mustBeRevoked(await third.client().renew("op-1", token), "topology_changed", 8);
  assert.equal(generationOf(third), 8);
});

Deno.test("deploy-api 16 items 42 and 56, restated: our status write keeps a newer phase, a higher generation and a finished update", async () => {
  const between = new Between();
  await using rig = new PlannedRig({ send: between.wrap });
  await rig.start();
  await rig.hold();
  let written = 0;
  between.before(STATUS_WRITE, () => {
    written++;
    // The write that is on its way was decided from a status that is over now.
    setStatus(rig.service, {
      topologyGeneration: 9,
      updatePhase: "",
      restoreInPlace: { phase: "Succeeded", message: "newer" },
    });
  });
  await rig.operate({ restoreInPlace: { phase: "Failed", message: "older" } });
  await rig.ask("pdx");
  assert.equal(written, 1);
  // It was decided again: the higher generation has ended the hold that it would have waited for.
  assert.equal(rig.planned.phase, "Pending");
  const { status } = storedGroup(rig.service);
  assert.equal(status?.topologyGeneration, 9);
  assert.equal(status?.updatePhase, "");
  assert.deepEqual(status?.restoreInPlace, { phase: "Succeeded", message: "newer" });
});

Deno.test("deploy-api 16 item 42, restated: an older mark of pending topology cannot clear a newer one", async () => {
  using service = new InProcessService();
  const client = service.client();
  mustBe(await client.observe(), 200);
  const { api, clock } = service;
  const [older, newer] = ["older", "newer"].map((by) => ({ api, clock, group: orders, by }));
  assert.ok(older !== undefined && newer !== undefined);
  for (const mark of [older, newer]) await markTopologyPending(mark, { signal });
  await clearTopologyPending(older, { signal });
  mustBeUnstable(await client.grant("op-1", "tenant"), "TopologyPersistencePending");
  await clearTopologyPending(newer, { signal });
  mustBe(await client.grant("op-1", "tenant"), 201);
});

Deno.test("deploy-api 16 item 47, restated: a promotion that status shows and does not count still fences every lease", async () => {
  await using rig = new Rig();
  await rig.start();
  const client = rig.service.client();
  const token = await granted(client);
  setStatus(rig.service, failedOver);
  await rig.advance(100);
  assert.equal(generationOf(rig.service), 8);
  mustBeRevoked(await client.renew("op-1", token), "topology_changed", 8);
  // The operator counts later: that is one more, and never one less.
  setStatus(rig.service, { topologyGeneration: 8 });
  await rig.advance(100);
  assert.equal(generationOf(rig.service), 9);
});

Deno.test("deploy-api 16 item 69: an emergency failover passes both leases by, revokes both, and tells of each", async () => {
  await using rig = new PlannedRig();
  await rig.start();
  await rig.hold();
  await rig.ask("pdx");
  assert.equal(rig.planned.phase, "Deferred");
  setStatus(rig.service, { ...failedOver, topologyGeneration: 8 });
  await rig.advance(100);
  for (const name of [slotName("orders"), holdName("orders", "op-1")]) {
    const { state, reason } = storedRecord(rig.service, name);
    assert.deepEqual([state, reason], ["revoked", "topology_changed"]);
  }
  assert.equal(rig.reasons.filter((reason) => reason === "DeploymentLeaseRevoked").length, 2);
});

Deno.test("difference 9: groups that hold leases cost no call while nothing happens, and an expiry is stored all the same", async () => {
  async function calls(groups: number): Promise<number> {
    const clock = new TestClock();
    const fake = new FakeCluster({ clock, entropy: seededEntropy(1) });
    seedCluster(fake);
    await using rig = new Rig({ fake, clock });
    await rig.start();
    for (let index = 0; index < groups; index++) {
      const group = `group-${index}`;
      const database = `database-${index}`;
      seedGroup(fake, group, [database]);
      const client = rig.service.client(undefined, { group });
      mustBe(await client.grant("op-1", database, { ttlSeconds: 120 }), 201);
      mustBe(await client.grant("op-1", database, { ...HOLD, ttlSeconds: 120 }), 201);
    }
    await rig.advance(1_000);
    fake.calls.reset();
    // The reference would have asked (3 + 1) times for each group and second by now.
    await rig.advance(100_000);
    const { total } = fake.calls;
    await rig.advance(20_000);
    const ended = fake.readAll(LEASES, NAMESPACE).filter(({ metadata }) =>
      metadata.labels?.["bloodraven.shipstream.io/deployment-state"] === "expired"
    );
    assert.equal(ended.length, 2 * groups);
    return total;
  }
  assert.equal(await calls(20), await calls(0));
});

Deno.test("difference 19: a leader task that throws ends the term, frees the Lease, and its error surfaces", () =>
  inWorld(async (world) => {
    const first = world.candidate("first");
    const cause = new RangeError("the task broke");
    const surfaced: unknown[] = [];
    const done = runLeaderTasks({
      candidate: first.elector,
      tasks: [{ name: "failing", run: () => Promise.reject(cause) }],
      timing: TIMING,
      clock: world.clock,
      logger: first.log,
      onTaskError: (error) => surfaced.push(error.cause),
      exit: () => {},
    });
    first.elector.start();
    const second = world.started("second");
    await world.until(() => first.terms.length === 1);
    const tookMs = await world.until(() => second.leads);
    assert.deepEqual([first.losses, surfaced], [["resigned"], [cause]]);
    assert.ok(tookMs < 1_000, `the next replica led after ${tookMs} ms`);
    await first.stop();
    await done;
  }));
