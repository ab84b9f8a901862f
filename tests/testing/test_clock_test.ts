import assert from "node:assert/strict";
import { DeadlineExceededError, sleep, startDeadline } from "../../lib/runtime/clock.ts";
import { TEST_EPOCH_MS, TestClock } from "../../lib/testing/test_clock.ts";

Deno.test("a timer fires at its own instant, and not before", async () => {
  const clock = new TestClock();
  const fired: number[] = [];
  clock.timer(10, () => fired.push(clock.monotonic()));
  clock.timer(5, () => fired.push(clock.monotonic()));
  await clock.advance(9);
  assert.deepEqual(fired, [5]);
  await clock.advance(1);
  assert.deepEqual(fired, [5, 10]);
});

Deno.test("a cancelled timer never fires and is not counted", async () => {
  const clock = new TestClock();
  const cancel = clock.timer(1, () => assert.fail("fired"));
  assert.equal(clock.pendingTimers, 1);
  cancel();
  cancel();
  await clock.advance(5);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("the wall clock follows the monotonic clock until it is set apart", async () => {
  const clock = new TestClock();
  await clock.advance(1_500);
  assert.equal(clock.wall(), TEST_EPOCH_MS + 1_500);
  clock.jumpWall(-60_000);
  assert.equal(clock.wall(), TEST_EPOCH_MS + 1_500 - 60_000);
  assert.equal(clock.monotonic(), 1_500);
});

Deno.test("a chain of sleeps is followed within one move of the clock", async () => {
  const clock = new TestClock();
  const { signal } = new AbortController();
  let rounds = 0;
  const loop = (async () => {
    for (; rounds < 3; rounds++) await sleep(clock, 100, signal);
  })();
  await clock.advance(300);
  await loop;
  assert.equal(rounds, 3);
});

Deno.test("a sleep ends with the reason of its signal and leaves no timer behind", async () => {
  const clock = new TestClock();
  const controller = new AbortController();
  const slept = sleep(clock, 100, controller.signal);
  const reason = new Error("stop");
  controller.abort(reason);
  await assert.rejects(slept, reason);
  await assert.rejects(sleep(clock, 100, controller.signal), reason);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a deadline aborts when its time is over and says so", async () => {
  const clock = new TestClock();
  using deadline = startDeadline(clock, 1_000);
  await clock.advance(999);
  assert.equal(deadline.signal.aborted, false);
  await clock.advance(1);
  assert.equal(deadline.expired, true);
  assert.ok(deadline.signal.reason instanceof DeadlineExceededError);
  assert.equal(deadline.signal.reason.limitMs, 1_000);
});

Deno.test("a deadline follows its parent, whose abort is not the deadline's own", () => {
  const clock = new TestClock();
  const parent = new AbortController();
  using deadline = startDeadline(clock, 1_000, parent.signal);
  const reason = new Error("client gone");
  parent.abort(reason);
  assert.equal(deadline.signal.reason, reason);
  assert.equal(deadline.expired, false);
  using late = startDeadline(clock, 1_000, parent.signal);
  assert.equal(late.signal.reason, reason);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a deadline that is given back leaves no timer and does not abort", async () => {
  const clock = new TestClock();
  const deadline = startDeadline(clock, 1_000);
  deadline[Symbol.dispose]();
  assert.equal(clock.pendingTimers, 0);
  await clock.advance(2_000);
  assert.equal(deadline.signal.aborted, false);
});
