import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fc from "fast-check";
import {
  byExpiry,
  encodeRecord,
  expiresAtMs,
  formatTime,
  hashToken,
  type Holder,
  type LeaseRecord,
  parseRecord,
  RecordError,
  sameHolder,
  tokenMatches,
} from "../../lib/records/record.ts";

const TOKEN = "0f".repeat(32);

const RECORD: LeaseRecord = {
  kind: "migration",
  operationId: "op-1",
  instance: "orders-app",
  expiresAt: "2026-01-01T00:00:30.5Z",
  topologyGeneration: 7,
  namespace: "app",
  serviceAccount: "deployer",
  tokenHash: hashToken(TOKEN),
  createdAt: "2026-01-01T00:00:00Z",
  state: "active",
};

const stored = (change: Record<string, unknown>) => JSON.stringify({ ...RECORD, ...change });

function pathsOf(annotation: string): readonly string[] {
  try {
    parseRecord(annotation);
  } catch (error) {
    assert.ok(error instanceof RecordError);
    return error.paths;
  }
  assert.fail("parsed");
}

Deno.test("a record in the reference's storage form is read as it is", () => {
  const annotation = '{"kind":"failover-hold","operationId":"0a","instance":"tenant",' +
    '"expiresAt":"2026-03-01T12:00:00.123456789Z","topologyGeneration":7,"namespace":"app-ns",' +
    `"serviceAccount":"deployer","tokenHash":"${hashToken("t")}",` +
    '"createdAt":"2026-03-01T11:59:30.1Z","state":"revoked","reason":"topology_changed"}';
  const record = parseRecord(annotation);
  assert.equal(record.kind, "failover-hold");
  assert.equal(record.reason, "topology_changed");
  assert.equal(encodeRecord(record), annotation);
});

Deno.test("the members are written in the contract's order, whatever order they were made in", () => {
  const mixed = parseRecord(
    JSON.stringify(Object.fromEntries(Object.entries({ ...RECORD, color: "red" }).toReversed())),
  );
  assert.deepEqual(Object.keys(JSON.parse(encodeRecord(mixed))), [...Object.keys(RECORD), "color"]);
});

Deno.test("a reason is written for a revoked record alone", () => {
  const revoked: LeaseRecord = { ...RECORD, state: "revoked", reason: "operator_revoked" };
  assert.equal(JSON.parse(encodeRecord(revoked)).reason, "operator_revoked");
  assert.equal("reason" in JSON.parse(encodeRecord({ ...revoked, state: "active" })), false);
  assert.equal("reason" in JSON.parse(encodeRecord(RECORD)), false);
});

Deno.test("unknown members survive a change of the record", () => {
  const record = parseRecord(stored({ color: { shade: 3 }, generation: 1 }));
  const written = JSON.parse(encodeRecord({ ...record, state: "expired" }));
  assert.deepEqual(written.color, { shade: 3 });
  assert.equal(written.generation, 1);
  assert.equal(written.state, "expired");
});

Deno.test("a record that cannot be read says where it differs and shows no value", () => {
  assert.deepEqual(pathsOf("{"), []);
  assert.deepEqual(pathsOf("null"), [""]);
  assert.deepEqual(pathsOf("[]"), [""]);
  assert.deepEqual(pathsOf(stored({ kind: "gate" })), ["kind"]);
  assert.deepEqual(pathsOf(stored({ state: "paused" })), ["state"]);
  assert.deepEqual(pathsOf(stored({ reason: "weather" })), ["reason"]);
  assert.deepEqual(pathsOf(stored({ topologyGeneration: -1 })), ["topologyGeneration"]);
  assert.deepEqual(pathsOf(stored({ topologyGeneration: 1.5 })), ["topologyGeneration"]);
  assert.deepEqual(pathsOf(stored({ tokenHash: "secret" })), ["tokenHash"]);
  assert.deepEqual(pathsOf(stored({ tokenHash: "A".repeat(64) })), ["tokenHash"]);
  for (const member of Object.keys(RECORD)) {
    assert.deepEqual(pathsOf(stored({ [member]: undefined })), [member]);
    assert.deepEqual(pathsOf(stored({ [member]: [] })), [member]);
  }
  const error = new RecordError(["tokenHash", "state"]);
  assert.equal(
    error.message,
    "Cannot read the deployment record as its form differs at tokenHash, state",
  );
});

