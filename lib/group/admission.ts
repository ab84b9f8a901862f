/**
 * The planner's side of the gate: the admission of a planned operation, its phase, and the way back. State protocol 2.2.
 *
 * A hold and a planned operation must never both be. Each side ends in a write of the gate under the version that it read
 * first, so one of two loses:
 *
 * - A hold that was written before the planner lists holds is seen by it.
 * - One that was written later *touches* the gate after the planner read it. Either the touch comes first and the
 *   planner's write fails, or the admission comes first and the touch fails; the grant then finds the admission.
 * - A planner that has cleared its admission has its phase in status, where the grant's second read of the group sees it.
 *
 * An admission never lapses by itself, since a planner that was frozen may still write its phase. Whoever takes it back
 * marks it, then gives the group a new version: a phase that was prepared before fails on its version, and a planner that
 * reads afresh finds the mark. For that it must read the group *before* the gate.
 *
 * No step relies on one leader or on one process. Every read is uncached.
 *
 * @module
 */

import type { CallOptions, KubeApi, Stored } from "../kube/api.ts";
import { ConflictError, KubeError, NotFoundError } from "../kube/errors.ts";
import { LEASES } from "../kube/resources.ts";
import { ownedBy, readLease } from "../records/lease_object.ts";
import type { LeaseClock } from "../lease_time/lease_time.ts";
import { DEPLOYMENT_KIND_LABEL, DEPLOYMENT_STATE_LABEL } from "../records/names.ts";
import { expiresAtMs, type LeaseRecord, RecordError } from "../records/record.ts";
import type { LeaseInstant } from "../lease_time/lease_time.ts";
import type { GroupIdentity, LeaseStore, StoredRecord } from "../records/store.ts";
import type { Clock } from "../runtime/clock.ts";
import { type Entropy, toHex } from "../runtime/entropy.ts";
import {
  PlannerContendedError,
  PlannerGroupReplacedError,
  PlannerTimeError,
  TRIES,
} from "./admission_errors.ts";
import { judgeHolds, refusalReason, stillAdmitted } from "./admission_rules.ts";
import { gateObject, type PlannedAdmission, touched } from "./gate_lease.ts";
import { admittedPhase, operationPhase, type PlannedOperation } from "./phases.ts";
import type { StoredGate, TopologyReader } from "./topology.ts";
import { GATE_TOUCH_ANNOTATION, MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "./types.ts";

/** The contract's own labels alone: a hold that the reference wrote has no other, and a planner adopts nothing. */
const ACTIVE_HOLDS = `${DEPLOYMENT_KIND_LABEL}=failover-hold,${DEPLOYMENT_STATE_LABEL}=active`;

/** A group, as anybody read it: who it is counts, and nothing else of it is used. */
export type KnownGroup = Stored<MysqlFailoverGroup>;

/** What a {@linkcode Planner} is made of. */
export interface PlannerParts {
  readonly api: KubeApi;
  readonly topology: TopologyReader;
  readonly store: LeaseStore;
  readonly time: LeaseClock;
  readonly clock: Clock;
  readonly entropy: Entropy;
  /** This process, as the gate shows it in `planned.by`. */
  readonly by: string;
  /** `deploy_api.max_clock_offset`, in milliseconds. */
  readonly maxClockOffsetMs: number;
  /** Told of a hold that the planner wrote `expired`. */
  readonly onExpired?: (group: GroupIdentity, record: LeaseRecord) => void;
}

/** The gate carries the operation: its phase may be written now. */
export interface Admitted {
  readonly type: "admitted";
  readonly admission: PlannedAdmission;
  /** The group as it was read before the admission. */
  readonly group: Stored<MysqlFailoverGroup>;
}

/** What an admission comes to. */
export type AdmissionResult =
  | Admitted
  /** A hold is in the way; it ends, unless renewed, at `untilMs` (milliseconds since 1970). */
  | { readonly type: "deferred"; readonly hold: LeaseRecord; readonly untilMs: number }
  /** The reason of the 423 of deploy-api 7.7. Nothing was written; try again later. */
  | { readonly type: "refused"; readonly reason: string };

/** What the write of a phase comes to. */
export type PhaseResult =
  | { readonly type: "stored"; readonly group: Stored<MysqlFailoverGroup> }
  /** The admission was taken back meanwhile, or another operation's phase is there: nothing was written. */
  | { readonly type: "lost" };

/** What a withdrawal comes to. */
export type WithdrawalResult =
  | "withdrawn"
  /** The phase was in status before: the operation goes on, and status speaks. */
  | "phase_written"
  /** The gate does not carry the admission any more. */
  | "gone";

/** Admits planned operations. */
export class Planner {
  readonly #parts: PlannerParts;

  constructor(parts: PlannerParts) {
    this.#parts = parts;
  }

  /** Who this planner is in `planned.by`. */
  get by(): string {
    return this.#parts.by;
  }

  /**
   * Asks for the admission of an operation. It waits for nothing: the caller asks again, after a hold's end or after a
   * pause.
   *
   * @throws {PlannerContendedError} @throws {PlannerTimeError} @throws {PlannerGroupReplacedError}
   * @throws {RecordError} An active hold of the group does not have its form: what it would block is not known.
   * @throws {GateError} @throws {GroupNotFoundError} @throws {GateContendedError} @throws {KubeError}
   */
  async admitPlanned(
    group: KnownGroup,
    operation: PlannedOperation,
    options: CallOptions,
  ): Promise<AdmissionResult> {
    // One id for all tries: an answer that was lost is found again by it.
    const id = this.#parts.entropy.uuid();
    for (let tries = 0; tries < TRIES; tries++) {
      const result = await this.#tryToAdmit(group, operation, id, options);
      if (result !== "again") return result;
    }
    throw new PlannerContendedError("admit a planned operation of", group.metadata.name);
  }

  async #tryToAdmit(
    known: KnownGroup,
    operation: PlannedOperation,
    id: string,
    options: CallOptions,
  ): Promise<AdmissionResult | "again"> {
    const { topology } = this.#parts;
    // 1. The gate, and only then the group: a phase that another planner wrote before it cleared the gate is seen.
    const gateFirst = await topology.readGate({ group: known, gate: null }, options);
    const read = await this.#readGroup(known, options);
    const { gate, group, admission } = await topology.confirm(
      { gate: gateFirst, group: read },
      options,
    );
    mustBe(known, group);
    const { planned } = gate.record;
    if (planned?.id === id && planned.state === "admitted") {
      return { type: "admitted", admission: planned, group };
    }
    const time = this.#now();
    const reason = refusalReason({ group, planned, admission: admission(time) }, operation);
    if (reason !== "") return { type: "refused", reason };
    if (!time.certain) throw new PlannerTimeError();

    // 2. The holds.
    const holds = await this.#listHolds(group, options);
    const verdict = judgeHolds(holds, this.#now(), this.#parts.maxClockOffsetMs);
    if (verdict.type === "overdue") {
      for (const hold of verdict.holds) await this.#writeExpired(group, hold, options);
      return "again";
    }
    if (verdict.type === "held") {
      const { record } = verdict.by;
      return { type: "deferred", hold: record, untilMs: expiresAtMs(record) };
    }

    // 3. The admission, under the version of step 1.
    const mine: PlannedAdmission = {
      operation,
      id,
      by: this.#parts.by,
      since: new Date(this.#parts.clock.wall()).toISOString(),
      state: "admitted",
    };
    const stored = await this.#setPlanned(group, gate, mine, options);
    return stored === null ? "again" : { type: "admitted", admission: mine, group };
  }

  /**
   * Writes the phase of an admitted operation into the group's status, under the version of a group that was read before
   * the gate.
   *
   * @param change The members of status to merge, from the group as it is now; RFC 7386. They must put the operation
   * into a phase that only an admission writes. It may be called again.
   * @throws {PlannerContendedError} @throws {KubeError} Withdraw then.
   */
  async writePhase(
    { admission, group: known }: Pick<Admitted, "admission" | "group">,
    change: (group: Stored<MysqlFailoverGroup>) => Readonly<Record<string, unknown>>,
    options: CallOptions,
  ): Promise<PhaseResult> {
    const { api, topology } = this.#parts;
    for (let tries = 0; tries < TRIES; tries++) {
      // The group before the gate: whoever withdraws marks the gate and then gives the group a new version.
      const group = await this.#readGroup(known, options);
      const gate = await topology.readGate({ group, gate: null }, options);
      if (!stillAdmitted(gate?.record.planned ?? null, admission)) return { type: "lost" };
      const phase = admittedPhase(group);
      // While the gate is ours nobody else writes this phase: it is from a try whose answer was lost.
      if (phase === admission.operation) return { type: "stored", group };
      if (phase !== null) return { type: "lost" };
      const { name, namespace, uid, resourceVersion } = group.metadata;
      const body = { metadata: { uid, resourceVersion }, status: change(group) };
      try {
        const stored = await api.patch(
          MYSQL_FAILOVER_GROUPS,
          { name, namespace },
          { type: "merge", body },
          { ...options, subresource: "status" },
        );
        return { type: "stored", group: stored };
      } catch (error) {
        if (!isRace(error, options)) throw error;
      }
    }
    throw new PlannerContendedError("write the phase of", known.metadata.name);
  }

  /**
   * Clears an admission: once its phase is in status, from where that speaks. What another admission wrote stays.
   *
   * Before that it is {@linkcode Planner.withdraw} which must be called: a clear alone leaves a frozen planner free to
   * write its phase.
   */
  async clear(
    group: KnownGroup,
    { id }: Pick<PlannedAdmission, "id">,
    options: CallOptions,
  ): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      const gate = await this.#parts.topology.readGate({ group, gate: null }, options);
      if (gate === null || gate.record.planned?.id !== id) return;
      if (await this.#setPlanned(group, gate, null, options) !== null) return;
    }
    throw new PlannerContendedError("clear the gate of", group.metadata.name);
  }

  /**
   * Takes an admission back, whoever made it. It is safe at any time: of an operation whose phase is written already it
   * only clears the gate.
   *
   * @throws {PlannerContendedError} @throws {KubeError} Call it again: every step may be done twice.
   */
  async withdraw(
    group: KnownGroup,
    { id, operation }: Pick<PlannedAdmission, "id" | "operation">,
    options: CallOptions,
  ): Promise<WithdrawalResult> {
    if (!await this.#mark(group, id, options)) return "gone";
    // From here on a planner that reads afresh stops. One that has read needs the group's old version.
    await this.#touchGroup(group, options);
    const after = await this.#readGroup(group, options);
    await this.clear(after, { id }, options);
    return operationPhase(after, operation) === "admitted" ? "phase_written" : "withdrawn";
  }

  /**
   * Takes over an admission that another process of this service left behind: the gate names this process from now on,
   * and the other one can write no phase but the one it has prepared already.
   *
   * @returns `null` when the gate does not carry the admission any more, or somebody else was faster.
   */
  async takeOver(
    known: KnownGroup,
    left: PlannedAdmission,
    options: CallOptions,
  ): Promise<Admitted | null> {
    const group = await this.#readGroup(known, options);
    const gate = await this.#parts.topology.readGate({ group, gate: null }, options);
    if (gate === null || !stillAdmitted(gate.record.planned, left)) return null;
    const admission: PlannedAdmission = { ...left, by: this.#parts.by };
    const stored = await this.#setPlanned(group, gate, admission, options);
    return stored && { type: "admitted", admission, group };
  }

  /** The earliest hold that is stored as active, or `null`. */
  async earliestHold(group: KnownGroup, options: CallOptions): Promise<LeaseRecord | null> {
    const holds = await this.#listHolds(group, options);
    // Nothing is written here, so nothing is overdue: what is stored as active counts.
    const verdict = judgeHolds(holds, { ...this.#now(), certain: false }, 0);
    return verdict.type === "held" ? verdict.by.record : null;
  }

  /** @returns False when the gate carries another admission or none. */
  async #mark(group: KnownGroup, id: string, options: CallOptions): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries++) {
      const gate = await this.#parts.topology.readGate({ group, gate: null }, options);
      const planned = gate?.record.planned ?? null;
      if (gate === null || planned === null || planned.id !== id) return false;
      if (planned.state === "withdrawing") return true;
      const withdrawing: PlannedAdmission = { ...planned, state: "withdrawing" };
      if (await this.#setPlanned(group, gate, withdrawing, options) !== null) return true;
    }
    throw new PlannerContendedError("withdraw a planned operation of", group.metadata.name);
  }

  /** The value must be new: the server keeps the version of an object that is written unchanged. */
  async #touchGroup(group: KnownGroup, options: CallOptions): Promise<void> {
    const { api, entropy } = this.#parts;
    const { name, namespace, uid } = group.metadata;
    const annotations = { [GATE_TOUCH_ANNOTATION]: toHex(entropy.bytes(8)) };
    const body = { metadata: { uid, annotations } };
    await api.patch(MYSQL_FAILOVER_GROUPS, { name, namespace }, { type: "merge", body }, options);
  }

  /** @returns `null` when somebody else wrote the gate, or when no answer came: it must be read again. */
  async #setPlanned(
    group: KnownGroup,
    gate: StoredGate,
    planned: PlannedAdmission | null,
    options: CallOptions,
  ): Promise<StoredGate | null> {
    const record = { ...touched(gate.record), planned };
    try {
      const object = gateObject(group, record, gate.lease);
      return { lease: await this.#parts.api.replace(LEASES, object, options), record };
    } catch (error) {
      if (error instanceof NotFoundError || isRace(error, options)) return null;
      throw error;
    }
  }

  async #listHolds(group: KnownGroup, options: CallOptions): Promise<readonly StoredRecord[]> {
    const { namespace, uid } = group.metadata;
    const { items, undecodable } = await this.#parts.api.list(LEASES, {
      ...options,
      namespace,
      labelSelector: ACTIVE_HOLDS,
    });
    // An object that cannot be read at all does not even say whose it is.
    if (undecodable.length > 0) throw new RecordError(undecodable.flatMap(({ paths }) => paths));
    return items.filter((lease) => ownedBy(lease, uid)).map((lease) => readLease(lease, uid));
  }

  /** A conflict means that it was renewed, and no answer that it may be written: in both cases the next look tells. */
  async #writeExpired(
    { metadata: { namespace = "", name, uid } }: KnownGroup,
    hold: StoredRecord,
    options: CallOptions,
  ): Promise<void> {
    const { store, onExpired } = this.#parts;
    const group = { namespace, name, uid };
    const record: LeaseRecord = { ...hold.record, state: "expired" };
    const { latestMs } = this.#now();
    const result = await store.write(
      group,
      hold.lease.metadata.name,
      record,
      hold,
      latestMs,
      options,
    );
    if (result.type === "stored") onExpired?.(group, record);
  }

  async #readGroup(known: KnownGroup, options: CallOptions): Promise<Stored<MysqlFailoverGroup>> {
    const { namespace = "", name } = known.metadata;
    const group = await this.#parts.topology.readGroup(namespace, name, options);
    mustBe(known, group);
    return group;
  }

  #now(): LeaseInstant {
    const reading = this.#parts.time.reading();
    if (reading === null) throw new PlannerTimeError();
    const { earliestMs, latestMs, uncertaintyMs } = reading;
    return { earliestMs, latestMs, certain: uncertaintyMs <= this.#parts.maxClockOffsetMs };
  }
}

/** True for a write that others were faster with, or whose answer was lost: a read tells what is there. */
function isRace(error: unknown, { signal }: CallOptions): boolean {
  if (error instanceof ConflictError) return true;
  return error instanceof KubeError && error.mayHaveLanded && !signal.aborted;
}

/** @throws {PlannerGroupReplacedError} */
function mustBe(known: KnownGroup, found: KnownGroup): void {
  if (known.metadata.uid !== found.metadata.uid) {
    throw new PlannerGroupReplacedError(found.metadata.name);
  }
}
