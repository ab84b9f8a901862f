import assert from "node:assert/strict";
import type { Due, GroupController, GroupSight } from "../../lib/controllers/group_controller.ts";
import { GroupNotFoundError } from "../../lib/group/topology.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { gateName } from "../../lib/records/names.ts";
import type { GroupIdentity } from "../../lib/records/store.ts";
import { NotLeaderError, type Turn } from "../../lib/lease/turn.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { readDefinitions } from "../../handlers/commands/demo/crds.ts";
import { annotate, granted, setStatus, storedGroup, storedLease } from "../conformance/support.ts";
import { NAMESPACE, seedCluster, seedGroup } from "../service/in_process.ts";
import { ordersGroup } from "../service/orders.ts";
import { Rig } from "./rig.ts";

/** A controller that notes what it is asked. */
class Noting implements GroupController {
  readonly name = "noting";
  readonly asked: string[] = [];
  readonly sights: GroupSight[] = [];
  readonly forgotten: GroupIdentity[] = [];
  answer: (turn: Turn, sight: GroupSight) => Due | null | Promise<Due | null> = () => null;

  async reconcile(turn: Turn, sight: GroupSight): Promise<Due | null> {
    this.asked.push(turn.group);
    this.sights.push(sight);
    return await this.answer(turn, sight);
  }

  forget(group: GroupIdentity): void {
    this.forgotten.push(group);
  }
}

const restarts = (resource: string, reason: string) =>
  `holdfast_watch_restarts_total{resource="${resource}",reason="${reason}"}`;

/** The calls of five idle minutes, with so many groups. */
async function idleCalls(groups: number): Promise<number> {
  const clock = new TestClock();
  const fake = new FakeCluster({ clock, entropy: seededEntropy(1) });
  seedCluster(fake);
  fake.remove(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "orders" });
  for (let index = 0; index < groups; index++) seedGroup(fake, `group-${index}`, []);
  await using rig = new Rig({ fake, clock });
  await rig.start();
  await rig.advance(1_000);
  assert.equal(fake.readAll(LEASES, NAMESPACE).length, groups);
  fake.calls.reset();
  await rig.advance(300_000);
  return fake.calls.total;
}

Deno.test("idle groups for five minutes: the number of calls does not grow with the groups", async () => {
  const none = await idleCalls(0);
  const many = await idleCalls(100);
  assert.equal(many, none);
});

Deno.test("a group is looked at after a change of it or its leases, and no other group is", async () => {
  const controller = new Noting();
  await using rig = new Rig({ controllers: [controller] });
  seedGroup(rig.service.fake, "other", []);
  await rig.start();
  assert.deepEqual(controller.asked.toSorted(), ["orders", "other"]);
  controller.asked.length = 0;
  setStatus(rig.service, { topologyGeneration: 8 });
  await rig.settle();
  assert.deepEqual(controller.asked, ["orders"]);
  assert.equal(controller.sights.at(-1)?.group.status?.topologyGeneration, 8);
  controller.asked.length = 0;
  await granted(rig.service.client());
  await rig.settle();
  assert.ok(controller.asked.length > 0 && controller.asked.every((group) => group === "orders"));
  const kinds = controller.sights.at(-1)?.leases.map(({ metadata }) =>
    metadata.labels?.["bloodraven.shipstream.io/deployment-kind"]
  );
  assert.deepEqual(kinds?.toSorted(), ["gate", "migration"]);
});

Deno.test("changes while a group is looked at come to one more look", async () => {
  const controller = new Noting();
  const waiting = Promise.withResolvers<void>();
  controller.answer = async () => {
    if (controller.asked.length === 1) await waiting.promise;
    return null;
  };
  await using rig = new Rig({ controllers: [controller] });
  await rig.start();
  for (let generation = 8; generation < 13; generation++) {
    setStatus(rig.service, { topologyGeneration: generation });
    await rig.settle();
  }
  assert.equal(controller.asked.length, 1);
  waiting.resolve();
  await rig.settle();
  assert.equal(controller.asked.length, 2);
  assert.equal(controller.sights.at(-1)?.group.status?.topologyGeneration, 12);
});

