/**
 * A grant: deploy-api 7.2 with the state protocol's second look.
 *
 * 1. Read the group, its gate, the mutex and this operation's own object.
 * 2. Decide. Refuse, or write.
 * 3. Look again, with reads that begin after the write was stored. Only a look that finds the same generation and
 *    nothing in the way makes it an answer; otherwise the grant is taken back.
 *
 * A hold's look also *touches* the gate under the version of step 1. A planner's admission is a write of the gate under
 * the version that it read before it listed the holds. So of a hold and an admission, one loses (state protocol 2.2).
 *
 * @module
 */

import type { ConfirmedTopology } from "../group/topology.ts";
import { toHex } from "../runtime/entropy.ts";
import { startDeadline } from "../runtime/clock.ts";
import { holdName, type LeaseKind, slotName, tombstoneName } from "../records/names.ts";
import { hashToken, type Holder, type LeaseRecord } from "../records/record.ts";
import type { Admission } from "../group/allowance.ts";
import { judgeLook, type LookSnapshot, retracted } from "./look_rules.ts";
import { decideGrant, type GrantDecision, type Place, type Refusal } from "./rules.ts";
import type { StoredRecord } from "../records/store.ts";
import { writeTombstone } from "./tombstone.ts";
import {
  ContendedError,
  identity,
  mustBeSameGroup,
  type Refused,
  type RequestTurn,
  TRIES,
} from "./turn.ts";

/** Milliseconds for taking a grant back, beside the request's own deadline: state protocol 2.3. */
const RETRACTION_BUDGET_MS = 2_000;

/** What a caller asks for. */
export interface GrantInput {
  readonly kind: LeaseKind;
  readonly operationId: string;
  /** The name of the MysqlDatabase. */
  readonly instance: string;
  readonly ttlSeconds: number | undefined;
}

/** A lease that was granted. */
export interface Granted {
  readonly type: "granted";
  /** False when the same holder's lease was active: 200 instead of 201. */
  readonly created: boolean;
  readonly record: LeaseRecord;
  /** The one copy of the token. */
  readonly token: string;
  /** The resource version of the granting write: the fencing token (difference 14). */
  readonly fence: string;
}

interface Snapshot {
  readonly topology: ConfirmedTopology;
  readonly mutex: StoredRecord | null;
  readonly own: StoredRecord | null;
}

type WriteDecision = Extract<GrantDecision, { readonly type: "write" }>;
type Archive = NonNullable<WriteDecision["archive"]>;

/** Serves one grant request. */
export async function grant(turn: RequestTurn, input: GrantInput): Promise<Granted | Refused> {
  return await new GrantRun(turn, input).run();
}

/** The state of one grant request: what it stored, and what that replaced. */
class GrantRun {
  readonly #turn: RequestTurn;
  readonly #input: GrantInput;
  readonly #holder: Holder;
  readonly #token: string;
  readonly #tokenHash: string;
  readonly #names: Readonly<Record<Place, string>>;
  /** What this request stored and must not leave behind without an answer. */
  #landed: StoredRecord | null = null;
  /** A write got no answer: it may be stored. */
  #maybeLanded = false;
  /** The group that the last write was decided under. */
  #decidedUnder: ConfirmedTopology | null = null;
  /** What the newest look at the group concluded. */
  #topology: ConfirmedTopology | null = null;
  /** The active record of the same holder that a re-grant replaced. */
  #replaced: LeaseRecord | null = null;

