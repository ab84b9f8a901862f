import assert from "node:assert/strict";
import { glance } from "../../lib/controllers/glance.ts";
import type { GroupSight } from "../../lib/controllers/group_controller.ts";
import { gateObject, type GateRecord } from "../../lib/group/gate_lease.ts";
import type { Stored } from "../../lib/kube/api.ts";
import type { Lease } from "../../lib/kube/resources.ts";
import { reading } from "../../lib/lease_time/estimator.ts";
import { leaseObject } from "../../lib/records/lease_object.ts";
import { formatTime, hashToken, type LeaseRecord } from "../../lib/records/record.ts";
import { TEST_EPOCH_MS } from "../../lib/testing/mod.ts";
import { type GroupChange, healthyGroup } from "../group/fixtures.ts";

const NOW = TEST_EPOCH_MS;
const now = reading(NOW, NOW);

function stored(lease: Lease): Stored<Lease> {
  const { name = "", ...rest } = lease.metadata;
  return { ...lease, metadata: { ...rest, name, uid: "lease-uid", resourceVersion: "5" } };
}

function gateOf(change: Partial<GateRecord> = {}): Stored<Lease> {
  return stored(gateObject(healthyGroup(), {
    seq: 1,
    site: "iad",
    generation: 7,
    observedGeneration: 7,
    restoreFencing: false,
    pending: null,
    planned: null,
    ...change,
  }));
}

function leaseOf(change: Partial<LeaseRecord> = {}): Stored<Lease> {
  const { name, uid } = healthyGroup().metadata;
  return stored(leaseObject({
    name: "lease",
    namespace: "database-ns",
    group: { name, uid },
    nowMs: NOW,
    record: {
      kind: "migration",
      operationId: "op-1",
      instance: "tenant",
      expiresAt: formatTime(NOW + 30_000),
      topologyGeneration: 7,
      namespace: "app-ns",
      serviceAccount: "deployer",
      tokenHash: hashToken("token"),
      createdAt: formatTime(NOW),
      state: "active",
      ...change,
    },
  }));
}

function sight(leases: readonly Stored<Lease>[], change: GroupChange = {}): GroupSight {
  return { group: healthyGroup(change), leases };
}

/** A lease with other labels or annotations. */
function relabelled(
  lease: Stored<Lease>,
  metadata: { labels?: Record<string, string>; annotations?: Record<string, string> },
): Stored<Lease> {
  return { ...lease, metadata: { ...lease.metadata, ...metadata } };
}

const LOOK = { type: "look", unlabelled: false };

Deno.test("a group whose gate, status and leases agree is quiet, and tells its active leases", () => {
  const seen = glance(
    sight([gateOf(), leaseOf(), leaseOf({ state: "released" }), leaseOf({ state: "revoked" })]),
    now,
  );
  assert.ok(seen.type === "quiet");
  assert.deepEqual(seen.active.map(({ state }) => state), ["active"]);
});

Deno.test("a group without an active site is quiet: stability says so", () => {
  const gone = sight([gateOf()], { status: { activeSite: "" } });
  assert.deepEqual(glance(gone, now), { type: "quiet", active: [] });
});

const looks: readonly (readonly [string, GroupSight])[] = [
  ["has no gate", sight([leaseOf()])],
  ["has a gate that does not parse", sight([relabelled(gateOf(), { annotations: {} })])],
  ["has a new generation", sight([gateOf()], { status: { topologyGeneration: 8 } })],
  ["went backwards", sight([gateOf({ observedGeneration: 9 })])],
  ["moved its primary", sight([gateOf({ site: "pdx" })])],
  ["has a lease that ran out", sight([gateOf(), leaseOf({ expiresAt: formatTime(NOW - 1) })])],
  ["has a lease of an older generation", sight([gateOf(), leaseOf({ topologyGeneration: 6 })])],
  ["has a lease of a newer generation", sight([gateOf(), leaseOf({ topologyGeneration: 8 })])],
  [
    "has an active lease without a record",
    sight([gateOf(), relabelled(leaseOf(), { annotations: {} })]),
  ],
];
for (const [what, of] of looks) {
  Deno.test(`a group that ${what} asks for a look`, () => {
    assert.deepEqual(glance(of, now), LOOK);
  });
}

Deno.test("equality with the expiry is still active", () => {
  assert.equal(
    glance(sight([gateOf(), leaseOf({ expiresAt: formatTime(NOW) })]), now).type,
    "quiet",
  );
});

Deno.test("an active lease asks for a look while lease time is not known, and an ended one does not", () => {
  assert.deepEqual(glance(sight([gateOf(), leaseOf()]), null), LOOK);
  assert.equal(glance(sight([gateOf(), leaseOf({ state: "expired" })]), null).type, "quiet");
});

Deno.test("a lease of the reference asks for a look, in any state", () => {
  for (const state of ["active", "revoked"] as const) {
    const lease = leaseOf({ state });
    const { "bloodraven.shipstream.io/deployment-group": _, ...labels } = lease.metadata.labels ??
      {};
    assert.deepEqual(glance(sight([gateOf(), relabelled(lease, { labels })]), now), {
      type: "look",
      unlabelled: true,
    });
  }
});
