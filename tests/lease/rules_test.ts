import assert from "node:assert/strict";
import fc from "fast-check";
import { expiresAtMs, formatTime, hashToken, type LeaseRecord } from "../../lib/records/record.ts";
import { type Admission, blockedReason } from "../../lib/group/allowance.ts";
import type { LeaseInstant } from "../../lib/lease_time/lease_time.ts";
import { judgeLook, retracted } from "../../lib/lease/look_rules.ts";
import {
  clampTtlSeconds,
  decideGrant,
  decideRelease,
  decideRenew,
  type GrantRequest,
  type GrantSnapshot,
  type HolderClaim,
  MAX_TTL_SECONDS,
  MIN_TTL_SECONDS,
  settled,
  standing,
} from "../../lib/lease/rules.ts";

const NOW = Date.UTC(2026, 0, 1);
const TOKEN = "a".repeat(64);
const exactly: LeaseInstant = { earliestMs: NOW, latestMs: NOW, certain: true };
const open: Admission = {
  generation: 7,
  revocationRequested: false,
  topologyBlocked: "",
  reserved: "",
  unstable: "",
};
const noLimits = { maxHoldAgeMs: 0 };

function record(changes: Partial<LeaseRecord> = {}): LeaseRecord {
  return {
    kind: "migration",
    operationId: "op-1",
    instance: "tenant",
    expiresAt: formatTime(NOW + 30_000),
    topologyGeneration: 7,
    namespace: "app-ns",
    serviceAccount: "deployer",
    tokenHash: hashToken(TOKEN),
    createdAt: formatTime(NOW - 1_000),
    state: "active",
    ...changes,
  };
}

function request(changes: Partial<GrantRequest> = {}): GrantRequest {
  return {
    kind: "migration",
    holder: {
      operationId: "op-1",
      instance: "tenant",
      namespace: "app-ns",
      serviceAccount: "deployer",
    },
    ttlSeconds: 30,
    tokenHash: hashToken("fresh"),
    ...changes,
  };
}

const other = request({
  holder: { ...request().holder, operationId: "op-2" },
});

function snapshot(changes: Partial<GrantSnapshot> = {}): GrantSnapshot {
  return { admission: open, time: exactly, mutex: null, own: null, ...changes };
}

function claim(changes: Partial<HolderClaim> = {}): HolderClaim {
  return {
    operationId: "op-1",
    namespace: "app-ns",
    serviceAccount: "deployer",
    instances: ["tenant"],
    token: TOKEN,
    ...changes,
  };
}

const arbRecord: fc.Arbitrary<LeaseRecord> = fc.record({
  kind: fc.constantFrom("migration", "failover-hold"),
  operationId: fc.constantFrom("op-1", "op-2", "op-3"),
  instance: fc.constantFrom("tenant", "billing"),
  expiresAt: fc.integer({ min: -60_000, max: 60_000 }).map((ms) => formatTime(NOW + ms)),
  topologyGeneration: fc.integer({ min: 0, max: 10 }),
  namespace: fc.constantFrom("app-ns", "other-ns"),
  serviceAccount: fc.constantFrom("deployer", "intruder"),
  tokenHash: fc.constantFrom(hashToken(TOKEN), hashToken("another")),
  createdAt: fc.constant(formatTime(NOW - 1_000)),
  state: fc.constantFrom("active", "expired", "released", "revoked"),
}).map((made): LeaseRecord =>
  made.state === "revoked" ? { ...made, reason: "operator_revoked" } : made
);
const arbAdmission: fc.Arbitrary<Admission> = fc.record({
  generation: fc.integer({ min: 0, max: 10 }),
  revocationRequested: fc.boolean(),
  topologyBlocked: fc.constantFrom("", "TopologyPersistencePending"),
  reserved: fc.constantFrom("", "PlannedFailover"),
  unstable: fc.constantFrom("", "NotReady"),
});
const arbTime: fc.Arbitrary<LeaseInstant> = fc.record({
  offset: fc.integer({ min: -60_000, max: 60_000 }),
  width: fc.integer({ min: 0, max: 3_000 }),
}).map(({ offset, width }) => ({
  earliestMs: NOW + offset,
  latestMs: NOW + offset + width,
  certain: width <= 2_000,
}));
const arbRequest = fc.record({
  kind: fc.constantFrom("migration", "failover-hold"),
  operationId: fc.constantFrom("op-1", "op-2"),
  instance: fc.constantFrom("tenant", "billing"),
  ttlSeconds: fc.option(fc.integer({ min: -10, max: 1_000 }), { nil: undefined }),
}).map(({ kind, operationId, instance, ttlSeconds }) =>
  request({ kind, ttlSeconds, holder: { ...request().holder, operationId, instance } })
);
const arbSnapshot = fc.record({
  admission: arbAdmission,
  time: arbTime,
  mutex: fc.option(arbRecord.map((made): LeaseRecord => ({ ...made, kind: "migration" }))),
  own: fc.option(arbRecord),
});

