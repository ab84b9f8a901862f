import assert from "node:assert/strict";
import fc from "fast-check";
import { unstableReason } from "../../lib/group/stability.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { ACTIVE, type GroupChange, healthyGroup, READY, STANDBY } from "./fixtures.ts";

const reasonOf = (change: GroupChange) => unstableReason(healthyGroup(change));
const status = (change: Record<string, unknown>) => reasonOf({ status: change });
const degraded = (reason?: string, truth = "True") => ({
  type: "Degraded",
  status: truth,
  ...(reason !== undefined && { reason }),
});

const REVOKE = "bloodraven.shipstream.io/revoke-deployment-leases";

Deno.test("a healthy group is stable", () => {
  assert.equal(reasonOf({}), "");
});

Deno.test("row 1: the revoke annotation counts with any value, also an empty one", () => {
  for (const value of ["true", "false", ""]) {
    assert.equal(reasonOf({ annotations: { [REVOKE]: value } }), "DeploymentRevocationPending");
  }
  assert.equal(reasonOf({ annotations: { other: "true" } }), "");
});

Deno.test("row 2: a group without an active site, or without any status, has no primary", () => {
  assert.equal(status({ activeSite: "" }), "NoPrimary");
  assert.equal(status({ activeSite: undefined }), "NoPrimary");
  assert.equal(unstableReason(MYSQL_FAILOVER_GROUPS.parse({ metadata: {} })), "NoPrimary");
});

Deno.test("row 3: a planned failover in flight, deferred ones included", () => {
  for (
    const phase of [
      "Pending",
      "Validating",
      "Draining",
      "WaitingForLag",
      "WaitingForDragonflySync",
      "PromotingDragonfly",
      "Promoting",
      "Resuming",
      "Deferred",
    ]
  ) assert.equal(status({ plannedFailover: { phase } }), "PlannedFailover", phase);
  for (const phase of ["", "Succeeded", "Failed", undefined]) {
    assert.equal(status({ plannedFailover: { phase } }), "", `phase ${phase}`);
  }
});

Deno.test("row 4: any phase of an ordered update, also one that nobody knows", () => {
  for (const updatePhase of ["UpdateReplica", "Complete", "UpdatingReplicas"]) {
    assert.equal(status({ updatePhase }), "OrderedUpdate");
  }
  assert.equal(status({ updatePhase: "" }), "");
});

Deno.test("deploy-api 16 item 44, row 5: a bootstrap restore must have succeeded, any other must have ended", () => {
  for (const phase of [undefined, "", "Pending", "Running", "Failed", "Unheard"]) {
    const change = { spec: { initFromBackup: {} }, status: { restore: { phase } } };
    assert.equal(reasonOf(change), "Restore", `bootstrap ${phase}`);
  }
  assert.equal(reasonOf({ spec: { initFromBackup: {} } }), "Restore");
  const done = { restore: { phase: "Succeeded" } };
  assert.equal(reasonOf({ spec: { initFromBackup: { backup: "b" } }, status: done }), "");
  for (const phase of ["Pending", "Running", "Unheard"]) {
    assert.equal(status({ restore: { phase } }), "Restore", phase);
  }
  for (const phase of ["", "Succeeded", "Failed"]) assert.equal(status({ restore: { phase } }), "");
});

Deno.test("deploy-api 16 item 44, rows 6 and 7: Dragonfly's upgrade, then its own phase", () => {
  for (const phase of ["Pending", "SavingSnapshot", "ReattachingReplicas", "Unheard"]) {
    assert.equal(
      status({ dragonfly: { phase: "Degraded", upgrade: { phase } } }),
      "DragonflyUpgrade",
    );
  }
  for (const phase of ["", "Succeeded", "Failed"]) {
    assert.equal(status({ dragonfly: { upgrade: { phase } } }), "");
  }
  for (const phase of ["Reconciling", "ConfiguringReplication", "Degraded", "Promoting", "New"]) {
    assert.equal(status({ dragonfly: { phase } }), `Dragonfly${phase}`);
  }
  for (const phase of ["", "Disabled", "Ready"]) assert.equal(status({ dragonfly: { phase } }), "");
});

Deno.test("row 8: a restore in place that has not ended, its preflight included", () => {
  for (const phase of ["Preflight", "Fencing", "Restoring", "Resuming", "Unheard"]) {
    assert.equal(status({ restoreInPlace: { phase } }), "RestoreInPlace", phase);
  }
  for (const phase of ["", "Succeeded", "Failed"]) {
    assert.equal(status({ restoreInPlace: { phase } }), "");
  }
});

Deno.test("deploy-api 16 item 44, row 9: conditions give their own reason", () => {
  const conditions = (...more: object[]) => status({ conditions: [...more, READY] });
  assert.equal(conditions(degraded("SplitBrain")), "SplitBrain");
  assert.equal(conditions(degraded("")), "Degraded");
  assert.equal(conditions(degraded()), "Degraded");
  assert.equal(conditions(degraded("SplitBrain", "False")), "");
  assert.equal(conditions(degraded("SplitBrain", "Unknown")), "");
  const recovery = { type: "RecoveryPending", status: "True", reason: "DivergentTransactions" };
  assert.equal(conditions(recovery), "DivergentTransactions");
  assert.equal(conditions({ ...recovery, reason: "" }), "RecoveryPending");
  const bootstrapping = { type: "Bootstrapping", status: "True", reason: "Cloning" };
  assert.equal(conditions(bootstrapping), "Cloning");
  assert.equal(conditions({ ...bootstrapping, reason: undefined }), "Bootstrapping");
  // The order is that of the table, not that of the list.
  assert.equal(conditions(bootstrapping, recovery, degraded("Alert")), "Alert");
  assert.equal(conditions(bootstrapping, recovery), "DivergentTransactions");
});

