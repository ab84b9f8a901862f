import assert from "node:assert/strict";
import fc from "fast-check";
import { decidePlanned, nothingToLookAt } from "../../lib/controllers/planned_rules.ts";
import type { PlannedAdmission } from "../../lib/group/gate_lease.ts";
import { operationPhase } from "../../lib/group/phases.ts";
import { PLANNED_FAILOVER_ANNOTATION } from "../../lib/group/types.ts";
import type { LeaseRecord } from "../../lib/records/record.ts";
import { healthyGroup } from "../group/fixtures.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");

const hold: LeaseRecord = {
  kind: "failover-hold",
  operationId: "op-1",
  instance: "tenant",
  expiresAt: "2026-01-01T00:00:30.000000001Z",
  topologyGeneration: 7,
  namespace: "app-ns",
  serviceAccount: "deployer",
  tokenHash: "0".repeat(64),
  createdAt: "2026-01-01T00:00:00Z",
  state: "active",
};

const own: PlannedAdmission = {
  operation: "PlannedFailover",
  id: "1",
  by: "holdfast/one",
  since: "2026-01-01T00:00:00Z",
  state: "admitted",
};

const phases = ["", "Pending", "Deferred", "Validating", "Draining", "Resuming", "Succeeded"];

const snapshots = fc.record({
  value: fc.constantFrom(undefined, "", "pdx", "iad", "mars", "pdx:maxLagWait=1s", "pdx:x", ":"),
  phase: fc.constantFrom(...phases),
  refusal: fc.constantFrom("", "ConcurrentOperation", "DeploymentRevocationPending"),
  hold: fc.constantFrom(null, hold),
  own: fc.constantFrom(null, own, { ...own, state: "withdrawing" as const }),
  restore: fc.constantFrom("", "Preflight"),
}).map(({ value, phase, restore, ...facts }) => ({
  ...facts,
  group: healthyGroup({
    ...(value !== undefined && { annotations: { [PLANNED_FAILOVER_ANNOTATION]: value } }),
    status: {
      plannedFailover: { phase, target: "pdx", maxLagWait: "5m0s" },
      restoreInPlace: { phase: restore },
    },
  }),
  earliestMs: NOW,
  latestMs: NOW,
}));

Deno.test("nothing is admitted beside a hold, unless the admission is older than it", () => {
  fc.assert(fc.property(snapshots, (snapshot) => {
    const decision = decidePlanned(snapshot);
    if (decision.type === "admit") assert(snapshot.hold === null || decision.left !== null);
  }));
});

Deno.test("nothing is admitted, and no admission is carried on, while it would be refused", () => {
  fc.assert(fc.property(snapshots, (snapshot) => {
    if (snapshot.refusal !== "") assert.notEqual(decidePlanned(snapshot).type, "admit");
  }));
});

Deno.test("an admission that is being taken back is never carried on", () => {
  fc.assert(fc.property(snapshots, (snapshot) => {
    if (snapshot.own?.state !== "withdrawing") return;
    assert.equal(decidePlanned(snapshot).type, "withdraw");
  }));
});

Deno.test("where there is nothing to look at there is nothing to do", () => {
  fc.assert(fc.property(snapshots, (snapshot) => {
    const { group, own, hold } = snapshot;
    if (!nothingToLookAt(group, own !== null, hold !== null)) return;
    assert.deepEqual(decidePlanned(snapshot), { type: "nothing" });
  }));
});

Deno.test("a run from Draining on keeps its status, whatever is asked", () => {
  fc.assert(fc.property(snapshots, (snapshot) => {
    const phase = snapshot.group.status?.plannedFailover?.phase ?? "";
    if (phase !== "Draining" && phase !== "Resuming") return;
    assert(["nothing", "discard", "withdraw"].includes(decidePlanned(snapshot).type));
  }));
});

Deno.test("a status that is written leaves no run that only an admission begins", () => {
  fc.assert(fc.property(snapshots, (snapshot) => {
    const decision = decidePlanned(snapshot);
    if (decision.type !== "defer" && decision.type !== "fail") return;
    const plannedFailover = decision.change;
    const status = { ...snapshot.group.status, plannedFailover };
    const phase = operationPhase({ ...snapshot.group, status }, "PlannedFailover");
    assert.notEqual(phase, "admitted");
  }));
});
