import assert from "node:assert/strict";
import { inWorld, LEASE, type World } from "./world.ts";

Deno.test("a candidate creates the Lease and leads", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    assert.equal(a.leads, true);
    const { metadata, spec } = world.leases.read(LEASE);
    assert.equal(spec?.holderIdentity, "a");
    assert.equal(spec?.leaseDurationSeconds, 15);
    assert.equal(spec?.leaseTransitions, 0);
    assert.match(spec?.acquireTime ?? "", /^2026-01-01T00:00:00\.\d{6}Z$/);
    assert.match(spec?.renewTime ?? "", /^2026-01-01T00:00:00\.000000Z$/);
    assert.equal(a.term.token, metadata.resourceVersion);
    assert.equal(a.term.validUntil, 10_000);
    assert.equal(a.elector.leadership.holder, "a");
  }));

Deno.test("ten seconds of leading give at least four renewals, each one write and no read", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const reads = a.client.count("get");
    await world.clock.advance(10_000);
    assert.ok(a.client.count("patch") >= 4, `${a.client.count("patch")} renewals`);
    await world.clock.advance(50_000);
    assert.ok(a.client.count("patch") <= 30, `${a.client.count("patch")} writes in a minute`);
    assert.equal(a.client.count("get"), reads);
    assert.equal(a.terms.length, 1);
    assert.equal(await a.figure("leader_election_slowpath_total"), 0);
  }));

Deno.test("a follower waits for 60 s while the holder renews", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const b = world.started("b");
    for (let second = 0; second < 60; second++) {
      await world.clock.advance(1_000);
      assert.equal(a.leads, true);
      assert.equal(b.leads, false);
      assert.equal(b.elector.leadership.holder, "a");
    }
  }));

Deno.test("a crash fails over in 12.5 to 20 seconds", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const b = world.started("b");
    await world.clock.advance(7_000);
    await a.crash();
    const tookMs = await world.until(() => b.leads);
    assert.ok(tookMs >= 12_500 && tookMs <= 20_000, `${tookMs} ms`);
    assert.equal(world.leases.read(LEASE).spec?.leaseTransitions, 1);
  }));

Deno.test("a released Lease is taken at once by a waiter that watches", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const b = world.started("b");
    await world.clock.advance(5_000);
    const reads = b.client.count("get");
    await a.stop();
    await world.clock.advance(0);
    assert.equal(b.leads, true);
    assert.equal(b.client.count("get"), reads, "the event stands for the read");
    assert.ok(BigInt(b.term.token) > BigInt(a.term.token));
  }));

Deno.test("a released Lease is taken within 2.5 s by a waiter that may not watch", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    const b = world.candidate("b");
    b.client.watchMode = "forbidden";
    b.elector.start();
    await world.clock.advance(5_000);
    await a.stop();
    const tookMs = await world.until(() => b.leads);
    assert.ok(tookMs <= 2_500, `${tookMs} ms`);
  }));

