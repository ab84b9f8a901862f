import assert from "node:assert/strict";
import fc from "fast-check";
import { REVOKE_ANNOTATION } from "../../lib/group/types.ts";
import {
  DEPLOYMENT_GATE_ANNOTATION,
  DEPLOYMENT_LEASE_ANNOTATION,
} from "../../lib/records/names.ts";
import { clusterReport } from "../../lib/status/cluster_report.ts";
import { renderLines } from "../../lib/status/lines.ts";
import { isComplete } from "../../lib/status/report.ts";
import { renderTable } from "../../lib/status/table.ts";
import { healthyGroup } from "../group/fixtures.ts";
import { gate, gateOf, hold, leaseOf, migration, NOW, NOW_MS, snapshotOf } from "./fixtures.ts";

const group = healthyGroup();

/** The one group of a report. */
function only(...given: Parameters<typeof clusterReport>) {
  const [found, ...more] = clusterReport(...given).groups;
  assert.ok(found);
  assert.deepEqual(more, []);
  return found;
}

const live = { all: false };
const all = { all: true };

Deno.test("a group with its leases shows who holds them, since when and until when", () => {
  const leases = [leaseOf(hold()), leaseOf(migration()), gateOf(gate())];
  const report = clusterReport(snapshotOf([group], leases), NOW, live);
  assert.equal(report.source, "cluster");
  assert.equal(report.at, "2026-01-01T00:00:10Z");
  assert.ok(isComplete(report));
  const [shown] = report.groups;
  assert.deepEqual({ ...shown, leases: shown?.leases.map(({ kind }) => kind) }, {
    namespace: "database-ns",
    name: "orders",
    readable: true,
    activeSite: "iad",
    topologyGeneration: 7,
    stable: true,
    unstableReason: "",
    closedReason: "",
    why: "",
    leases: ["migration", "failover-hold"],
    operations: [],
    admission: null,
    pendingTopology: null,
    problems: [],
  });
  assert.deepEqual(shown?.leases[0], {
    kind: "migration",
    operationId: "op-1",
    instance: "orders-app",
    holder: { namespace: "app-ns", serviceAccount: "deployer" },
    state: "active",
    stored: true,
    reason: "",
    topologyGeneration: 7,
    createdAt: "2026-01-01T00:00:00Z",
    expiresAt: "2026-01-01T00:00:30Z",
    ageSeconds: 10,
    leftSeconds: 20,
  });
});

Deno.test("the holder that died is shown until its end is stored, with its expiry", () => {
  const late = { ...NOW, earliestMs: NOW_MS + 23_000, latestMs: NOW_MS + 23_000 };
  const [lease] = only(snapshotOf([group], [leaseOf(migration()), gateOf(gate())]), late, live)
    .leases;
  assert.deepEqual([lease?.state, lease?.stored, lease?.leftSeconds], ["expired", false, -3]);
});

Deno.test("a lease below the effective generation is shown as revoked before anybody has stored it", () => {
  const moved = healthyGroup({ status: { topologyGeneration: 8, activeSite: "pdx" } });
  const leases = [leaseOf(migration()), gateOf(gate())];
  const shown = only(snapshotOf([moved], leases), NOW, live);
  assert.equal(shown.topologyGeneration, 8);
  const [lease] = shown.leases;
  assert.deepEqual([lease?.state, lease?.stored, lease?.reason], [
    "revoked",
    false,
    "topology_changed",
  ]);
});

Deno.test("a lease above the effective generation counts: the look is older than the lease", () => {
  const leases = [leaseOf(migration({ topologyGeneration: 9 })), gateOf(gate())];
  assert.equal(only(snapshotOf([group], leases), NOW, live).leases[0]?.state, "active");
});

Deno.test("what has ended is shown only where all is asked for, and last", () => {
  const tombstone = migration({
    operationId: "op-0",
    state: "revoked",
    reason: "operator_revoked",
  });
  const leases = [
    leaseOf(tombstone, { tombstone: true }),
    leaseOf(hold({ operationId: "op-9", state: "released" })),
    leaseOf(migration()),
    gateOf(gate()),
  ];
  assert.deepEqual(only(snapshotOf([group], leases), NOW, live).leases.length, 1);
  const states = only(snapshotOf([group], leases), NOW, all).leases
    .map(({ state, reason }) => [state, reason]);
  assert.deepEqual(states, [["active", ""], ["revoked", "operator_revoked"], ["released", ""]]);
});

