/**
 * Work on one group in its turn: what requests and controllers share.
 *
 * A turn reads and writes the group's objects, knows the lease time, and refuses to go on once this process does not lead
 * any more. A request's turn reads with the caller's fresh permission beside it.
 *
 * @module
 */

import type { Access, Authorized } from "../auth/access.ts";
import type {
  ConfirmedTopology,
  Topology,
  TopologyReader,
  TopologyReads,
} from "../group/topology.ts";
import type { CallOptions, KubeObject, ObjectList, Stored } from "../kube/api.ts";
import type { Lease } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import type { LeaseClock } from "../lease_time/lease_time.ts";
import type { LeaseMetrics } from "./metrics.ts";
import type { KeyedQueue, Place } from "./queue.ts";
import type { LeaseRecord } from "../records/record.ts";
import type { LeaseInstant } from "../lease_time/lease_time.ts";
import type { Refusal } from "./rules.ts";
import type { GroupIdentity, LeaseStore, StoredRecord, WriteResult } from "../records/store.ts";

/** How often a request that lost a race is decided again: state protocol 2.3. */
export const TRIES = 3;

/** What the coordinator is made of. */
export interface CoordinatorParts {
  readonly store: LeaseStore;
  readonly topology: TopologyReader;
  readonly time: LeaseClock;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly queue: KeyedQueue;
  readonly metrics: LeaseMetrics;
  /** True while this process leads and may serve. */
  readonly leads: () => boolean;
  readonly limits: CoordinatorLimits;
  /** Told of every lease that was stored as `revoked` by this process, once each. */
  readonly onRevoked?: (group: GroupIdentity, record: LeaseRecord) => void;
}

/** The limits that the configuration sets. */
export interface CoordinatorLimits {
  /** Milliseconds of uncertainty of lease time above which nobody's expired lease is taken away. */
  readonly maxClockOffsetMs: number;
  /** Milliseconds after which a hold is not renewed any more; 0 = never. */
  readonly maxHoldAgeMs: number;
}

/** This process does not lead: 503 `not_leader`. */
export class NotLeaderError extends Error {
  override readonly name = "NotLeaderError";
  constructor() {
    super("Cannot serve the request as this replica does not lead");
  }
}

/** Somebody else wrote in between each time: 503 `unavailable`. */
export class ContendedError extends Error {
  override readonly name = "ContendedError";
  constructor(what: string) {
    super(`Cannot ${what} as others wrote in between: ${TRIES} tries were made`);
  }
}

/** The group was deleted and created again between two reads of one request: 503 `unavailable`. */
export class GroupReplacedError extends Error {
  override readonly name = "GroupReplacedError";
  constructor(group: string) {
    super(`Cannot go on with group ${group} as it was deleted and created again meanwhile`);
  }
}

/** No answer of the API server told its time yet: 503 `unavailable`. */
export class LeaseTimeUnknownError extends Error {
  override readonly name = "LeaseTimeUnknownError";
  constructor() {
    super("Cannot judge expiry as no answer of the API server told its time");
  }
}

/** The permission names another namespace than the one of the reads. */
class NamespaceMovedError extends Error {
  override readonly name = "NamespaceMovedError";
}

/** A request that ended without a success. */
export interface Refused {
  readonly type: "refused";
  readonly refusal: Refusal;
  /** The latest that the API server's clock can show, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** Work on one group while it is its turn. */
export class Turn {
  readonly options: CallOptions;

  /**
   * @param parts What the work uses.
   * @param namespace The namespace of the group.
   * @param group The name of the group.
   * @param signal Ends the work.
   */
  constructor(
    readonly parts: CoordinatorParts,
    readonly namespace: string,
    readonly group: string,
    signal: AbortSignal,
  ) {
    this.options = { signal };
  }

  /** @throws {NotLeaderError} */
  mustLead(): void {
    if (!this.parts.leads()) throw new NotLeaderError();
  }

  /** Reads the group and its gate, in parallel. @throws {GroupNotFoundError} */
  readTopology(): Promise<TopologyReads> {
    return this.parts.topology.read(this.namespace, this.group, this.options);
  }

  /** Applies the generation table to what was read, and stores what it says. */
  confirm(reads: TopologyReads): Promise<ConfirmedTopology> {
    return this.parts.topology.confirm(reads, this.options);
  }

  /** Reads the object of a name; `null` when there is none. */
  get(name: string): Promise<Stored<Lease> | null> {
    return this.parts.store.get(this.namespace, name, this.options);
  }

  /** Lists the objects of the group that are stored as `active`. */
  listActive(): Promise<ObjectList<Lease>> {
    return this.parts.store.listActive(this.namespace, this.group, this.options);
  }

  /** Reads what an object says. @throws {ForeignOwnerError} @throws {RecordError} */
  parse(lease: Stored<Lease> | null, topology: Topology): StoredRecord | null {
    return this.parts.store.parse(lease, topology.group.metadata.uid);
  }

  /** The lease time as it is known now. @throws {LeaseTimeUnknownError} */
  now(): LeaseInstant {
    const reading = this.parts.time.reading();
    if (reading === null) throw new LeaseTimeUnknownError();
    const certain = reading.uncertaintyMs <= this.parts.limits.maxClockOffsetMs;
    return { earliestMs: reading.earliestMs, latestMs: reading.latestMs, certain };
  }

