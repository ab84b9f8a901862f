import assert from "node:assert/strict";
import type { GroupView } from "../../lib/client/answers.ts";
import { apiReport, closedReport } from "../../lib/status/api_report.ts";
import { isComplete } from "../../lib/status/report.ts";
import { healthyView } from "../client/views.ts";
import { NOW_MS } from "./fixtures.ts";

const view: GroupView = {
  ...healthyView,
  leases: [{
    kind: "failover-hold",
    operationId: "op-1",
    instance: "orders-app",
    expiresAt: "2026-01-01T00:00:30.5Z",
    topologyGeneration: 7,
  }],
};

Deno.test("the API shows a lease without who holds it and since when", () => {
  const report = apiReport(view, NOW_MS);
  assert.equal(report.source, "api");
  assert.ok(isComplete(report));
  const [group] = report.groups;
  assert.deepEqual([group?.stable, group?.closedReason, group?.admission], [true, "", null]);
  assert.deepEqual(group?.leases, [{
    kind: "failover-hold",
    operationId: "op-1",
    instance: "orders-app",
    holder: null,
    state: "active",
    stored: true,
    reason: "",
    topologyGeneration: 7,
    createdAt: null,
    expiresAt: "2026-01-01T00:00:30.5Z",
    ageSeconds: null,
    leftSeconds: 20,
  }]);
});

Deno.test("an unstable group says why, and what its operation waits for", () => {
  const operations = {
    ...view.operations,
    plannedFailover: { phase: "Deferred", reason: "DeploymentHold" },
  };
  const unstable = { ...view, operations, stable: false, unstableReason: "PlannedFailover" };
  const [group] = apiReport(unstable, NOW_MS).groups;
  assert.equal(group?.why, "a planned failover is under way");
  assert.match(group?.operations[0]?.waitsFor[0] ?? "", /^the failover hold of operation op-1 /);
});

Deno.test("a lease that a newer service tells in another way is passed over", () => {
  const [lease] = view.leases;
  assert.ok(lease);
  const leases = [{ ...lease, kind: "backup" }, { ...lease, expiresAt: "tomorrow" }, lease];
  assert.equal(apiReport({ ...view, leases }, NOW_MS).groups[0]?.leases.length, 1);
});

Deno.test("a group that the API closes whole is shown with the reason, and as not complete", () => {
  const report = closedReport("orders", "TopologyNotObserved", NOW_MS);
  assert.ok(!isComplete(report));
  const [group] = report.groups;
  assert.deepEqual([group?.stable, group?.closedReason, group?.topologyGeneration], [
    false,
    "TopologyNotObserved",
    null,
  ]);
});
