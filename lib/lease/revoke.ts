/**
 * Revocation: takes leases from their holders. deploy-api 7.8, and difference 22 for one operation.
 *
 * The mutex is written first, and the holds are listed after that write: a hold that the list misses was granted later,
 * so its own look sees the mutex revoked (state protocol 2.2).
 *
 * A revocation means the leases that were there when it was asked for. Whoever comes later is left alone, however long the
 * revocation takes: a lost race is decided again from what is stored then.
 *
 * @module
 */

import type { Topology } from "../group/topology.ts";
import type { MysqlFailoverGroup } from "../group/types.ts";
import type { ObjectList } from "../kube/api.ts";
import type { Lease } from "../kube/resources.ts";
import type { Adoption } from "./adoption.ts";
import { ownedBy } from "../records/lease_object.ts";
import { holdName, slotName, tombstoneName } from "../records/names.ts";
import {
  encodeRecord,
  type LeaseRecord,
  RecordError,
  type RevocationReason,
} from "../records/record.ts";
import { settled, standing } from "./rules.ts";
import type { StoredRecord } from "../records/store.ts";
import { writeTombstone } from "./tombstone.ts";
import { ContendedError, identity, TRIES, type Turn } from "./turn.ts";

/**
 * Reads what a revocation starts from: the group alone, so that a gate that is broken keeps nobody from revoking.
 *
 * @throws {GroupNotFoundError}
 */
export async function readForRevocation(turn: Turn, adoption: Adoption): Promise<Topology> {
  const { topology: reader } = turn.parts;
  const group = await reader.readGroup(turn.namespace, turn.group, turn.options);
  const topology = reader.peek({ group, gate: null });
  // A list by our label shows a lease of the reference only once it is adopted.
  await adoption.ensure(turn, topology);
  return topology;
}

/** What a revocation of a whole group is asked for. */
export interface GroupRevocation {
  readonly reason: RevocationReason;
  /**
   * Says whether a group that was read *after* the leases still asks for it. Without an answer of yes nothing is revoked:
   * the leases that were read may be newer than the request.
   *
   * @default {always}
   */
  readonly stillAsked?: (group: MysqlFailoverGroup) => boolean;
}

/**
 * Revokes every active lease of a group.
 *
 * @param topology Of {@linkcode readForRevocation}.
 * @returns What was revoked, as it is stored.
 * @throws {ContendedError} Others wrote in between each time.
 */
export async function revokeGroup(
  turn: Turn,
  topology: Topology,
  { reason, stillAsked = () => true }: GroupRevocation,
): Promise<readonly LeaseRecord[]> {
  const [slot, list] = await Promise.all([turn.get(slotName(turn.group)), turn.listActive()]);
  const run = new Run(turn, topology, reason, "group");
  const mutex = turn.parse(slot, topology);
  const { holds } = run.holdsOf(list);
  if (!stillAsked(await turn.parts.topology.readGroup(turn.namespace, turn.group, turn.options))) {
    return [];
  }
  const meant = new Set(holds.map(({ record }) => grantOf(record)));
  const taken = mutex?.record.state === "active" ? mutex.record : null;
  if (mutex !== null && taken !== null) {
    await run.revokeMutex(mutex, (record) => grantOf(record) === grantOf(taken));
  }
  await run.revokeHolds((record) =>
    // Its mutex is revoked, so no hold of that operation is newer.
    meant.has(grantOf(record)) || record.operationId === taken?.operationId
  );
  return run.revoked;
}

/**
 * Revokes one operation: its migration and its hold. It stays revoked for the life of the group, also when its migration
 * record is not in the slot any more.
 *
 * @param topology Of {@linkcode readForRevocation}.
 * @returns What was revoked; empty when it was revoked before; `null` when the group has no record of the operation.
 * @throws {ContendedError} Others wrote in between each time.
 */
export async function revokeOperation(
  turn: Turn,
  topology: Topology,
  operationId: string,
  reason: RevocationReason,
): Promise<readonly LeaseRecord[] | null> {
  const names = [
    slotName(turn.group),
    tombstoneName(turn.group, operationId),
    holdName(turn.group, operationId),
  ];
  const found = await Promise.all(
    names.map(async (name) => turn.parse(await turn.get(name), topology)),
  );
  const own = found.map((stored) => stored?.record.operationId === operationId ? stored : null);
  const [slot = null] = own;
  const known = own.find((stored) => stored !== null);
  if (known === undefined) return null;

  const run = new Run(turn, topology, reason, "operation");
  const isOurs = (record: LeaseRecord) => record.operationId === operationId;
  if (slot?.record.state === "active") await run.revokeMutex(slot, isOurs);
  // A record that ended may be granted again, so the operation needs its tombstone all the same.
  else if (slot?.record.state !== "revoked") await run.bury(known.record);
  await run.revokeHolds(isOurs);
  return run.revoked;
}

/** Names one grant: a re-grant of the same holder keeps its time, and a new grant has another. */
function grantOf({ kind, operationId, createdAt }: LeaseRecord): string {
  return JSON.stringify([kind, operationId, createdAt]);
}

