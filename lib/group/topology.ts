/**
 * Where a group is: reads the group and its gate, applies the generation table and stores what it says.
 *
 * The table itself is in `gate.ts`. This file keeps its two conditions on reads (state protocol 2.1): only a confirmed
 * row may be concluded from reads that were sent in parallel, for any other the group's read must begin after the gate's
 * answer; and a generation is used only once it is stored.
 *
 * @module
 */

import type { CallOptions, KubeApi, Stored } from "../kube/api.ts";
import { AlreadyExistsError, ConflictError, NotFoundError } from "../kube/errors.ts";
import { type Lease, LEASES } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";
import { DEPLOYMENT_GROUP_LABEL, gateName, LEASES_OF_A_GROUP_SELECTOR } from "../records/names.ts";
import { RecordError } from "../records/record.ts";
import { ownedBy, readLease } from "../records/lease_object.ts";
import type { Admission } from "./allowance.ts";
import type { LeaseInstant } from "../lease_time/lease_time.ts";
import { type EffectiveGeneration, effectiveGeneration } from "./gate.ts";
import { gateFacts, gateObject, type GateRecord, parseGate, touched } from "./gate_lease.ts";
import { statusFacts } from "./phases.ts";
import { unstableReason } from "./stability.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup, REVOKE_ANNOTATION } from "./types.ts";

/** How long a mark of pending topology counts when nobody renews it: state protocol 2.1. */
const PENDING_LIFETIME_MS = 60_000;

/** How often a write that lost a race is decided again. */
const TRIES = 3;

/** The gate as it is stored. */
export interface StoredGate {
  readonly lease: Stored<Lease>;
  readonly record: GateRecord;
}

/** What one look at a group read. */
export interface TopologyReads {
  readonly group: Stored<MysqlFailoverGroup>;
  /** `null` when the group has no gate yet. */
  readonly gate: StoredGate | null;
}

/** What a look at a group concludes. */
export interface Topology extends TopologyReads {
  readonly admission: (time: LeaseInstant) => Admission;
}

/** How long status must stay as it went back before that is taken as a change: row 2 of the table. */
const REWOUND_AFTER_MS = 60_000;

/** A {@linkcode Topology} whose gate exists. */
export interface ConfirmedTopology extends Topology {
  readonly gate: StoredGate;
  /**
   * Milliseconds after which the same values mean something else, so that somebody must look again: status went back and
   * may stay there (row 2). `null` when only a change can bring something new.
   */
  readonly lookAgainInMs: number | null;
}

/** The group does not exist: 404 for GET, POST and PUT, and 204 for DELETE (difference 2). */
export class GroupNotFoundError extends Error {
  override readonly name = "GroupNotFoundError";
  constructor(namespace: string, group: string) {
    super(`Cannot read MysqlFailoverGroup ${namespace}/${group}: it does not exist`);
  }
}

/** The gate was written by others each time that this process wanted to write it: 503, try again. */
export class GateContendedError extends Error {
  override readonly name = "GateContendedError";
  constructor(group: string) {
    super(`Cannot write the gate of group ${group}: others wrote it ${TRIES} times in between`);
  }
}

/** What a {@linkcode TopologyReader} is made of. */
export interface TopologyReaderParts {
  readonly api: KubeApi;
  readonly clock: Clock;
  /** Milliseconds after which a status that no site refreshed is not believed; 0 = always believed. */
  readonly maxStatusAgeMs: number;
  /** Told when a generation was raised since status went backwards and stayed there (row 2). */
  readonly onRewound?: (group: Stored<MysqlFailoverGroup>) => void;
}

/** Since when a process has seen the same values of a group, and the same mark of pending topology. */
interface Sighting {
  readonly values: { readonly value: string; readonly sinceMs: number } | null;
  readonly pending: { readonly value: string; readonly sinceMs: number } | null;
}

/** What the group's records say, when a gate is made for it. */
interface RecordFacts {
  readonly highest: number;
  readonly activeCarriesLabel: boolean;
}

/** What the table is told when there is a gate: it does not look at records then. */
const NO_RECORDS: RecordFacts = { highest: 0, activeCarriesLabel: false };

/** Reads and confirms the topology of groups. */
export class TopologyReader {
  readonly #parts: TopologyReaderParts;
  /** Since when this process has seen the same values, per group uid: the table's row 2 and a pending mark count it. */
  readonly #seen = new Map<string, Sighting>();

  constructor(parts: TopologyReaderParts) {
    this.#parts = parts;
  }

  /** Reads the group and its gate, in parallel. @throws {GroupNotFoundError} */
  async read(namespace: string, group: string, options: CallOptions): Promise<TopologyReads> {
    const [found, gate] = await Promise.all([
      this.readGroup(namespace, group, options),
      this.#getGate(namespace, group, options),
    ]);
    return {
      group: found,
      gate: gate && { lease: gate, record: parseGate(gate, found.metadata.uid) },
    };
  }

