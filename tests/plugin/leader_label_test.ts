import assert from "node:assert/strict";
import { PODS } from "../../lib/kube/resources.ts";
import { LEADER_LABEL } from "../../lib/plugin/leader_label.ts";
import { type App, inWorld, never, POD, withElection, type World } from "./world.ts";

const LABELLED = withElection({ label_leader: true });
const leads = (app: App) => app.runtime.leadership?.isLeader() ?? false;

/** Makes a pod, and what the application knows of it. */
function pod(world: World, name: string, labels: Record<string, string> = {}) {
  const manifest = { metadata: { name, namespace: "default", labels: { app: "web", ...labels } } };
  const { metadata } = world.fake.seed(PODS, manifest);
  return { ...POD, name, uid: metadata.uid };
}

/** The labels of a pod as they are stored. */
const labelsOf = (world: World, name: string) =>
  world.fake.read(PODS, { namespace: "default", name })?.metadata.labels;

Deno.test("the leader's pod has the label, another has it not, and it moves with the lead", () =>
  inWorld(async (world) => {
    const a = await world.start({ kubernetes: LABELLED, podInfo: pod(world, "a") });
    await world.until(() => leads(a));
    const b = await world.start({ kubernetes: LABELLED, podInfo: pod(world, "b") });
    await world.clock.advance(1_000);
    assert.deepEqual(labelsOf(world, "a"), { app: "web", [LEADER_LABEL]: "true" });
    assert.deepEqual(labelsOf(world, "b"), { app: "web" });
    await world.settle(a.runtime.shutdown(never));
    await world.until(() => leads(b));
    await world.clock.advance(100);
    assert.deepEqual(labelsOf(world, "a"), { app: "web" });
    assert.deepEqual(labelsOf(world, "b"), { app: "web", [LEADER_LABEL]: "true" });
  }));

Deno.test("a label that an earlier process of the pod left is taken off", () =>
  inWorld(async (world) => {
    const leader = await world.start({ kubernetes: withElection() });
    await world.until(() => leads(leader));
    const podInfo = pod(world, "a", { [LEADER_LABEL]: "true" });
    await world.start({ kubernetes: LABELLED, podInfo });
    await world.clock.advance(1_000);
    assert.deepEqual(labelsOf(world, "a"), { app: "web" });
  }));

Deno.test("a write that fails is tried again every second, with one warning", () =>
  inWorld(async (world) => {
    const refused = world.fake.faults.add({
      resource: "pods",
      fault: { type: "status", code: 403 },
    });
    const app = await world.start({ kubernetes: LABELLED, podInfo: pod(world, "a") });
    await world.clock.advance(5_000);
    assert.ok(refused.hits >= 5);
    assert.deepEqual(app.log.at("warn").map(({ fields }) => fields), [{ error: "forbidden" }]);
    refused.remove();
    await world.clock.advance(1_000);
    assert.equal(labelsOf(world, "a")?.[LEADER_LABEL], "true");
  }));

Deno.test("a new pod of the same name is not labelled, and a stop waits no longer than 2 s for its label", () =>
  inWorld(async (world) => {
    const podInfo = { ...pod(world, "a"), uid: "another" };
    const app = await world.start({ kubernetes: LABELLED, podInfo });
    await world.until(() => leads(app));
    await world.clock.advance(1_000);
    assert.deepEqual(labelsOf(world, "a"), { app: "web" });
    const start = world.clock.monotonic();
    await world.settle(app.runtime.shutdown(never));
    const tookMs = world.clock.monotonic() - start;
    assert.ok(tookMs >= 2_000 && tookMs < 2_100, `${tookMs} ms`);
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("without the pod's name nothing is labelled, and the log says what is missing", () =>
  inWorld(async (world) => {
    const podInfo = { labels: {}, inCluster: true };
    const app = await world.start({ kubernetes: LABELLED, podInfo });
    await world.until(() => leads(app));
    assert.equal(world.fake.calls.count({ resource: "pods" }), 0);
    assert.match(app.log.at("warn")[0]?.message ?? "", /set POD_NAME/);
  }));