Deno.test("deploy-api 16 item 55: lag alone, also as a degraded condition, blocks nothing", () => {
  assert.equal(status({ conditions: [degraded("ReplicationLagging"), READY] }), "");
  assert.equal(status({ sites: [ACTIVE, { ...STANDBY, secondsBehindSource: 9_999 }] }), "");
});

Deno.test("row 10: a group that is not ready, or does not say so, is not", () => {
  assert.equal(status({ conditions: [] }), "NotReady");
  assert.equal(status({ conditions: undefined }), "NotReady");
  assert.equal(status({ conditions: [{ ...READY, status: "False" }] }), "NotReady");
  assert.equal(status({ conditions: [{ ...READY, status: "Unknown" }] }), "NotReady");
});

Deno.test("deploy-api 16 item 44, row 11: every declared site must be observed", () => {
  assert.equal(status({ sites: [ACTIVE] }), "SiteNotObserved");
  assert.equal(status({ sites: undefined }), "SiteNotObserved");
  assert.equal(reasonOf({ spec: { sites: null } }), "");
});

Deno.test("deploy-api 16 item 44, row 12: the first fault of the first site that has one", () => {
  const sites = (active: object, standby: object = {}) =>
    status({ sites: [{ ...ACTIVE, ...active }, { ...STANDBY, ...standby }] });
  assert.equal(sites({ state: "read-only" }), "NoPrimary");
  assert.equal(sites({ state: undefined }), "NoPrimary");
  assert.equal(sites({}, { state: "writable" }), "SiteNotReady");
  assert.equal(sites({}, { state: "unreachable" }), "SiteNotReady");
  assert.equal(sites({}, { state: "dreaming" }), "SiteNotReady");
  assert.equal(sites({ recoveryState: "RecoveryBlocked" }), "RecoveryBlocked");
  assert.equal(sites({}, { recoveryState: "Recloning" }), "Recloning");
  assert.equal(sites({}, { sourceConvergenceState: "Pending" }), "SourceConvergencePending");
  assert.equal(sites({ sourceConvergenceState: "Blocked" }), "SourceConvergenceBlocked");
  assert.equal(sites({}, { sourceConvergenceState: "Converged" }), "");
  assert.equal(sites({}, { replicating: false }), "ReplicationNotRunning");
  assert.equal(sites({}, { replicating: undefined }), "ReplicationNotRunning");
  assert.equal(sites({ recoveryState: "R" }, { state: "unknown" }), "R");
  assert.equal(
    status({ sites: [{ ...STANDBY, state: "unknown" }, { ...ACTIVE, state: "unknown" }] }),
    "SiteNotReady",
  );
});

/** One fault for each row, as a change of its own part of the group, and what it is called. */
const FAULTS: readonly (readonly [string, GroupChange])[] = [
  ["DeploymentRevocationPending", { annotations: { [REVOKE]: "" } }],
  ["PlannedFailover", { status: { plannedFailover: { phase: "Deferred" } } }],
  ["OrderedUpdate", { status: { updatePhase: "WaitReplica" } }],
  ["Restore", { status: { restore: { phase: "Running" } } }],
  ["DragonflyDegraded", { status: { dragonfly: { phase: "Degraded" } } }],
  ["RestoreInPlace", { status: { restoreInPlace: { phase: "Preflight" } } }],
  ["SplitBrain", { status: { conditions: [degraded("SplitBrain")] } }],
  ["ReplicationNotRunning", { status: { sites: [ACTIVE, { ...STANDBY, replicating: false }] } }],
];

Deno.test("of several faults the first of the table is the reason, and none is no reason", () => {
  fc.assert(fc.property(fc.subarray(FAULTS.map((_, index) => index)), (chosen) => {
    const faults = chosen.map((index) => FAULTS[index]?.[1] ?? {});
    const change: GroupChange = {
      annotations: Object.assign({}, ...faults.map((fault) => fault.annotations)),
      status: Object.assign({}, ...faults.map((fault) => fault.status)),
    };
    assert.equal(reasonOf(change), FAULTS[chosen[0] ?? -1]?.[0] ?? "");
  }));
});

Deno.test("lag never changes the reason, whatever else is wrong", () => {
  const lag = fc.option(fc.nat(), { nil: null });
  fc.assert(
    fc.property(fc.constantFrom(...FAULTS, ["", {}] as const), lag, ([, change], seconds) => {
      const sites = [ACTIVE, { ...STANDBY, replicating: false, secondsBehindSource: seconds }];
      const without = { ...STANDBY, replicating: false };
      assert.equal(
        reasonOf({ ...change, status: { ...change.status, sites } }),
        reasonOf({ ...change, status: { ...change.status, sites: [ACTIVE, without] } }),
      );
    }),
  );
});
