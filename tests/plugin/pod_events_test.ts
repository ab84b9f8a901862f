import assert from "node:assert/strict";
import type { Event } from "../../lib/kube/resources.ts";
import { inWorld, LEASE, never, POD, withElection } from "./world.ts";

/** What an Event says, without what is new in each. */
function told({ type, reason, action, note }: Event): (string | undefined)[] {
  return [type, reason, action, note];
}

Deno.test("start, gain and stop are told on the pod, in order, and counted", () =>
  inWorld(async (world) => {
    const app = await world.start({ kubernetes: withElection({ identity: "me" }) });
    await world.until(() => app.runtime.leadership?.isLeader() ?? false);
    await world.clock.advance(100);
    await world.settle(app.runtime.shutdown(never));
    const events = await world.events();
    assert.deepEqual(events.map(told), [
      ["Normal", "Started", "Start", "The application started in mode custom"],
      ["Normal", "LeaderElected", "Elect", `Leader is me on the Lease ${LEASE}`],
      ["Normal", "Stopping", "Stop", "The application is stopping"],
    ]);
    assert.equal(await world.figure(app, "kubernetes_events_published_total"), 3);
    assert.equal(await world.figure(app, "kubernetes_events_failed_total"), 0);
    const [started] = events;
    assert.deepEqual(started?.regarding, {
      apiVersion: "v1",
      kind: "Pod",
      name: "web-1",
      namespace: "default",
      uid: "u-1",
    });
    assert.equal(started?.reportingController, "autumn-plugin-kubernetes");
    assert.equal(started?.reportingInstance, "web-1");
    assert.match(started?.eventTime ?? "", /\.\d{6}Z$/);
    assert.equal(started?.related, undefined);
  }));

Deno.test("a lost lead is a warning with its reason, and a stop is no loss", () =>
  inWorld(async (world) => {
    const app = await world.start({ kubernetes: withElection({ identity: "me" }) });
    await world.until(() => app.runtime.leadership?.isLeader() ?? false);
    const cut = world.fake.faults.add({
      resource: "leases.coordination.k8s.io",
      fault: { type: "status", code: 500 },
    });
    await world.until(() => !(app.runtime.leadership?.isLeader() ?? true));
    cut.remove();
    await world.until(() => app.runtime.leadership?.isLeader() ?? false);
    await world.settle(app.runtime.shutdown(never));
    // The second gain says the same as the first, so it is counted there, and that write is later than the loss.
    assert.deepEqual(await world.reasons(), ["Started", "LeaderLost", "LeaderElected", "Stopping"]);
    const events = await world.events();
    const lost = events.find(({ reason }) => reason === "LeaderLost");
    assert.deepEqual(lost && told(lost), [
      "Warning",
      "LeaderLost",
      "Elect",
      `No longer leader is me on the Lease ${LEASE}: renew_deadline`,
    ]);
    const elected = events.find(({ reason }) => reason === "LeaderElected");
    assert.equal(elected?.series?.count, 2);
    assert.equal(await world.figure(app, "kubernetes_events_published_total"), 5);
  }));

Deno.test("an Event that cannot be written is counted, logged at debug, and stops nothing", () =>
  inWorld(async (world) => {
    world.fake.faults.add({
      resource: "events",
      verb: "create",
      fault: { type: "status", code: 403 },
    });
    const app = await world.start({ kubernetes: withElection() });
    await world.until(() => app.runtime.leadership?.isLeader() ?? false);
    await world.settle(app.runtime.shutdown(never));
    assert.deepEqual(await world.events(), []);
    assert.equal(await world.figure(app, "kubernetes_events_failed_total"), 3);
    assert.equal(await world.figure(app, "kubernetes_events_published_total"), 0);
    const failures = app.log.at("debug").filter(({ message }) => message === "event not written");
    assert.equal(failures.length, 3);
    assert.deepEqual(app.log.at("error"), []);
  }));

Deno.test("a server that swallows Events holds up neither the start nor the lead, and the stop by 2 s", () =>
  inWorld(async (world) => {
    world.fake.faults.add({ resource: "events", fault: { type: "hang" } });
    const app = await world.start({ kubernetes: withElection() });
    assert.ok(await world.until(() => app.runtime.leadership?.isLeader() ?? false) < 100);
    const start = world.clock.monotonic();
    await world.settle(app.runtime.shutdown(never));
    const tookMs = world.clock.monotonic() - start;
    assert.ok(tookMs >= 2_000 && tookMs < 2_100, `${tookMs} ms`);
    assert.equal(world.lease()?.spec?.holderIdentity, undefined, "released before");
  }));

for (
  const [why, options] of [
    ["the pod has no name", { podInfo: { ...POD, name: undefined } }],
    ["Events are switched off", { kubernetes: { ...withElection(), events: false } }],
  ] as const
) {
  Deno.test(`nothing is written and nothing is counted when ${why}`, () =>
    inWorld(async (world) => {
      const app = await world.start({ kubernetes: withElection(), ...options });
      await world.until(() => app.runtime.leadership?.isLeader() ?? false);
      await world.settle(app.runtime.shutdown(never));
      assert.equal(world.fake.calls.count({ resource: "events", verb: "create" }), 0);
      assert.equal(await world.figure(app, "kubernetes_events_published_total"), 0);
      assert.equal(await world.figure(app, "kubernetes_events_failed_total"), 0);
    }));
}

Deno.test("a pod that does not know its namespace writes into that of the plugin, and a pod without a uid says none", () =>
  inWorld(async (world) => {
    world.fake.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } });
    const podInfo = { name: "web-1", labels: {}, inCluster: true };
    const { runtime } = await world.start({ podInfo, kubernetes: { namespace: "shop" } });
    await world.settle(runtime.shutdown(never));
    const [started] = await world.events("shop");
    assert.deepEqual(started?.regarding, {
      apiVersion: "v1",
      kind: "Pod",
      name: "web-1",
      namespace: "shop",
    });
  }));