Deno.test("a release empties the holder, sets 1 s, and keeps the transitions", () =>
  inWorld(async (world) => {
    world.foreignLease("x", 1);
    const a = world.started("a");
    await world.until(() => a.leads);
    await a.stop();
    const { spec } = world.leases.read(LEASE);
    assert.equal(spec?.holderIdentity, undefined);
    assert.equal(spec?.leaseDurationSeconds, 1);
    assert.equal(spec?.leaseTransitions, 4);
    assert.deepEqual(a.losses, ["stopped"]);
    assert.equal(a.leads, false);
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("with release off, a stop leaves the Lease to expire", () =>
  inWorld(async (world) => {
    const a = world.started("a", { releaseOnStop: false });
    await world.clock.advance(0);
    await a.stop();
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, "a");
    const b = world.started("b");
    const tookMs = await world.until(() => b.leads);
    assert.ok(tookMs >= 15_000, `${tookMs} ms`);
  }));

Deno.test("an outage longer than the deadline ends the lead, and the same holder wins it back without a transition", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    a.client.fault = () => ({ type: "status", code: 503 });
    const lostMs = await world.until(() => !a.leads);
    assert.ok(lostMs >= 9_900 && lostMs <= 10_100, `${lostMs} ms`);
    await world.clock.advance(2_000);
    a.client.fault = () => null;
    await world.until(() => a.leads);
    assert.equal(world.leases.read(LEASE).spec?.leaseTransitions, 0);
    assert.deepEqual(a.losses, ["renew_deadline"]);
    assert.equal(await a.figure("kubernetes_leader_acquired_total"), 2);
    assert.equal(await a.figure("kubernetes_leader_lost_total"), 1);
    assert.ok(BigInt(a.terms[1]?.token ?? "") > BigInt(a.terms[0]?.token ?? ""));
    const warnings = a.log.at("warn").filter((line) => line.message.startsWith("A call"));
    assert.equal(warnings.length, 1, "the first failure of a run is a warning, the rest is not");
    assert.equal(warnings[0]?.fields.error, "unavailable");
    assert.equal(a.log.at("info").filter((line) => line.message.includes("again")).length, 1);
  }));

Deno.test("one call that hangs does not cost the lead", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    let hangs = 1;
    a.client.fault = (verb) => verb === "patch" && hangs-- > 0 ? { type: "hang" } : null;
    await world.clock.advance(30_000);
    assert.equal(a.terms.length, 1);
    assert.equal(a.leads, true);
    assert.equal(await a.figure("leader_election_slowpath_total"), 1);
  }));

Deno.test("calls that hang for ever end the lead at the deadline, and not later", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    a.client.fault = () => ({ type: "hang" });
    await world.clock.advance(9_999);
    assert.equal(a.leads, true);
    assert.equal(a.term.signal.aborted, false);
    await world.clock.advance(1);
    assert.equal(a.leads, false);
    assert.deepEqual(a.losses, ["renew_deadline"]);
  }));

Deno.test("a lost answer is not a success and not a conflict: the holder reads, and goes on", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    let lost = 1;
    a.client.fault = (verb) =>
      verb === "patch" && lost-- > 0 ? { type: "lost-answer", as: "hang" } : null;
    await world.clock.advance(3_000);
    assert.equal(a.term.validUntil, 10_000, "an answer that did not come makes belief no longer");
    await world.clock.advance(27_000);
    assert.equal(a.terms.length, 1);
    assert.equal(await a.figure("kubernetes_lease_conflicts_total"), 0);
    assert.equal(await a.figure("kubernetes_lease_errors_total"), 1);
  }));

Deno.test("another holder that is seen through the watch ends the lead at once", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(500);
    world.leases.edit(LEASE, { spec: { holderIdentity: "z" } });
    await world.clock.advance(0);
    assert.equal(a.leads, false);
    assert.deepEqual(a.losses, ["other_holder"]);
    assert.equal(a.elector.leadership.holder, "z");
  }));

Deno.test("a conflict ends belief at once and is counted as a lost race", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    a.client.watchMode = "forbidden";
    a.elector.start();
    await world.clock.advance(500);
    world.leases.edit(LEASE, { spec: { holderIdentity: "z" } });
    await world.clock.advance(2_500);
    assert.deepEqual(a.losses, ["conflict"]);
    assert.equal(a.leads, false);
    assert.equal(await a.figure("kubernetes_lease_conflicts_total"), 1);
    assert.equal(await a.figure("kubernetes_lease_errors_total"), 0);
    assert.deepEqual(a.log.at("warn").map((line) => line.fields.reason), ["conflict"]);
  }));