/** One revocation while it is done. */
class Run {
  readonly #turn: Turn;
  readonly #topology: Topology;
  readonly #reason: RevocationReason;
  readonly #scope: "group" | "operation";
  /** What was revoked so far. */
  readonly revoked: LeaseRecord[] = [];

  constructor(
    turn: Turn,
    topology: Topology,
    reason: RevocationReason,
    scope: "group" | "operation",
  ) {
    this.#turn = turn;
    this.#topology = topology;
    this.#reason = reason;
    this.#scope = scope;
  }

  /** Revokes the record in the slot. When another operation took the slot meanwhile, it gets its tombstone instead. */
  async revokeMutex(
    first: StoredRecord,
    isMeant: (record: LeaseRecord) => boolean,
  ): Promise<void> {
    const { operationId } = first.record;
    const left = await this.#revoke(first, isMeant);
    if (left?.record.operationId !== operationId) await this.bury(first.record);
  }

  /**
   * Lists the holds, now that the mutex is written, and revokes those that are meant. One that cannot be read or written
   * keeps none of the others; what is thrown tells of it afterwards.
   */
  async revokeHolds(isMeant: (record: LeaseRecord) => boolean): Promise<void> {
    const { holds, fault } = this.holdsOf(await this.#turn.listActive());
    const meant = holds.filter(({ record }) => isMeant(record));
    const outcomes = await Promise.allSettled(meant.map((hold) => this.#revoke(hold, isMeant)));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    if (fault !== null) throw fault;
  }

  /** The group's holds of a list, and what is wrong with one that cannot be read. */
  holdsOf(
    list: ObjectList<Lease>,
  ): { readonly holds: readonly StoredRecord[]; readonly fault: RecordError | null } {
    const { uid } = this.#topology.group.metadata;
    const [undecodable] = list.undecodable;
    let fault = undecodable === undefined ? null : new RecordError(undecodable.paths);
    const holds = list.items.filter((lease) => ownedBy(lease, uid)).flatMap((lease) => {
      try {
        const stored = this.#turn.parse(lease, this.#topology);
        return stored?.record.kind === "failover-hold" ? [stored] : [];
      } catch (error) {
        if (!(error instanceof RecordError)) throw error;
        fault = error;
        return [];
      }
    });
    return { holds, fault };
  }

  /** Gives an operation its tombstone. */
  async bury(record: LeaseRecord): Promise<void> {
    const tombstone = this.#revokedRecord({ ...record, kind: "migration" });
    for (let tries = 0; tries < TRIES; tries++) {
      this.#turn.mustLead();
      const outcome = await writeTombstone(this.#turn, this.#topology, tombstone);
      if (outcome === "again") continue;
      if (outcome === "written") {
        this.#turn.ended(identity(this.#topology), tombstone);
        this.revoked.push(tombstone);
      }
      return;
    }
    throw new ContendedError("revoke the operation");
  }

  /**
   * Revokes a record that was read, and again what others made of it meanwhile, as long as it is active and meant.
   *
   * @returns What is stored in the end.
   */
  async #revoke(
    first: StoredRecord,
    isMeant: (record: LeaseRecord) => boolean,
  ): Promise<StoredRecord | null> {
    const { name } = first.lease.metadata;
    let stored: StoredRecord | null = first;
    for (let tries = 0; tries < TRIES; tries++) {
      if (stored?.record.state !== "active" || !isMeant(stored.record)) return stored;
      this.#turn.mustLead();
      const record = this.#ended(stored.record);
      const result = await this.#turn.write(this.#topology, name, record, stored);
      if (result.type === "stored") {
        if (record.state === "revoked") this.revoked.push(record);
        return result.stored;
      }
      stored = this.#turn.parse(await this.#turn.get(name), this.#topology);
      if (result.type === "unknown") return this.#found(stored, record, result.error);
      this.#turn.parts.metrics.retried("revoke");
    }
    throw new ContendedError("revoke the lease");
  }

  /** What is stored after a write without an answer: it is counted here if it is ours, and an error if it is not there. */
  #found(stored: StoredRecord | null, written: LeaseRecord, error: unknown): StoredRecord {
    if (stored === null || encodeRecord(stored.record) !== encodeRecord(written)) throw error;
    this.#turn.ended(identity(this.#topology), written);
    if (written.state === "revoked") this.revoked.push(written);
    return stored;
  }

  /** What becomes of an active record. In a group, expiry beats revocation (deploy-api 7): its time was over before. */
  #ended(record: LeaseRecord): LeaseRecord {
    const time = this.#turn.now();
    const found = standing(record, this.#topology.admission(time), time);
    const expired = this.#scope === "group" && found.type === "expired";
    return (expired && settled(record, found, time)) || this.#revokedRecord(record);
  }

  #revokedRecord(record: LeaseRecord): LeaseRecord {
    return { ...record, state: "revoked", reason: this.#reason };
  }
}
