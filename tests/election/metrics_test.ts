import assert from "node:assert/strict";
import { Gauge, Registry } from "prom-client";
import { ElectionMetrics } from "../../lib/election/metrics.ts";
import { inWorld, LEASE } from "./world.ts";

const families: readonly (readonly [string, string, string])[] = [
  ["kubernetes_leader", "gauge", "lease"],
  ["kubernetes_leader_acquired_total", "counter", "lease"],
  ["kubernetes_leader_lost_total", "counter", "lease"],
  ["kubernetes_lease_errors_total", "counter", "lease"],
  ["kubernetes_lease_conflicts_total", "counter", "lease"],
  ["leader_election_master_status", "gauge", "name"],
  ["leader_election_slowpath_total", "counter", "name"],
];

Deno.test("all figures are there from the start, with 0", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const text = await a.registry.metrics();
    for (const [name, type, label] of families) {
      assert.ok(text.includes(`# TYPE ${name} ${type}\n`), name);
      assert.ok(text.includes(`\n${name}{${label}="${LEASE}"} 0\n`), name);
    }
  }));

Deno.test("the figures move at the edges of leading, and not in between", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(20_000);
    assert.equal(await a.figure("kubernetes_leader"), 1);
    assert.equal(await a.figure("leader_election_master_status"), 1);
    assert.equal(await a.figure("kubernetes_leader_acquired_total"), 1);
    assert.equal(await a.figure("kubernetes_leader_lost_total"), 0);
    await a.stop();
    assert.equal(await a.figure("kubernetes_leader"), 0);
    assert.equal(await a.figure("leader_election_master_status"), 0);
    assert.equal(await a.figure("kubernetes_leader_acquired_total"), 1);
    assert.equal(await a.figure("kubernetes_leader_lost_total"), 1);
  }));

Deno.test("the time of the last renewal is that of the last write that succeeded, and there is none before the first", () =>
  inWorld(async (world) => {
    const family = "holdfast_leader_renewed_timestamp_seconds";
    const a = world.started("a");
    assert.ok(Number.isNaN(await a.figure(family)));
    await world.clock.advance(20_000);
    const renewed = await a.figure(family);
    const nowSeconds = world.clock.wall() / 1_000;
    assert.ok(renewed > nowSeconds - 5 && renewed <= nowSeconds);
    await a.stop();
    await world.clock.advance(20_000);
    assert.ok(await a.figure(family) <= nowSeconds + 1);
  }));

Deno.test("two electors share the families of one registry", async () => {
  const registry = new Registry();
  const [one, two] = ["one", "two"].map((name) => new ElectionMetrics(registry, name));
  one?.acquired();
  two?.conflict();
  const text = await registry.metrics();
  assert.ok(text.includes('kubernetes_leader{lease="one"} 1'));
  assert.ok(text.includes('kubernetes_leader{lease="two"} 0'));
  assert.ok(text.includes('kubernetes_lease_conflicts_total{lease="two"} 1'));
});

Deno.test("a registry that has another metric of the name is refused", () => {
  const registry = new Registry();
  new Gauge({ name: "kubernetes_lease_errors_total", help: "x", registers: [registry] });
  assert.throws(() => new ElectionMetrics(registry, "one"), /must be of the kind Counter/);
});
