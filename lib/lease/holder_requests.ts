/**
 * What a holder asks for its own lease: renewal (deploy-api 7.3) and release (deploy-api 7.4).
 *
 * @module
 */

import type { ConfirmedTopology, Topology, TopologyReads } from "../group/topology.ts";
import { holdName, type LeaseKind, slotName, tombstoneName } from "../records/names.ts";
import type { Holder, LeaseRecord } from "../records/record.ts";
import { judgeLook } from "./look_rules.ts";
import { claimedInstance, decideRelease, decideRenew, type HolderClaim } from "./rules.ts";
import type { StoredRecord } from "../records/store.ts";
import { ContendedError, mustBeSameGroup, type Refused, type RequestTurn, TRIES } from "./turn.ts";

/** Which lease a holder means, and its proof. */
export interface HolderInput {
  readonly kind: LeaseKind;
  readonly operationId: string;
  /** The token that the grant handed out. */
  readonly token: string;
}

/** A renewal. */
export interface RenewInput extends HolderInput {
  readonly ttlSeconds: number | undefined;
}

/** A lease that was renewed. */
export interface Renewed {
  readonly type: "renewed";
  readonly record: LeaseRecord;
  /** The instance under which the caller holds it, for the log line. */
  readonly instance: string;
}

/** A lease that is not active any more, by this release or before it. */
export interface Released {
  readonly type: "released";
  /** The instance under which the caller held it; empty when there was no record. */
  readonly instance: string;
}

/** The record of an operation, and the name of the object that has it. */
interface Found {
  readonly name: string;
  readonly stored: StoredRecord | null;
}

/** Serves one renewal. */
export async function renew(turn: RequestTurn, input: RenewInput): Promise<Renewed | Refused> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { reads, lease } = await read(turn, input);
    const topology = await turn.confirm(reads);
    const { name, stored } = await find(turn, input, topology, lease);
    const claim = await claimOf(turn, input, stored);
    const time = turn.now();
    const decision = decideRenew(
      { admission: topology.admission(time), time, record: stored?.record ?? null },
      claim,
      input.ttlSeconds,
      turn.parts.limits,
    );
    if (decision.type === "refuse") {
      if (await settle(turn, topology, name, decision.settle, stored)) {
        return turn.refused(decision.refusal);
      }
    } else if (decision.type === "write" && stored !== null) {
      turn.mustLead();
      const result = await turn.write(topology, name, decision.record, stored);
      if (result.type === "stored") {
        const holder = holderOf(decision.record);
        const outcome = await lookAfterRenewal(turn, topology, name, result.stored, holder);
        if (outcome !== "again") return outcome;
      }
    }
    turn.parts.metrics.retried("renew");
  }
  throw new ContendedError("renew the lease");
}

/**
 * A renewal is an answer only after a look that began when it was stored. When the look does not confirm it, the answer
 * is 423 or 503 and the client keeps its older deadline: the stored one is later, so nobody takes the lease early.
 *
 * @returns `again` when the record is not as it was stored: somebody else's write decides, so all must be read again.
 */
async function lookAfterRenewal(
  turn: RequestTurn,
  before: ConfirmedTopology,
  name: string,
  stored: StoredRecord,
  holder: Holder,
): Promise<Renewed | Refused | "again"> {
  for (let tries = 0; tries < TRIES; tries++) {
    const reads = await turn.readTopology();
    mustBeSameGroup(before, reads);
    const topology = await turn.confirm(reads);
    const time = turn.now();
    const look = { admission: topology.admission(time), time };
    const verdict = judgeLook(look, stored.record, "renew", holder);
    switch (verdict.type) {
      case "stands":
        if (!await turn.stillStored(before, topology, name, stored)) return "again";
        return { type: "renewed", record: stored.record, instance: holder.instance };
      case "revoke": {
        const { reason, generation } = verdict;
        // Losing this write is no harm: every later look judges the record the same way.
        await turn.write(topology, name, { ...stored.record, state: "revoked", reason }, stored);
        return turn.refused({ type: "revoked", reason, generation });
      }
      case "unconfirmed":
        return turn.refused({ type: "unstable", reason: verdict.reason });
      case "retract":
      case "again":
        turn.parts.metrics.retried("renew");
    }
  }
  throw new ContendedError("look at the lease");
}

/** Serves one release. It needs no confirmed topology, so that it works while topology is pending. */
export async function release(turn: RequestTurn, input: HolderInput): Promise<Released | Refused> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { reads, lease } = await read(turn, input);
    const topology = turn.parts.topology.peek(reads);
    const { name, stored } = await find(turn, input, topology, lease);
    const claim = await claimOf(turn, input, stored);
    const time = turn.now();
    const snapshot = { admission: topology.admission(time), time, record: stored?.record ?? null };
    const decision = decideRelease(snapshot, claim);
    const write = decision.type === "refuse" ? decision.settle : decision.write;
    if (await settle(turn, topology, name, write, stored)) {
      return decision.type === "refuse" ? turn.refused(decision.refusal) : {
        type: "released",
        instance: stored === null ? "" : claimedInstance(stored.record, claim) ?? "",
      };
    }
    turn.parts.metrics.retried("release");
  }
  throw new ContendedError("release the lease");
}

async function read(turn: RequestTurn, input: HolderInput) {
  const [reads, lease] = await turn.round(Promise.all([
    turn.readTopology(),
    turn.get(firstName(turn, input)),
  ]));
  return { reads: reads satisfies TopologyReads, lease };
}

function firstName(turn: RequestTurn, { kind, operationId }: HolderInput): string {
  return kind === "migration" ? slotName(turn.group) : holdName(turn.group, operationId);
}

/** The operation's record: in the slot, or under its own name when the slot is empty or another's. */
async function find(
  turn: RequestTurn,
  input: HolderInput,
  topology: Topology,
  lease: Parameters<RequestTurn["parse"]>[0],
): Promise<Found> {
  const stored = turn.parse(lease, topology);
  const isOurs = stored?.record.operationId === input.operationId;
  if (isOurs || input.kind !== "migration") {
    return { name: firstName(turn, input), stored: isOurs ? stored : null };
  }
  const name = tombstoneName(turn.group, input.operationId);
  return { name, stored: turn.parse(await turn.get(name), topology) };
}

/** Stores what a look found; false when somebody else wrote in between and all must be read again. */
async function settle(
  turn: RequestTurn,
  topology: Topology,
  name: string,
  record: LeaseRecord | null,
  previous: StoredRecord | null,
): Promise<boolean> {
  if (record === null) return true;
  turn.mustLead();
  return (await turn.write(topology, name, record, previous)).type === "stored";
}

async function claimOf(
  turn: RequestTurn,
  input: HolderInput,
  stored: StoredRecord | null,
): Promise<HolderClaim> {
  const { namespace, serviceAccount } = turn.access.caller;
  const { operationId, token } = input;
  const { instances } = await turn.authorized(stored?.record.instance);
  return { operationId, token, namespace, serviceAccount, instances };
}

function holderOf({ operationId, instance, namespace, serviceAccount }: LeaseRecord): Holder {
  return { operationId, instance, namespace, serviceAccount };
}