  /**
   * Writes a record, and counts the end of a lease once it is stored: when `previous` was active and `record` is not. A
   * tombstone ends nothing by itself, since the lease was counted where it ended.
   */
  async write(
    topology: Topology,
    name: string,
    record: LeaseRecord,
    previous: StoredRecord | null,
    options: CallOptions = this.options,
  ): Promise<WriteResult> {
    const group = identity(topology);
    const { latestMs } = this.now();
    const result = await this.parts.store.write(group, name, record, previous, latestMs, options);
    const endsNow = previous?.record.state === "active" && record.state !== "active";
    if (result.type === "stored" && endsNow) this.ended(group, record);
    return result;
  }

  /** Counts a lease that ended, and tells of a revocation. */
  ended(group: GroupIdentity, record: LeaseRecord): void {
    this.parts.metrics.ended(group.name, record);
    if (record.state === "revoked") this.parts.onRevoked?.(group, record);
  }
}

/** One request while it is its turn in its group. */
export class RequestTurn extends Turn {
  constructor(
    parts: CoordinatorParts,
    readonly access: Access,
    namespace: string,
    signal: AbortSignal,
  ) {
    super(parts, namespace, access.group, signal);
  }

  /**
   * Reads one snapshot, the fresh permission beside it. The permission is judged first: without it, nothing of what was
   * read can show, not even that it failed.
   */
  async round<T>(reads: Promise<T>): Promise<T> {
    const [authorized, read] = await Promise.allSettled([this.authorized(), reads]);
    if (authorized.status === "rejected") throw authorized.reason;
    if (read.status === "rejected") throw read.reason;
    this.mustLead();
    return read.value;
  }

  /**
   * The fresh permission.
   *
   * @param instance Of a record that is judged by it: an instance that was declared a moment ago is not missed.
   */
  async authorized(instance?: string): Promise<Authorized> {
    const authorized = await this.access.confirm(instance);
    if (authorized.namespace !== this.namespace) throw new NamespaceMovedError();
    return authorized;
  }

  /**
   * Whether a look that found nothing may be believed. A revocation that was asked for by annotation revokes first and takes
   * the annotation off then: where another replica did both between the write and the look, the group shows nothing of it.
   * But the group has changed then. So the record is read again where it did, after the group (ADR 165).
   *
   * @param before The group that the write was decided under.
   * @param look The group of the look.
   * @param stored The record as this request stored it under `name`.
   */
  async stillStored(
    before: Topology,
    look: Topology,
    name: string,
    stored: StoredRecord,
  ): Promise<boolean> {
    if (versionOf(before.group) === versionOf(look.group)) return true;
    const lease = await this.get(name);
    return lease !== null && versionOf(lease) === versionOf(stored.lease);
  }

  /** The answer to a request that is refused. */
  refused(refusal: Refusal): Refused {
    return { type: "refused", refusal, nowMs: this.now().latestMs };
  }
}

function versionOf({ metadata }: Stored<KubeObject>): string {
  return metadata.resourceVersion;
}

/** The group that a topology is of. */
export function identity({ group }: Topology): GroupIdentity {
  const { namespace = "", name, uid } = group.metadata;
  return { namespace, name, uid };
}

/** @throws {GroupReplacedError} When two looks of one request saw two groups of the same name. */
export function mustBeSameGroup(first: Topology, second: TopologyReads): void {
  if (first.group.metadata.uid !== second.group.metadata.uid) {
    throw new GroupReplacedError(first.group.metadata.name);
  }
}

/** Waits for a turn in a group and does the work then: for a controller, which takes its turn like a request. */
export async function inGroupTurn<T>(
  parts: CoordinatorParts,
  { namespace, name }: Pick<GroupIdentity, "namespace" | "name">,
  signal: AbortSignal,
  work: (turn: Turn) => Promise<T>,
): Promise<T> {
  using _place = await enter(parts, namespace, name, signal);
  return await work(new Turn(parts, namespace, name, signal));
}

/** Waits for a request's turn in its group and does the work then. */
export async function inRequestTurn<T>(
  parts: CoordinatorParts,
  access: Access,
  signal: AbortSignal,
  work: (turn: RequestTurn) => Promise<T>,
): Promise<T> {
  for (let moved = false;; moved = true) {
    const namespace = await access.namespace();
    using _place = await enter(parts, namespace, access.group, signal);
    try {
      return await work(new RequestTurn(parts, access, namespace, signal));
    } catch (error) {
      // The group's databases moved to another namespace since the last minute: once more, there.
      if (!(error instanceof NamespaceMovedError) || moved) throw error;
    }
  }
}

async function enter(
  { clock, metrics, queue }: CoordinatorParts,
  namespace: string,
  group: string,
  signal: AbortSignal,
): Promise<Place> {
  const since = clock.monotonic();
  const place = await queue.enter(`${namespace}/${group}`, signal);
  metrics.waited((clock.monotonic() - since) / 1000);
  return place;
}
