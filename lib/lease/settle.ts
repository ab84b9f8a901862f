/**
 * What a look at all leases of a group finds and storage does not show yet: leases whose time is over or whose generation
 * is past. It is stored before anybody is told, so that everybody sees the same.
 *
 * @module
 */

import type { ConfirmedTopology } from "../group/topology.ts";
import type { ObjectList } from "../kube/api.ts";
import type { Lease } from "../kube/resources.ts";
import { ownedBy } from "../records/lease_object.ts";
import { byExpiry, RecordError } from "../records/record.ts";
import { settled, standing } from "./rules.ts";
import type { StoredRecord } from "../records/store.ts";
import type { Turn } from "./turn.ts";

/** Stores what the look found, the mutex first, and returns the leases that are active; `again` after a lost race. */
export async function settleAll(
  turn: Turn,
  topology: ConfirmedTopology,
  list: ObjectList<Lease>,
): Promise<readonly StoredRecord[] | "again"> {
  const found = readAll(turn, topology, list);
  const mutex = await settleEach(turn, topology, found.filter(isMutex));
  if (mutex === "again") return "again";
  // A hold that was granted since the list saw a mutex that stood. Now that it is revoked, the holds are listed anew.
  const holds = mutex.revoked ? readAll(turn, topology, await turn.listActive()) : found;
  const rest = await settleEach(turn, topology, holds.filter((stored) => !isMutex(stored)));
  return rest === "again" ? "again" : [...mutex.active, ...rest.active];
}

function readAll(
  turn: Turn,
  topology: ConfirmedTopology,
  list: ObjectList<Lease>,
): readonly StoredRecord[] {
  const { uid } = topology.group.metadata;
  if (list.undecodable.length > 0) {
    throw new RecordError(list.undecodable.flatMap(({ paths }) => paths));
  }
  return list.items.filter((lease) => ownedBy(lease, uid))
    .map((lease) => turn.parse(lease, topology)).filter((stored) => stored !== null)
    .sort((a, b) => byExpiry(a.record, b.record));
}

async function settleEach(
  turn: Turn,
  topology: ConfirmedTopology,
  found: readonly StoredRecord[],
): Promise<{ readonly active: readonly StoredRecord[]; readonly revoked: boolean } | "again"> {
  const active: StoredRecord[] = [];
  let revoked = false;
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
    revoked ||= next.state === "revoked";
  }
  return { active, revoked };
}

function isMutex({ record }: StoredRecord): boolean {
  return record.kind === "migration";
}