Deno.test("a generation that no 32 bits hold is read", () => {
  assert.equal(parseRecord(stored({ topologyGeneration: 2 ** 40 })).topologyGeneration, 2 ** 40);
});

Deno.test("times are read in the form that Go writes, and in no other", () => {
  const good = [
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.000000001Z",
    "2024-02-29T23:59:59.9Z",
    "2026-01-01T02:00:00.5+02:00",
    "0001-01-01T00:00:00Z",
  ];
  const bad = [
    "",
    "now",
    "2026-01-01",
    "2026-01-01 00:00:00Z",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00Z",
    "2026-01-01t00:00:00z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:00:60Z",
    "2026-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-01-01T00:00:00.Z",
    "2026-01-01T00:00:00.1234567890Z",
    "2026-01-01T00:00:00+2:00",
    "2026-01-01T00:00:00Z[u-ca=hebrew]",
    "+002026-01-01T00:00:00Z",
  ];
  for (const expiresAt of good) {
    assert.equal(parseRecord(stored({ expiresAt })).expiresAt, expiresAt);
  }
  for (const expiresAt of bad) assert.deepEqual(pathsOf(stored({ expiresAt })), ["expiresAt"]);
});

Deno.test("an expiry is rounded up to the millisecond, so that a record never ends early", () => {
  const base = Date.UTC(2026, 0, 1);
  const at = (expiresAt: string) => expiresAtMs({ expiresAt }) - base;
  assert.equal(at("2026-01-01T00:00:00Z"), 0);
  assert.equal(at("2026-01-01T00:00:00.000000001Z"), 1);
  assert.equal(at("2026-01-01T00:00:00.001Z"), 1);
  assert.equal(at("2026-01-01T00:00:00.001000001Z"), 2);
  assert.equal(at("2026-01-01T02:00:00.5+02:00"), 500);
});

Deno.test("times are written with as many digits as they need", () => {
  const base = Date.UTC(2026, 0, 1);
  assert.equal(formatTime(base), "2026-01-01T00:00:00Z");
  assert.equal(formatTime(base + 100), "2026-01-01T00:00:00.1Z");
  assert.equal(formatTime(base + 123), "2026-01-01T00:00:00.123Z");
  assert.equal(formatTime(base + 0.5), "2026-01-01T00:00:00.0005Z");
  assert.equal(formatTime(-1), "1969-12-31T23:59:59.999Z");
  assert.equal(formatTime(Date.parse("0000-01-01T00:00:00Z")), "0000-01-01T00:00:00Z");
  assert.equal(formatTime(Date.parse("9999-12-31T23:59:59Z")), "9999-12-31T23:59:59Z");
});

Deno.test("a time that RFC 3339 cannot write is refused", () => {
  for (const ms of [NaN, Infinity, -Infinity, 253402300800000, -62167219200001]) {
    assert.throws(() => formatTime(ms), {
      name: "RangeError",
      message:
        `Cannot format the time as 'ms' must lie in the years 0 to 9999: current value is ${ms}`,
    });
  }
});

Deno.test("a time that was written is read back no earlier, and at most one millisecond later", () => {
  const instant = fc.double({ min: 0, max: Date.UTC(2200, 0, 1), noNaN: true });
  fc.assert(fc.property(instant, (ms) => {
    const expiresAt = formatTime(ms);
    assert.match(expiresAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?Z$/);
    const back = expiresAtMs({ expiresAt });
    assert.ok(back >= ms && back < ms + 1.000001, `${ms} ${expiresAt} ${back}`);
    assert.equal(parseRecord(stored({ expiresAt })).expiresAt, expiresAt);
  }));
  fc.assert(fc.property(fc.integer({ min: 0, max: Date.UTC(2200, 0, 1) }), (ms) => {
    assert.equal(expiresAtMs({ expiresAt: formatTime(ms) }), ms);
  }));
});

