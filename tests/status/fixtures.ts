/**
 * Groups, leases and gates as a cluster would hold them, for the tests of reports.
 *
 * @module
 */

import { gateObject, type GateRecord } from "../../lib/group/gate_lease.ts";
import type { MysqlFailoverGroup } from "../../lib/group/types.ts";
import type { Stored, UndecodableObject } from "../../lib/kube/api.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import { leaseObject } from "../../lib/records/lease_object.ts";
import { holdName, slotName, tombstoneName } from "../../lib/records/names.ts";
import { hashToken, type LeaseRecord } from "../../lib/records/record.ts";
import type { LeaseInstant } from "../../lib/lease_time/lease_time.ts";
import type { ClusterSnapshot } from "../../lib/status/cluster_report.ts";
import type { LeaseStatus } from "../../lib/status/report.ts";
import { healthyGroup } from "../group/fixtures.ts";

/** The time of the reports: ten seconds into the year. */
export const NOW_MS = Date.UTC(2026, 0, 1, 0, 0, 10);

/** The same as lease time that is known exactly. */
export const NOW: LeaseInstant = { earliestMs: NOW_MS, latestMs: NOW_MS, certain: true };

/** A migration lease of `op-1`, granted ten seconds ago for 30 s. */
export function migration(change: Partial<LeaseRecord> = {}): LeaseRecord {
  return {
    kind: "migration",
    operationId: "op-1",
    instance: "orders-app",
    expiresAt: "2026-01-01T00:00:30Z",
    topologyGeneration: 7,
    namespace: "app-ns",
    serviceAccount: "deployer",
    tokenHash: hashToken("token"),
    createdAt: "2026-01-01T00:00:00Z",
    state: "active",
    ...change,
  };
}

/** A hold of `op-1`, granted with it. */
export function hold(change: Partial<LeaseRecord> = {}): LeaseRecord {
  return migration({ kind: "failover-hold", ...change });
}

/** A gate that agrees with {@linkcode healthyGroup}. */
export function gate(change: Partial<GateRecord> = {}): GateRecord {
  return {
    seq: 1,
    site: "iad",
    generation: 7,
    observedGeneration: 7,
    restoreFencing: false,
    pending: null,
    planned: null,
    ...change,
  };
}

/** The object of a record, in the slot, under its tombstone's name, or as a hold. */
export function leaseOf(
  record: LeaseRecord,
  { group = healthyGroup(), tombstone = false }: {
    readonly group?: Stored<MysqlFailoverGroup>;
    readonly tombstone?: boolean;
  } = {},
): Stored<Lease> {
  const { name, namespace = "", uid } = group.metadata;
  const object = record.kind === "failover-hold"
    ? holdName(name, record.operationId)
    : tombstone
    ? tombstoneName(name, record.operationId)
    : slotName(name);
  return stored(leaseObject({
    name: object,
    namespace,
    group: { name, uid },
    record,
    nowMs: NOW_MS,
  }));
}

/** The object of a gate. */
export function gateOf(record: GateRecord, group = healthyGroup()): Stored<Lease> {
  return stored(gateObject(group, record));
}

/** An object as a server would return it. */
export function stored(lease: Lease): Stored<Lease> {
  const { name = "", uid = `uid of ${name}`, resourceVersion = "1" } = lease.metadata;
  return LEASES.parse(lease) &&
    { ...lease, metadata: { ...lease.metadata, name, uid, resourceVersion } };
}

/** A snapshot of these objects. */
export function snapshotOf(
  groups: readonly Stored<MysqlFailoverGroup>[],
  leases: readonly Stored<Lease>[],
  undecodable: {
    readonly groups?: readonly UndecodableObject[];
    readonly leases?: readonly UndecodableObject[];
  } = {},
): ClusterSnapshot {
  return {
    groups: { items: groups, undecodable: undecodable.groups ?? [] },
    leases: { items: leases, undecodable: undecodable.leases ?? [] },
  };
}

/** A lease as a report shows it. */
export function leaseStatus(change: Partial<LeaseStatus> = {}): LeaseStatus {
  return {
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
    ...change,
  };
}
