import assert from "node:assert/strict";
import { PLANNED_FAILOVER_ANNOTATION } from "../../lib/group/types.ts";
import { operationFacts, operationsOf } from "../../lib/status/operations.ts";
import { healthyGroup } from "../group/fixtures.ts";
import { leaseStatus } from "./fixtures.ts";

const hold = leaseStatus({ kind: "failover-hold" });
const heldBy =
  "the failover hold of operation op-1 for orders-app, until 2026-01-01T00:00:30Z unless renewed";

function found(
  change: Parameters<typeof healthyGroup>[0],
  leases = [hold],
  all = false,
) {
  return operationsOf(operationFacts(healthyGroup(change)), leases, all)
    .map(({ operation, phase, target, waitsFor }) => [operation, phase, target, waitsFor]);
}

const failover = (status: Record<string, string>) => ({ status: { plannedFailover: status } });

Deno.test("a group at rest has no operations", () => {
  assert.deepEqual(found({}), []);
});

Deno.test("a planned failover that is deferred names the holds that it waits for", () => {
  const deferred = failover({ phase: "Deferred", reason: "DeploymentHold", target: "pdx" });
  assert.deepEqual(found(deferred), [["PlannedFailover", "Deferred", "pdx", [heldBy]]]);
  const second = leaseStatus({ kind: "failover-hold", operationId: "op-2" });
  const [[, , , waits] = []] = found(deferred, [hold, leaseStatus(), second]);
  assert.deepEqual(waits, [heldBy, heldBy.replace("op-1", "op-2")]);
});

Deno.test("a hold whose time is over is in the way until its end is stored", () => {
  const deferred = failover({ phase: "Deferred", reason: "DeploymentHold" });
  const over = { state: "expired", leftSeconds: -3 } as const;
  assert.deepEqual(found(deferred, [{ ...hold, ...over, stored: false }])[0]?.[3], [
    "the failover hold of operation op-1 for orders-app, over since 2026-01-01T00:00:30Z",
  ]);
  assert.deepEqual(found(deferred, [{ ...hold, ...over, stored: true }])[0]?.[3], [
    "its next look: the hold that delayed it is gone",
  ]);
});

Deno.test("a planned failover in its cooldown says until when", () => {
  const status = { phase: "Deferred", reason: "CooldownActive", target: "pdx" };
  assert.deepEqual(found(failover({ ...status, retryAfter: "2026-01-01T00:05:00Z" }))[0]?.[3], [
    "the cooldown after the last failover, until 2026-01-01T00:05:00Z",
  ]);
  assert.deepEqual(found(failover(status))[0]?.[3], ["the cooldown after the last failover"]);
});

Deno.test("a request that nobody took up waits for the holds, else for somebody", () => {
  const annotations = { [PLANNED_FAILOVER_ANNOTATION]: "pdx:maxLagWait=2m" };
  assert.deepEqual(found({ annotations }), [["PlannedFailover", "Requested", "pdx", [heldBy]]]);
  assert.deepEqual(found({ annotations }, []), [[
    "PlannedFailover",
    "Requested",
    "pdx",
    ["the operator, or the service, to take the request up"],
  ]]);
  const broken = { [PLANNED_FAILOVER_ANNOTATION]: "pdx:fast" };
  assert.deepEqual(found({ annotations: broken }, [])[0]?.[2], "");
  // The request stays while it is deferred: that is one operation, and not two.
  const both = { annotations, ...failover({ phase: "Deferred", reason: "DeploymentHold" }) };
  assert.deepEqual(found(both), [["PlannedFailover", "Deferred", "pdx", [heldBy]]]);
});

Deno.test("a planned failover that has begun waits for no hold", () => {
  assert.deepEqual(found(failover({ phase: "Draining", target: "pdx" })), [
    ["PlannedFailover", "Draining", "pdx", []],
  ]);
});

Deno.test("operations that ended are shown only where all is asked for", () => {
  const change = {
    status: {
      plannedFailover: { phase: "Failed", reason: "LagTimeout", target: "pdx" },
      restoreInPlace: { phase: "Succeeded" },
      dragonfly: { upgrade: { phase: "Succeeded" } },
    },
  };
  assert.deepEqual(found(change), []);
  assert.deepEqual(found(change, [hold], true), [
    ["PlannedFailover", "Failed", "pdx", []],
    ["RestoreInPlace", "Succeeded", "", []],
    ["DragonflyUpgrade", "Succeeded", "", []],
  ]);
});

Deno.test("a restore in place asks for the holds in its preflight alone; other operations do not show it", () => {
  const phases = (restoreInPlace: string) =>
    found({
      status: {
        restoreInPlace: { phase: restoreInPlace },
        updatePhase: "UpdateReplica",
        dragonfly: { upgrade: { phase: "SavingSnapshot" } },
      },
    });
  assert.deepEqual(phases("Preflight"), [
    ["OrderedUpdate", "UpdateReplica", "", []],
    ["RestoreInPlace", "Preflight", "", [heldBy]],
    ["DragonflyUpgrade", "SavingSnapshot", "", []],
  ]);
  assert.deepEqual(phases("Fencing")[1], ["RestoreInPlace", "Fencing", "", []]);
});
