import assert from "node:assert/strict";
import {
  admittedPhase,
  operationPhase,
  PLANNED_OPERATIONS,
  plannedFailoverInFlight,
  statusFacts,
} from "../../lib/group/phases.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { healthyGroup } from "./fixtures.ts";

const withStatus = (status: Record<string, unknown>) => healthyGroup({ status });

Deno.test("a group that does nothing shows no phase", () => {
  for (const operation of PLANNED_OPERATIONS) {
    assert.equal(operationPhase(healthyGroup(), operation), "idle");
    assert.equal(operationPhase(MYSQL_FAILOVER_GROUPS.parse({ metadata: {} }), operation), "idle");
  }
  assert.equal(admittedPhase(healthyGroup()), null);
});

Deno.test("a deferred failover and a restore in its preflight wait; they were not admitted", () => {
  const deferred = withStatus({ plannedFailover: { phase: "Deferred" } });
  assert.equal(operationPhase(deferred, "PlannedFailover"), "waiting");
  assert.equal(admittedPhase(deferred), null);
  const preflight = withStatus({ restoreInPlace: { phase: "Preflight" } });
  assert.equal(operationPhase(preflight, "RestoreInPlace"), "waiting");
  assert.equal(admittedPhase(preflight), null);
});

Deno.test("every other phase in flight is one that only an admission writes", () => {
  const failover = ["Pending", "Validating", "Draining", "WaitingForLag", "Promoting", "Resuming"];
  for (const phase of failover) {
    const group = withStatus({ plannedFailover: { phase } });
    assert.equal(operationPhase(group, "PlannedFailover"), "admitted", phase);
    assert.equal(admittedPhase(group), "PlannedFailover");
  }
  for (const updatePhase of ["UpdateReplica", "Complete", "Unheard"]) {
    const group = withStatus({ updatePhase });
    assert.equal(operationPhase(group, "OrderedUpdate"), "admitted");
    assert.equal(admittedPhase(group), "OrderedUpdate");
  }
  for (const phase of ["Fencing", "Restoring", "Resuming", "Unheard"]) {
    const group = withStatus({ restoreInPlace: { phase } });
    assert.equal(operationPhase(group, "RestoreInPlace"), "admitted", phase);
    assert.equal(admittedPhase(group), "RestoreInPlace");
  }
});

Deno.test("an operation that has ended is idle", () => {
  for (const phase of ["Succeeded", "Failed", ""]) {
    const group = withStatus({ plannedFailover: { phase }, restoreInPlace: { phase } });
    assert.equal(operationPhase(group, "PlannedFailover"), "idle");
    assert.equal(operationPhase(group, "RestoreInPlace"), "idle");
  }
});

Deno.test("one operation's phase says nothing of another's", () => {
  const group = withStatus({
    plannedFailover: { phase: "Deferred" },
    updatePhase: "WaitReplica",
    restoreInPlace: { phase: "Preflight" },
  });
  assert.deepEqual(PLANNED_OPERATIONS.map((operation) => operationPhase(group, operation)), [
    "waiting",
    "admitted",
    "waiting",
  ]);
  assert.equal(admittedPhase(group), "OrderedUpdate");
});

Deno.test("an unknown phase of a planned failover is not in flight, as the contract lists them", () => {
  assert.equal(plannedFailoverInFlight("Unheard"), false);
  assert.equal(plannedFailoverInFlight(null), false);
  assert.equal(plannedFailoverInFlight("Deferred"), true);
});

Deno.test("the generation table sees a restore from its fencing on, and not its preflight", () => {
  assert.deepEqual(statusFacts(healthyGroup()), {
    site: "iad",
    generation: 7,
    restoreInFlight: false,
  });
  const inFlight = (phase: string) => statusFacts(withStatus({ restoreInPlace: { phase } }));
  for (const phase of ["Fencing", "Restoring", "Resuming"]) {
    assert.equal(inFlight(phase).restoreInFlight, true, phase);
  }
  for (const phase of ["", "Preflight", "Succeeded", "Failed", "Unheard"]) {
    assert.equal(inFlight(phase).restoreInFlight, false, phase);
  }
  assert.deepEqual(statusFacts(MYSQL_FAILOVER_GROUPS.parse({ metadata: {} })), {
    site: "",
    generation: 0,
    restoreInFlight: false,
  });
});
