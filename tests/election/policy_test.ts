import assert from "node:assert/strict";
import fc from "fast-check";
import {
  believes,
  clockJumped,
  decide,
  effectiveDurationMs,
  isMine,
  jittered,
  MAX_LEASE_MS,
  MAX_TRANSITIONS,
  nextTransitions,
  observedAgeMs,
  observedAtMs,
  quotient,
  remainder,
  requestTimeoutMs,
  taskStopTimeoutMs,
  timingProblem,
  timingValid,
  vanishedHolderMayBelieve,
} from "../../lib/election/policy.ts";

const ms = fc.integer({ min: 0, max: 2 ** 45 });
const timing = fc.record({
  leaseMs: fc.oneof(fc.integer({ min: -10, max: 4_000_000 }), fc.maxSafeInteger()),
  renewMs: fc.oneof(fc.integer({ min: -10, max: 4_000_000 }), fc.maxSafeInteger()),
  retryMs: fc.oneof(fc.integer({ min: -10, max: 4_000_000 }), fc.maxSafeInteger()),
});
/** Times that keep the rules, made so that the properties about them have cases. */
const validTiming = fc.tuple(
  fc.integer({ min: 1, max: 2_900_000 }),
  fc.integer({ min: 1, max: 1_000 }),
  fc.integer({ min: 1, max: 1_000 }),
).map(([retryMs, aboveRetry, aboveRenew]) => {
  const renewMs = Math.floor(retryMs * 6 / 5) + aboveRetry;
  return { retryMs, renewMs, leaseMs: renewMs + aboveRenew };
}).filter(timingValid);

/** The same rule in exact arithmetic, so that a step that leaves the safe integers shows. */
function validExactly(
  { leaseMs, renewMs, retryMs }: typeof timing extends fc.Arbitrary<infer T> ? T : never,
) {
  return retryMs > 0 && 5n * BigInt(renewMs) > 6n * BigInt(retryMs) && leaseMs > renewMs &&
    leaseMs <= MAX_LEASE_MS;
}

Deno.test("the default times are valid", () => {
  assert.equal(timingValid({ leaseMs: 15_000, renewMs: 10_000, retryMs: 2_000 }), true);
});

Deno.test("each broken rule of the times is named", () => {
  const cases: [number, number, number, string][] = [
    [15_000, 10_000, 0, "retry_not_positive"],
    [15_000, 10_000, -1, "retry_not_positive"],
    [3_600_001, 10_000, 2_000, "lease_above_maximum"],
    [10_000, 10_000, 2_000, "lease_not_above_renew"],
    [15_000, 12_000, 10_000, "renew_not_above_retry"],
    [15_000, 12_001, 10_000, "none"],
    [15_000, 10_000, Number.MAX_SAFE_INTEGER, "renew_not_above_retry"],
    [3_600_000, 10_000, 2_000, "none"],
  ];
  for (const [leaseMs, renewMs, retryMs, problem] of cases) {
    assert.equal(timingProblem({ leaseMs, renewMs, retryMs }), problem);
  }
});

Deno.test("times are valid exactly when all rules hold, also for huge values", () => {
  fc.assert(fc.property(timing, (t) => timingValid(t) === validExactly(t)), { numRuns: 1_000 });
  fc.assert(fc.property(validTiming, validExactly));
});

Deno.test("a remainder is of 0 or more and below the divisor, and a quotient rounds down", () => {
  fc.assert(fc.property(fc.maxSafeInteger(), fc.integer({ min: 1, max: 2 ** 31 }), (a, b) => {
    const rest = remainder(a, b);
    assert.ok(rest >= 0 && rest < b);
    assert.equal(BigInt(quotient(a, b)) * BigInt(b) + BigInt(rest), BigInt(a));
  }));
});

Deno.test("jitter adds up to a fifth, and wraps at its edge", () => {
  assert.equal(jittered(1_000, 200), 1_200);
  assert.equal(jittered(1_000, 201), 1_000);
  assert.equal(jittered(0, 12_345), 0);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: MAX_LEASE_MS }), fc.maxSafeNat(), (base, random) => {
      const result = jittered(base, random);
      assert.ok(Number.isSafeInteger(result) && result >= base && result <= base + base / 5);
    }),
  );
});

Deno.test("the longest jittered retry is shorter than the renew deadline", () => {
  fc.assert(fc.property(validTiming, fc.maxSafeNat(), ({ renewMs, retryMs }, random) => {
    assert.ok(jittered(retryMs, random) < renewMs);
  }));
});

Deno.test("the decision table", () => {
  const cases: [boolean, boolean, number, number, string][] = [
    [true, false, 0, 15_000, "renew"],
    [true, false, 99_000, 15_000, "renew"],
    [false, true, 0, 15_000, "acquire"],
    [false, false, 14_999, 15_000, "wait"],
    [false, false, 15_000, 15_000, "acquire"],
    [false, false, 15_001, 15_000, "acquire"],
  ];
  for (const [mine, free, ageMs, durationMs, decision] of cases) {
    assert.equal(decide({ mine, free, ageMs, durationMs }), decision);
  }
});

Deno.test("the decision equals its specification", () => {
  fc.assert(fc.property(fc.boolean(), fc.boolean(), ms, ms, (mine, free, ageMs, durationMs) => {
    const decision = decide({ mine, free, ageMs, durationMs });
    assert.equal(decision === "renew", mine);
    assert.equal(decision === "acquire", !mine && (free || ageMs >= durationMs));
    assert.equal(decision === "wait", !mine && !free && ageMs < durationMs);
  }));
});