Deno.test("a controller is asked again at the time that it asked for, the first of several", async () => {
  const controller = new Noting();
  const at: number[] = [];
  await using rig = new Rig({ controllers: [controller, new Noting()] });
  const { clock } = rig.service;
  const startMs = clock.wall();
  controller.answer = () => {
    at.push(clock.wall() - startMs);
    if (at.length === 1) return { inMs: 5_000, afterMs: startMs + 3_000 };
    return at.length === 2 ? { inMs: 5_000 } : null;
  };
  await rig.start();
  await rig.advance(60_000);
  assert.deepEqual(at, [0, 3_001, 8_001]);
});

Deno.test("a group that fails backs off alone, and its class of error is told", async () => {
  const controller = new Noting();
  const failing = new Noting();
  failing.answer = ({ group }) => {
    if (group === "orders") throw new TypeError("Cannot be told");
    return null;
  };
  await using rig = new Rig({ controllers: [failing, controller] });
  seedGroup(rig.service.fake, "other", []);
  await rig.start();
  // What fails keeps none of the others from being asked.
  assert.deepEqual(controller.asked.toSorted(), ["orders", "other"]);
  await rig.advance(120_000);
  const lines = rig.logged("deployment lease housekeeping failed");
  // 1, 2, 4, 8, 16, 30, 30 s and up to a fifth more.
  assert.ok(lines.length >= 6 && lines.length <= 8, String(lines.length));
  const [line] = lines;
  assert.deepEqual(Object.keys(line ?? {}), ["time", "level", "msg", "group", "error"]);
  assert.deepEqual([line?.group, line?.error], ["orders", "TypeError"]);
  assert.ok(!rig.service.lines.join().includes("Cannot be told"));
  assert.equal(failing.asked.filter((group) => group === "other").length, 1);
});

Deno.test("a change while a group backs off is looked at a second after the failure", async () => {
  const controller = new Noting();
  let broken = true;
  controller.answer = () => {
    if (broken) throw new TypeError("Cannot go on");
    return null;
  };
  await using rig = new Rig({ controllers: [controller] });
  await rig.start();
  await rig.advance(20_000);
  broken = false;
  const asked = controller.asked.length;
  annotate(rig.service, "example.com/a", "1");
  await rig.settle();
  assert.equal(controller.asked.length, asked + 1);
  // Had it failed just now, the change would have waited: events of a failing look's own writes must not drive it.
  broken = true;
  annotate(rig.service, "example.com/a", "2");
  await rig.settle();
  annotate(rig.service, "example.com/a", "3");
  await rig.settle();
  assert.equal(controller.asked.length, asked + 2);
  await rig.advance(1_000);
  assert.equal(controller.asked.length, asked + 3);
});

Deno.test("a group that is gone is forgotten once, and so is one whose name another group took", async () => {
  const controller = new Noting();
  await using rig = new Rig({ controllers: [controller] });
  await rig.start();
  const first = storedGroup(rig.service).metadata.uid;
  const { uid: _, resourceVersion: __, ...metadata } = storedGroup(rig.service).metadata;
  rig.service.fake.remove(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "orders" });
  rig.service.fake.seed(MYSQL_FAILOVER_GROUPS, { ...storedSpec(), metadata });
  await rig.settle();
  const second = storedGroup(rig.service).metadata.uid;
  rig.service.fake.remove(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "orders" });
  await rig.settle();
  assert.deepEqual(controller.forgotten.map(({ uid }) => uid), [first, second]);

  function storedSpec() {
    return { spec: { sites: [{ name: "iad" }, { name: "pdx" }] } };
  }
});

Deno.test("a lead that was lost and a group that is gone are no failures", async () => {
  for (const error of [new NotLeaderError(), new GroupNotFoundError(NAMESPACE, "orders")]) {
    const controller = new Noting();
    controller.answer = () => Promise.reject(error);
    await using rig = new Rig({ controllers: [controller] });
    await rig.start();
    await rig.advance(5_000);
    assert.deepEqual(rig.logged("deployment lease housekeeping failed"), []);
  }
});

Deno.test("a look that hangs ends after ten seconds, and does not hold the group's requests for longer", async () => {
  await using rig = new Rig();
  const fault = rig.service.fake.faults.add({
    verb: "get",
    resource: "leases",
    name: gateName("orders"),
    fault: { type: "hang" },
  });
  await rig.start();
  const answer = rig.service.client().observe();
  await rig.advance(9_000);
  fault.remove();
  await rig.advance(1_100);
  assert.equal((await answer).status, 200);
});