Deno.test("another holder that is found by the read after a lost answer ends the lead", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    a.client.watchMode = "forbidden";
    a.elector.start();
    await world.clock.advance(0);
    a.client.fault = (verb) => verb === "patch" ? { type: "hang" } : null;
    await world.clock.advance(3_000);
    world.leases.edit(LEASE, { spec: { holderIdentity: "z" } });
    await world.clock.advance(4_000);
    assert.deepEqual(a.losses, ["other_holder"]);
  }));

Deno.test("the duration of the record counts, and not the own one", () =>
  inWorld(async (world) => {
    world.foreignLease("x", 30);
    const a = world.started("a");
    const tookMs = await world.until(() => a.leads);
    assert.ok(tookMs >= 30_000 && tookMs <= 33_000, `${tookMs} ms`);
  }));

Deno.test("a record without a duration counts as one with the own duration", () =>
  inWorld(async (world) => {
    world.foreignLease("x", undefined);
    const a = world.started("a");
    const tookMs = await world.until(() => a.leads);
    assert.ok(tookMs >= 15_000 && tookMs <= 18_000, `${tookMs} ms`);
  }));

Deno.test("a huge duration is capped at one hour", () =>
  inWorld(async (world) => {
    world.foreignLease("x", 2_147_483_647);
    const a = world.started("a");
    await world.clock.advance(3_599_000);
    assert.equal(a.leads, false);
    await world.clock.advance(4_000);
    assert.equal(a.leads, true);
  }));

Deno.test("a take-over and a renewal write the own duration", () =>
  inWorld(async (world) => {
    world.foreignLease("x", 2);
    const a = world.started("a");
    await world.until(() => a.leads);
    assert.equal(world.leases.read(LEASE).spec?.leaseDurationSeconds, 15);
    world.leases.edit(LEASE, { spec: { leaseDurationSeconds: 99 } });
    await world.clock.advance(3_000);
    assert.equal(world.leases.read(LEASE).spec?.leaseDurationSeconds, 15);
    assert.equal(a.terms.length, 1);
  }));

Deno.test("a free Lease is taken at once", () =>
  inWorld(async (world) => {
    world.foreignLease("", 15);
    const a = world.started("a");
    await world.clock.advance(0);
    assert.equal(a.leads, true);
    assert.equal(world.leases.read(LEASE).spec?.leaseTransitions, 4);
  }));

Deno.test("transitions stop at the highest count that can be stored, and a holder name of 10 kB does no harm", () =>
  inWorld(async (world) => {
    world.foreignLease("x".repeat(10_000), 1, { leaseTransitions: 2_147_483_647 });
    const a = world.started("a");
    await world.until(() => a.leads);
    assert.equal(world.leases.read(LEASE).spec?.leaseTransitions, 2_147_483_647);
  }));

Deno.test("a candidate that is forbidden never leads, says so once, and goes on trying", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    a.client.fault = () => ({ type: "status", code: 403 });
    a.client.watchMode = "forbidden";
    a.elector.start();
    await world.clock.advance(60_000);
    assert.equal(a.terms.length, 0);
    assert.equal(a.log.at("warn").length, 1);
    assert.equal(a.log.at("warn")[0]?.fields.error, "forbidden");
    assert.ok(a.client.count("get") >= 25);
  }));

Deno.test("a holder that is forbidden to renew leads until the deadline, and says why it lost", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    a.client.fault = () => ({ type: "status", code: 403 });
    await world.clock.advance(9_900);
    assert.equal(a.leads, true);
    await world.clock.advance(200);
    assert.deepEqual(a.losses, ["forbidden"]);
  }));

Deno.test("belief counts from the time of sending, however slow the answer", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    a.client.fault = (verb) =>
      verb === "create" ? { type: "slow", thereMs: 0, backMs: 1_500 } : null;
    a.elector.start();
    await world.clock.advance(1_500);
    assert.equal(a.leads, true);
    assert.equal(a.term.validUntil, 10_000);
  }));

