import assert from "node:assert/strict";
import fc from "fast-check";
import { cutToBytes, type EventReport, EventWriter } from "../../lib/controllers/events.ts";
import { topologyRewound } from "../../lib/controllers/group_events.ts";
import { HttpApi, staticToken } from "../../lib/kube/mod.ts";
import { EVENTS } from "../../lib/kube/resources.ts";
import type { LogFields } from "../../lib/runtime/log.ts";
import { silentLogger } from "../../lib/runtime/log.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { healthyGroup } from "../group/fixtures.ts";

const pod = { apiVersion: "v1", kind: "Pod", namespace: "app", name: "web-1", uid: "uid-1" };
const elected: EventReport = {
  regarding: pod,
  type: "Normal",
  reason: "LeaderElected",
  action: "Elect",
  note: "web-1 leads by the Lease app",
};

/** A writer of Events, and the cluster that it writes to. */
class Rig {
  readonly clock = new TestClock();
  readonly fake = new FakeCluster({
    clock: this.clock,
    entropy: seededEntropy(1),
    namespaces: ["app"],
  });
  readonly figures = { published: 0, failed: 0 };
  readonly debugs: LogFields[] = [];
  readonly writer = new EventWriter({
    api: new HttpApi({
      baseUrl: "https://fake",
      fetch: this.fake.fetch,
      credentials: staticToken(this.fake.adminToken),
      clock: this.clock,
      entropy: seededEntropy(2),
      defaultNamespace: "app",
    }),
    clock: this.clock,
    entropy: seededEntropy(3),
    logger: { ...silentLogger, debug: (_, fields = {}) => this.debugs.push(fields) },
    figures: {
      published: () => this.figures.published++,
      failed: () => this.figures.failed++,
    },
    reportingController: "autumn-plugin-kubernetes",
    reportingInstance: "web-1",
  });

  get stored() {
    return this.fake.readAll(EVENTS, "app");
  }

  async report(...reports: readonly EventReport[]): Promise<void> {
    for (const report of reports) this.writer.report(report);
    for (let turn = 0; turn < 10; turn++) await this.clock.advance(0);
  }
}

Deno.test("kubernetes-plugin 11: an Event says what happened to which object, who tells it, and when", async () => {
  const rig = new Rig();
  await rig.report(elected);
  const [event] = rig.stored;
  const { metadata, ...rest } = event ?? { metadata: {} };
  assert.match(metadata.name ?? "", /^web-1\.[0-9a-f]{16}$/);
  assert.deepEqual(rest, {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    eventTime: "2026-01-01T00:00:00.000000Z",
    type: "Normal",
    reason: "LeaderElected",
    action: "Elect",
    note: "web-1 leads by the Lease app",
    regarding: pod,
    reportingController: "autumn-plugin-kubernetes",
    reportingInstance: "web-1",
  });
  assert.deepEqual(rig.figures, { published: 1, failed: 0 });
});

Deno.test("a repeat is counted in the Event that is there, and another note is another Event", async () => {
  const rig = new Rig();
  await rig.report(elected, elected);
  await rig.clock.advance(60_000);
  await rig.report(elected, { ...elected, note: "web-1 leads by the Lease other" });
  assert.equal(rig.stored.length, 2);
  const series = rig.stored.find(({ note }) => note === elected.note)?.series;
  assert.deepEqual(series, { count: 3, lastObservedTime: "2026-01-01T00:01:00.000000Z" });
  assert.equal(rig.fake.calls.count({ verb: "create" }), 2);
  assert.equal(rig.fake.calls.count({ verb: "patch" }), 2);
  assert.equal(rig.figures.published, 4);
});

Deno.test("a repeat six minutes later is a new Event, and so is one whose Event is gone", async () => {
  const rig = new Rig();
  await rig.report(elected);
  await rig.clock.advance(361_000);
  await rig.report(elected);
  assert.equal(rig.stored.length, 2);
  for (const { metadata } of rig.stored) {
    rig.fake.remove(EVENTS, { namespace: "app", name: metadata.name ?? "" });
  }
  await rig.report(elected);
  assert.equal(rig.stored.length, 1);
  assert.equal(rig.stored[0]?.series, undefined);
  assert.deepEqual(rig.figures, { published: 3, failed: 0 });
});

