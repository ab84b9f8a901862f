/**
 * Tombstones: a revoked migration record, kept under its operation's own name so that the operation stays revoked for the
 * life of the group, whoever has the slot (deploy-api 6.4).
 *
 * @module
 */

import type { Topology } from "../group/topology.ts";
import { tombstoneName } from "../records/names.ts";
import type { LeaseRecord } from "../records/record.ts";
import type { Turn } from "./turn.ts";

/**
 * Writes a tombstone. One that is there and is not `revoked` is replaced under its version (state protocol 2.3).
 *
 * @param record A migration record in state `revoked`.
 * @returns `written`; `present` when the operation had its tombstone already; `again` when somebody else wrote in between.
 */
export async function writeTombstone(
  turn: Turn,
  topology: Topology,
  record: LeaseRecord,
): Promise<"written" | "present" | "again"> {
  const name = tombstoneName(turn.group, record.operationId);
  const created = await turn.write(topology, name, record, null);
  if (created.type === "stored") return "written";
  const existing = turn.parse(await turn.get(name), topology);
  if (existing === null) return "again";
  if (existing.record.state === "revoked") return "present";
  const replaced = await turn.write(topology, name, record, existing);
  return replaced.type === "stored" ? "written" : "again";
}
