/**
 * A report from the objects of a cluster, for administrators: pure.
 *
 * One object that cannot be read hides nothing else: it is told as a problem of its group.
 *
 * @module
 */

import { effectiveGeneration } from "../group/gate.ts";
import { GateError, gateFacts, type GateRecord, parseGate } from "../group/gate_lease.ts";
import { statusFacts } from "../group/phases.ts";
import { unstableReason } from "../group/stability.ts";
import { type MysqlFailoverGroup, REVOKE_ANNOTATION } from "../group/types.ts";
import type { ObjectList, Stored, UndecodableObject } from "../kube/api.ts";
import type { Lease } from "../kube/resources.ts";
import { ownedBy, readLease } from "../records/lease_object.ts";
import {
  DEPLOYMENT_GROUP_LABEL,
  DEPLOYMENT_KIND_LABEL,
  DEPLOYMENT_STATE_LABEL,
  GATE_KIND,
  gateName,
  slotName,
} from "../records/names.ts";
import { byExpiry, expiresAtMs, type LeaseRecord, RecordError } from "../records/record.ts";
import { type Admission, blockedReason } from "../group/allowance.ts";
import { type LeaseInstant, middleOf } from "../lease_time/lease_time.ts";
import { standing } from "../lease/rules.ts";
import { operationFacts, operationsOf } from "./operations.ts";
import { inPlainWords } from "./reasons.ts";
import type { GroupStatus, LeaseStatus, StatusReport } from "./report.ts";

/** How long a mark of pending topology counts when nobody renews it: state protocol 2.1. */
export const PENDING_LIFETIME_MS = 60_000;

/** The label selector of all that a report is made from. */
export const ALL_LEASES_SELECTOR =
  `${DEPLOYMENT_KIND_LABEL} in (migration,failover-hold,${GATE_KIND})`;

/** The label selector without the leases that ended, so that a list costs what the groups hold. */
export const LIVE_LEASES_SELECTOR =
  `${ALL_LEASES_SELECTOR},${DEPLOYMENT_STATE_LABEL} notin (expired,released,revoked)`;

/** What was read of the cluster. */
export interface ClusterSnapshot {
  readonly groups: Pick<ObjectList<MysqlFailoverGroup>, "items" | "undecodable">;
  /** The Leases of {@linkcode ALL_LEASES_SELECTOR} or {@linkcode LIVE_LEASES_SELECTOR}. */
  readonly leases: Pick<ObjectList<Lease>, "items" | "undecodable">;
}

/** What is to be shown of it. */
export interface ReportWish {
  /** Only groups of this name. @default {all groups} */
  readonly group?: string;
  /** Leases and operations that ended too. */
  readonly all: boolean;
}

/** Tells what a cluster holds. @param time The time of the API server. */
export function clusterReport(
  { groups, leases }: ClusterSnapshot,
  time: LeaseInstant,
  { group: wished, all }: ReportWish,
): StatusReport {
  const isWished = (name: string) => wished === undefined || name === wished;
  const shown = groups.items.filter(({ metadata }) => isWished(metadata.name));
  const broken = groups.undecodable.filter(({ name }) => isWished(name));
  const everyGroup = [...groups.items.map(({ metadata }) => metadata), ...groups.undecodable];
  const ownerOf = (lease: UndecodableObject) => {
    const owners = everyGroup.filter(({ namespace, name }) =>
      (namespace ?? "") === lease.namespace && belongsByName(lease.name, name)
    );
    // Of the groups `orders` and `orders-eu`, the longer name is meant.
    return owners.map(({ name }) => name).sort((a, b) => b.length - a.length)[0];
  };
  const statuses = [
    ...shown.map((group) =>
      groupStatus(
        group,
        leases.items,
        time,
        all,
        leases.undecodable.filter((lease) =>
          lease.namespace === group.metadata.namespace && ownerOf(lease) === group.metadata.name
        ),
      )
    ),
    ...broken.map(unreadableGroup),
  ];
  return {
    source: "cluster",
    at: Temporal.Instant.fromEpochMilliseconds(Math.floor(middleOf(time))).toString(),
    groups: statuses.sort(byPlace),
    problems: wished === undefined
      ? leases.undecodable.filter((lease) => ownerOf(lease) === undefined).map((lease) =>
        `${lease.namespace}: ${unreadableLease(lease)}`
      )
      : [],
  };
}

