import assert from "node:assert/strict";
import { CONFIG_MAPS } from "../../lib/kube/resources.ts";
import { ApiHealth, NOT_STARTED, pluginHealth } from "../../lib/plugin/health.ts";
import { NoClusterError } from "../../lib/kube/connect_errors.ts";
import { inWorld, LEASE, never, withElection, type World } from "./world.ts";

/** A checker of its own, without the loop. */
function checker(world: World) {
  const told: boolean[] = [];
  const health = new ApiHealth({
    api: world.client("checker"),
    clock: world.clock,
    onChecked: (up) => told.push(up),
    signal: never,
  });
  const calls = () => world.fake.calls.count({ resource: "/version" });
  return { health, told, calls };
}

Deno.test("before the start it is unknown, with the reason", () => {
  assert.deepEqual(NOT_STARTED, { status: "unknown", details: { reason: "not started" } });
});

Deno.test("without a cluster it is up", () =>
  inWorld(async (world) => {
    const { runtime } = await world.start({
      connector: () => Promise.reject(new NoClusterError("none")),
    });
    assert.deepEqual(await runtime.health(), { status: "up", details: { mode: "detached" } });
  }));

Deno.test("it is up, then down with the class of the error and nothing else of it, then up again", () =>
  inWorld(async (world) => {
    const { runtime } = await world.start();
    assert.deepEqual(await runtime.health(), {
      status: "up",
      details: { mode: "custom", namespace: "default" },
    });
    const down = world.fake.faults.add({
      resource: "/version",
      fault: { type: "status", code: 401 },
    });
    await world.clock.advance(5_100);
    assert.deepEqual(await runtime.health(), {
      status: "down",
      details: { mode: "custom", namespace: "default", error: "unauthorized" },
    });
    down.remove();
    await world.clock.advance(1_100);
    assert.equal((await runtime.health()).status, "up");
  }));

Deno.test("an API server that does not answer within 1.5 s is down", () =>
  inWorld(async (world) => {
    world.fake.faults.add({ resource: "/version", fault: { type: "hang" } });
    const { health, told } = checker(world);
    const error = health.error();
    await world.clock.advance(1_499);
    assert.deepEqual(told, []);
    await world.clock.advance(1);
    assert.equal(await error, "timeout");
    assert.deepEqual(told, [false]);
  }));

Deno.test("the page shows the lead and the ConfigMaps, and no name of a holder or a pod", () =>
  inWorld(async (world) => {
    world.fake.seed(CONFIG_MAPS, { metadata: { name: "here", namespace: "default" } });
    const list = world.fake.faults.add({
      verb: "list",
      resource: "configmaps",
      fault: { type: "latency", ms: 500 },
    });
    const { runtime } = await world.start({
      kubernetes: {
        ...withElection({ identity: "secret" }),
        config_maps: { watch: ["here", "gone"] },
      },
    });
    const first = await runtime.health();
    assert.deepEqual(first.details?.config_maps, { gone: "waiting", here: "waiting" });
    list.remove();
    await world.clock.advance(1_000);
    assert.deepEqual(await runtime.health(), {
      status: "up",
      details: {
        mode: "custom",
        namespace: "default",
        leader: { lease: LEASE, leading: true },
        config_maps: { gone: "missing", here: "present" },
      },
    });
  }));

Deno.test("a good result is used for 5 s and a bad one for 1 s", () =>
  inWorld(async (world) => {
    const { health, calls } = checker(world);
    await health.error();
    await world.clock.advance(4_999);
    await health.error();
    assert.equal(calls(), 1);
    world.fake.faults.add({ resource: "/version", fault: { type: "status", code: 403 } });
    await world.clock.advance(1);
    assert.equal(await health.error(), "forbidden");
    await world.clock.advance(999);
    await health.error();
    assert.equal(calls(), 2);
    await world.clock.advance(1);
    await health.error();
    assert.equal(calls(), 3);
  }));

Deno.test("all who ask while a check runs get its result: one call for all", () =>
  inWorld(async (world) => {
    world.fake.faults.add({ resource: "/version", fault: { type: "latency", ms: 200 } });
    const { health, calls } = checker(world);
    const asked = Array.from({ length: 20 }, () => health.error());
    await world.clock.advance(200);
    assert.deepEqual(new Set(await Promise.all(asked)), new Set([null]));
    assert.equal(calls(), 1);
  }));

Deno.test("the loop checks every 5 s while it is up, every 1 s while it is down, and the gauge follows with nobody asking", () =>
  inWorld(async (world) => {
    const app = await world.start();
    const calls = () => world.fake.calls.count({ resource: "/version" });
    assert.equal(calls(), 1);
    assert.equal(await world.figure(app, "kubernetes_api_up"), 1);
    await world.clock.advance(10_000);
    assert.equal(calls(), 3);
    const down = world.fake.faults.add({
      resource: "/version",
      fault: { type: "status", code: 403 },
    });
    await world.clock.advance(5_000);
    assert.equal(await world.figure(app, "kubernetes_api_up"), 0);
    const before = calls();
    await world.clock.advance(5_000);
    assert.equal(calls() - before, 5);
    down.remove();
    await world.clock.advance(1_000);
    assert.equal(await world.figure(app, "kubernetes_api_up"), 1);
    await world.settle(app.runtime.shutdown(never));
    const atEnd = calls();
    await world.clock.advance(60_000);
    assert.equal(calls(), atEnd);
  }));

Deno.test("there is no figure before the first check, and an end that cuts a check off is no outage", () =>
  inWorld(async (world) => {
    world.fake.faults.add({ resource: "/version", fault: { type: "hang" } });
    const app = await world.start();
    assert.equal(await world.figure(app, "kubernetes_api_up"), undefined);
    await world.settle(app.runtime.shutdown(never));
    assert.equal(await world.figure(app, "kubernetes_api_up"), undefined);
  }));

Deno.test("a replica whose old leader task will not end is down, since only a restart helps", () => {
  const state = {
    mode: "custom",
    namespace: "default",
    leader: { lease: "x", leading: false, draining: true },
    configMaps: null,
  };
  assert.deepEqual(pluginHealth(state, null), {
    status: "down",
    details: {
      mode: "custom",
      namespace: "default",
      leader: { lease: "x", leading: false },
      error: "unsettled_leader_task",
    },
  });
  assert.equal(pluginHealth(state, "timeout").details?.error, "timeout");
});