Deno.test("a term ends with its signal, in the middle of whatever it does", async () => {
  const rig = new Rig();
  rig.service.fake.faults.add({
    verb: "get",
    resource: "leases",
    fault: { type: "hang" },
  });
  await rig.start();
  await rig[Symbol.asyncDispose]();
  assert.deepEqual(rig.logged("deployment lease housekeeping failed"), []);
  assert.equal(rig.service.clock.pendingTimers, 0);
});

Deno.test("a watch that is not allowed is told of, and served once it is", async () => {
  await using rig = new Rig();
  const fault = rig.service.fake.faults.add({
    verb: "list",
    resource: "mysqlfailovergroups",
    fault: { type: "status", code: 403 },
  });
  await rig.start();
  const [line] = rig.logged("watch failed");
  assert.deepEqual([line?.resource, line?.error], ["mysqlfailovergroups", "forbidden"]);
  assert.equal(storedLease(rig.service, gateName("orders")), null);
  fault.remove();
  await rig.advance(2_000);
  assert.ok(storedLease(rig.service, gateName("orders")));
});

Deno.test("a change that the watch swallows is caught by the list of every ten minutes", async () => {
  await using rig = new Rig();
  await rig.start();
  await granted(rig.service.client(), "op-1", { ttlSeconds: 120 });
  await rig.settle();
  const silence = rig.service.fake.faults.add({ verb: "watch", fault: { type: "watch-silence" } });
  setStatus(rig.service, { topologyGeneration: 8 });
  await rig.advance(60_000);
  assert.equal(storedLease(rig.service, gateName("orders"))?.spec?.leaseTransitions, 7);
  silence.remove();
  rig.service.fake.calls.reset();
  await rig.advance(600_000);
  assert.equal(storedLease(rig.service, gateName("orders"))?.spec?.leaseTransitions, 8);
  const requested = await rig.service.metric(restarts("leases", "requested"));
  assert.ok((requested ?? 0) >= 1);
});

Deno.test("a group that cannot be read is told of and counted, and hides no other group", async () => {
  await using rig = new Rig();
  seedGroup(rig.service.fake, "other", []);
  // A schema of another version of the operator lets it pass, and ours does not.
  for (const crd of readDefinitions()) {
    const text = JSON.stringify(crd).replaceAll('"failoverCooldown":', '"olderName":');
    rig.service.fake.apply(JSON.parse(text));
  }
  const { metadata, spec } = ordersGroup(NAMESPACE, "odd");
  const manifest = {
    apiVersion: "shipstream.io/v1alpha1",
    kind: "MysqlFailoverGroup",
    metadata,
    spec: { ...spec, failoverCooldown: 5 },
  };
  rig.service.fake.apply(manifest);
  await rig.start();
  assert.ok(storedLease(rig.service, gateName("other")));
  const undecodable = 'holdfast_undecodable_objects_total{resource="mysqlfailovergroups"}';
  assert.equal(await rig.service.metric(undecodable), 1);
  rig.service.fake.apply({ ...manifest, metadata: { ...metadata, labels: { changed: "yes" } } });
  await rig.settle();
  assert.equal(await rig.service.metric(undecodable), 2);
  const lines = rig.logged("deployment lease housekeeping failed");
  assert.deepEqual(lines.map(({ group, error }) => [group, error]), [
    ["odd", "DecodeError"],
    ["odd", "DecodeError"],
  ]);
});

Deno.test("a store that went back in time is found by an answer, and both watches begin anew, once", async () => {
  const controller = new Noting();
  await using rig = new Rig({ controllers: [controller] });
  const { fake } = rig.service;
  await granted(rig.service.client(), "op-1", { ttlSeconds: 120 });
  const snapshot = fake.snapshot();
  for (const value of ["1", "2", "3"]) annotate(rig.service, "example.com/n", value);
  await rig.start();
  assert.equal(controller.sights.at(-1)?.group.metadata.annotations?.["example.com/n"], "3");
  // The stream that was open tells nothing of the restored store.
  fake.faults.add({ verb: "watch", count: 2, fault: { type: "watch-silence" } });
  fake.restore(snapshot);
  const name = { namespace: NAMESPACE, name: "orders" };
  const { signal } = new AbortController();
  await Promise.all([
    rig.guard.get(MYSQL_FAILOVER_GROUPS, name, { signal }),
    rig.guard.get(MYSQL_FAILOVER_GROUPS, name, { signal }),
  ]);
  await rig.settle();
  assert.equal(controller.sights.at(-1)?.group.metadata.annotations, undefined);
  assert.equal(await rig.service.metric(restarts("mysqlfailovergroups", "rewound")), 1);
});