Deno.test("a ttl is limited to 5..120 seconds, and a missing one is the shortest", () => {
  assert.equal(clampTtlSeconds(undefined), MIN_TTL_SECONDS);
  assert.equal(clampTtlSeconds(-1), MIN_TTL_SECONDS);
  fc.assert(fc.property(fc.integer(), (wish) => {
    const ttl = clampTtlSeconds(wish);
    assert.ok(ttl >= MIN_TTL_SECONDS && ttl <= MAX_TTL_SECONDS);
    if (wish >= MIN_TTL_SECONDS && wish <= MAX_TTL_SECONDS) assert.equal(ttl, wish);
  }));
});

Deno.test("at its expiry a lease is still active, and a millisecond later it is not", () => {
  const held = record({ expiresAt: formatTime(NOW) });
  assert.equal(standing(held, open, exactly).type, "active");
  const later = { ...exactly, earliestMs: NOW + 1, latestMs: NOW + 1 };
  assert.deepEqual(standing(held, open, later), { type: "expired", written: false });
});

Deno.test("expiry is judged by the earliest time, so that no margin of the clock ends a lease", () => {
  const held = record({ expiresAt: formatTime(NOW) });
  const vague = { earliestMs: NOW, latestMs: NOW + 900, certain: true };
  assert.equal(standing(held, open, vague).type, "active");
});

Deno.test("expiry beats revocation, and the annotation beats a new generation", () => {
  const asked = { ...open, revocationRequested: true, generation: 8 };
  assert.equal(
    standing(record({ expiresAt: formatTime(NOW - 1) }), asked, exactly).type,
    "expired",
  );
  assert.deepEqual(standing(record(), asked, exactly), {
    type: "revoked",
    reason: "operator_revoked",
    written: false,
  });
  assert.deepEqual(standing(record(), { ...open, generation: 8 }, exactly), {
    type: "revoked",
    reason: "topology_changed",
    written: false,
  });
});

Deno.test("a record of a newer generation is never judged by an older look", () => {
  assert.equal(standing(record({ topologyGeneration: 8 }), open, exactly).type, "ahead");
  const again = { type: "again" };
  const mutex = record({ topologyGeneration: 8 });
  assert.deepEqual(decideGrant(snapshot({ mutex }), other), again);
  const hold = request({ kind: "failover-hold" });
  assert.deepEqual(decideGrant(snapshot({ mutex }), hold), again);
  const seen = { admission: open, time: exactly, record: mutex };
  assert.deepEqual(decideRenew(seen, claim(), 30, noLimits), again);
});

Deno.test("the reasons of a 423 come in the order of the contract", () => {
  const all = {
    ...open,
    revocationRequested: true,
    topologyBlocked: "TopologyPersistencePending",
    reserved: "PlannedFailover",
  };
  assert.equal(blockedReason(all), "DeploymentRevocationPending");
  assert.equal(blockedReason({ ...all, revocationRequested: false }), "TopologyPersistencePending");
  assert.equal(blockedReason({ ...open, reserved: "OrderedUpdate" }), "OrderedUpdate");
  assert.equal(blockedReason(open), "");
});

Deno.test("a free slot is granted for the wished time, counted from the latest time", () => {
  const vague = { earliestMs: NOW - 400, latestMs: NOW + 400, certain: true };
  const decision = decideGrant(snapshot({ time: vague }), request());
  assert.equal(decision.type, "write");
  assert.equal(decision.created, true);
  assert.equal(decision.record.expiresAt, formatTime(NOW + 400 + 30_000));
  assert.equal(decision.record.topologyGeneration, 7);
  assert.equal(decision.archive, null);
});

Deno.test("a re-grant to the same holder rotates the token and keeps the time of creation", () => {
  const mutex = record();
  const decision = decideGrant(snapshot({ mutex }), request());
  assert.equal(decision.type, "write");
  assert.equal(decision.created, false);
  assert.equal(decision.record.createdAt, mutex.createdAt);
  assert.equal(decision.record.tokenHash, hashToken("fresh"));
});