const text = fc.string({ unit: "grapheme", maxLength: 20 });
const record: fc.Arbitrary<LeaseRecord> = fc.record({
  kind: fc.constantFrom("migration", "failover-hold"),
  operationId: text,
  instance: text,
  expiresAt: fc.integer({ min: 0, max: 4e12 }).map(formatTime),
  topologyGeneration: fc.maxSafeNat(),
  namespace: text,
  serviceAccount: text,
  tokenHash: text.map(hashToken),
  createdAt: fc.integer({ min: 0, max: 4e12 }).map(formatTime),
  state: fc.constantFrom("active", "expired", "released"),
});

Deno.test("every record survives being written and read, with members nobody knows", () => {
  const others = fc.dictionary(
    fc.string({ minLength: 1 }).map((key) => `x-${key}`),
    fc.jsonValue(),
  );
  fc.assert(fc.property(record, others, (known, more) => {
    const whole = { ...more, ...known };
    assert.deepEqual(
      JSON.parse(encodeRecord(parseRecord(JSON.stringify(whole)))),
      JSON.parse(JSON.stringify(whole)),
    );
  }));
});

Deno.test("a holder is the same only when all four parts are equal", () => {
  const holder: Holder = {
    operationId: "op-1",
    instance: "orders-app",
    namespace: "app",
    serviceAccount: "deployer",
  };
  assert.equal(sameHolder(RECORD, holder), true);
  for (const part of ["operationId", "instance", "namespace", "serviceAccount"] as const) {
    assert.equal(sameHolder(RECORD, { ...holder, [part]: "other" }), false, part);
    assert.equal(sameHolder(RECORD, { ...holder, [part]: "" }), false, part);
  }
});

Deno.test("only the token itself matches its hash", () => {
  assert.equal(hashToken(TOKEN), createHash("sha256").update(TOKEN).digest("hex"));
  assert.equal(tokenMatches(RECORD, TOKEN), true);
  for (const wrong of ["", RECORD.tokenHash, TOKEN.slice(1), `${TOKEN} `, TOKEN.toUpperCase()]) {
    assert.equal(tokenMatches(RECORD, wrong), false, wrong);
  }
  fc.assert(fc.property(text, text, (a, b) => {
    assert.equal(tokenMatches({ tokenHash: hashToken(a) }, b), a === b);
  }));
});

Deno.test("a stored hash that is cut short or too long matches no token", () => {
  const hash = hashToken(TOKEN);
  assert.equal(tokenMatches({ tokenHash: "" }, TOKEN), false);
  assert.equal(tokenMatches({ tokenHash: hash.slice(0, 63) }, TOKEN), false);
  assert.equal(tokenMatches({ tokenHash: `${hash}0` }, TOKEN), false);
  assert.equal(tokenMatches({ tokenHash: `${hash.slice(0, 63)}x` }, TOKEN), false);
});

Deno.test("records are ordered by expiry to the nanosecond, then by operation", () => {
  const at = (expiresAt: string, operationId: string) => ({ expiresAt, operationId });
  const sorted = [
    at("2026-01-01T00:00:00Z", "z"),
    at("2026-01-01T00:00:00.000000001Z", "y"),
    at("2026-01-01T00:00:00.5Z", "a"),
    at("2026-01-01T01:00:00.5+01:00", "b"),
    at("2026-01-01T00:00:01Z", "a"),
  ];
  assert.deepEqual(sorted.toReversed().sort(byExpiry), sorted);
  assert.equal(byExpiry(at("2026-01-01T00:00:00Z", "a"), at("2026-01-01T00:00:00Z", "a")), 0);
});