Deno.test("a record is mine only with my identity and the acquire time that I wrote", () => {
  const claim = { identity: "a", made: true, acquiredMicros: 5 };
  assert.equal(isMine({ holder: "a", acquiredMicros: 5 }, claim), true);
  assert.equal(isMine({ holder: "a", acquiredMicros: 6 }, claim), false);
  assert.equal(isMine({ holder: "b", acquiredMicros: 5 }, claim), false);
  assert.equal(isMine({ holder: "a", acquiredMicros: 5 }, { ...claim, made: false }), false);
});

Deno.test("the duration of a record counts, capped at one hour, and else the own one", () => {
  assert.equal(effectiveDurationMs(3_600, 1), MAX_LEASE_MS);
  assert.equal(effectiveDurationMs(3_599, 1), 3_599_000);
  assert.equal(effectiveDurationMs(2_147_483_647, 1), MAX_LEASE_MS);
  fc.assert(
    fc.property(fc.maxSafeInteger(), fc.integer({ min: 1, max: MAX_LEASE_MS }), (seconds, own) => {
      const result = effectiveDurationMs(seconds, own);
      const exact = seconds > 0 ? BigInt(seconds) * 1000n : BigInt(own);
      assert.equal(BigInt(result), exact > BigInt(MAX_LEASE_MS) ? BigInt(MAX_LEASE_MS) : exact);
    }),
  );
});

Deno.test("transitions grow with another holder, and stop at the highest count", () => {
  fc.assert(fc.property(fc.boolean(), fc.integer({ min: 0, max: MAX_TRANSITIONS }), (mine, n) => {
    assert.equal(nextTransitions(mine, n), mine || n === MAX_TRANSITIONS ? n : n + 1);
  }));
  assert.equal(nextTransitions(false, MAX_TRANSITIONS), MAX_TRANSITIONS);
  assert.equal(nextTransitions(false, MAX_TRANSITIONS - 1), MAX_TRANSITIONS);
});

Deno.test("a change or a first look is observed now, anything else earlier", () => {
  fc.assert(fc.property(fc.boolean(), fc.boolean(), ms, ms, (seen, changed, changedAtMs, now) => {
    const result = observedAtMs({ seen, changedAtMs }, changed, now);
    assert.equal(result, !seen || changed ? now : changedAtMs);
  }));
});

Deno.test("an age is never negative", () => {
  fc.assert(fc.property(ms, ms, (now, at) => {
    assert.equal(observedAgeMs(now, at), Math.max(0, now - at));
  }));
});

Deno.test("belief needs the hold, an acknowledged write, and time before the deadline", () => {
  const belief = { holderIsMe: true, acknowledged: true, sentMs: 1_000 };
  assert.equal(believes(belief, 10_000, 10_999), true);
  assert.equal(believes(belief, 10_000, 11_000), false);
  assert.equal(believes(belief, 10_000, 500), true, "a clock that is behind takes nothing away");
  fc.assert(
    fc.property(fc.boolean(), fc.boolean(), ms, ms, ms, (mine, sent, sentMs, renewMs, now) => {
      assert.equal(
        believes({ holderIsMe: mine, acknowledged: sent, sentMs }, renewMs, now),
        mine && sent && now < sentMs + renewMs,
      );
    }),
  );
});

Deno.test("on one time line belief and take-over never hold at once", () => {
  fc.assert(
    fc.property(validTiming, ms, ms, ms, ms, (times, sentMs, toWrite, toSeen, later) => {
      const { leaseMs, renewMs } = times;
      const seenMs = sentMs + toWrite + toSeen;
      for (const now of [later, seenMs + leaseMs, sentMs + renewMs, sentMs + renewMs - 1]) {
        const belief = believes({ holderIsMe: true, acknowledged: true, sentMs }, renewMs, now);
        const decision = decide({
          mine: false,
          free: false,
          ageMs: observedAgeMs(now, seenMs),
          durationMs: effectiveDurationMs(Math.ceil(leaseMs / 1000), 1),
        });
        assert.ok(!(belief && decision === "acquire"));
      }
    }),
  );
});

Deno.test("a holder whose Lease vanished may believe for its duration, and an unseen one is not waited for", () => {
  fc.assert(fc.property(fc.boolean(), ms, ms, (seen, ageMs, durationMs) => {
    assert.equal(vanishedHolderMayBelieve({ seen, ageMs, durationMs }), seen && ageMs < durationMs);
  }));
});

Deno.test("a step of the wall clock of more than a second is a jump, in either direction", () => {
  for (const [before, now, jumped] of [[0, 1_000, false], [0, 1_001, true], [1_001, 0, true]]) {
    assert.equal(clockJumped(Number(before), Number(now)), jumped);
  }
});

Deno.test("three requests that hang fit into a renew deadline", () => {
  fc.assert(fc.property(validTiming, ({ renewMs }) => {
    const limit = requestTimeoutMs(renewMs);
    assert.ok(Number.isSafeInteger(limit) && limit >= 1 && limit < renewMs);
    assert.ok(renewMs < 3 || 3 * limit <= renewMs);
  }));
});

Deno.test("tasks get four fifths of the take-over gap to stop, from 1 ms to 10 s", () => {
  assert.equal(taskStopTimeoutMs(15_000, 10_000), 4_000);
  assert.equal(taskStopTimeoutMs(60_000, 10_000), 10_000);
  assert.equal(taskStopTimeoutMs(3_000, 2_000), 800);
  fc.assert(fc.property(validTiming, ({ leaseMs, renewMs }) => {
    const limit = taskStopTimeoutMs(leaseMs, renewMs);
    assert.ok(limit >= 1 && limit <= 10_000 && limit <= leaseMs - renewMs);
  }));
});
