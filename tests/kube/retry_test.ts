import assert from "node:assert/strict";
import fc from "fast-check";
import { UnavailableError } from "../../lib/kube/errors.ts";
import { MAX_REFUSALS, nextStep, NO_TRIES, type Tries } from "../../lib/kube/retry.ts";

const call = { verb: "get", resource: "leases", target: "a" };
const failures = fc.record({
  error: fc.record({
    status: fc.constantFrom(null, 401, 403, 404, 409, 410, 422, 429, 500, 502, 503, 504),
    retryAfterMs: fc.option(fc.nat(20_000)),
  }).map((details) => new UnavailableError(call, details)),
  answered: fc.boolean(),
  servedBefore: fc.boolean(),
});
const tries: fc.Arbitrary<Tries> = fc.record({
  refusals: fc.nat(MAX_REFUSALS),
  refreshed: fc.boolean(),
  resent: fc.boolean(),
});

Deno.test("a write without an answer is never sent again", () => {
  fc.assert(fc.property(failures, tries, fc.nat(), (failure, done, leftMs) => {
    const next = nextStep({ ...failure, answered: false }, true, done, leftMs);
    assert.equal(next.step, "fail");
  }));
});

Deno.test("an answered request is sent again only after a status that says it was not run", () => {
  fc.assert(
    fc.property(failures, fc.boolean(), tries, fc.nat(), (failure, writes, done, leftMs) => {
      const next = nextStep({ ...failure, answered: true }, writes, done, leftMs);
      if (next.step !== "fail") {
        assert.ok([401, 429, 503].includes(failure.error.status ?? 0));
        assert.notEqual(next.step, "resend");
      }
    }),
  );
});

Deno.test("a wait is the server's own, and shorter than the time that is left", () => {
  fc.assert(fc.property(failures, tries, fc.nat(20_000), (failure, done, leftMs) => {
    const next = nextStep(failure, false, done, leftMs);
    if (next.step === "wait") {
      assert.equal(next.waitMs, failure.error.retryAfterMs);
      assert.ok(next.waitMs < leftMs);
    }
  }));
});

Deno.test("a call comes to an end, whatever the server does", () => {
  fc.assert(fc.property(
    fc.array(failures, { minLength: 10, maxLength: 10 }),
    fc.boolean(),
    (faults, writes) => {
      let done = NO_TRIES;
      const ended = faults.findIndex((failure) => {
        const next = nextStep(failure, writes, done, 1_000_000);
        if (next.step === "fail") return true;
        done = next.tries;
        return false;
      });
      assert.ok(ended >= 0 && ended <= MAX_REFUSALS + 2);
    },
  ));
});
