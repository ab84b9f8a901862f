import assert from "node:assert/strict";
import fc from "fast-check";
import type { AnswerObservation } from "../../lib/kube/api.ts";
import {
  addBound,
  type BoundBucket,
  estimate,
  MAX_DRIFT,
  offsetBound,
  WINDOW_MS,
} from "../../lib/lease_time/estimator.ts";

/** The answer to a request, by a server whose clock shows `serverMs` when it writes the header. */
function answer(sentMs: number, receivedMs: number, serverMs: number): AnswerObservation {
  return {
    sentMs,
    receivedMs,
    serverDateMs: Math.floor(serverMs / 1000) * 1000,
    status: 200,
    verb: "get",
    resource: "leases.coordination.k8s.io",
  };
}

function learn(buckets: readonly BoundBucket[], seen: AnswerObservation): readonly BoundBucket[] {
  const bound = offsetBound(seen);
  assert.ok(bound);
  return addBound(buckets, bound, seen.receivedMs);
}

const EPOCH = Date.UTC(2026, 0, 1);

/** One request: how long after the last one, how long it takes, and when on its way the server writes the header. */
const step = fc.record({
  waitMs: fc.double({ min: 0, max: 15_000, noNaN: true }),
  tripMs: fc.double({ min: 0, max: 2_000, noNaN: true }),
  written: fc.double({ min: 0, max: 1, noNaN: true }),
  server: fc.nat({ max: 2 }),
});
const steps = fc.array(step, { minLength: 1, maxLength: 40 });
const offset = fc.double({ min: -1e9, max: 1e9, noNaN: true }).map((ms) => EPOCH + ms);
const drift = fc.double({ min: -MAX_DRIFT, max: MAX_DRIFT, noNaN: true });
/** Arithmetic on numbers of this size is good to about a microsecond. */
const ROUNDING_MS = 0.01;

Deno.test("one answer bounds the server's clock to a second and the round trip", () => {
  const reading = estimate(learn([], answer(100, 100, EPOCH + 400)), 100);
  assert.ok(reading);
  assert.ok(Math.abs(reading.earliestMs - EPOCH) < ROUNDING_MS);
  assert.ok(Math.abs(reading.latestMs - (EPOCH + 1000)) < ROUNDING_MS);
  assert.ok(Math.abs(reading.uncertaintyMs - 500) < ROUNDING_MS);
});

Deno.test("an answer without a readable date, or with instants that cannot be, teaches nothing", () => {
  const good = answer(100, 110, EPOCH);
  assert.equal(offsetBound({ ...good, serverDateMs: null }), null);
  assert.equal(offsetBound({ ...good, serverDateMs: NaN }), null);
  assert.equal(offsetBound({ ...good, receivedMs: 99 }), null);
  assert.equal(offsetBound({ ...good, receivedMs: NaN }), null);
});

Deno.test("nothing is known without answers, and when the last is out of the window", () => {
  assert.equal(estimate([], 0), null);
  const buckets = learn([], answer(5_000, 5_000, EPOCH));
  assert.ok(estimate(buckets, 5_000 + WINDOW_MS));
  assert.equal(estimate(buckets, 5_001 + WINDOW_MS), null);
});

Deno.test("the server's clock is always within the bounds, whatever its offset and drift", () => {
  fc.assert(
    fc.property(offset, drift, steps, fc.nat({ max: WINDOW_MS }), (start, rate, all, late) => {
      const server = (ms: number) => start + ms * (1 + rate);
      let buckets: readonly BoundBucket[] = [];
      let now = 0;
      const check = () => {
        const reading = estimate(buckets, now);
        if (reading === null) return;
        assert.ok(reading.earliestMs <= server(now) + ROUNDING_MS, "earliest is late");
        assert.ok(reading.latestMs >= server(now) - ROUNDING_MS, "latest is early");
        assert.equal(reading.uncertaintyMs, (reading.latestMs - reading.earliestMs) / 2);
      };
      for (const { waitMs, tripMs, written } of all) {
        const sent = now + waitMs;
        now = sent;
        check();
        now = sent + tripMs;
        buckets = learn(buckets, answer(sent, now, server(sent + tripMs * written)));
        check();
        assert.ok(estimate(buckets, now), "an answer just came");
      }
      now += late;
      check();
    }),
    { numRuns: 500 },
  );
});

Deno.test("a slow answer allows for what the server's clock gained while it was on its way", () => {
  // The header is written at once, at the very end of its second, and the answer takes ten seconds.
  const server = (ms: number) => EPOCH + 999.9 + ms * (1 + MAX_DRIFT);
  const reading = estimate(learn([], answer(0, 10_000, server(0))), 10_000);
  assert.ok(reading && reading.latestMs >= server(10_000));
});

