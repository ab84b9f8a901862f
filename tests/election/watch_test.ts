import assert from "node:assert/strict";
import { inWorld, LEASE } from "./world.ts";

Deno.test("a waiter whose watch works asks at most four times a minute", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const b = world.started("b");
    await world.clock.advance(1_000);
    const reads = b.client.count("get");
    await world.clock.advance(600_000);
    assert.equal(a.leads, true);
    const perMinute = (b.client.count("get") - reads) / 10;
    assert.ok(perMinute >= 2 && perMinute <= 4, `${perMinute} reads in a minute`);
    assert.equal(b.client.count("watch"), 1);
  }));

for (const mode of ["forbidden", "silent"] as const) {
  Deno.test(`a waiter whose watch is ${mode} polls at the retry period, and fails over in time`, () =>
    inWorld(async (world) => {
      const a = world.started("a");
      await world.clock.advance(0);
      const b = world.candidate("b");
      b.client.watchMode = mode;
      b.elector.start();
      await world.clock.advance(60_000);
      const reads = b.client.count("get");
      await world.clock.advance(60_000);
      const polls = b.client.count("get") - reads;
      assert.ok(polls >= 24 && polls <= 31, `${polls} polls in a minute`);
      await a.crash();
      const tookMs = await world.until(() => b.leads);
      assert.ok(tookMs <= 20_000, `${tookMs} ms`);
    }));
}

Deno.test("a watch that is forbidden is told once", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    a.client.watchMode = "forbidden";
    a.elector.start();
    await world.clock.advance(60_000);
    const lines = a.log.lines.filter((line) => line.message.includes("watch"));
    assert.deepEqual(lines.map((line) => line.fields.error), ["forbidden"]);
  }));

Deno.test("a watch that works again after a failure is relied on again", () =>
  inWorld(async (world) => {
    world.started("a");
    await world.clock.advance(0);
    const b = world.candidate("b");
    b.client.watchMode = "forbidden";
    b.elector.start();
    await world.clock.advance(30_000);
    b.client.watchMode = "works";
    // The client tries again 30 s and a fifth after its last failure at the latest.
    await world.clock.advance(40_000);
    const reads = b.client.count("get");
    await world.clock.advance(60_000);
    assert.ok(b.client.count("get") - reads <= 4);
  }));

Deno.test("three waiters that see one release: one takes it, the others lost a race", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const waiters = ["b", "c", "d"].map((identity) => world.started(identity));
    await world.clock.advance(5_000);
    for (const { client } of waiters) client.latencyMs = 3;
    await a.stop();
    await world.clock.advance(20);
    assert.equal(waiters.filter((waiter) => waiter.leads).length, 1);
    const lost = await Promise.all(
      waiters.map((w) => w.figure("kubernetes_lease_conflicts_total")),
    );
    assert.deepEqual(lost.sort(), [0, 1, 1]);
  }));

Deno.test("a holder whose Lease is deleted stops believing at once, and wins a new one with a greater token", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(3_000);
    world.leases.delete(LEASE);
    await world.clock.advance(0);
    assert.deepEqual(a.losses, ["deleted"]);
    assert.equal(a.terms.length, 2);
    assert.ok(BigInt(a.terms[1]?.token ?? "") > BigInt(a.terms[0]?.token ?? ""));
  }));

Deno.test("a holder that may not watch learns of the deletion at its next renewal", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    a.client.watchMode = "forbidden";
    a.elector.start();
    await world.clock.advance(3_000);
    world.leases.delete(LEASE);
    await world.clock.advance(2_500);
    assert.deepEqual(a.losses, ["deleted"]);
    assert.equal(a.leads, true, "it campaigned anew");
    assert.equal(await a.figure("kubernetes_lease_errors_total"), 1);
  }));

for (const mode of ["works", "forbidden"] as const) {
  Deno.test(`a waiter that saw a holder waits out its duration when the Lease vanishes (watch ${mode})`, () =>
    inWorld(async (world) => {
      const a = world.started("a");
      await world.clock.advance(0);
      const b = world.candidate("b");
      b.client.watchMode = mode;
      b.elector.start();
      await world.clock.advance(10_000);
      // The holder is cut off: it neither hears of the deletion nor can it write.
      a.client.watchMode = "silent";
      a.client.fault = () => ({ type: "hang" });
      world.leases.delete(LEASE);
      let both = false;
      const tookMs = await world.until(() => {
        both ||= a.leads && b.leads;
        return b.leads;
      });
      assert.equal(both, false);
      assert.ok(tookMs >= 15_000 && tookMs <= 20_000, `${tookMs} ms`);
    }));
}

