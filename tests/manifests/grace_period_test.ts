import assert from "node:assert/strict";
import fc from "fast-check";
import { type GraceParts, gracePeriodSeconds, MAX_GRACE_SECONDS } from "../../lib/manifests/mod.ts";

const DEFAULTS: GraceParts = {
  preStopSeconds: 5,
  prestopGraceSeconds: 5,
  shutdownTimeoutSeconds: 30,
  bufferSeconds: 10,
};

Deno.test("the grace period is the sum of its four parts: 50 s by default, and 45 s without a hook", () => {
  assert.equal(gracePeriodSeconds(DEFAULTS), 50);
  assert.equal(gracePeriodSeconds({ ...DEFAULTS, preStopSeconds: 0 }), 45);
});

Deno.test("the grace period equals its specification, and stops at the highest that can be told", () => {
  const seconds = fc.oneof(
    fc.integer({ min: 0, max: 1_000 }),
    fc.maxSafeNat(),
    fc.constantFrom(MAX_GRACE_SECONDS, MAX_GRACE_SECONDS - 1),
  );
  const parts = fc.record({
    preStopSeconds: seconds,
    prestopGraceSeconds: seconds,
    shutdownTimeoutSeconds: seconds,
    bufferSeconds: seconds,
  });
  fc.assert(fc.property(parts, (given) => {
    // Counted without a limit, in the other kind of number.
    const sum = Object.values(given).reduce((all, part) => all + BigInt(part), 0n);
    const highest = BigInt(MAX_GRACE_SECONDS);
    assert.equal(BigInt(gracePeriodSeconds(given)), sum < highest ? sum : highest);
  }));
  assert.equal(MAX_GRACE_SECONDS, Number.MAX_SAFE_INTEGER);
});