Deno.test("more answers narrow the bounds: 0.5 s after one, 0.15 s after five, 0.05 s after twenty", () => {
  // The waits are multiples of large primes, so that the fractions of the second follow no pattern.
  const mean = (count: number) => {
    let sum = 0;
    for (let run = 0; run < 200; run++) {
      let buckets: readonly BoundBucket[] = [];
      let now = 0;
      for (let index = 0; index < count; index++) {
        now += 300 + ((run * 7919 + index * 104_729) % 1_000);
        buckets = learn(buckets, answer(now, now + 2, EPOCH + run * 13 + now + 1));
      }
      sum += estimate(buckets, now + 2)?.uncertaintyMs ?? Infinity;
    }
    return sum / 200;
  };
  assert.ok(Math.abs(mean(1) - 501) < 5, `${mean(1)}`);
  assert.ok(mean(5) < 200, `${mean(5)}`);
  assert.ok(mean(20) < 75, `${mean(20)}`);
});

Deno.test("after a step of the server's clock the bounds hold it, at once and for good", () => {
  // A step that no single offset explains: more than the bounds of two answers are wide.
  const size = fc.double({ min: 6_200, max: 1e7, noNaN: true });
  fc.assert(
    fc.property(offset, size, fc.boolean(), steps, steps, (start, by, back, before, after) => {
      const stepMs = back ? -by : by;
      let buckets: readonly BoundBucket[] = [];
      let now = 0;
      for (const [stepped, all] of [[0, before], [stepMs, after]] as const) {
        for (const { waitMs, tripMs, written } of all) {
          const sent = now + waitMs;
          now = sent + tripMs;
          buckets = learn(buckets, answer(sent, now, start + stepped + sent + tripMs * written));
          const reading = estimate(buckets, now);
          assert.ok(reading);
          const truth = start + stepped + now;
          assert.ok(reading.earliestMs <= truth + ROUNDING_MS, "earliest is late");
          assert.ok(reading.latestMs >= truth - ROUNDING_MS, "latest is early");
        }
      }
    }),
    { numRuns: 300 },
  );
});

Deno.test("a minute after a step the bounds are narrow again", () => {
  let buckets: readonly BoundBucket[] = [];
  let now = 0;
  for (; now < 30_000; now += 700) buckets = learn(buckets, answer(now, now, EPOCH + now));
  const lastBefore = now - 700;
  const stepped = (ms: number) => EPOCH + 3_600_000 + ms;
  for (; now < lastBefore + WINDOW_MS + 5_000; now += 700) {
    buckets = learn(buckets, answer(now, now, stepped(now)));
    const wide = (estimate(buckets, now)?.uncertaintyMs ?? 0) > 1_000_000;
    // Answers are kept by the second, so one counts for a minute, or up to a second less.
    if (now <= lastBefore + WINDOW_MS - 1_000) assert.equal(wide, true, `at ${now - lastBefore}`);
    if (now > lastBefore + WINDOW_MS) assert.equal(wide, false, `at ${now - lastBefore}`);
  }
});

Deno.test("with several API servers no reading is further from any of them than one answer allows", () => {
  const skew = fc.double({ min: -3_000, max: 3_000, noNaN: true });
  fc.assert(
    fc.property(offset, fc.tuple(skew, skew, skew), steps, (start, skews, all) => {
      const server = (index: number, ms: number) => start + (skews[index] ?? 0) + ms;
      let buckets: readonly BoundBucket[] = [];
      let now = 0;
      const lastSeen = new Map<number, number>();
      for (const { waitMs, tripMs, written, server: index } of all) {
        const sent = now + waitMs;
        now = sent + tripMs;
        buckets = learn(buckets, answer(sent, now, server(index, sent + tripMs * written)));
        lastSeen.set(index, now);
        const reading = estimate(buckets, now);
        assert.ok(reading);
        for (const [seen, at] of lastSeen) {
          if (now - at > WINDOW_MS - 1_000) continue;
          const allowed = 1_000 + 2_000 + 2 * WINDOW_MS * MAX_DRIFT;
          assert.ok(reading.earliestMs <= server(seen, now) + allowed, "earliest is late");
          assert.ok(reading.latestMs >= server(seen, now) - allowed, "latest is early");
        }
      }
    }),
    { numRuns: 300 },
  );
});

Deno.test("servers that contradict each other are all within the bounds", () => {
  let buckets = learn([], answer(1_000, 1_010, EPOCH + 1_005));
  buckets = learn(buckets, answer(1_020, 1_030, EPOCH + 1_025 + 4_000));
  const reading = estimate(buckets, 1_030);
  assert.ok(reading);
  assert.ok(reading.earliestMs <= EPOCH + 1_030 && reading.latestMs >= EPOCH + 1_030 + 4_000);
  assert.ok(reading.uncertaintyMs > 2_000);
});

Deno.test("a slow answer does not widen what is known already", () => {
  const known = learn([], answer(0, 0, EPOCH));
  const before = estimate(known, 9_000);
  const after = estimate(learn(known, answer(0, 9_000, EPOCH + 100)), 9_000);
  assert.ok(before && after);
  assert.ok(after.uncertaintyMs <= before.uncertaintyMs);
});

Deno.test("the cost of a reading does not grow with the number of answers", () => {
  let buckets: readonly BoundBucket[] = [];
  for (let now = 0; now < 120_000; now += 10) {
    buckets = learn(buckets, answer(now, now, EPOCH + now));
  }
  assert.ok(buckets.length <= 61, `${buckets.length}`);
});