Deno.test("words and notes are cut to what the API server takes, whole characters only", async () => {
  const rig = new Rig();
  const long = "ä".repeat(2_000);
  await rig.report({
    regarding: { ...pod, name: "n".repeat(253) },
    type: "Warning",
    reason: "R".repeat(200),
    action: "A".repeat(200),
    note: long,
  });
  const [event] = rig.stored;
  assert.deepEqual(
    [event?.reason?.length, event?.action?.length, event?.note, event?.metadata.name?.length],
    [128, 128, "ä".repeat(512), 253],
  );
});

Deno.test("a text that is cut is a beginning of it, fits, and could not be longer", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), fc.nat(64), (text, most) => {
    const cut = cutToBytes(text, most);
    const bytes = (part: string) => new TextEncoder().encode(part).length;
    assert.ok(text.startsWith(cut) && bytes(cut) <= most);
    const [next = ""] = [...text.slice(cut.length)];
    assert.ok(next === "" || bytes(cut) + bytes(next) > most);
  }));
});

Deno.test("a failure is counted and logged at debug by its class, and the next Event is written", async () => {
  const rig = new Rig();
  rig.fake.faults.add({
    resource: "events",
    count: 1,
    fault: { type: "status", code: 403 },
  });
  await rig.report(elected, { ...elected, reason: "LeaderLost", type: "Warning" });
  assert.deepEqual(rig.figures, { published: 1, failed: 1 });
  assert.deepEqual(rig.debugs, [{
    reason: "LeaderElected",
    regarding: "web-1",
    error: "forbidden",
  }]);
  assert.deepEqual(rig.stored.map(({ reason }) => reason), ["LeaderLost"]);
});

Deno.test("a repeat that cannot be written leaves the Event as it was", async () => {
  const rig = new Rig();
  await rig.report(elected);
  rig.fake.faults.add({ verb: "patch", count: 1, fault: { type: "status", code: 500 } });
  await rig.report(elected, elected);
  assert.equal(rig.stored[0]?.series?.count, 2);
  assert.deepEqual(rig.figures, { published: 2, failed: 1 });
});

Deno.test("a stop writes what waits, and takes nothing after it", async () => {
  const rig = new Rig();
  rig.writer.report(elected);
  rig.writer.report({ ...elected, reason: "Stopping", action: "Stop" });
  const stopping = rig.writer.stop(2_000);
  for (let turn = 0; turn < 10; turn++) await rig.clock.advance(0);
  await stopping;
  assert.equal(rig.stored.length, 2);
  await rig.report(elected);
  assert.deepEqual(rig.figures, { published: 2, failed: 1 });
  assert.equal(rig.clock.pendingTimers, 0);
});

Deno.test("a stop waits no longer than it is told, and what was left is counted as failed", async () => {
  const rig = new Rig();
  rig.fake.faults.add({ resource: "events", fault: { type: "hang" } });
  rig.writer.report(elected);
  rig.writer.report({ ...elected, reason: "Stopping", action: "Stop" });
  let stopped = false;
  const stopping = rig.writer.stop(2_000).then(() => stopped = true);
  await rig.clock.advance(1_999);
  assert.equal(stopped, false);
  await rig.clock.advance(1);
  await stopping;
  assert.deepEqual(rig.figures, { published: 0, failed: 2 });
  assert.equal(rig.clock.pendingTimers, 0);
});

Deno.test("a flood waits in a bounded line: what does not fit is counted as failed", async () => {
  const rig = new Rig();
  const fault = rig.fake.faults.add({ resource: "events", fault: { type: "hang" } });
  for (let index = 0; index < 1_010; index++) {
    rig.writer.report({ ...elected, note: `Event ${index}` });
  }
  assert.equal(rig.figures.failed, 9);
  fault.remove();
  for (let turn = 0; turn < 1_200; turn++) await rig.clock.advance(0);
  assert.deepEqual(rig.figures, { published: 1_001, failed: 9 });
});

Deno.test("a status that went backwards is a Warning on the group", () => {
  const { type, reason, regarding, note } = topologyRewound(healthyGroup());
  assert.deepEqual([type, reason, regarding.kind, regarding.name], [
    "Warning",
    "DeploymentTopologyRewound",
    "MysqlFailoverGroup",
    "orders",
  ]);
  assert.match(note, /generation 7 /);
});