  constructor(turn: RequestTurn, input: GrantInput) {
    this.#turn = turn;
    this.#input = input;
    // One token per request: an answer that was lost is found again by its hash.
    this.#token = toHex(turn.parts.entropy.bytes(32));
    this.#tokenHash = hashToken(this.#token);
    const { namespace, serviceAccount } = turn.access.caller;
    const { operationId, instance, kind } = input;
    this.#holder = { operationId, instance, namespace, serviceAccount };
    this.#names = {
      mutex: slotName(turn.group),
      own: kind === "migration"
        ? tombstoneName(turn.group, operationId)
        : holdName(turn.group, operationId),
    };
  }

  get #place(): Place {
    return this.#input.kind === "migration" ? "mutex" : "own";
  }

  async run(): Promise<Granted | Refused> {
    try {
      for (let tries = 0; tries < TRIES; tries++) {
        const outcome = await this.#try();
        if (outcome !== "again") return outcome;
        this.#turn.parts.metrics.retried("grant");
      }
      throw new ContendedError("grant the lease");
    } catch (error) {
      // Whatever went wrong: a lease whose token nobody received must not block the group.
      await this.#takeBack();
      throw error;
    }
  }

  async #try(): Promise<Granted | Refused | "again"> {
    const snapshot = await this.#read();
    const decision = decideGrant({
      admission: snapshot.topology.admission(this.#turn.now()),
      time: this.#turn.now(),
      mutex: snapshot.mutex?.record ?? null,
      own: snapshot.own?.record ?? null,
    }, {
      kind: this.#input.kind,
      holder: this.#holder,
      ttlSeconds: this.#input.ttlSeconds,
      tokenHash: this.#tokenHash,
    });
    switch (decision.type) {
      case "again":
        return "again";
      case "refuse":
        for (const { place, record } of decision.settle) {
          const previous = snapshot[place];
          const done = await this.#turn.write(
            snapshot.topology,
            this.#names[place],
            record,
            previous,
          );
          if (done.type !== "stored") return "again";
        }
        this.#count(decision.refusal.type);
        return this.#turn.refused(decision.refusal);
      case "landed":
        this.#landed = snapshot[this.#place];
        return await this.#look(snapshot.topology);
      case "write":
        return await this.#write(snapshot, decision);
    }
  }

  async #read(): Promise<Snapshot> {
    const turn = this.#turn;
    const [reads, mutex, own] = await turn.round(Promise.all([
      turn.readTopology(),
      turn.get(this.#names.mutex),
      turn.get(this.#names.own),
    ]));
    const topology = this.#topology = await turn.confirm(reads);
    return { topology, mutex: turn.parse(mutex, topology), own: turn.parse(own, topology) };
  }

  async #write(
    snapshot: Snapshot,
    decision: WriteDecision,
  ): Promise<Granted | Refused | "again"> {
    const { topology } = snapshot;
    const turn = this.#turn;
    if (decision.archive !== null && !await this.#archive(topology, decision.archive)) {
      return "again";
    }
    turn.mustLead();
    const previous = snapshot[this.#place];
    this.#replaced = decision.created ? null : previous?.record ?? null;
    const name = this.#names[this.#place];
    this.#decidedUnder = topology;
    const result = await turn.write(topology, name, decision.record, previous);
    if (result.type === "unknown") this.#maybeLanded = true;
    if (result.type !== "stored") return "again";
    this.#landed = result.stored;
    if (decision.expires !== null) {
      turn.parts.metrics.ended(turn.group, { ...decision.expires, state: "expired" });
    }
    return await this.#look(topology);
  }

  /** Keeps a revoked occupant of the slot as a tombstone, before the slot is overwritten. */
  async #archive(topology: ConfirmedTopology, archive: Archive): Promise<boolean> {
    const outcome = await writeTombstone(this.#turn, topology, archive.record);
    // The slot did not show the revocation yet, and is about to be overwritten: so this was its one write.
    if (outcome === "written" && !archive.written) {
      this.#turn.ended(identity(topology), archive.record);
    }
    return outcome !== "again";
  }

  async #look(before: ConfirmedTopology): Promise<Granted | Refused | "again"> {
    const landed = this.#landed;
    if (landed === null) throw new ContendedError("look at the lease");
    let topology = before;
    for (let tries = 0; tries < TRIES; tries++) {
      const seen = this.#input.kind === "migration"
        ? await this.#lookAtGroup(topology)
        : await this.#lookAtGateAndMutex(topology);
      topology = this.#topology = seen.topology;
      if (seen.look === "again") continue;
      const verdict = judgeLook(seen.look, landed.record, "grant", this.#holder);
      switch (verdict.type) {
        case "again":
          continue;
        case "stands":
          if (!await this.#isStillStored(landed, topology)) return "again";
          this.#landed = null;
          this.#count("granted");
          return {
            type: "granted",
            created: this.#replaced === null,
            record: landed.record,
            token: this.#token,
            fence: landed.lease.metadata.resourceVersion,
          };
        case "revoke": {
          const { reason, generation } = verdict;
          this.#landed = null;
          const record: LeaseRecord = { ...landed.record, state: "revoked", reason };
          // Losing this write is no harm: every later look judges the record the same way.
          await this.#turn.write(topology, this.#names[this.#place], record, landed);
          return this.#turn.refused({ type: "revoked", reason, generation });
        }
        case "retract":
          await this.#retract(landed);
          return this.#turn.refused(verdict.refusal);
        case "unconfirmed":
          throw new ContendedError("grant the lease");
      }
    }
    throw new ContendedError("look at the lease");
  }

  /** Whether a look that found nothing may be believed. What somebody else wrote meanwhile is not ours to take back. */
  async #isStillStored(landed: StoredRecord, look: ConfirmedTopology): Promise<boolean> {
    const name = this.#names[this.#place];
    if (await this.#turn.stillStored(this.#decidedUnder ?? look, look, name, landed)) return true;
    this.#landed = null;
    return false;
  }

  /** A migration defers nothing by itself, so its look only reads. */
  async #lookAtGroup(
    before: ConfirmedTopology,
  ): Promise<{ topology: ConfirmedTopology; look: LookSnapshot }> {
    const reads = await this.#turn.readTopology();
    mustBeSameGroup(before, reads);
    const topology = await this.#turn.confirm(reads);
    const time = this.#turn.now();
    return { topology, look: { admission: topology.admission(time), time } };
  }

  /** Touch the gate, read the group and the mutex, in parallel. A lost touch with nothing planned: all of it again. */
  async #lookAtGateAndMutex(
    before: ConfirmedTopology,
  ): Promise<{ topology: ConfirmedTopology; look: LookSnapshot | "again" }> {
    const turn = this.#turn;
    const { topology: reader } = turn.parts;
    const [touched, group, mutexLease] = await Promise.all([
      reader.touch(before, turn.options),
      reader.readGroup(turn.namespace, turn.group, turn.options),
      turn.get(this.#names.mutex),
    ]);
    const reads = { group, gate: before.gate };
    mustBeSameGroup(before, reads);
    const gate = touched ?? await reader.readGate(reads, turn.options);
    const topology = await turn.confirm({ group, gate });
    const time = turn.now();
    const admission = topology.admission(time);
    if (touched === null && !plannedOrPending(admission)) return { topology, look: "again" };
    const mutex = turn.parse(mutexLease, topology)?.record ?? null;
    return { topology, look: { admission, time, mutex } };
  }

  /**
   * Takes the lease back: one write, under exactly the version that the grant returned. A conflict ends it, since the
   * lease is then somebody else's.
   *
   * @throws {ContendedError} When it is not known to be done: the answer is 503, and the lease ends by its time.
   */
  async #retract(landed: StoredRecord): Promise<void> {
    const { clock, metrics } = this.#turn.parts;
    const topology = this.#topology;
    this.#landed = null;
    if (topology === null) return;
    // The request's own deadline may be over: that must not leave the lease behind.
    using budget = startDeadline(clock, RETRACTION_BUDGET_MS);
    const record = retracted(landed.record, this.#replaced);
    const name = this.#names[this.#place];
    const result = await this.#turn.write(topology, name, record, landed, budget);
    if (result.type === "unknown") {
      metrics.retraction("failed");
      throw new ContendedError("take the lease back");
    }
    metrics.retraction(this.#replaced === null ? "released" : "restored");
  }

  /** Takes back what an error left behind. What cannot be taken back is counted, and the first error stays the answer. */
  async #takeBack(): Promise<void> {
    try {
      const landed = this.#landed ?? (this.#maybeLanded ? await this.#findLanded() : null);
      if (landed !== null) await this.#retract(landed);
    } catch {
      this.#turn.parts.metrics.retraction("failed");
    }
  }

  /** The record of this request, if a write without an answer was stored after all. */
  async #findLanded(): Promise<StoredRecord | null> {
    const { store, clock } = this.#turn.parts;
    if (this.#topology === null) return null;
    using budget = startDeadline(clock, RETRACTION_BUDGET_MS);
    const lease = await store.get(this.#turn.namespace, this.#names[this.#place], budget);
    const found = this.#turn.parse(lease, this.#topology);
    const ours = found?.record.tokenHash === this.#tokenHash && found.record.state === "active";
    return ours ? found : null;
  }

  /** Counts an outcome that the contract counts: deploy-api 10. */
  #count(outcome: "granted" | Refusal["type"]): void {
    const { kind } = this.#input;
    const { metrics } = this.#turn.parts;
    const { group } = this.#turn;
    if (outcome === "granted") metrics.grant(group, kind, "granted");
    if (outcome === "held") metrics.grant(group, kind, "conflict");
    if (outcome === "unstable") metrics.grant(group, kind, "unstable");
    if (outcome === "forbidden") metrics.grant(group, kind, "unauthorized");
  }
}

function plannedOrPending(admission: Admission): boolean {
  return admission.reserved !== "" || admission.topologyBlocked !== "";
}