Deno.test("a renewal makes belief longer from the time of its sending, however slow its answer", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(0);
    let sentMs = 0;
    a.client.fault = (verb) => {
      if (verb === "patch") sentMs = world.clock.monotonic();
      return { type: "slow", thereMs: 0, backMs: 1_200 };
    };
    await world.until(() => a.term.validUntil !== 10_000);
    assert.equal(a.term.validUntil, sentMs + 10_000);
  }));

Deno.test("losing the race to create is a conflict and no error", () =>
  inWorld(async (world) => {
    const [a, b] = [world.candidate("a"), world.candidate("b")];
    for (const { client } of [a, b]) client.latencyMs = 5;
    a.elector.start();
    b.elector.start();
    await world.clock.advance(1_000);
    assert.deepEqual([a.leads, b.leads].sort(), [false, true]);
    const loser = a.leads ? b : a;
    assert.equal(await loser.figure("kubernetes_lease_conflicts_total"), 1);
    assert.equal(await loser.figure("kubernetes_lease_errors_total"), 0);
  }));

Deno.test("a starved elector cannot leave a stale yes: the deadline is checked by whoever asks", () =>
  inWorld(async (world) => {
    const clock = busyClock(world);
    const a = world.started("a", { clock });
    await world.clock.advance(0);
    assert.equal(a.leads, true);
    clock.aheadMs = 9_999;
    assert.equal(a.leads, true);
    clock.aheadMs = 10_000;
    assert.equal(a.leads, false);
    assert.equal(a.term.isValid(), false);
    assert.equal(a.term.signal.aborted, true, "who asks also ends the term");
    assert.deepEqual(a.losses, ["renew_deadline"]);
  }));

/** A clock that a test can set ahead of its timers: what a busy event loop looks like from inside. */
function busyClock(world: World) {
  const clock = {
    aheadMs: 0,
    monotonic: () => world.clock.monotonic() + clock.aheadMs,
    wall: () => world.clock.wall() + clock.aheadMs,
    timer: (delayMs: number, callback: () => void) => world.clock.timer(delayMs, callback),
  };
  return clock;
}

Deno.test("a renewal whose answer is looked at too late does not bring belief back", () =>
  inWorld(async (world) => {
    const clock = busyClock(world);
    const a = world.started("a", { clock });
    await world.clock.advance(0);
    let sent = false;
    a.client.fault = (verb) => {
      sent ||= verb === "patch";
      return { type: "slow", thereMs: 0, backMs: 500 };
    };
    await world.until(() => sent);
    // Now lies past the old deadline, and before the one that the answer would give.
    clock.aheadMs = 8_500;
    await world.clock.advance(600);
    assert.deepEqual(a.losses, ["renew_deadline"]);
  }));

Deno.test("a refusal before the last good renewal is no reason for a loss", () =>
  inWorld(async (world) => {
    const clock = busyClock(world);
    const a = world.started("a", { clock });
    await world.clock.advance(0);
    let refusals = 1;
    a.client.fault = (verb) =>
      verb === "patch" && refusals-- > 0 ? { type: "status", code: 403 } : null;
    await world.clock.advance(6_000);
    assert.equal(a.leads, true);
    clock.aheadMs = 60_000;
    assert.equal(a.leads, false);
    assert.deepEqual(a.losses, ["renew_deadline"]);
  }));

for (const byMs of [1_500, -1_500]) {
  Deno.test(`a wall clock that jumps by ${byMs} ms ends the term, and a new one follows`, () =>
    inWorld(async (world) => {
      const a = world.started("a");
      await world.clock.advance(1_000);
      world.clock.jumpWall(byMs);
      assert.equal(a.leads, false);
      await world.clock.advance(0);
      assert.deepEqual(a.losses, ["clock_jump"]);
      assert.equal(a.terms.length, 2);
      assert.equal(a.leads, true);
    }));
}