Deno.test("a group without a gate is shown with the generation that its gate would get", () => {
  assert.equal(only(snapshotOf([group], []), NOW, live).topologyGeneration, 7);
  // A lease of ours shows that a gate was deleted under it.
  const shown = only(snapshotOf([group], [leaseOf(migration())]), NOW, live);
  assert.deepEqual([shown.topologyGeneration, shown.leases[0]?.state], [8, "revoked"]);
});

Deno.test("a stable group that grants nothing says why: the gate's admission", () => {
  const planned = {
    operation: "OrderedUpdate",
    id: "id-1",
    by: "bloodraven-0",
    since: "2026-01-01T00:00:05Z",
    state: "admitted",
  } as const;
  const shown = only(snapshotOf([group], [gateOf(gate({ planned }))]), NOW, live);
  assert.equal(shown.stable, true);
  assert.equal(shown.closedReason, "OrderedUpdate");
  assert.equal(shown.why, "an ordered update is under way");
  assert.deepEqual(shown.admission, {
    operation: "OrderedUpdate",
    state: "admitted",
    by: "bloodraven-0",
    since: "2026-01-01T00:00:05Z",
  });
});

Deno.test("an announced change of topology closes the group for a minute", () => {
  const shownWith = (since: string) => {
    const pending = { since, by: "bloodraven-0" };
    return only(snapshotOf([group], [gateOf(gate({ pending }))]), NOW, live);
  };
  const fresh = shownWith("2026-01-01T00:00:05Z");
  assert.equal(fresh.closedReason, "TopologyPersistencePending");
  assert.deepEqual(fresh.pendingTopology, { since: "2026-01-01T00:00:05Z", by: "bloodraven-0" });
  assert.equal(shownWith("2025-12-31T23:59:00Z").closedReason, "");
  assert.equal(shownWith("some day").closedReason, "TopologyPersistencePending");
});

Deno.test("a status that went back closes the group", () => {
  const shown = only(snapshotOf([group], [gateOf(gate({ observedGeneration: 9 }))]), NOW, live);
  assert.equal(shown.closedReason, "TopologyPersistencePending");
});

Deno.test("a revocation that is asked for is the first reason, and its leases show it", () => {
  const asked = healthyGroup({ annotations: { [REVOKE_ANNOTATION]: "" } });
  const shown = only(snapshotOf([asked], [leaseOf(migration()), gateOf(gate())]), NOW, live);
  assert.deepEqual([shown.stable, shown.unstableReason, shown.closedReason], [
    false,
    "DeploymentRevocationPending",
    "DeploymentRevocationPending",
  ]);
  assert.deepEqual([shown.leases[0]?.state, shown.leases[0]?.stored], ["revoked", false]);
});

/** The same Lease with another text in an annotation. */
function withText(lease: ReturnType<typeof leaseOf>, annotation: string, text: string) {
  const annotations = { ...lease.metadata.annotations, [annotation]: text };
  return { ...lease, metadata: { ...lease.metadata, annotations } };
}

Deno.test("a record that cannot be read is told, and hides neither the other leases nor other groups", () => {
  const other = healthyGroup();
  const billing = { ...other, metadata: { ...other.metadata, name: "billing", uid: "uid-2" } };
  const broken = withText(leaseOf(migration()), DEPLOYMENT_LEASE_ANNOTATION, '{"kind":"x"}');
  const leases = [
    broken,
    leaseOf(hold()),
    gateOf(gate()),
    leaseOf(migration({ operationId: "op-2" }), { group: billing }),
    gateOf(gate(), billing),
  ];
  const report = clusterReport(snapshotOf([group, billing], leases), NOW, live);
  assert.ok(!isComplete(report));
  const [first, second] = report.groups;
  assert.deepEqual([first?.name, first?.problems, first?.leases.length], ["billing", [], 1]);
  assert.equal(second?.closedReason, "unavailable");
  assert.deepEqual(second?.leases.map(({ kind }) => kind), ["failover-hold"]);
  assert.match(second?.problems[0] ?? "", /^Lease bloodraven-deploy-orders-migration cannot be/);
});

Deno.test("a record that has ended and cannot be read closes nothing, unless it is in the slot", () => {
  const ended = withText(leaseOf(hold({ state: "released" })), DEPLOYMENT_LEASE_ANNOTATION, "?");
  const shown = only(snapshotOf([group], [ended, gateOf(gate())]), NOW, all);
  assert.deepEqual([shown.closedReason, shown.problems.length], ["", 1]);
  const slot = withText(
    leaseOf(migration({ state: "released" })),
    DEPLOYMENT_LEASE_ANNOTATION,
    "?",
  );
  assert.equal(
    only(snapshotOf([group], [slot, gateOf(gate())]), NOW, all).closedReason,
    "unavailable",
  );
});

