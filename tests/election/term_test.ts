import assert from "node:assert/strict";
import { LeadershipLostError } from "../../lib/election/mod.ts";
import { sendInstant } from "../../lib/election/term.ts";
import { inWorld, LEASE } from "./world.ts";

Deno.test("on a stop the Lease is renewed until the term's work has settled, and released then", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const b = world.started("b");
    const work = Promise.withResolvers<void>();
    a.term.waitUntil(work.promise);
    const stopped = a.stop();
    await world.clock.advance(0);
    assert.equal(a.leads, false, "no new work");
    assert.equal(a.term.signal.aborted, true);
    assert.equal(a.term.isValid(), true, "the work that ends is still protected");
    await world.clock.advance(60_000);
    assert.equal(b.leads, false);
    assert.equal(a.term.isValid(), true);
    work.resolve();
    await world.clock.advance(0);
    await stopped;
    assert.equal(a.term.isValid(), false);
    assert.equal(b.leads, true);
  }));

Deno.test("at the end of the budget it stops renewing and does not release", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const b = world.started("b");
    a.term.waitUntil(new Promise(() => {}));
    const budget = new AbortController();
    const stopped = a.stop(budget.signal);
    await world.clock.advance(20_000);
    assert.equal(a.term.isValid(), true);
    const writes = a.client.count("patch");
    budget.abort();
    await stopped;
    assert.equal(a.term.isValid(), false);
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, "a");
    const tookMs = await world.until(() => b.leads);
    assert.ok(tookMs >= 12_500, `${tookMs} ms`);
    assert.equal(a.client.count("patch"), writes);
  }));

Deno.test("a budget that is over already ends it like a crash", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    await a.stop(AbortSignal.abort());
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, "a");
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("belief that is lost during a stop ends the protection, and nothing is released", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const work = Promise.withResolvers<void>();
    a.term.waitUntil(work.promise);
    const stopped = a.stop();
    world.leases.edit(LEASE, { spec: { holderIdentity: "z" } });
    await world.clock.advance(0);
    assert.equal(a.term.isValid(), false);
    work.resolve();
    await world.clock.advance(0);
    await stopped;
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, "z");
  }));

Deno.test("a replica with unsettled work of a lost term does not campaign, and says so", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const work = Promise.withResolvers<void>();
    a.term.waitUntil(work.promise);
    world.leases.delete(LEASE);
    await world.clock.advance(60_000);
    assert.deepEqual(a.losses, ["deleted"]);
    assert.equal(world.leases.has(LEASE), false);
    assert.equal(a.elector.leadership.state.draining, true);
    work.reject(new Error("the outcome of the work is not looked at"));
    await world.clock.advance(0);
    assert.equal(a.leads, true);
    assert.equal(a.elector.leadership.state.draining, false);
    assert.equal(a.terms.length, 2);
  }));

Deno.test("the body of a for-await loop counts as work of its term", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    const body = Promise.withResolvers<void>();
    let terms = 0;
    const loop = (async () => {
      for await (const _term of a.elector.terms()) {
        terms++;
        if (terms === 1) await body.promise;
      }
    })();
    await world.clock.advance(0);
    world.leases.delete(LEASE);
    await world.clock.advance(30_000);
    assert.equal(terms, 1);
    assert.equal(a.leads, false);
    body.resolve();
    await world.clock.advance(0);
    assert.equal(terms, 2);
    await a.stop();
    await loop;
  }));

Deno.test("a term that resigns is released, and its replica waits one lease duration", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    a.term.resign();
    a.term.resign();
    await world.clock.advance(0);
    assert.deepEqual(a.losses, ["resigned"]);
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, undefined);
    await world.clock.advance(14_900);
    assert.equal(a.leads, false);
    await world.clock.advance(200);
    assert.equal(a.leads, true);
    assert.equal(a.terms.length, 2);
  }));

Deno.test("a term that resigned is taken over at once by a waiter", () =>
  inWorld(async (world) => {
    const a = world.started("a", { releaseOnStop: false });
    await world.clock.advance(0);
    const b = world.started("b");
    await world.clock.advance(1_000);
    a.term.resign();
    await world.clock.advance(0);
    assert.equal(b.leads, true);
  }));

Deno.test("work cannot be registered once nothing waits for it any more", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const { term } = a;
    await a.stop();
    assert.throws(
      () => term.waitUntil(Promise.resolve()),
      (error) => error instanceof LeadershipLostError && error.reason === "stopped",
    );
  }));

Deno.test("a loss says in its message which Lease and why", () => {
  const error = new LeadershipLostError("app", "renew_deadline");
  assert.equal(
    error.message,
    "Cannot go on as the leader of app: the renew deadline passed without an acknowledged write",
  );
});

Deno.test("terms that were lost before they were asked for are passed over", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const terms = a.elector.terms();
    world.leases.delete(LEASE);
    await world.clock.advance(0);
    const { value } = await terms.next();
    assert.equal(value?.token, a.terms[1]?.token);
    await terms.return();
  }));

Deno.test("a stop while the write that takes the Lease is under way frees it again", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    a.client.latencyMs = 100;
    a.elector.start();
    await world.clock.advance(250);
    const stopped = a.stop();
    await world.clock.advance(1_000);
    await stopped;
    assert.equal(a.terms.length, 0);
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, undefined);
  }));

for (const watchMode of ["works", "forbidden"] as const) {
  Deno.test(`a stop frees a Lease whose take-over was stored and never answered (watch ${watchMode})`, () =>
    inWorld(async (world) => {
      const a = world.candidate("a");
      a.client.watchMode = watchMode;
      a.client.fault = (verb) => verb === "create" ? { type: "lost-answer", as: "hang" } : null;
      a.elector.start();
      await world.clock.advance(1_000);
      const stopped = a.stop();
      await world.clock.advance(10_000);
      await stopped;
      assert.equal(world.leases.read(LEASE).spec?.holderIdentity, undefined);
    }));

  Deno.test(`a stop after a lost race frees a Lease that turns out to be the own (watch ${watchMode})`, () =>
    inWorld(async (world) => {
      const a = world.candidate("a");
      a.client.watchMode = watchMode;
      a.elector.start();
      await world.clock.advance(500);
      world.leases.edit(LEASE, { metadata: { labels: { by: "somebody" } } });
      const stopped = a.stop();
      await world.clock.advance(0);
      await stopped;
      assert.equal(world.leases.read(LEASE).spec?.holderIdentity, undefined);
    }));
}

Deno.test("a moment of sending is rounded down, so that belief is never longer for it", () => {
  const clock = { monotonic: () => 7.9, wall: () => 1_007.9, timer: () => () => {} };
  assert.deepEqual(sendInstant(clock), { atMs: 7, wallOffsetMs: 1_000 });
});
