import assert from "node:assert/strict";
import { type LeaderState, staticLeadership } from "../../lib/election/mod.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";
import { inWorld, LEASE } from "./world.ts";

const never = new AbortController().signal;

Deno.test("a handle shows identity, Lease and holder", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const { leadership } = a.elector;
    assert.equal(leadership.identity, "a");
    assert.equal(leadership.leaseName, LEASE);
    assert.equal(leadership.holder, "a");
    assert.equal(leadership.term, a.term);
    const b = world.started("b");
    await world.clock.advance(0);
    assert.equal(b.elector.leadership.term, null);
    assert.equal(b.elector.leadership.holder, "a");
  }));

Deno.test("a subscriber gets the state now and after each change, and the newest when it is slow", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const states: LeaderState[] = [];
    const reading = (async () => {
      for await (const state of a.elector.leadership.subscribe(never)) states.push(state);
    })();
    await world.clock.advance(0);
    assert.deepEqual(states, [{ leading: false, holder: "", validUntil: null, draining: false }]);
    a.elector.start();
    await world.clock.advance(0);
    assert.deepEqual(states.at(-1), {
      leading: true,
      holder: "a",
      validUntil: 10_000,
      draining: false,
    });
    await world.clock.advance(2_500);
    assert.ok((states.at(-1)?.validUntil ?? 0) > 10_000);
    await a.stop();
    await reading;
    assert.equal(states.at(-1)?.leading, false);
  }));

Deno.test("a follower's subscriber is told nothing while nothing changes", () =>
  inWorld(async (world) => {
    world.started("a");
    await world.clock.advance(0);
    const b = world.started("b");
    await world.clock.advance(1_000);
    let told = 0;
    const reading = (async () => {
      for await (const _state of b.elector.leadership.subscribe(never)) told++;
    })();
    await world.clock.advance(30_000);
    assert.equal(told, 1);
    await b.stop();
    await reading;
  }));

Deno.test("a subscription ends when its signal aborts", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const ending = new AbortController();
    const reading = (async () => {
      for await (const _state of a.elector.leadership.subscribe(ending.signal)) { /* go on */ }
    })();
    await world.clock.advance(0);
    ending.abort();
    await reading;
  }));

Deno.test("waiting for the lead answers true with it, and false when the elector ends first", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const [first, second] = [1, 2].map(() => a.elector.leadership.waitUntilLeader(never));
    a.elector.start();
    await world.clock.advance(0);
    assert.equal(await first, true);
    assert.equal(await second, true);
    const b = world.started("b");
    const waiting = b.elector.leadership.waitUntilLeader(never);
    await world.clock.advance(1_000);
    await b.stop();
    assert.equal(await waiting, false);
  }));

Deno.test("waiting for the lead rejects with the reason of its signal", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const reason = new Error("enough");
    const ending = new AbortController();
    const waiting = a.elector.leadership.waitUntilLeader(ending.signal);
    await world.clock.advance(0);
    ending.abort(reason);
    await assert.rejects(waiting, reason);
    await assert.rejects(a.elector.leadership.waitUntilFollower(AbortSignal.abort(reason)), reason);
  }));

Deno.test("waiting for the end of the lead returns at once for a follower, and at the deadline for a leader", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    await a.elector.leadership.waitUntilFollower(never);
    a.elector.start();
    await world.clock.advance(0);
    a.client.fault = () => ({ type: "hang" });
    let returned = false;
    const waiting = a.elector.leadership.waitUntilFollower(never).then(() => returned = true);
    await world.clock.advance(9_999);
    assert.equal(returned, false);
    await world.clock.advance(1);
    assert.equal(returned, true);
    await waiting;
  }));

Deno.test("an elector that dies while it leads ends its term, its waits and its terms", () =>
  inWorld(async (world) => {
    let broken = false;
    const entropy = {
      bytes: (length: number) => new Uint8Array(length),
      uuid: () => "",
      fraction: () => {
        if (broken) throw new TypeError("no more randomness");
        return 0;
      },
    };
    const a = world.started("a", { entropy });
    await world.clock.advance(0);
    const waiting = a.elector.leadership.waitUntilFollower(never);
    broken = true;
    await world.clock.advance(3_000);
    assert.equal(a.leads, false);
    assert.equal(a.term.isValid(), false);
    await waiting;
    assert.equal(await a.elector.leadership.waitUntilLeader(never), false);
    assert.equal(a.log.at("error")[0]?.fields.error, "TypeError");
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, "a", "nothing is released");
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("a static leadership leads from its start, without an end, until it is stopped", async () => {
  const clock = new TestClock();
  const candidate = staticLeadership({ clock, identity: "dev", leaseName: "app" });
  const { leadership } = candidate;
  assert.equal(leadership.isLeader(), false);
  candidate.start();
  candidate.start();
  assert.equal(leadership.isLeader(), true);
  assert.equal(leadership.holder, "dev");
  const { value: term } = await candidate.terms().next();
  assert.equal(term?.token, "1");
  assert.equal(term?.validUntil, null);
  await clock.advance(10_000_000);
  clock.jumpWall(10_000_000);
  assert.equal(leadership.isLeader(), true);
  let stopped = false;
  const work = Promise.withResolvers<void>();
  term?.waitUntil(work.promise);
  const budget = new AbortController();
  const stopping = candidate.stop(budget.signal).then(() => stopped = true);
  await clock.advance(0);
  assert.equal(leadership.isLeader(), false);
  assert.equal(term?.signal.aborted, true);
  assert.equal(stopped, false);
  // The iterator was not asked again, so its body is unsettled too: the budget ends the wait.
  work.resolve();
  budget.abort();
  await stopping;
  assert.equal(term?.isValid(), false);
  assert.equal(await leadership.waitUntilLeader(never), false);
});

Deno.test("a static leadership stops when its work has settled", async () => {
  const clock = new TestClock();
  const candidate = staticLeadership({ clock, identity: "dev", leaseName: "app" });
  candidate.start();
  let ended = 0;
  const loop = (async () => {
    for await (const term of candidate.terms()) {
      await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
      ended++;
    }
  })();
  await clock.advance(0);
  await candidate.stop(never);
  await loop;
  assert.equal(ended, 1);
});

Deno.test("a static leadership can be one that never leads", async () => {
  const clock = new TestClock();
  const candidate = staticLeadership({ clock, identity: "x", leaseName: "app", leading: false });
  candidate.start();
  assert.equal(candidate.leadership.isLeader(), false);
  assert.equal(candidate.leadership.term, null);
  await candidate.stop(never);
});
