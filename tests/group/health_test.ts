import assert from "node:assert/strict";
import fc from "fast-check";
import { groupView } from "../../lib/group/health.ts";
import { formatTime, hashToken, type LeaseRecord } from "../../lib/records/record.ts";
import { ACTIVE, type GroupChange, healthyGroup, READY, STANDBY } from "./fixtures.ts";

const view = (change: GroupChange = {}) => groupView(healthyGroup(change), 7, []);
const health = (status: Record<string, unknown>) => view({ status }).health;
const standbys = (...sites: object[]) =>
  health({ sites: [ACTIVE, ...sites.map((site) => ({ ...STANDBY, ...site }))] });

const record = (change: Partial<LeaseRecord> = {}): LeaseRecord => ({
  kind: "failover-hold",
  operationId: "op-1",
  instance: "tenant",
  expiresAt: "2026-01-01T00:00:30Z",
  topologyGeneration: 7,
  namespace: "app-ns",
  serviceAccount: "deployer",
  tokenHash: hashToken("token"),
  createdAt: "2026-01-01T00:00:00Z",
  state: "active",
  ...change,
});

Deno.test("deploy-api 16 item 27: a healthy group is shown exactly so", () => {
  assert.deepEqual(view(), {
    group: "orders",
    namespace: "database-ns",
    activeSite: "iad",
    topologyGeneration: 7,
    health: {
      ready: true,
      degradedReason: "",
      replicationRunning: true,
      replicationLagSeconds: 0,
      recoveryPending: false,
    },
    operations: {
      plannedFailover: { phase: "", reason: "" },
      updatePhase: "",
      restoreInPlace: "",
      dragonflyUpgrade: "",
    },
    stable: true,
    unstableReason: "",
    leases: [],
  });
});

Deno.test("a group that nobody has observed is shown without a number that lies", () => {
  const unseen = { ...healthyGroup(), status: undefined, spec: undefined };
  const shown = groupView(unseen, 0, []);
  assert.equal(shown.activeSite, "");
  assert.equal(shown.topologyGeneration, 0);
  assert.equal(shown.health.ready, false);
  assert.deepEqual([shown.stable, shown.unstableReason], [false, "NoPrimary"]);
  assert.equal(view({ status: { sites: undefined } }).health.replicationRunning, false);
});

Deno.test("the generation shown is the effective one, not the status' own", () => {
  assert.equal(groupView(healthyGroup(), 9, []).topologyGeneration, 9);
});

Deno.test("replication runs when every standby replicates and every declared site is there", () => {
  assert.equal(standbys({}).replicationRunning, true);
  assert.equal(standbys({ replicating: false }).replicationRunning, false);
  assert.equal(standbys({}, { name: "sjc", replicating: undefined }).replicationRunning, false);
  assert.equal(health({ sites: [ACTIVE] }).replicationRunning, false);
});

Deno.test("the lag is the largest of the standbys', and 0 when none is known", () => {
  assert.equal(standbys({ secondsBehindSource: 9 }).replicationLagSeconds, 9);
  assert.equal(
    standbys({ secondsBehindSource: 3 }, { name: "sjc", secondsBehindSource: 0.4 })
      .replicationLagSeconds,
    3,
  );
  assert.equal(standbys({ secondsBehindSource: null }).replicationLagSeconds, 0);
  assert.equal(
    health({ sites: [{ ...ACTIVE, secondsBehindSource: 9 }, STANDBY] }).replicationLagSeconds,
    0,
  );
});

Deno.test("readiness and degradation are the conditions' own", () => {
  assert.equal(health({ conditions: [] }).ready, false);
  assert.equal(health({ conditions: [{ ...READY, status: "Unknown" }] }).ready, false);
  const degraded = { type: "Degraded", status: "True", reason: "ReplicationLagging" };
  assert.equal(health({ conditions: [READY, degraded] }).degradedReason, "ReplicationLagging");
  assert.equal(
    health({ conditions: [READY, { ...degraded, status: "False" }] }).degradedReason,
    "",
  );
  assert.equal(
    health({ conditions: [READY, { type: "Degraded", status: "True" }] }).degradedReason,
    "",
  );
});

Deno.test("recovery is pending by the condition, or by any site", () => {
  const pending = { type: "RecoveryPending", status: "True" };
  assert.equal(health({ conditions: [READY, pending] }).recoveryPending, true);
  assert.equal(standbys({ recoveryState: "Recloning" }).recoveryPending, true);
  assert.equal(standbys({ recoveryState: "" }).recoveryPending, false);
  assert.equal(standbys({ sourceConvergenceState: "Pending" }).recoveryPending, true);
  assert.equal(standbys({ sourceConvergenceState: "Blocked" }).recoveryPending, true);
  assert.equal(standbys({ sourceConvergenceState: "Converged" }).recoveryPending, false);
});

Deno.test("deploy-api 16 item 23: operations are shown whatever their phase, ended ones too", () => {
  const shown = view({
    status: {
      plannedFailover: { phase: "Deferred", reason: "DeploymentHold" },
      updatePhase: "WaitReplica",
      restoreInPlace: { phase: "Succeeded" },
      dragonfly: { phase: "Ready", upgrade: { phase: "Failed" } },
    },
  });
  assert.deepEqual(shown.operations, {
    plannedFailover: { phase: "Deferred", reason: "DeploymentHold" },
    updatePhase: "WaitReplica",
    restoreInPlace: "Succeeded",
    dragonflyUpgrade: "Failed",
  });
  assert.deepEqual([shown.stable, shown.unstableReason], [false, "PlannedFailover"]);
});

Deno.test("deploy-api 16 item 10: a lease is shown with five members, none of them the token's hash", () => {
  assert.deepEqual(groupView(healthyGroup(), 7, [record({ reason: undefined })]).leases, [{
    kind: "failover-hold",
    operationId: "op-1",
    instance: "tenant",
    expiresAt: "2026-01-01T00:00:30Z",
    topologyGeneration: 7,
  }]);
});

Deno.test("the migration lease comes first, then the holds by expiry and operation, in any order given", () => {
  const migration = record({ kind: "migration", expiresAt: "2027-01-01T00:00:00Z" });
  const lease = fc.record({
    operationId: fc.string({ maxLength: 3 }),
    expiresAt: fc.integer({ min: 0, max: 5 }).map((ms) => formatTime(ms + 0.5)),
  }).map(record);
  fc.assert(fc.property(fc.array(lease), fc.nat(), (holds, at) => {
    const given = holds.toSpliced(at % (holds.length + 1), 0, migration);
    const shown = groupView(healthyGroup(), 7, given).leases;
    assert.equal(shown[0]?.kind, "migration");
    const keys = shown.slice(1).map((hold) => [hold.expiresAt, hold.operationId] as const);
    for (const [index, key] of keys.entries()) {
      const before = keys[index - 1];
      if (before === undefined) continue;
      assert.ok(Date.parse(before[0]) <= Date.parse(key[0]));
      if (before[0] === key[0]) assert.ok(before[1] <= key[1]);
    }
    assert.equal(shown.length, given.length);
  }));
});