  /** Reads the group alone. @throws {GroupNotFoundError} */
  async readGroup(
    namespace: string,
    group: string,
    options: CallOptions,
  ): Promise<Stored<MysqlFailoverGroup>> {
    try {
      return await this.#parts.api.get(MYSQL_FAILOVER_GROUPS, { namespace, name: group }, options);
    } catch (error) {
      if (error instanceof NotFoundError) throw new GroupNotFoundError(namespace, group);
      throw error;
    }
  }

  /** Reads the gate again, under the same group. */
  async readGate(reads: TopologyReads, options: CallOptions): Promise<StoredGate | null> {
    const { namespace = "", name, uid } = reads.group.metadata;
    const lease = await this.#getGate(namespace, name, options);
    return lease && { lease, record: parseGate(lease, uid) };
  }

  /**
   * What can be said without a write: enough for a release, which consults no gate. The generation is a lower bound of
   * the effective one.
   */
  peek(reads: TopologyReads): Topology {
    const generation = reads.gate?.record.generation ?? 0;
    return { ...reads, admission: (time) => this.#admission(reads, generation, false, time) };
  }

  /**
   * Applies the generation table and stores what it says.
   *
   * @throws {GateContendedError} @throws {GroupNotFoundError}
   */
  async confirm(reads: TopologyReads, options: CallOptions): Promise<ConfirmedTopology> {
    const first = this.#judge(reads, NO_RECORDS);
    if (first.outcome === "confirmed" && reads.gate !== null) {
      return this.#conclude(reads.group, reads.gate, first);
    }
    let gate = reads.gate;
    for (let tries = 0; tries < TRIES; tries++) {
      // Every row but the confirmed one needs a group whose read began after the gate's answer.
      const group = await this.readGroup(
        reads.group.metadata.namespace ?? "",
        reads.group.metadata.name,
        options,
      );
      const settled = await this.#settle(group, gate, options);
      if (settled !== null) return settled;
      gate = await this.readGate({ group, gate }, options);
    }
    throw new GateContendedError(reads.group.metadata.name);
  }

  /**
   * Stores what the table says until it says nothing more: the end of a restore can uncover a moved primary. The same
   * group serves for each, since each write carries the version of the one before.
   *
   * @returns `null` when somebody else wrote the gate.
   */
  async #settle(
    group: Stored<MysqlFailoverGroup>,
    found: StoredGate | null,
    options: CallOptions,
  ): Promise<ConfirmedTopology | null> {
    const records = found === null ? await this.#recordsOf(group, options) : NO_RECORDS;
    for (let gate = found;;) {
      const verdict = this.#judge({ group, gate }, records);
      if (verdict.outcome !== "write" && gate !== null) return this.#conclude(group, gate, verdict);
      gate = await this.#write(group, gate, verdict, options);
      if (gate === null) return null;
      if (verdict.row === 2) this.#parts.onRewound?.(group);
    }
  }

  /**
   * Writes the gate anew under the version that was read, so that a planner who read it before fails: the *touch* of
   * state protocol 2.2. Its content changes, since the server keeps the version of an object that is written unchanged.
   *
   * @returns The gate as it is stored now, or `null` when somebody else wrote it.
   */
  async touch(topology: ConfirmedTopology, options: CallOptions): Promise<StoredGate | null> {
    return await this.change(topology, {}, options);
  }

  /**
   * Writes members of the gate under the version that was read, and touches it by that.
   *
   * @returns The gate as it is stored now, or `null` when somebody else wrote it.
   */
  async change(
    { group, gate }: ConfirmedTopology,
    members: Partial<Pick<GateRecord, "pending" | "planned">>,
    options: CallOptions,
  ): Promise<StoredGate | null> {
    return await this.#replace(group, gate, { ...touched(gate.record), ...members }, options);
  }

  /** Forgets since when it saw what: of one group that is gone, or of all. */
  forget(uid?: string): void {
    if (uid === undefined) this.#seen.clear();
    else this.#seen.delete(uid);
  }