Deno.test("a wall clock that is slewed by a second is no jump", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(1_000);
    world.clock.jumpWall(1_000);
    assert.equal(a.leads, true);
    await world.clock.advance(5_000);
    world.clock.jumpWall(1_000);
    await world.clock.advance(5_000);
    assert.equal(a.terms.length, 1);
  }));

Deno.test("an answer that comes after a jump of the wall clock begins no term by itself", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    let slow = 1;
    a.client.fault = (verb) =>
      verb === "create" && slow-- > 0 ? { type: "slow", thereMs: 0, backMs: 1_000 } : null;
    a.elector.start();
    await world.clock.advance(500);
    world.clock.jumpWall(60_000);
    await world.clock.advance(500);
    assert.equal(a.terms.length, 0);
    await world.clock.advance(2_500);
    assert.equal(a.leads, true, "the next look renews what is its own");
    assert.equal(world.leases.read(LEASE).spec?.leaseTransitions, 0);
  }));

Deno.test("a second process with the same identity is foreign and waits", () =>
  inWorld(async (world) => {
    const a = world.started("same");
    await world.clock.advance(0);
    const b = world.started("same");
    for (let second = 0; second < 30; second++) {
      await world.clock.advance(1_000);
      assert.deepEqual([a.leads, b.leads], [true, false]);
    }
    await a.crash();
    const tookMs = await world.until(() => b.leads);
    assert.ok(tookMs >= 12_500, `${tookMs} ms`);
  }));

Deno.test("two processes that take the Lease in one and the same millisecond write different acquire times", async () => {
  const times = new Set<string | null | undefined>();
  for (const others of [0, 1]) {
    await inWorld(async (world) => {
      for (let other = 0; other < others; other++) world.candidate("other");
      world.started("same");
      await world.clock.advance(0);
      times.add(world.leases.read(LEASE).spec?.acquireTime);
    });
  }
  assert.equal(times.size, 2);
});

for (const watchMode of ["works", "forbidden"] as const) {
  Deno.test(`a candidate whose create was stored and never answered knows its Lease again (watch ${watchMode})`, () =>
    inWorld(async (world) => {
      const a = world.candidate("a");
      a.client.watchMode = watchMode;
      let lost = 1;
      a.client.fault = (verb) =>
        verb === "create" && lost-- > 0 ? { type: "lost-answer", as: "hang" } : null;
      a.elector.start();
      const tookMs = await world.until(() => a.leads);
      assert.ok(tookMs < 5_000, `${tookMs} ms`);
      assert.equal(world.leases.read(LEASE).spec?.leaseTransitions, 0);
    }));

  Deno.test(`a create that is stored after the next one was sent is known as the own (watch ${watchMode})`, () =>
    inWorld(async (world) => {
      const a = world.candidate("a");
      a.client.watchMode = watchMode;
      a.client.latencyMs = 80;
      let tries = 0;
      a.client.fault = (verb) => {
        if (verb !== "create") return null;
        tries++;
        return { type: "slow", thereMs: tries === 1 ? 3_600 : 200, backMs: 80 };
      };
      a.elector.start();
      const tookMs = await world.until(() => a.leads);
      assert.equal(tries, 2, "the first was given up and landed before the second");
      assert.ok(tookMs < 8_000, `${tookMs} ms`);
      assert.equal(await a.figure("kubernetes_lease_conflicts_total"), 1);
    }));

  Deno.test(`a take-over that is stored after the next one was sent is known as the own (watch ${watchMode})`, () =>
    inWorld(async (world) => {
      world.foreignLease("", 1);
      const a = world.candidate("a");
      a.client.watchMode = watchMode;
      a.client.latencyMs = 80;
      let tries = 0;
      a.client.fault = (verb) => {
        if (verb !== "patch" || ++tries > 2) return null;
        return { type: "slow", thereMs: tries === 1 ? 3_600 : 200, backMs: 80 };
      };
      a.elector.start();
      const tookMs = await world.until(() => a.leads);
      assert.ok(tries >= 2);
      assert.ok(tookMs < 8_000, `${tookMs} ms`);
      assert.equal(world.leases.read(LEASE).spec?.leaseTransitions, 4);
    }));
}