function groupStatus(
  group: Stored<MysqlFailoverGroup>,
  leases: readonly Stored<Lease>[],
  time: LeaseInstant,
  all: boolean,
  unreadable: readonly UndecodableObject[],
): GroupStatus {
  const { namespace = "", name, uid } = group.metadata;
  const inNamespace = leases.filter(({ metadata }) => (metadata.namespace ?? "") === namespace);
  const own = inNamespace.filter((lease) => ownedBy(lease, uid));
  const gate = readGate(own, group);
  const { records, problems: unreadableRecords } = readRecords(own, group);
  const problems = [
    ...foreign(inNamespace, group),
    ...gate.problems,
    ...unreadableRecords,
    ...unreadable.map((lease): Problem => ({ text: unreadableLease(lease), closes: true })),
  ];
  const admission = admissionOf(group, gate.record, records, time);
  const known = records.map(({ record }) => leaseStatus(record, admission, time));
  const statuses = known.filter(({ stored, state }) => all || state === "active" || !stored)
    .sort(byRank);
  const closed = blockedReason(admission) || admission.unstable ||
    (problems.some(({ closes }) => closes) ? "unavailable" : "");
  const planned = gate.record?.planned ?? null;
  const pending = gate.record?.pending ?? null;
  return {
    namespace,
    name,
    readable: true,
    activeSite: group.status?.activeSite ?? "",
    topologyGeneration: admission.generation,
    stable: admission.unstable === "",
    unstableReason: admission.unstable,
    closedReason: closed,
    why: closed === "" ? "" : inPlainWords(closed),
    leases: statuses,
    operations: operationsOf(operationFacts(group), known, all),
    admission: planned && {
      operation: planned.operation,
      state: planned.state,
      by: planned.by,
      since: planned.since,
    },
    pendingTopology: pending && { by: pending.by, since: pending.since },
    problems: problems.map(({ text }) => text),
  };
}

/** What the service would find, without a word of it stored. */
function admissionOf(
  group: Stored<MysqlFailoverGroup>,
  gate: GateRecord | null,
  records: readonly LabelledRecord[],
  time: LeaseInstant,
): Admission {
  const { generation, outcome } = effectiveGeneration(gateFacts(gate), statusFacts(group), {
    unchangedForMs: 0,
    highestRecordGeneration: Math.max(0, ...records.map((one) => one.record.topologyGeneration)),
    activeRecordCarriesLabel: records.some(({ record, labelled }) =>
      labelled && record.state === "active"
    ),
  });
  return {
    generation,
    revocationRequested: group.metadata.annotations?.[REVOKE_ANNOTATION] !== undefined,
    topologyBlocked: outcome === "pending" || isMarked(gate, time)
      ? "TopologyPersistencePending"
      : "",
    reserved: gate?.planned?.operation ?? "",
    unstable: unstableReason(group),
  };
}

/** The service counts for how long it has seen a mark; a single look can only believe its date. */
function isMarked(gate: GateRecord | null, time: LeaseInstant): boolean {
  if (gate?.pending === null || gate === null) return false;
  const sinceMs = Date.parse(gate.pending.since);
  return Number.isNaN(sinceMs) || middleOf(time) - sinceMs < PENDING_LIFETIME_MS;
}

function leaseStatus(record: LeaseRecord, admission: Admission, time: LeaseInstant): LeaseStatus {
  const { kind, operationId, instance, namespace, serviceAccount } = record;
  const { topologyGeneration, createdAt, expiresAt } = record;
  const found = standing(record, admission, time);
  const nowMs = middleOf(time);
  return {
    kind,
    operationId,
    instance,
    holder: { namespace, serviceAccount },
    // A generation above ours is of a change that this look is too old to see: the lease counts.
    state: found.type === "ahead" ? "active" : found.type,
    stored: "written" in found ? found.written : true,
    reason: found.type === "revoked" ? found.reason : "",
    topologyGeneration,
    createdAt,
    expiresAt,
    ageSeconds: Math.max(0, Math.floor((nowMs - Date.parse(createdAt)) / 1_000)),
    leftSeconds: Math.floor((expiresAtMs(record) - nowMs) / 1_000),
  };
}

