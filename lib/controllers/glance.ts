/**
 * Whether what the watches show of a group asks for a look at it: pure.
 *
 * It may ask in vain, for the watches lag behind. It must not stay silent where there is work, once the watches have shown
 * it: nothing else wakes an idle group.
 *
 * @module
 */

import { effectiveGeneration } from "../group/gate.ts";
import { GateError, gateFacts, type GateRecord, parseGate } from "../group/gate_lease.ts";
import { statusFacts } from "../group/phases.ts";
import type { LeaseTimeReading } from "../lease_time/estimator.ts";
import { readLease } from "../records/lease_object.ts";
import {
  DEPLOYMENT_GROUP_LABEL,
  DEPLOYMENT_KIND_LABEL,
  DEPLOYMENT_STATE_LABEL,
  GATE_KIND,
} from "../records/names.ts";
import { expiresAtMs, type LeaseRecord, RecordError } from "../records/record.ts";
import type { GroupSight } from "./group_controller.ts";

/** What a glance at a group comes to. */
export type Glance =
  /** Storage shows all that time and topology have done. */
  | { readonly type: "quiet"; readonly active: readonly LeaseRecord[] }
  | {
    readonly type: "look";
    /** A lease lacks our group label: the reference wrote it. */
    readonly unlabelled: boolean;
  };

/**
 * Glances at a group.
 *
 * @param reading Lease time as it is known now, or `null`.
 */
export function glance(sight: GroupSight, reading: LeaseTimeReading | null): Glance {
  const leases = sight.leases.filter(({ metadata }) =>
    metadata.labels?.[DEPLOYMENT_KIND_LABEL] !== GATE_KIND
  );
  if (leases.some(({ metadata }) => metadata.labels?.[DEPLOYMENT_GROUP_LABEL] === undefined)) {
    return { type: "look", unlabelled: true };
  }
  const look: Glance = { type: "look", unlabelled: false };
  const gate = readGate(sight);
  if (gate === null) return look;
  const { outcome } = effectiveGeneration(gateFacts(gate), statusFacts(sight.group), NOTHING_SEEN);
  if (outcome === "write" || outcome === "pending") return look;
  const active: LeaseRecord[] = [];
  for (const lease of leases) {
    if (lease.metadata.labels?.[DEPLOYMENT_STATE_LABEL] !== "active") continue;
    const record = readRecord(lease, sight);
    if (record === null || record.topologyGeneration !== gate.generation) return look;
    if (reading === null || reading.earliestMs > expiresAtMs(record)) return look;
    active.push(record);
  }
  return { type: "quiet", active };
}

/** With a gate, the table's first row does not count; its second one asks for a look, which knows for how long. */
const NOTHING_SEEN = {
  unchangedForMs: 0,
  highestRecordGeneration: 0,
  activeRecordCarriesLabel: false,
};

/** The gate that the watches show; `null` when there is none, or one that cannot be used: the look tells of it. */
function readGate({ group, leases }: GroupSight): GateRecord | null {
  const lease = leases.find(({ metadata }) =>
    metadata.labels?.[DEPLOYMENT_KIND_LABEL] === GATE_KIND
  );
  if (lease === undefined) return null;
  try {
    return parseGate(lease, group.metadata.uid);
  } catch (error) {
    if (error instanceof GateError) return null;
    throw error;
  }
}

function readRecord(lease: GroupSight["leases"][number], { group }: GroupSight) {
  try {
    return readLease(lease, group.metadata.uid).record;
  } catch (error) {
    if (error instanceof RecordError) return null;
    throw error;
  }
}
