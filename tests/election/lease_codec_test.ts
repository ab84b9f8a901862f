import assert from "node:assert/strict";
import fc from "fast-check";
import {
  decodeLease,
  encodeSpec,
  formatMicroTime,
  NO_TIME,
  parseMicroTime,
} from "../../lib/election/lease_codec.ts";
import type { Lease } from "../../lib/kube/resources.ts";

/** The microsecond at which year 2255 begins. */
const YEAR_2255_MICROS = Date.UTC(2255, 0, 1) * 1000;

function lease(spec: Lease["spec"]) {
  return { metadata: { name: "x", uid: "u", resourceVersion: "7" }, spec };
}

Deno.test("a time is written with exactly six fraction digits, and read back the same", () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: YEAR_2255_MICROS }), (micros) => {
    const text = formatMicroTime(micros);
    assert.match(text, /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/);
    assert.equal(parseMicroTime(text), micros);
  }));
  assert.equal(formatMicroTime(1), "1970-01-01T00:00:00.000001Z");
  assert.equal(formatMicroTime(1_767_225_600_000_000), "2026-01-01T00:00:00.000000Z");
});

Deno.test("times of others are read with any fraction and any offset", () => {
  const second = 1_767_225_600_000_000;
  for (
    const [text, micros] of [
      ["2026-01-01T00:00:00Z", second],
      ["2026-01-01T00:00:00.5Z", second + 500_000],
      ["2026-01-01T00:00:00.123456789Z", second + 123_456],
      ["2026-01-01t01:00:00.000001+01:00", second + 1],
      ["2026-01-01T00:00:00z", second],
    ] as const
  ) assert.equal(parseMicroTime(text), micros);
});

Deno.test("a text that is no time, or lies out of range, is no time", () => {
  for (
    const text of [
      "",
      "now",
      "2026-13-01T00:00:00Z",
      "2026-01-01",
      "2026-01-01T00:00:00",
      "1969-12-31T23:59:59Z",
      "9999-12-31T23:59:59.999999Z",
    ]
  ) assert.equal(parseMicroTime(text), NO_TIME, text);
});

Deno.test("a Lease makes the round trip", () => {
  fc.assert(fc.property(
    fc.string({ minLength: 1 }),
    fc.integer({ min: 1, max: 3_600 }),
    fc.integer({ min: 0, max: YEAR_2255_MICROS }),
    fc.integer({ min: 0, max: 2_147_483_647 }),
    (holder, seconds, acquiredMicros, transitions) => {
      const spec = encodeSpec({
        holder,
        durationMs: seconds * 1000,
        acquiredMicros,
        renewedMicros: acquiredMicros,
        transitions,
      });
      assert.deepEqual(decodeLease(lease(spec)), {
        uid: "u",
        version: "7",
        holder,
        durationSeconds: seconds,
        acquiredMicros,
        transitions,
      });
    },
  ));
});

Deno.test("an empty holder is written as none, and none is read as empty", () => {
  const spec = encodeSpec({
    holder: "",
    durationMs: 1_000,
    acquiredMicros: 0,
    renewedMicros: 0,
    transitions: 0,
  });
  assert.equal(spec.holderIdentity, null);
  for (const holderIdentity of [null, undefined, ""]) {
    assert.equal(decodeLease(lease({ ...spec, holderIdentity })).holder, "");
  }
  assert.equal(decodeLease(lease(undefined)).holder, "");
});

Deno.test("what makes no sense is read as absent, and counts are clamped", () => {
  const read = decodeLease(lease({ leaseTransitions: -3, acquireTime: "yesterday" }));
  assert.equal(read.transitions, 0);
  assert.equal(read.acquiredMicros, NO_TIME);
  assert.equal(read.durationSeconds, 0);
  assert.equal(decodeLease(lease({ leaseTransitions: 4_000_000_000 })).transitions, 2_147_483_647);
});

Deno.test("a duration is written in whole seconds, rounded up, and at least 1", () => {
  for (const [durationMs, seconds] of [[1, 1], [1_000, 1], [1_001, 2], [15_000, 15]] as const) {
    const spec = encodeSpec({
      holder: "a",
      durationMs,
      acquiredMicros: 0,
      renewedMicros: 0,
      transitions: 4_000_000_000,
    });
    assert.equal(spec.leaseDurationSeconds, seconds);
    assert.equal(spec.leaseTransitions, 2_147_483_647);
  }
});
