/**
 * What a look at all leases of a group finds and storage does not show yet: leases whose time is over or whose generation
 * is past. It is stored before anybody is told, so that everybody sees the same.
 *
 * @module
 */

import type { ConfirmedTopology } from "../group/topology.ts";
import type { ObjectList } from "../kube/api.ts";
import type { Lease } from "../kube/resources.ts";
import { ownedBy } from "./lease_object.ts";
import { expiresAtMs, RecordError } from "./record.ts";
import { settled, standing } from "./rules.ts";
import type { StoredRecord } from "./store.ts";
import type { Turn } from "./turn.ts";

/** Stores what the look found, the mutex first, and returns the leases that are active; `again` after a lost race. */
export async function settleAll(
  turn: Turn,
  topology: ConfirmedTopology,
  list: ObjectList<Lease>,
): Promise<readonly StoredRecord[] | "again"> {
  const { uid } = topology.group.metadata;
  if (list.undecodable.length > 0) {
    throw new RecordError(list.undecodable.flatMap(({ paths }) => paths));
  }
  const found = list.items.filter((lease) => ownedBy(lease, uid))
    .map((lease) => turn.parse(lease, topology)).filter((stored) => stored !== null)
    .sort(inOrder);
  const active: StoredRecord[] = [];
  for (const stored of found) {
    const time = turn.now();
    const state = standing(stored.record, topology.admission(time), time);
    if (state.type === "ahead") return "again";
    if (state.type === "active") active.push(stored);
    const next = settled(stored.record, state, time);
    if (next === null) continue;
    turn.mustLead();
    const { name } = stored.lease.metadata;
    if ((await turn.write(topology, name, next, stored)).type !== "stored") return "again";
  }
  return active;
}

/** The migration first, then holds by expiry, ties by operation: deploy-api 2.1. */
function inOrder({ record: a }: StoredRecord, { record: b }: StoredRecord): number {
  if (a.kind !== b.kind) return a.kind === "migration" ? -1 : 1;
  return expiresAtMs(a) - expiresAtMs(b) || (a.operationId < b.operationId ? -1 : 1);
}
