import assert from "node:assert/strict";
import fc from "fast-check";
import { exactLeaseTime, LeaseTime } from "../../lib/lease_time/lease_time.ts";
import { TEST_EPOCH_MS, TestClock } from "../../lib/testing/test_clock.ts";

/** A call that takes `tripMs`, to a server whose clock is `aheadMs` before the machine's wall clock as it was at first. */
async function call(clock: TestClock, time: LeaseTime, serverMs: () => number, tripMs = 10) {
  const sentMs = clock.monotonic();
  await clock.advance(tripMs / 2);
  const serverDateMs = Math.floor(serverMs() / 1000) * 1000;
  await clock.advance(tripMs / 2);
  time.observe({
    sentMs,
    receivedMs: clock.monotonic(),
    serverDateMs,
    status: 200,
    verb: "get",
    resource: "leases.coordination.k8s.io",
  });
}

Deno.test("lease time is not known before the first answer, nor a minute after the last", async () => {
  const clock = new TestClock();
  const time = new LeaseTime({ clock });
  assert.equal(time.reading(), null);
  assert.equal(time.offsetSeconds(), null);
  assert.equal(time.uncertaintySeconds(), null);
  await call(clock, time, () => clock.wall());
  assert.ok(time.reading());
  await clock.advance(61_000);
  assert.equal(time.reading(), null);
});

Deno.test("an answer without a date teaches nothing", () => {
  const clock = new TestClock();
  const time = new LeaseTime({ clock });
  time.observe({
    sentMs: 0,
    receivedMs: 0,
    serverDateMs: null,
    status: 503,
    verb: "get",
    resource: "leases",
  });
  assert.equal(time.reading(), null);
});

Deno.test("the time is the API server's, however wrong the machine's wall clock is", async () => {
  const clock = new TestClock(TEST_EPOCH_MS - 3_600_000);
  const time = new LeaseTime({ clock });
  const server = () => clock.wall() + 3_600_000;
  for (let index = 0; index < 40; index++) {
    await call(clock, time, server);
    await clock.advance(370);
    const reading = time.reading();
    assert.ok(reading && reading.earliestMs <= server() && server() <= reading.latestMs);
  }
  assert.ok(Math.abs((time.offsetSeconds() ?? 0) + 3_600) < 0.2, `${time.offsetSeconds()}`);
  assert.ok((time.uncertaintySeconds() ?? 1) < 0.1, `${time.uncertaintySeconds()}`);
});

Deno.test("between answers lease time runs on with the monotonic clock", async () => {
  const clock = new TestClock();
  const time = new LeaseTime({ clock });
  await call(clock, time, () => clock.wall());
  const before = time.reading();
  await clock.advance(30_000);
  const after = time.reading();
  assert.ok(before && after);
  assert.ok(
    Math.abs(
      (after.earliestMs + after.latestMs - before.earliestMs - before.latestMs) / 2 - 30_000,
    ) < 1,
  );
});

Deno.test("a pause of the machine drops all that was learnt, until the next answer", async () => {
  const clock = new TestClock();
  const time = new LeaseTime({ clock });
  await call(clock, time, () => clock.wall());
  clock.jumpWall(1_000);
  assert.ok(time.reading(), "a second is no jump yet");
  clock.jumpWall(1_001);
  assert.equal(time.reading(), null);
  await clock.advance(1);
  await call(clock, time, () => clock.wall());
  const reading = time.reading();
  assert.ok(reading && reading.earliestMs <= clock.wall() && clock.wall() <= reading.latestMs);
});

Deno.test("a wall clock that is set back drops all too", async () => {
  const clock = new TestClock();
  const time = new LeaseTime({ clock });
  await call(clock, time, () => clock.wall());
  clock.jumpWall(-1_001);
  assert.equal(time.reading(), null);
});

Deno.test("an answer to a request that was sent before a pause does not count", async () => {
  const clock = new TestClock();
  const time = new LeaseTime({ clock });
  const answer = (sentMs: number, serverMs: number) =>
    time.observe({
      sentMs,
      receivedMs: clock.monotonic(),
      serverDateMs: Math.floor(serverMs / 1000) * 1000,
      status: 200,
      verb: "get",
      resource: "leases",
    });
  const sentMs = clock.monotonic();
  const beforePause = clock.wall();
  clock.jumpWall(600_000);
  answer(sentMs, beforePause);
  assert.equal(time.reading(), null, "it tells that the pause happened, and nothing else");
  await clock.advance(5);
  answer(sentMs, beforePause);
  assert.equal(time.reading(), null, "nor does a second one");
  answer(clock.monotonic(), clock.wall());
  assert.ok(time.reading());
});

Deno.test("with pauses at any moment the server's clock stays within the bounds", async () => {
  const event = fc.record({
    pauseMs: fc.oneof(fc.constant(0), fc.integer({ min: 1_001, max: 1e8 })),
    inFlight: fc.boolean(),
    waitMs: fc.integer({ min: 1, max: 20_000 }),
    tripMs: fc.integer({ min: 1, max: 500 }),
  });
  await fc.assert(fc.asyncProperty(fc.array(event, { maxLength: 30 }), async (events) => {
    // The wall clock of the test machine is right, so it is the server's clock as well.
    const clock = new TestClock();
    const time = new LeaseTime({ clock });
    for (const { pauseMs, inFlight, waitMs, tripMs } of events) {
      await clock.advance(waitMs);
      if (!inFlight) clock.jumpWall(pauseMs);
      const sentMs = clock.monotonic();
      const serverMs = clock.wall();
      await clock.advance(tripMs);
      if (inFlight) clock.jumpWall(pauseMs);
      time.observe({
        sentMs,
        receivedMs: clock.monotonic(),
        serverDateMs: Math.floor(serverMs / 1000) * 1000,
        status: 200,
        verb: "get",
        resource: "leases",
      });
      const reading = time.reading();
      if (reading === null) continue;
      assert.ok(reading.earliestMs <= clock.wall() + 0.01, "earliest is late");
      assert.ok(reading.latestMs >= clock.wall() - 0.01, "latest is early");
    }
  }));
});

Deno.test("exact lease time is the clock's own and has no width", async () => {
  const clock = new TestClock();
  const time = exactLeaseTime(clock);
  await clock.advance(1_234);
  assert.deepEqual(time.reading(), {
    earliestMs: TEST_EPOCH_MS + 1_234,
    latestMs: TEST_EPOCH_MS + 1_234,
    uncertaintyMs: 0,
  });
});
