import assert from "node:assert/strict";
import { CONFIG_MAPS } from "../../lib/kube/resources.ts";
import { PluginMetrics } from "../../lib/plugin/metrics.ts";
import { inWorld, LEASE, never, withElection } from "./world.ts";

const ELECTION = [
  "kubernetes_leader",
  "kubernetes_leader_acquired_total",
  "kubernetes_leader_lost_total",
  "kubernetes_lease_errors_total",
  "kubernetes_lease_conflicts_total",
  "leader_election_master_status",
  "leader_election_slowpath_total",
];
const OTHERS = [
  "kubernetes_events_published_total",
  "kubernetes_events_failed_total",
  "kubernetes_api_up",
  "kubernetes_config_map_updates_total",
  "kubernetes_config_map_errors_total",
];

Deno.test("at first the counters of Events are 0, and nothing is said of the API server and of ConfigMaps", async () => {
  const samples = await new PluginMetrics().snapshot();
  const own = samples.filter(({ name }) => name.startsWith("kubernetes_"));
  assert.deepEqual(own, [
    { name: "kubernetes_events_published_total", labels: {}, value: 0 },
    { name: "kubernetes_events_failed_total", labels: {}, value: 0 },
  ]);
});

Deno.test("every family has the name and the kind of the contract", () =>
  inWorld(async (world) => {
    const { runtime } = await world.start({ kubernetes: withElection() });
    const { registry } = runtime.metrics;
    for (const name of [...ELECTION, ...OTHERS]) {
      const kind = /_total$/.test(name) ? "counter" : "gauge";
      assert.match(
        await registry.getSingleMetricAsString(name),
        new RegExp(`# TYPE ${name} ${kind}`),
      );
    }
  }));

Deno.test("without an election there is no family of it", () =>
  inWorld(async (world) => {
    const { runtime } = await world.start();
    for (const name of ELECTION) {
      assert.equal(runtime.metrics.registry.getSingleMetric(name), undefined);
    }
  }));

Deno.test("gain and loss move on the edges alone, under the name of the Lease", () =>
  inWorld(async (world) => {
    const app = await world.start({ kubernetes: withElection() });
    await world.until(() => app.runtime.leadership?.isLeader() ?? false);
    await world.clock.advance(30_000);
    const samples = (await app.runtime.metrics.snapshot())
      .filter(({ name }) => name.startsWith("kubernetes_lea"));
    assert.deepEqual(samples.map(({ name, value }) => [name, value]), [
      ["kubernetes_leader", 1],
      ["kubernetes_leader_acquired_total", 1],
      ["kubernetes_leader_lost_total", 0],
      ["kubernetes_lease_errors_total", 0],
      ["kubernetes_lease_conflicts_total", 0],
    ]);
    for (const { labels } of samples) assert.deepEqual(labels, { lease: LEASE });
    await world.settle(app.runtime.shutdown(never));
    assert.equal(await world.figure(app, "kubernetes_leader"), 0);
    assert.equal(await world.figure(app, "kubernetes_leader_lost_total"), 1);
  }));

Deno.test("the figures of a ConfigMap carry its name, from the start of its watch on", () =>
  inWorld(async (world) => {
    world.fake.seed(CONFIG_MAPS, { metadata: { name: "a", namespace: "default" } });
    const { runtime } = await world.start({ kubernetes: { config_maps: { watch: ["a", "b"] } } });
    await world.clock.advance(100);
    const samples = (await runtime.metrics.snapshot())
      .filter(({ name }) => name.startsWith("kubernetes_config_map"))
      .map(({ name, labels, value }) => [name, labels.config_map, value]);
    assert.deepEqual(samples, [
      ["kubernetes_config_map_updates_total", "a", 1],
      ["kubernetes_config_map_updates_total", "b", 1],
      ["kubernetes_config_map_errors_total", "a", 0],
      ["kubernetes_config_map_errors_total", "b", 0],
    ]);
  }));
