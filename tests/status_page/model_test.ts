import assert from "node:assert/strict";
import fc from "fast-check";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { LINGER_MS, lookAt } from "../../lib/status_page/model.ts";
import { ACTIVE, healthyGroup, READY, STANDBY } from "../group/fixtures.ts";
import {
  gate,
  gateOf,
  hold,
  leaseOf,
  migration,
  NOW,
  NOW_MS,
  snapshotOf,
} from "../status/fixtures.ts";
import { pageGroup } from "./page_fixtures.ts";

function at(ms: number) {
  return { earliestMs: ms, latestMs: ms, certain: true };
}

Deno.test("a group shows its sites, its leases and where it is", () => {
  const lagging = { ...STANDBY, secondsBehindSource: 3 };
  const group = pageGroup(
    [leaseOf(migration()), leaseOf(hold())],
    healthyGroup({ status: { sites: [ACTIVE, lagging] } }),
  );
  assert.equal(group.key, "database-ns/orders");
  assert.equal(group.activeSite, "iad");
  assert.equal(group.topologyGeneration, 7);
  assert.equal(group.closedReason, "");
  assert.equal(group.lagSeconds, 3);
  assert.deepEqual(group.sites, [
    {
      name: "iad",
      active: true,
      state: "writable",
      replicating: false,
      lagSeconds: null,
      trouble: "",
    },
    {
      name: "pdx",
      active: false,
      state: "read-only",
      replicating: true,
      lagSeconds: 3,
      trouble: "",
    },
  ]);
  assert.deepEqual(group.leases.map(({ kind, state }) => [kind, state]), [
    ["migration", "active"],
    ["failover-hold", "active"],
  ]);
});

Deno.test("a group whose status lacks everything is shown with what is not known, and nothing is invented", () => {
  const { metadata, spec } = healthyGroup();
  const bare = {
    ...MYSQL_FAILOVER_GROUPS.parse({ metadata, spec }),
    metadata: healthyGroup().metadata,
  };
  const found = lookAt(snapshotOf([bare], []), NOW);
  assert.ok(found);
  assert.equal(found.group.activeSite, "");
  assert.equal(found.group.lagSeconds, null);
  assert.equal(found.group.closedReason, "NoPrimary");
  assert.deepEqual(
    found.group.sites.map(({ name, state, trouble, lagSeconds, replicating }) => ({
      name,
      state,
      trouble,
      lagSeconds,
      replicating,
    })),
    [
      { name: "iad", state: "", trouble: "not observed yet", lagSeconds: null, replicating: null },
      { name: "pdx", state: "", trouble: "not observed yet", lagSeconds: null, replicating: null },
    ],
  );
  const nothing = { ...bare, spec: undefined };
  assert.deepEqual(lookAt(snapshotOf([nothing], []), NOW)?.group.sites, []);
});

Deno.test("what is wrong with a site is told in plain words", () => {
  const { sites } = pageGroup(
    [],
    healthyGroup({
      status: {
        sites: [ACTIVE, {
          ...STANDBY,
          recoveryState: "RecoveryBlocked",
          sourceConvergenceState: "Blocked",
          sourceConvergenceReason: "DataLossRisk",
        }],
      },
    }),
  );
  assert.equal(
    sites[1]?.trouble,
    "the recovery of a site is blocked; a site cannot be made to follow the active site; DataLossRisk",
  );
});

Deno.test("a lag of the active site is none of the group's", () => {
  const sites = [{ ...ACTIVE, secondsBehindSource: 99 }, { ...STANDBY, secondsBehindSource: 2 }];
  assert.equal(pageGroup([], healthyGroup({ status: { sites } })).lagSeconds, 2);
});

Deno.test("an operation under way is shown with what it waits for, and one that ended is not", () => {
  const planned = (phase: string, reason: string) =>
    pageGroup(
      [leaseOf(hold())],
      healthyGroup({ status: { plannedFailover: { phase, reason, target: "pdx" } } }),
    );
  const [operation] = planned("Deferred", "DeploymentHold").operations;
  assert.equal(operation?.operation, "PlannedFailover");
  assert.match(operation?.waitsFor[0] ?? "", /failover hold of operation op-1 for orders-app/);
  assert.deepEqual(planned("Succeeded", "").operations, []);
});

Deno.test("a lease that ended is shown for a minute, and then no longer", () => {
  const ended = leaseOf(migration({ state: "released" }));
  const shown = lookAt(snapshotOf([healthyGroup()], [gateOf(gate()), ended]), at(NOW_MS));
  assert.deepEqual(shown?.group.leases.map(({ state }) => state), ["released"]);
  assert.equal(shown?.nextMs, NOW_MS + LINGER_MS);
  const later = lookAt(
    snapshotOf([healthyGroup()], [gateOf(gate()), ended]),
    at(NOW_MS + LINGER_MS),
  );
  assert.deepEqual(later?.group.leases, []);
  assert.equal(later?.nextMs, null);
});

Deno.test("a lease that ended at a time that is not told is not shown", () => {
  const ended = leaseOf(migration({ state: "expired" }));
  const untold = { ...ended, spec: { ...ended.spec, renewTime: undefined } };
  assert.deepEqual(pageGroup([untold]).leases, []);
});

Deno.test("a lease looks different from the millisecond on in which it is over, and not before", () => {
  const endMs = Date.parse("2026-01-01T00:00:30Z");
  fc.assert(fc.property(
    fc.integer({ min: 0, max: 25_000 }),
    fc.integer({ min: 0, max: 2_000 }),
    (earlyMs, widthMs) => {
      const nowMs = NOW_MS + earlyMs;
      const time = { earliestMs: nowMs, latestMs: nowMs + widthMs, certain: true };
      if (time.earliestMs > endMs) return;
      const snapshot = snapshotOf([healthyGroup()], [gateOf(gate()), leaseOf(migration())]);
      const nextMs = lookAt(snapshot, time)?.nextMs ?? 0;
      const half = widthMs / 2;
      const width = (ms: number) => ({ earliestMs: ms - half, latestMs: ms + half, certain: true });
      const stateAt = (ms: number) => lookAt(snapshot, width(ms))?.group.leases[0]?.state;
      assert.equal(stateAt(nextMs - 1), "active");
      assert.equal(stateAt(nextMs), "expired");
    },
  ));
});

Deno.test("a mark of pending topology makes a group look different when it is a minute old", () => {
  const marked = gate({ pending: { by: "operator", since: "2026-01-01T00:00:05Z" } });
  const found = lookAt(snapshotOf([healthyGroup()], [gateOf(marked)]), NOW);
  assert.equal(found?.group.closedReason, "TopologyPersistencePending");
  assert.equal(found?.nextMs, Date.parse("2026-01-01T00:01:05Z"));
});

Deno.test("nothing that passes by itself is in the model", () => {
  const leases = [leaseOf(migration()), leaseOf(hold())];
  const snapshot = snapshotOf([healthyGroup({ status: { conditions: [READY] } })], [
    gateOf(gate()),
    ...leases,
  ]);
  assert.deepEqual(lookAt(snapshot, at(NOW_MS + 7_000))?.group, lookAt(snapshot, NOW)?.group);
});

Deno.test("a snapshot without a group shows none", () => {
  assert.equal(lookAt(snapshotOf([], []), NOW), null);
});
