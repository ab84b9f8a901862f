import assert from "node:assert/strict";
import { Pulse } from "../../lib/election/pulse.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";

Deno.test("a wait ends with the next change", async () => {
  const pulse = new Pulse();
  const waiting = [pulse.wait(pulse.count), pulse.wait(pulse.count)];
  pulse.fire();
  await Promise.all(waiting);
});

Deno.test("a change between the look and the wait is not missed", async () => {
  const pulse = new Pulse();
  const seen = pulse.count;
  pulse.fire();
  await pulse.wait(seen);
});

Deno.test("a wait ends at its instant, and leaves no timer behind when it ends earlier", async () => {
  const clock = new TestClock();
  const pulse = new Pulse();
  let ended = false;
  const waiting = pulse.wait(0, { until: { clock, atMs: 50 } }).then(() => ended = true);
  await clock.advance(49);
  assert.equal(ended, false);
  await clock.advance(1);
  await waiting;
  const early = pulse.wait(0, { until: { clock, atMs: 1_000 } });
  pulse.fire();
  await early;
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a wait ends with its signal, and at once when that has aborted", async () => {
  const pulse = new Pulse();
  const ending = new AbortController();
  const waiting = pulse.wait(0, { signal: ending.signal });
  ending.abort();
  await waiting;
  await pulse.wait(0, { signal: ending.signal });
});