Deno.test("a re-grant keeps the members of a record that this version does not know", () => {
  const mutex = { ...record(), future: { member: 1 } };
  const decision = decideGrant(snapshot({ mutex }), request());
  assert.equal(decision.type, "write");
  assert.deepEqual({ ...decision.record }, { ...mutex, ...decision.record });
  assert.ok("future" in decision.record);
});

for (
  const [who, changes] of Object.entries({
    "another operation": { operationId: "op-2" },
    "the same operation from another instance": { instance: "billing" },
    "the same operation from another service account": { serviceAccount: "intruder" },
    "the same operation from another namespace": { namespace: "other-ns" },
  })
) {
  Deno.test(`${who} finds the mutex held`, () => {
    const asked = request({ holder: { ...request().holder, ...changes } });
    const decision = decideGrant(snapshot({ mutex: record() }), asked);
    assert.deepEqual(decision, {
      type: "refuse",
      refusal: { type: "held", by: record() },
      settle: [],
    });
  });
}

Deno.test("a lease that ran out is overwritten and counted, and leaves no tombstone", () => {
  const mutex = record({ expiresAt: formatTime(NOW - 1) });
  const decision = decideGrant(snapshot({ mutex }), other);
  assert.equal(decision.type, "write");
  assert.equal(decision.expires, mutex);
  assert.equal(decision.archive, null);
});

Deno.test("with an uncertain clock nobody takes another operation's lease that ran out", () => {
  const mutex = record({ expiresAt: formatTime(NOW - 1) });
  const time = { ...exactly, certain: false };
  const decision = decideGrant(snapshot({ mutex, time }), other);
  assert.deepEqual(decision, { type: "refuse", refusal: { type: "unavailable" }, settle: [] });
  assert.equal(settled(mutex, { type: "expired", written: false }, time), null);
});

Deno.test("a revoked occupant is kept under its own name before the slot is overwritten", () => {
  const mutex = record({ topologyGeneration: 6 });
  const decision = decideGrant(snapshot({ mutex }), other);
  assert.equal(decision.type, "write");
  assert.deepEqual(decision.archive, {
    record: { ...mutex, state: "revoked", reason: "topology_changed" },
    written: false,
  });
});

Deno.test("a revoked operation stays revoked, in its slot and under its own name", () => {
  const revoked = record({ state: "revoked", reason: "operator_revoked", topologyGeneration: 6 });
  const refusal = { type: "revoked", reason: "operator_revoked", generation: 7 };
  for (const places of [{ mutex: revoked }, { own: revoked }]) {
    const decision = decideGrant(snapshot(places), request());
    assert.equal(decision.type, "refuse");
    assert.deepEqual(decision.refusal, refusal);
  }
});

Deno.test("an operation that finds itself revoked by a new generation has that stored first", () => {
  const mutex = record({ topologyGeneration: 6 });
  const decision = decideGrant(snapshot({ mutex }), request());
  assert.equal(decision.type, "refuse");
  assert.deepEqual(decision.settle, [{
    place: "mutex",
    record: { ...mutex, state: "revoked", reason: "topology_changed" },
  }]);
});

Deno.test("deploy-api 16 item 25: a hold needs the mutex of the very same holder", () => {
  const hold = request({ kind: "failover-hold" });
  const forbidden = { type: "forbidden" };
  const refusals = [
    snapshot(),
    snapshot({ mutex: record({ operationId: "op-2" }) }),
    snapshot({ mutex: record({ instance: "billing" }) }),
    snapshot({ mutex: record({ state: "released" }) }),
  ].map((given) => decideGrant(given, hold));
  for (const decision of refusals) {
    assert.equal(decision.type, "refuse");
    assert.deepEqual(decision.refusal, forbidden);
  }
  assert.equal(decideGrant(snapshot({ mutex: record() }), hold).type, "write");
});

Deno.test("a grant whose lost write is found again goes on to the look", () => {
  const mutex = record({ tokenHash: hashToken("fresh") });
  assert.deepEqual(decideGrant(snapshot({ mutex }), request()), { type: "landed", record: mutex });
});

