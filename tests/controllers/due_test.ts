import assert from "node:assert/strict";
import fc from "fast-check";
import { instantsOf, LONGEST_WAIT_MS, waitMs } from "../../lib/controllers/due.ts";

const reading = fc.record({
  earliestMs: fc.integer({ min: 0, max: 1_000_000 }),
  widthMs: fc.integer({ min: 0, max: 20_000 }),
}).map(({ earliestMs, widthMs }) => ({
  earliestMs,
  latestMs: earliestMs + widthMs,
  uncertaintyMs: widthMs / 2,
}));

Deno.test("an expiry is waited for until lease time has surely passed it, and no longer", () => {
  fc.assert(fc.property(reading, fc.integer({ min: 0, max: 2_000_000 }), (now, afterMs) => {
    const wait = waitMs({ type: "lease_time", afterMs }, now, 0);
    assert.equal(wait === 0, now.earliestMs > afterMs);
  }));
});

Deno.test("no wait goes past the first moment at which the instant can have passed by more than one step", () => {
  fc.assert(fc.property(reading, fc.integer({ min: 0, max: 2_000_000 }), (now, afterMs) => {
    const wait = waitMs({ type: "lease_time", afterMs }, now, 0);
    const possible = Math.max(0, afterMs + 1 - now.latestMs);
    assert.ok(wait <= possible || wait <= 50);
    assert.ok(wait <= LONGEST_WAIT_MS);
  }));
});

Deno.test("waiting step by step ends within 50 ms of the moment at which the bounds allow it", () => {
  const bounds = fc.array(fc.integer({ min: 0, max: 1_000 }), { minLength: 1, maxLength: 20 });
  fc.assert(fc.property(bounds, fc.integer({ min: 0, max: 5_000 }), (lags, afterMs) => {
    // The true time goes on; what is known of it lags behind by an amount that changes with each answer.
    const known = (now: number) => {
      const lag = lags[Math.floor(now / 100) % lags.length] ?? 0;
      return { earliestMs: now - lag, latestMs: now + lag, uncertaintyMs: lag };
    };
    let now = 0;
    let allowedMs: number | null = null;
    for (let steps = 0; steps < 10_000; steps++) {
      const wait = waitMs({ type: "lease_time", afterMs }, known(now), 0);
      if (wait === 0) {
        assert.ok(known(now).earliestMs > afterMs);
        assert.ok(allowedMs === null || now - allowedMs <= 50, `${now} ${allowedMs}`);
        return;
      }
      for (let at = now + 1; at <= now + wait; at++) {
        if (known(at).earliestMs > afterMs) allowedMs ??= at;
        else allowedMs = null;
      }
      now += wait;
    }
    assert.fail("it never came");
  }));
});

Deno.test("an unknown lease time is asked for again in a second", () => {
  assert.equal(waitMs({ type: "lease_time", afterMs: 5 }, null, 0), 1_000);
});

Deno.test("a pause counts on the monotonic clock from when it was asked for", () => {
  const [instant] = instantsOf({ inMs: 500 }, 1_000);
  assert.ok(instant);
  assert.deepEqual(instant, { type: "monotonic", atMs: 1_500 });
  assert.equal(waitMs(instant, null, 1_200), 300);
  assert.equal(waitMs(instant, null, 1_600), 0);
  assert.equal(waitMs({ type: "monotonic", atMs: 1e12 }, null, 0), LONGEST_WAIT_MS);
});

Deno.test("a controller may ask for both, or for nothing", () => {
  assert.deepEqual(instantsOf({}, 5), []);
  assert.deepEqual(instantsOf({ afterMs: 3, inMs: 2 }, 5).map(({ type }) => type), [
    "lease_time",
    "monotonic",
  ]);
});