  #judge({ group, gate }: TopologyReads, records: RecordFacts): EffectiveGeneration {
    const record = gate?.record ?? null;
    return effectiveGeneration(gateFacts(record), statusFacts(group), {
      unchangedForMs: this.#valuesUnchangedFor(group, record),
      highestRecordGeneration: records.highest,
      activeRecordCarriesLabel: records.activeCarriesLabel,
    });
  }

  #conclude(
    group: Stored<MysqlFailoverGroup>,
    gate: StoredGate,
    verdict: EffectiveGeneration,
  ): ConfirmedTopology {
    const rewinding = verdict.outcome === "pending";
    return {
      group,
      gate,
      admission: (time) => this.#admission({ group, gate }, verdict.generation, rewinding, time),
      lookAgainInMs: rewinding
        ? Math.max(0, REWOUND_AFTER_MS - this.#valuesUnchangedFor(group, gate.record))
        : null,
    };
  }

  #admission(
    { group, gate }: TopologyReads,
    generation: number,
    rewinding: boolean,
    time: LeaseInstant,
  ): Admission {
    const pending = gate?.record.pending ?? null;
    const marked = pending !== null &&
      this.#unchangedFor(group.metadata.uid, "pending", JSON.stringify(pending)) <
        PENDING_LIFETIME_MS;
    const topologyBlocked = rewinding || marked
      ? "TopologyPersistencePending"
      : this.#tooOld(group, time)
      ? "TopologyNotObserved"
      : "";
    return {
      generation,
      revocationRequested: group.metadata.annotations?.[REVOKE_ANNOTATION] !== undefined,
      topologyBlocked,
      // A planned operation that is being taken back refuses grants too, until the gate is clear.
      reserved: gate?.record.planned?.operation ?? "",
      unstable: unstableReason(group),
    };
  }

  #tooOld(group: MysqlFailoverGroup, time: LeaseInstant): boolean {
    const { maxStatusAgeMs } = this.#parts;
    if (maxStatusAgeMs === 0) return false;
    const seen = (group.status?.sites ?? []).map((site) => Date.parse(site.lastSeen ?? ""))
      .filter((at) => !Number.isNaN(at));
    return Math.max(-Infinity, ...seen) < time.earliestMs - maxStatusAgeMs;
  }

  #valuesUnchangedFor(group: Stored<MysqlFailoverGroup>, gate: GateRecord | null): number {
    const values = JSON.stringify([gateFacts(gate), statusFacts(group)]);
    return this.#unchangedFor(group.metadata.uid, "values", values);
  }

  #unchangedFor(uid: string, what: "values" | "pending", value: string): number {
    const now = this.#parts.clock.monotonic();
    const sighting = this.#seen.get(uid) ?? { values: null, pending: null };
    const known = sighting[what];
    if (known !== null && known.value === value) return now - known.sinceMs;
    this.#seen.set(uid, { ...sighting, [what]: { value, sinceMs: now } });
    return 0;
  }

  async #getGate(
    namespace: string,
    group: string,
    options: CallOptions,
  ): Promise<Stored<Lease> | null> {
    try {
      return await this.#parts.api.get(LEASES, { namespace, name: gateName(group) }, options);
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  /** What the group's records say when there is no gate: row 1 of the table. */
  async #recordsOf(group: Stored<MysqlFailoverGroup>, options: CallOptions): Promise<RecordFacts> {
    const { items, undecodable } = await this.#parts.api.list(LEASES, {
      ...options,
      namespace: group.metadata.namespace,
      labelSelector: LEASES_OF_A_GROUP_SELECTOR,
    });
    if (undecodable.length > 0) throw new RecordError(undecodable.flatMap(({ paths }) => paths));
    const { uid } = group.metadata;
    const records = items.filter((lease) => ownedBy(lease, uid)).map((lease) =>
      readLease(lease, uid)
    );
    return {
      highest: Math.max(0, ...records.map(({ record }) => record.topologyGeneration)),
      activeCarriesLabel: records.some(({ lease, record }) =>
        record.state === "active" && lease.metadata.labels?.[DEPLOYMENT_GROUP_LABEL] !== undefined
      ),
    };
  }

  async #write(
    group: Stored<MysqlFailoverGroup>,
    gate: StoredGate | null,
    verdict: EffectiveGeneration,
    options: CallOptions,
  ): Promise<StoredGate | null> {
    const values = {
      site: verdict.site,
      generation: verdict.generation,
      observedGeneration: verdict.observedGeneration,
      restoreFencing: verdict.restoreFencing,
    };
    if (gate !== null) {
      const { pending } = gate.record;
      // A raised generation is the change that the mark announced.
      const announced = verdict.generation > gate.record.generation ? null : pending;
      const record = { ...touched(gate.record), ...values, pending: announced };
      return await this.#replace(group, gate, record, options);
    }
    const record: GateRecord = { seq: 1, ...values, pending: null, planned: null };
    try {
      const lease = await this.#parts.api.createNamed(LEASES, gateObject(group, record), options);
      return { lease, record };
    } catch (error) {
      if (error instanceof AlreadyExistsError) return null;
      throw error;
    }
  }

  async #replace(
    group: Stored<MysqlFailoverGroup>,
    gate: StoredGate,
    record: GateRecord,
    options: CallOptions,
  ): Promise<StoredGate | null> {
    try {
      const object = gateObject(group, record, gate.lease);
      return { lease: await this.#parts.api.replace(LEASES, object, options), record };
    } catch (error) {
      if (error instanceof ConflictError || error instanceof NotFoundError) return null;
      throw error;
    }
  }
}