Deno.test("a waiter leaves the server alone for as long as it asks for", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    a.client.watchMode = "forbidden";
    let refusals = 1;
    a.client.fault = (verb) =>
      verb === "get" && refusals-- > 0 ? { type: "status", code: 429, retryAfterSeconds: 8 } : null;
    a.elector.start();
    await world.clock.advance(7_900);
    assert.equal(a.client.count("get"), 1);
    await world.until(() => a.leads, 1_000);
  }));

Deno.test("labels, annotations and owners of others survive renewals and the release", () =>
  inWorld(async (world) => {
    const a = world.started("a");
    await world.clock.advance(500);
    const owner = { apiVersion: "v1", kind: "Pod", name: "p", uid: "u" };
    world.leases.edit(LEASE, {
      metadata: { labels: { team: "x" }, annotations: { note: "y" }, ownerReferences: [owner] },
      spec: { strategy: "z" },
    });
    await world.clock.advance(10_000);
    assert.equal(a.terms.length, 1, "a label that the watch told costs no term");
    await a.stop();
    const { metadata, spec } = world.leases.read(LEASE);
    assert.deepEqual(metadata.labels, { team: "x" });
    assert.deepEqual(metadata.annotations, { note: "y" });
    assert.deepEqual(metadata.ownerReferences, [owner]);
    assert.equal(spec?.strategy, "z");
    assert.equal(spec?.holderIdentity, undefined);
  }));

Deno.test("bad times and names are refused at construction with the rule and the values", () =>
  inWorld(async (world) => {
    const cases: [Record<string, unknown>, RegExp][] = [
      [
        { timing: { leaseDurationMs: 10_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 } },
        /'leaseDurationMs' must be above 'renewDeadlineMs': current values are leaseDurationMs 10000, renewDeadlineMs 10000, retryPeriodMs 2000/,
      ],
      [
        { timing: { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 0 } },
        /'retryPeriodMs' must be above 0/,
      ],
      [
        { timing: { leaseDurationMs: 15_000, renewDeadlineMs: 12_000, retryPeriodMs: 10_000 } },
        /'renewDeadlineMs' must be above 1.2 times 'retryPeriodMs'/,
      ],
      [
        { timing: { leaseDurationMs: 3_600_001, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 } },
        /'leaseDurationMs' must be at most 3600000/,
      ],
      [
        { timing: { leaseDurationMs: 15_000.5, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 } },
        /'leaseDurationMs' must be a whole number/,
      ],
      [
        { timing: { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: NaN } },
        /'retryPeriodMs' must be a whole number/,
      ],
      [{ namespace: "a.b" }, /'namespace' must be a DNS label.*: current value is "a.b"/],
      [{ namespace: "" }, /'namespace'/],
      [{ namespace: "a".repeat(64) }, /'namespace'/],
      [{ leaseName: "Upper" }, /'leaseName'/],
      [{ leaseName: "" }, /'leaseName'/],
      [{ leaseName: "a..b" }, /'leaseName'/],
      [{ leaseName: Array(5).fill("a".repeat(60)).join(".") }, /'leaseName'/],
      [{ identity: " " }, /'identity' must not be blank/],
    ];
    for (const [more, message] of cases) {
      assert.throws(
        () => world.candidate("a", more),
        (error) => error instanceof RangeError && message.test(error.message),
      );
    }
    await world.clock.advance(0);
  }));

Deno.test("an elector that is stopped before its start never campaigns", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    await a.stop();
    a.elector.start();
    await world.clock.advance(30_000);
    assert.equal(a.client.calls.length, 0);
    assert.equal(world.clock.pendingTimers, 0);
  }));