/** What cannot be used. */
interface Problem {
  readonly text: string;
  /** The service comes across it at every request. */
  readonly closes: boolean;
}

interface LabelledRecord {
  readonly record: LeaseRecord;
  /** It carries our group label, so this project wrote or adopted it. */
  readonly labelled: boolean;
}

function readRecords(
  own: readonly Stored<Lease>[],
  { metadata: { name: group, uid } }: Stored<MysqlFailoverGroup>,
): { readonly records: readonly LabelledRecord[]; readonly problems: readonly Problem[] } {
  const records: LabelledRecord[] = [];
  const problems: Problem[] = [];
  for (const lease of own) {
    const { name, labels } = lease.metadata;
    if (labels?.[DEPLOYMENT_KIND_LABEL] === GATE_KIND) continue;
    try {
      const { record } = readLease(lease, uid);
      records.push({ record, labelled: labels?.[DEPLOYMENT_GROUP_LABEL] !== undefined });
    } catch (error) {
      if (!(error instanceof RecordError)) throw error;
      problems.push({
        text: `Lease ${name} cannot be used: ${differsAt(error.paths)}`,
        closes: name === slotName(group) || labels?.[DEPLOYMENT_STATE_LABEL] === "active",
      });
    }
  }
  return { records, problems };
}

function readGate(
  own: readonly Stored<Lease>[],
  group: Stored<MysqlFailoverGroup>,
): { readonly record: GateRecord | null; readonly problems: readonly Problem[] } {
  const { name, uid } = group.metadata;
  const lease = own.find(({ metadata }) => metadata.name === gateName(name));
  if (lease === undefined) return { record: null, problems: [] };
  try {
    return { record: parseGate(lease, uid), problems: [] };
  } catch (error) {
    if (!(error instanceof GateError)) throw error;
    const text = `The gate ${lease.metadata.name} cannot be used: ${differsAt(error.paths)}`;
    return { record: null, problems: [{ text, closes: true }] };
  }
}

/** A group that was made anew meets the one mutex and the one gate of the group before it: deploy-api 6.3. */
function foreign(
  inNamespace: readonly Stored<Lease>[],
  { metadata: { name, uid } }: Stored<MysqlFailoverGroup>,
): readonly Problem[] {
  const single = [slotName(name), gateName(name)];
  return inNamespace.filter((lease) => single.includes(lease.metadata.name) && !ownedBy(lease, uid))
    .map(({ metadata }) => ({
      text: `Lease ${metadata.name} cannot be used: its one owner must be the group as it is now`,
      closes: true,
    }));
}

function belongsByName(lease: string, group: string): boolean {
  return lease === slotName(group) || lease === gateName(group) ||
    lease.startsWith(`bloodraven-deploy-${group}-`);
}

function unreadableLease({ name, paths }: UndecodableObject): string {
  return `Lease ${name} cannot be read: ${differsAt(paths)}`;
}

function unreadableGroup({ namespace, name, paths }: UndecodableObject): GroupStatus {
  return {
    namespace,
    name,
    readable: false,
    activeSite: "",
    topologyGeneration: null,
    stable: false,
    unstableReason: "",
    closedReason: "unavailable",
    why: inPlainWords("unavailable"),
    leases: [],
    operations: [],
    admission: null,
    pendingTopology: null,
    problems: [`The group cannot be read: ${differsAt(paths)}`],
  };
}

function differsAt(paths: readonly string[]): string {
  return `its form differs at ${paths.filter((path) => path !== "").join(", ") || "the top level"}`;
}

function byPlace(a: GroupStatus, b: GroupStatus): number {
  return compare(a.namespace, b.namespace) || compare(a.name, b.name);
}

/** Those that count come first, the migration lease before the holds; those that ended, by their expiry. */
function byRank(a: LeaseStatus, b: LeaseStatus): number {
  return rank(a) - rank(b) || byExpiry(a, b);
}

function rank({ kind, state, stored }: LeaseStatus): number {
  if (state !== "active" && stored) return 2;
  return kind === "migration" ? 0 : 1;
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
