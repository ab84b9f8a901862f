/**
 * Every fault of a call, in every phase of an election, and what must come of it.
 *
 * In all of them: never two leaders, and a lead that a retry could still save is not lost.
 */

import assert from "node:assert/strict";
import type { Fault } from "./network.ts";
import { inWorld, LEASE, type World } from "./world.ts";

const faults: Readonly<Record<string, Fault>> = {
  "latency": { type: "slow", thereMs: 700, backMs: 700 },
  "a 409": { type: "status", code: 409 },
  "a 403": { type: "status", code: 403 },
  "a 404": { type: "status", code: 404 },
  "a 429 with Retry-After": { type: "status", code: 429, retryAfterSeconds: 4 },
  "a 500": { type: "status", code: 500 },
  "a 503": { type: "status", code: 503 },
  "a hang": { type: "hang" },
  "a stored write without an answer": { type: "lost-answer", as: "hang" },
  "a stored write and a connection that breaks": { type: "lost-answer", as: "reset" },
  "an answer that stops in its body": { type: "hang-body" },
  "an answer that comes late": { type: "delayed-answer", ms: 2_500 },
  "a connection that breaks": { type: "reset" },
  "a write that is stored long after": { type: "slow", thereMs: 4_000, backMs: 0 },
};

/** The losses of a leader, when the fault strikes one renewal. The rest keep the term. */
const lossOf: Readonly<Record<string, string>> = { "a 409": "conflict", "a 404": "deleted" };

/** The faults that a call survives. */
const slow: ReadonlySet<string> = new Set(["latency", "an answer that comes late"]);

async function neverTwo(world: World, durationMs: number): Promise<void> {
  for (let passed = 0; passed < durationMs; passed += 100) {
    await world.clock.advance(100);
    const leaders = world.candidates.filter((candidate) => candidate.leads);
    assert.ok(leaders.length <= 1, `${leaders.length} leaders`);
  }
}

for (const [name, fault] of Object.entries(faults)) {
  Deno.test(`acquiring, ${name}: the candidate leads within a lease duration all the same`, () =>
    inWorld(async (world) => {
      const a = world.candidate("a");
      let strikes = 1;
      a.client.fault = (verb) => verb === "create" && strikes-- > 0 ? fault : null;
      a.elector.start();
      const tookMs = await world.until(() => a.leads);
      assert.ok(tookMs <= 8_000, `${tookMs} ms`);
      assert.equal(world.leases.read(LEASE).spec?.leaseTransitions, 0);
      await neverTwo(world, 20_000);
      assert.equal(a.terms.length, 1);
    }));

  Deno.test(`acquiring while another waits, ${name}: one of them leads, and never both`, () =>
    inWorld(async (world) => {
      world.foreignLease("x", 3);
      const candidates = [world.candidate("a"), world.candidate("b")];
      for (const { client, elector } of candidates) {
        let strikes = 1;
        client.latencyMs = 2;
        client.fault = (verb) => verb === "patch" && strikes-- > 0 ? fault : null;
        elector.start();
      }
      await neverTwo(world, 30_000);
      assert.equal(candidates.filter((candidate) => candidate.leads).length, 1);
    }));

  Deno.test(`leading, ${name}: ${lossOf[name] ?? "the term goes on"}`, () =>
    inWorld(async (world) => {
      const a = world.started("a");
      await world.clock.advance(0);
      const b = world.started("b");
      let strikes = 1;
      a.client.fault = (verb) => verb === "patch" && strikes-- > 0 ? fault : null;
      await neverTwo(world, 30_000);
      const loss = lossOf[name];
      assert.deepEqual(a.losses, loss === undefined ? [] : [loss]);
      assert.equal(a.leads, true, "it holds the Lease, again or still");
      assert.equal(b.terms.length, 0);
      assert.equal(world.leases.read(LEASE).spec?.leaseTransitions, 0);
    }));

  Deno.test(`leading, ${name} on every call: the lead ends in time, and another takes over`, () =>
    inWorld(async (world) => {
      const a = world.started("a");
      await world.clock.advance(0);
      const b = world.started("b");
      await world.clock.advance(1_000);
      a.client.fault = () => fault;
      await neverTwo(world, 60_000);
      if (slow.has(name)) assert.equal(a.terms.length, 1, "a slow server costs nothing");
      else assert.ok(a.losses.length >= 1);
      assert.equal(a.leads || b.leads, true);
    }));

  Deno.test(`releasing, ${name}: the Lease is freed all the same`, () =>
    inWorld(async (world) => {
      const a = world.started("a");
      await world.clock.advance(0);
      const b = world.started("b");
      await world.clock.advance(500);
      let strikes = 1;
      a.client.fault = (verb) => verb === "patch" && strikes-- > 0 ? fault : null;
      const stopped = a.stop();
      const tookMs = await world.until(() => b.leads);
      await world.clock.advance(10_000);
      await stopped;
      assert.ok(tookMs <= 5_000, `${tookMs} ms`);
      assert.equal(a.leads, false);
    }));

  Deno.test(`releasing, ${name} on every call: the stop ends all the same, and the failure is counted`, () =>
    inWorld(async (world) => {
      const a = world.started("a");
      await world.clock.advance(500);
      a.client.fault = () => fault;
      let ended = false;
      const stopped = a.stop().then(() => ended = true);
      await world.clock.advance(20_000);
      assert.equal(ended, true);
      await stopped;
      if (slow.has(name)) return;
      const failures = await a.figure("kubernetes_lease_errors_total") +
        await a.figure("kubernetes_lease_conflicts_total");
      assert.ok(failures >= 1, `${failures} failures`);
    }));
}