Deno.test("property: a grant never overwrites another holder's active lease", () => {
  fc.assert(
    fc.property(arbSnapshot, arbRequest, (given, asked) => {
      const decision = decideGrant(given, asked);
      if (decision.type !== "write") return;
      const target = asked.kind === "migration" ? given.mutex : given.own;
      if (target === null) return;
      const found = standing(target, given.admission, given.time);
      assert.notEqual(found.type, "ahead");
      if (found.type !== "active") return;
      const { operationId, instance, namespace, serviceAccount } = target;
      assert.deepEqual({ operationId, instance, namespace, serviceAccount }, asked.holder);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("property: a grant is written only when nothing is in the way, under our generation", () => {
  fc.assert(
    fc.property(arbSnapshot, arbRequest, (given, asked) => {
      const decision = decideGrant(given, asked);
      if (decision.type !== "write") return;
      assert.equal(blockedReason(given.admission), "");
      assert.equal(given.admission.unstable, "");
      assert.equal(decision.record.topologyGeneration, given.admission.generation);
      const ttlMs = expiresAtMs(decision.record) - given.time.latestMs;
      assert.ok(ttlMs >= MIN_TTL_SECONDS * 1000 && ttlMs <= MAX_TTL_SECONDS * 1000);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("property: a revoked operation is never granted again", () => {
  fc.assert(
    fc.property(arbSnapshot, arbRequest, (given, asked) => {
      const decision = decideGrant(given, asked);
      if (decision.type !== "write") return;
      const places = asked.kind === "migration" ? [given.mutex, given.own] : [given.own];
      for (const found of places) {
        const same = found?.operationId === asked.holder.operationId || found === given.own;
        if (same) assert.notEqual(found?.state, "revoked");
      }
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("deploy-api 7.5: the outcome table of terminal records", () => {
  const wrong = claim({ token: "b".repeat(64) });
  const states: readonly [LeaseRecord | null, string, string][] = [
    [null, "not_found", "not_found"],
    [record({ state: "expired" }), "not_found", "token_mismatch"],
    [record({ state: "released" }), "not_found", "token_mismatch"],
    [record({ state: "revoked", reason: "topology_changed" }), "revoked", "token_mismatch"],
  ];
  for (const [found, right, other] of states) {
    const seen = { admission: open, time: exactly, record: found };
    const renewed = decideRenew(seen, claim(), 30, noLimits);
    assert.equal(renewed.type === "refuse" && renewed.refusal.type, right);
    const mistaken = decideRenew(seen, wrong, 30, noLimits);
    assert.equal(mistaken.type === "refuse" && mistaken.refusal.type, other);
    assert.deepEqual(decideRelease(seen, claim()), { type: "done", write: null });
    const refused = decideRelease(seen, wrong);
    assert.equal(refused.type, found === null ? "done" : "refuse");
  }
});

Deno.test("a claim of one of several instances finds its record, and of none does not", () => {
  const seen = { admission: open, time: exactly, record: record() };
  const several = claim({ instances: ["billing", "tenant"] });
  assert.equal(decideRenew(seen, several, 30, noLimits).type, "write");
  const none = decideRenew(seen, claim({ instances: ["billing"] }), 30, noLimits);
  assert.deepEqual(none, { type: "refuse", refusal: { type: "token_mismatch" }, settle: null });
});

Deno.test("a renewal while something is pending is refused and extends nothing", () => {
  const admission = { ...open, reserved: "PlannedFailover" };
  const decision = decideRenew(
    { admission, time: exactly, record: record() },
    claim(),
    30,
    noLimits,
  );
  assert.deepEqual(decision, {
    type: "refuse",
    refusal: { type: "unstable", reason: "PlannedFailover" },
    settle: null,
  });
});

Deno.test("a renewal does not ask whether the group is stable", () => {
  const admission = { ...open, unstable: "PlannedFailover" };
  const decision = decideRenew(
    { admission, time: exactly, record: record() },
    claim(),
    30,
    noLimits,
  );
  assert.equal(decision.type, "write");
});

Deno.test("difference 21: a hold past its greatest age is revoked and not renewed", () => {
  const old = record({ kind: "failover-hold", createdAt: formatTime(NOW - 60_001) });
  const seen = { admission: open, time: exactly, record: old };
  const decision = decideRenew(seen, claim(), 30, { maxHoldAgeMs: 60_000 });
  assert.equal(decision.type, "refuse");
  assert.deepEqual(decision.settle, { ...old, state: "revoked", reason: "operator_revoked" });
  assert.equal(decideRenew(seen, claim(), 30, noLimits).type, "write");
  const mutex = { ...seen, record: { ...old, kind: "migration" as const } };
  assert.equal(decideRenew(mutex, claim(), 30, { maxHoldAgeMs: 60_000 }).type, "write");
});

Deno.test("property: a renewal changes the expiry alone, and only of an active lease with its token", () => {
  fc.assert(
    fc.property(arbRecord, arbAdmission, arbTime, (found, admission, time) => {
      const decision = decideRenew({ admission, time, record: found }, claim(), 30, noLimits);
      if (decision.type !== "write") return;
      assert.equal(standing(found, admission, time).type, "active");
      assert.equal(found.tokenHash, hashToken(TOKEN));
      assert.deepEqual({ ...decision.record, expiresAt: found.expiresAt }, found);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("property: a release is written only for its holder, and never makes a lease active", () => {
  fc.assert(
    fc.property(arbRecord, arbAdmission, arbTime, (found, admission, time) => {
      const decision = decideRelease({ admission, time, record: found }, claim());
      const write = decision.type === "done" ? decision.write : decision.settle;
      if (write !== null) assert.notEqual(write.state, "active");
      if (decision.type === "done") assert.equal(found.tokenHash, hashToken(TOKEN));
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("a release works while all else is refused", () => {
  const admission = {
    ...open,
    topologyBlocked: "TopologyPersistencePending",
    reserved: "PlannedFailover",
    unstable: "NoPrimary",
  };
  const decision = decideRelease({ admission, time: exactly, record: record() }, claim());
  assert.deepEqual(decision, { type: "done", write: { ...record(), state: "released" } });
});

Deno.test("a look that finds the same generation and nothing in the way lets a grant stand", () => {
  const look = { admission: open, time: exactly };
  const { holder } = request();
  assert.deepEqual(judgeLook(look, record(), "grant", holder), { type: "stands" });
  assert.deepEqual(judgeLook(look, record(), "renew", holder), { type: "stands" });
});

Deno.test("a look judges what changed during the write: revocation, generation, stability, gate", () => {
  const { holder } = request();
  const judge = (changes: Partial<Admission>, kind: "grant" | "renew") =>
    judgeLook({ admission: { ...open, ...changes }, time: exactly }, record(), kind, holder);
  for (const kind of ["grant", "renew"] as const) {
    assert.deepEqual(judge({ revocationRequested: true }, kind), {
      type: "revoke",
      reason: "operator_revoked",
      generation: 7,
    });
    assert.deepEqual(judge({ generation: 8 }, kind), {
      type: "revoke",
      reason: "topology_changed",
      generation: 8,
    });
    assert.deepEqual(judge({ generation: 6 }, kind), { type: "again" });
  }
  assert.deepEqual(judge({ unstable: "DragonflyPromoting" }, "grant"), {
    type: "retract",
    refusal: { type: "unstable", reason: "DragonflyPromoting" },
  });
  assert.deepEqual(judge({ unstable: "DragonflyPromoting" }, "renew"), { type: "stands" });
  assert.deepEqual(judge({ reserved: "PlannedFailover" }, "renew"), {
    type: "unconfirmed",
    reason: "PlannedFailover",
  });
});

Deno.test("a hold stands only while its look finds the mutex its holder's own", () => {
  const { holder } = request();
  const hold = record({ kind: "failover-hold" });
  const judge = (mutex: LeaseRecord | null) =>
    judgeLook({ admission: open, time: exactly, mutex }, hold, "grant", holder);
  assert.deepEqual(judge(record()), { type: "stands" });
  for (const mutex of [null, record({ operationId: "op-2" }), record({ state: "released" })]) {
    assert.deepEqual(judge(mutex), { type: "retract", refusal: { type: "forbidden" } });
  }
  assert.deepEqual(judge(record({ state: "revoked", reason: "operator_revoked" })), {
    type: "revoke",
    reason: "operator_revoked",
    generation: 7,
  });
  assert.deepEqual(judge(record({ topologyGeneration: 8 })), { type: "again" });
});

Deno.test("difference 4: a grant is taken back, and a re-grant gives the old record again", () => {
  const written = record({ tokenHash: hashToken("fresh") });
  assert.deepEqual(retracted(written, null), { ...written, state: "released" });
  assert.deepEqual(retracted(written, record()), record());
});

Deno.test("property: what a look stores never extends a lease", () => {
  fc.assert(fc.property(arbRecord, arbAdmission, arbTime, (found, admission, time) => {
    const next = settled(found, standing(found, admission, time), time);
    if (next === null) return;
    assert.equal(next.expiresAt, found.expiresAt);
    assert.equal(found.state, "active");
    assert.notEqual(next.state, "active");
  }));
});