Deno.test("a Lease that was deleted and made anew, empty, is no release either", () =>
  inWorld(async (world) => {
    world.foreignLease("x", 20);
    const b = world.started("b");
    await world.clock.advance(5_000);
    world.leases.delete(LEASE);
    world.foreignLease("", 1);
    const tookMs = await world.until(() => b.leads);
    assert.ok(tookMs >= 20_000 && tookMs <= 23_000, `${tookMs} ms`);
  }));

Deno.test("a candidate that never saw a holder creates a missing Lease at once", () =>
  inWorld(async (world) => {
    const b = world.started("b");
    await world.clock.advance(0);
    assert.equal(b.leads, true);
  }));

Deno.test("an event that is older than the own write says nothing about the holder", () =>
  inWorld(async (world) => {
    world.foreignLease("x", 1);
    const a = world.candidate("a");
    a.client.watchDelayMs = 1_500;
    a.elector.start();
    await world.clock.advance(500);
    // Told only after the take-over below.
    world.leases.edit(LEASE, { spec: { holderIdentity: "y", leaseDurationSeconds: 1 } });
    await world.until(() => a.leads);
    await world.clock.advance(30_000);
    assert.equal(a.terms.length, 1);
  }));

Deno.test("an event of an older object of the name says nothing about the holder of the new one", () =>
  inWorld(async (world) => {
    world.foreignLease("x", 1);
    const a = world.candidate("a");
    a.client.watchDelayMs = 8_000;
    a.elector.start();
    await world.clock.advance(500);
    world.leases.edit(LEASE, { spec: { holderIdentity: "y" } });
    world.leases.delete(LEASE);
    const tookMs = await world.until(() => a.leads);
    assert.ok(tookMs < 7_000, `${tookMs} ms: before the events come`);
    await world.clock.advance(60_000);
    assert.equal(a.terms.length, 1);
  }));

Deno.test("a release that was taken before it is told is passed over", () =>
  inWorld(async (world) => {
    world.foreignLease("x", 60);
    const a = world.candidate("a");
    a.client.watchDelayMs = 20_000;
    a.elector.start();
    await world.clock.advance(500);
    world.leases.edit(LEASE, { spec: { holderIdentity: "" } });
    world.leases.edit(LEASE, { spec: { holderIdentity: "y" } });
    await world.clock.advance(45_000);
    assert.equal(a.elector.leadership.holder, "y");
    assert.equal(await a.figure("kubernetes_lease_conflicts_total"), 0);
    assert.equal(a.client.count("patch"), 0);
  }));

Deno.test("a holder whose watch begins anew and shows no Lease renews at once, and so learns of it", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(100);
    // The server forgets what happens while the watch is broken, so the watch has to list.
    world.fake.faults.add({ verb: "watch", count: 1, fault: { type: "watch-break" } });
    world.leases.delete(LEASE);
    world.fake.compact();
    const tookMs = await world.until(() => a.losses.length > 0);
    assert.ok(tookMs < 1_900, `${tookMs} ms: before the next renewal`);
    assert.deepEqual(a.losses, ["deleted"]);
  }));

Deno.test("a waiter polls at once when a watch that worked fails", () =>
  inWorld(async (world) => {
    world.started("a");
    await world.clock.advance(0);
    const b = world.started("b");
    await world.clock.advance(30_000);
    const reads = b.client.count("get");
    b.client.watchMode = "forbidden";
    world.fake.faults.add({ verb: "watch", user: "candidate-2", fault: { type: "watch-break" } });
    await world.clock.advance(8_000);
    assert.ok(b.client.count("get") - reads >= 3, `${b.client.count("get") - reads} reads`);
  }));

for (const watchMode of ["works", "forbidden"] as const) {
  Deno.test(`a store that was restored to a time before the Lease costs the lead, and nobody's Lease is overwritten (watch ${watchMode})`, () =>
    inWorld(async (world) => {
      const backup = world.fake.snapshot();
      const a = world.candidate("a");
      a.client.watchMode = watchMode;
      a.elector.start();
      await world.clock.advance(100);
      world.fake.restore(backup);
      world.foreignLease("y", 15);
      const { metadata } = world.leases.read(LEASE);
      assert.equal(metadata.resourceVersion, a.term.token, "the version was given a second time");
      await world.clock.advance(2_500);
      assert.equal(a.losses.length, 1);
      assert.equal(world.leases.read(LEASE).spec?.holderIdentity, "y");
    }));
}

Deno.test("a watch that breaks its promise and throws costs speed only", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    a.client.api.watch = () => {
      throw new TypeError("Cannot watch");
    };
    a.elector.start();
    await world.clock.advance(10_000);
    assert.equal(a.leads, true);
    assert.equal(a.log.at("warn").length, 1);
    await a.stop();
  }));
