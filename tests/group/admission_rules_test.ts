import assert from "node:assert/strict";
import fc from "fast-check";
import {
  judgeHolds,
  judgeLeftBehind,
  type PlannerSnapshot,
  refusalReason,
  stillAdmitted,
} from "../../lib/group/admission_rules.ts";
import type { PlannedAdmission } from "../../lib/group/gate_lease.ts";
import { PLANNED_OPERATIONS } from "../../lib/group/phases.ts";
import { expiresAtMs, formatTime, type LeaseRecord } from "../../lib/records/record.ts";
import { healthyGroup } from "./fixtures.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const MINE: PlannedAdmission = {
  operation: "OrderedUpdate",
  id: "1",
  by: "one",
  since: "2026-01-01T00:00:00Z",
  state: "admitted",
};

function snapshot(change: Partial<PlannerSnapshot> = {}, status = {}): PlannerSnapshot {
  return {
    group: healthyGroup({ status }),
    planned: null,
    admission: { revocationRequested: false, topologyBlocked: "" },
    ...change,
  };
}

const refusals: readonly (readonly [string, PlannerSnapshot, string])[] = [
  ["nothing in the way", snapshot(), ""],
  [
    "a revocation that is asked for",
    snapshot({
      admission: { revocationRequested: true, topologyBlocked: "TopologyPersistencePending" },
      planned: MINE,
    }),
    "DeploymentRevocationPending",
  ],
  [
    "an update under way",
    snapshot({ planned: MINE }, { updatePhase: "Any" }),
    "ConcurrentOperation",
  ],
  [
    "a restore that waits",
    snapshot({}, {
      restoreInPlace: { phase: "Preflight" },
    }),
    "ConcurrentOperation",
  ],
  [
    "a topology that is pending",
    snapshot({
      admission: { revocationRequested: false, topologyBlocked: "TopologyPersistencePending" },
      planned: MINE,
    }),
    "TopologyPersistencePending",
  ],
  [
    "a topology that was not observed",
    snapshot({
      admission: { revocationRequested: false, topologyBlocked: "TopologyNotObserved" },
    }),
    "",
  ],
  ["an admission of another", snapshot({ planned: MINE }), "OrderedUpdate"],
  [
    "an admission that is being withdrawn",
    snapshot({
      planned: { ...MINE, state: "withdrawing" },
    }),
    "OrderedUpdate",
  ],
  ["its own deferral", snapshot({}, { plannedFailover: { phase: "Deferred" } }), ""],
  ["its own run", snapshot({}, { plannedFailover: { phase: "Draining" } }), "PlannedFailover"],
  ["its own run that ended", snapshot({}, { plannedFailover: { phase: "Failed" } }), ""],
];

for (const [what, given, expected] of refusals) {
  Deno.test(`with ${what} a planned failover is refused for ${JSON.stringify(expected)}`, () => {
    assert.equal(refusalReason(given, "PlannedFailover"), expected);
  });
}

Deno.test("of two operations that both wait, each refuses the other", () => {
  const given = snapshot({}, {
    plannedFailover: { phase: "Deferred" },
    restoreInPlace: { phase: "Preflight" },
  });
  for (const operation of PLANNED_OPERATIONS) {
    assert.equal(refusalReason(given, operation), "ConcurrentOperation");
  }
});

const record = (expiresAt: string, state: LeaseRecord["state"], operationId = "op") => ({
  record: {
    kind: "failover-hold",
    operationId,
    instance: "tenant",
    expiresAt,
    topologyGeneration: 7,
    namespace: "app-ns",
    serviceAccount: "deployer",
    tokenHash: "0".repeat(64),
    createdAt: "2026-01-01T00:00:00Z",
    state,
  } satisfies LeaseRecord,
});

const states = fc.constantFrom("active", "expired", "released", "revoked");
const holds = fc.array(
  fc.tuple(fc.integer({ min: -60_000, max: 60_000 }), states).map(([ms, state]) =>
    record(formatTime(NOW + ms), state)
  ),
);
const time = { earliestMs: NOW, latestMs: NOW, certain: true };

Deno.test("holds are free only when none is stored as active", () => {
  fc.assert(
    fc.property(holds, fc.boolean(), (holds, certain) => {
      const verdict = judgeHolds(holds, { ...time, certain }, 1_000);
      const active = holds.filter(({ record }) => record.state === "active");
      assert.equal(verdict.type === "free", active.length === 0);
      if (verdict.type !== "held") return;
      // As instants: as texts `:00.5Z` comes before `:00Z`.
      const endMs = expiresAtMs(verdict.by.record);
      assert(active.every(({ record }) => expiresAtMs(record) >= endMs));
    }),
    {
      examples: [[[
        record("2025-12-31T23:59:00Z", "active"),
        record("2025-12-31T23:59:00.5Z", "active"),
      ], true]],
    },
  );
});

Deno.test("a hold is overdue once twice the clock offset has passed since its expiry, and not at that instant", () => {
  const expired = [record(formatTime(NOW - 2_000), "active")];
  assert.equal(judgeHolds(expired, time, 1_000).type, "held");
  assert.equal(judgeHolds(expired, { ...time, earliestMs: NOW + 1 }, 1_000).type, "overdue");
  const uncertain = { ...time, earliestMs: NOW + 1, certain: false };
  assert.equal(judgeHolds(expired, uncertain, 1_000).type, "held");
});

Deno.test("an admission is mine by its id and its process, until it is taken back", () => {
  assert(stillAdmitted(MINE, MINE));
  assert(!stillAdmitted(null, MINE));
  assert(!stillAdmitted({ ...MINE, id: "2" }, MINE));
  assert(!stillAdmitted({ ...MINE, by: "two" }, MINE));
  assert(!stillAdmitted({ ...MINE, state: "withdrawing" }, MINE));
});

Deno.test("an admission is left for 10 s, and one that is being withdrawn not at all", () => {
  fc.assert(fc.property(fc.nat({ max: 20_000 }), (seenForMs) => {
    const left = judgeLeftBehind({ seenForMs, planned: { state: "admitted" } });
    assert.equal(left, seenForMs >= 10_000 ? "withdraw" : "leave");
    assert.equal(judgeLeftBehind({ seenForMs, planned: { state: "withdrawing" } }), "withdraw");
  }));
});
