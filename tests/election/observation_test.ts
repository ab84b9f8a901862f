import assert from "node:assert/strict";
import fc from "fast-check";
import type { LeaseRecord } from "../../lib/election/lease_codec.ts";
import { LeaseObservation } from "../../lib/election/observation.ts";

const claim = { identity: "me", made: true, acquiredMicros: 5 };
const theirs: LeaseRecord = {
  uid: "u1",
  version: "1",
  holder: "other",
  durationSeconds: 20,
  acquiredMicros: 1,
  transitions: 0,
};
const mine = { ...theirs, holder: "me", acquiredMicros: 5 };

function observing(): LeaseObservation {
  return new LeaseObservation(15_000);
}

for (const durationSeconds of [0, -5]) {
  Deno.test(`a duration of ${durationSeconds}, which the server refuses, counts as the own one`, () => {
    const observation = observing();
    observation.found({ ...theirs, durationSeconds }, claim, 1_000);
    assert.equal(observation.takeableAtMs(), 16_000);
    assert.equal(observation.move(claim, 15_999), "wait");
    assert.equal(observation.move(claim, 16_000), "acquire");
  });
}

Deno.test("a duration of 68 years counts as one hour", () => {
  const observation = observing();
  observation.found({ ...theirs, durationSeconds: 2_147_483_647 }, claim, 0);
  assert.equal(observation.move(claim, 3_599_999), "wait");
  assert.equal(observation.move(claim, 3_600_000), "acquire");
});

Deno.test("any other version starts the wait anew, and the same version does not", () => {
  const observation = observing();
  observation.found(theirs, claim, 0);
  observation.found(theirs, claim, 10_000);
  assert.equal(observation.takeableAtMs(), 20_000);
  observation.found({ ...theirs, version: "2" }, claim, 10_000);
  assert.equal(observation.takeableAtMs(), 30_000);
  // A restored store counts from an older version on: that is a change too.
  observation.found(theirs, claim, 12_000);
  assert.equal(observation.takeableAtMs(), 32_000);
});

Deno.test("an own record is renewed, whatever its age", () => {
  const observation = observing();
  observation.found(mine, claim, 0);
  assert.equal(observation.move(claim, 99_000_000), "renew");
});

Deno.test("a missing Lease is created at once when no holder was seen", () => {
  const observation = observing();
  observation.missing(claim, 0);
  assert.equal(observation.move(claim, 0), "create");
  observation.found({ ...theirs, holder: "" }, claim, 1);
  observation.missing(claim, 2);
  assert.equal(observation.move(claim, 2), "create");
  observation.found(mine, claim, 3);
  observation.missing(claim, 4);
  assert.equal(observation.move(claim, 4), "create", "the own hold is known to be over");
});

Deno.test("a missing Lease is created only once a holder that was seen cannot believe any more", () => {
  const observation = observing();
  observation.found(theirs, claim, 0);
  observation.missing(claim, 10_000);
  observation.missing(claim, 12_000);
  assert.equal(observation.takeableAtMs(), 30_000);
  assert.equal(observation.move(claim, 29_999), "wait");
  assert.equal(observation.move(claim, 30_000), "create");
});

Deno.test("another object of the name is no release of the first one's holder", () => {
  const observation = observing();
  observation.found(theirs, claim, 0);
  observation.found({ ...theirs, uid: "u2", version: "9", holder: "" }, claim, 1_000);
  assert.equal(observation.move(claim, 20_999), "wait");
  assert.equal(observation.move(claim, 21_000), "acquire");
});

Deno.test("of two holders whose Leases vanished, the one that may believe longer counts", () => {
  const observation = observing();
  observation.found(theirs, claim, 0);
  observation.missing(claim, 1_000);
  observation.found({ ...theirs, uid: "u2", holder: "third", durationSeconds: 2 }, claim, 2_000);
  observation.missing(claim, 3_000);
  assert.equal(observation.move(claim, 20_999), "wait");
  assert.equal(observation.move(claim, 21_000), "create");
});

Deno.test("it may be taken exactly from the instant that it names on", () => {
  const event = fc.record({
    missing: fc.boolean(),
    holder: fc.constantFrom("", "other", "third"),
    version: fc.constantFrom("1", "2", "3"),
    uid: fc.constantFrom("u1", "u2"),
    seconds: fc.integer({ min: 1, max: 60 }),
    afterMs: fc.integer({ min: 0, max: 30_000 }),
  });
  fc.assert(fc.property(fc.array(event, { minLength: 1, maxLength: 12 }), (events) => {
    const observation = observing();
    let now = 0;
    for (const { missing, seconds, afterMs, ...rest } of events) {
      now += afterMs;
      if (missing) observation.missing(claim, now);
      else observation.found({ ...theirs, ...rest, durationSeconds: seconds }, claim, now);
    }
    const at = observation.takeableAtMs();
    if (at > now) assert.equal(observation.move(claim, at - 1), "wait");
    assert.notEqual(observation.move(claim, Math.max(at, now)), "wait");
  }));
});