Deno.test("a gate that cannot be read is told, and never taken for no gate at all", () => {
  const broken = withText(gateOf(gate()), DEPLOYMENT_GATE_ANNOTATION, "{");
  const shown = only(snapshotOf([group], [broken]), NOW, live);
  assert.equal(shown.closedReason, "unavailable");
  assert.match(shown.problems[0] ?? "", /^The gate bloodraven-deploy-orders-gate cannot be used/);
});

Deno.test("the slot of a former group of the same name is told; its holds are nobody's", () => {
  const former = { ...group, metadata: { ...group.metadata, uid: "uid-0" } };
  const leases = [leaseOf(migration(), { group: former }), leaseOf(hold(), { group: former })];
  const shown = only(snapshotOf([group], leases), NOW, live);
  assert.deepEqual(shown.leases, []);
  assert.equal(shown.problems.length, 1);
  assert.match(shown.problems[0] ?? "", /-migration cannot be used: its one owner must be/);
});

Deno.test("a group that cannot be read is shown as such, beside those that can", () => {
  const undecodable = {
    groups: [{ namespace: "a", name: "broken", paths: ["status.topologyGeneration"] }],
  };
  const report = clusterReport(snapshotOf([group], [], undecodable), NOW, live);
  assert.deepEqual(report.groups.map(({ name, readable }) => [name, readable]), [
    ["broken", false],
    ["orders", true],
  ]);
  assert.deepEqual(report.groups[0]?.problems, [
    "The group cannot be read: its form differs at status.topologyGeneration",
  ]);
});

Deno.test("a Lease without its form belongs to the group with the longest name that fits", () => {
  const eu = { ...group, metadata: { ...group.metadata, name: "orders-eu", uid: "uid-2" } };
  const lease = (name: string, namespace = "database-ns") => ({ namespace, name, paths: ["spec"] });
  const leases = [
    lease("bloodraven-deploy-orders-eu-failover-hold-x"),
    lease("bloodraven-deploy-orders-gate"),
    lease("bloodraven-deploy-gone-migration"),
    lease("bloodraven-deploy-orders-migration", "elsewhere"),
  ];
  const report = clusterReport(snapshotOf([group, eu], [], { leases }), NOW, live);
  assert.deepEqual(report.groups.map(({ name, problems }) => [name, problems.length]), [
    ["orders", 1],
    ["orders-eu", 1],
  ]);
  assert.deepEqual(report.problems, [
    "database-ns: Lease bloodraven-deploy-gone-migration cannot be read: its form differs at spec",
    "elsewhere: Lease bloodraven-deploy-orders-migration cannot be read: its form differs at spec",
  ]);
  const one = clusterReport(snapshotOf([group, eu], [], { leases }), NOW, {
    ...live,
    group: "orders",
  });
  assert.deepEqual([one.groups.length, one.problems], [1, []]);
});

Deno.test("groups come by namespace and name, and only those that are asked for", () => {
  const place = (namespace: string, name: string) => ({
    ...group,
    metadata: { ...group.metadata, namespace, name, uid: `${namespace}/${name}` },
  });
  const groups = [place("b", "x"), place("a", "y"), place("a", "x")];
  const names = (wished?: string) =>
    clusterReport(snapshotOf(groups, []), NOW, { ...live, group: wished }).groups
      .map(({ namespace, name }) => `${namespace}/${name}`);
  assert.deepEqual(names(), ["a/x", "a/y", "b/x"]);
  assert.deepEqual(names("x"), ["a/x", "b/x"]);
});

Deno.test("whatever stands in annotations and status, a report is made and can be drawn", () => {
  const text = fc.oneof(fc.string(), fc.json());
  fc.assert(
    fc.property(
      text,
      text,
      fc.string(),
      fc.integer({ min: 0 }),
      (record, gateText, site, generation) => {
        const odd = healthyGroup({ status: { activeSite: site, topologyGeneration: generation } });
        const leases = [
          withText(leaseOf(migration()), DEPLOYMENT_LEASE_ANNOTATION, record),
          withText(gateOf(gate()), DEPLOYMENT_GATE_ANNOTATION, gateText),
          leaseOf(hold({ operationId: site.slice(0, 9), instance: record.slice(0, 20) })),
        ];
        const report = clusterReport(snapshotOf([odd], leases), NOW, all);
        assert.equal(report.groups.length, 1);
        // No text of others moves the cursor of whoever looks.
        assert.doesNotMatch(renderLines(report) + renderTable(report), /[^\n\P{Cc}]/u);
      },
    ),
  );
});
