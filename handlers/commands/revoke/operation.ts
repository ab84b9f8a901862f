/**
 * The revocation of one operation: its records are written directly, the mutex first (difference 22).
 *
 * This process leads nothing. It is safe beside whoever does, since every write carries the version that was read: one of
 * two that race loses, reads again and decides anew.
 *
 * @module
 */

import { Registry } from "prom-client";
import { TopologyReader } from "../../../lib/group/topology.ts";
import { LeaseCoordinator } from "../../../lib/lease/coordinator.ts";
import { LeaseMetrics } from "../../../lib/lease/metrics.ts";
import { KeyedQueue } from "../../../lib/lease/queue.ts";
import type { LeaseRecord } from "../../../lib/records/record.ts";
import { type GroupIdentity, LeaseStore } from "../../../lib/records/store.ts";
import type { Place } from "./sight.ts";

/** The default of `deploy_api.max_clock_offset`, in milliseconds. Revoking one operation does not judge expiry. */
const MAX_CLOCK_OFFSET_MS = 1_000;

/**
 * Revokes what an operation has.
 *
 * @param onRevoked Told of each record that was stored as revoked.
 * @returns What was revoked; empty when it was revoked before; `null` when the group has no record of the operation.
 * @throws {GroupNotFoundError} @throws {ContendedError}
 */
export async function revokeRecords(
  { system, cluster, name }: Place,
  operationId: string,
  onRevoked: (group: GroupIdentity, record: LeaseRecord) => void,
  signal: AbortSignal,
): Promise<readonly LeaseRecord[] | null> {
  const { clock, entropy } = system;
  const { api, leaseTime } = cluster;
  const coordinator = new LeaseCoordinator({
    store: new LeaseStore(api),
    topology: new TopologyReader({ api, clock, maxStatusAgeMs: 0 }),
    time: leaseTime,
    clock,
    entropy,
    queue: new KeyedQueue(),
    metrics: new LeaseMetrics(new Registry(), clock),
    leads: () => true,
    limits: { maxClockOffsetMs: MAX_CLOCK_OFFSET_MS, maxHoldAgeMs: 0 },
    onRevoked,
  });
  return await coordinator.revoke(name, { reason: "operator_revoked", operationId }, signal);
}
