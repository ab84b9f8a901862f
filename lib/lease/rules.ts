/**
 * What a request about a lease comes to: pure functions of (snapshot, request, lease time).
 *
 * Nothing here reads or writes. `coordinator.ts` reads the snapshot, asks these functions, does what they say, and asks
 * those of `look_rules.ts` what a second look shows. The rules are those of deploy-api 7, in its order; where the state protocol
 * decides otherwise, the comment says so.
 *
 * Two sentences carry the safety:
 * - Expiry is judged by the *earliest* time that the API server's clock can show, and new expiries count from the
 *   *latest*: so no lease ends early, whatever this machine's clock says.
 * - A grant or a renewal that was stored is an answer only after a look that began later found the same generation, no
 *   revocation and nothing pending.
 *
 * @module
 */

import { type Admission, blockedReason } from "../group/allowance.ts";
import type { LeaseInstant } from "../lease_time/lease_time.ts";
import { expiresAtMs, formatTime, sameHolder, tokenMatches } from "../records/record.ts";
import type { Holder, LeaseKind, LeaseRecord, RevocationReason } from "../records/record.ts";

/** The shortest lease that a caller gets, in seconds. deploy-api 2.2. */
export const MIN_TTL_SECONDS = 5;
/** The longest lease that a caller gets, in seconds. deploy-api 2.2. */
export const MAX_TTL_SECONDS = 120;

/** Why a request is refused. The HTTP room turns each into one answer of deploy-api 1.5. */
export type Refusal =
  | { readonly type: "forbidden" }
  | { readonly type: "token_mismatch" }
  | { readonly type: "not_found" }
  | { readonly type: "held"; readonly by: LeaseRecord }
  | { readonly type: "revoked"; readonly reason: RevocationReason; readonly generation: number }
  | { readonly type: "unstable"; readonly reason: string }
  | { readonly type: "unavailable" };

/** What a stored record is worth now. */
export type Standing =
  | { readonly type: "active" }
  /** Stored as `active`, and its time is over. `written` is false: the state in storage still says `active`. */
  | { readonly type: "expired"; readonly written: boolean }
  | { readonly type: "released" }
  | { readonly type: "revoked"; readonly reason: RevocationReason; readonly written: boolean }
  /** Its generation is above ours: what we know of the group is old, so look again. */
  | { readonly type: "ahead" };

/** Judges a record: deploy-api 7 `current`. Expiry beats revocation; equality with the expiry is still active. */
export function standing(
  record: LeaseRecord,
  admission: Admission,
  time: LeaseInstant,
): Standing {
  if (record.state === "expired") return { type: "expired", written: true };
  if (record.state === "released") return { type: "released" };
  if (record.state === "revoked") {
    return { type: "revoked", reason: record.reason ?? "operator_revoked", written: true };
  }
  if (time.earliestMs > expiresAtMs(record)) return { type: "expired", written: false };
  if (admission.revocationRequested) {
    return { type: "revoked", reason: "operator_revoked", written: false };
  }
  if (record.topologyGeneration < admission.generation) {
    return { type: "revoked", reason: "topology_changed", written: false };
  }
  if (record.topologyGeneration > admission.generation) return { type: "ahead" };
  return { type: "active" };
}

/** The record that persists a standing which storage does not show yet, or `null` when there is nothing to write. */
export function settled(
  record: LeaseRecord,
  found: Standing,
  time: LeaseInstant,
): LeaseRecord | null {
  // With an uncertain clock nobody writes `expired`: the next look decides (state protocol 2.5).
  if (found.type === "expired" && !found.written && time.certain) {
    return { ...record, state: "expired" };
  }
  if (found.type === "revoked" && !found.written) {
    return { ...record, state: "revoked", reason: found.reason };
  }
  return null;
}

/** Limits a wished time to live to what the contract allows; missing, zero and negative become the shortest. */
export function clampTtlSeconds(ttlSeconds: number | undefined): number {
  return Math.min(MAX_TTL_SECONDS, Math.max(MIN_TTL_SECONDS, ttlSeconds ?? 0));
}

/** What a grant asks for. */
export interface GrantRequest {
  readonly kind: LeaseKind;
  readonly holder: Holder;
  readonly ttlSeconds: number | undefined;
  /** The hash of the one token that this request will hand out. */
  readonly tokenHash: string;
}

/** What a grant decides from. */
export interface GrantSnapshot {
  readonly admission: Admission;
  readonly time: LeaseInstant;
  /** The migration slot of the group. */
  readonly mutex: LeaseRecord | null;
  /** The object under this operation's own name: its hold, or the tombstone of its migration. */
  readonly own: LeaseRecord | null;
}

/** Which of the two records of a snapshot. */
export type Place = "mutex" | "own";

/** What a grant comes to. */
export type GrantDecision =
  | {
    readonly type: "refuse";
    readonly refusal: Refusal;
    /** What the look found and storage does not show yet. */
    readonly settle: readonly { readonly place: Place; readonly record: LeaseRecord }[];
  }
  /** What we know of the group is older than a record: read all again. */
  | { readonly type: "again" }
  /** An earlier try of this very request was stored: go on to the look. */
  | { readonly type: "landed"; readonly record: LeaseRecord }
  | {
    readonly type: "write";
    readonly record: LeaseRecord;
    /** False when the same holder's lease was active: 200 instead of 201. */
    readonly created: boolean;
    /** A revoked occupant of the slot that must be kept under its own name before it is overwritten. */
    readonly archive: { readonly record: LeaseRecord; readonly written: boolean } | null;
    /** The overwritten record had run out, and storage did not show it yet: count it. */
    readonly expires: LeaseRecord | null;
  };

/** Decides a grant: deploy-api 7.2. */
export function decideGrant(snapshot: GrantSnapshot, request: GrantRequest): GrantDecision {
  const { admission, time } = snapshot;
  const place: Place = request.kind === "migration" ? "mutex" : "own";
  const target = snapshot[place];
  if (target !== null && target.state === "active" && target.tokenHash === request.tokenHash) {
    return { type: "landed", record: target };
  }
  const blocked = blockedReason(admission) || admission.unstable;
  if (blocked !== "") return refuse({ type: "unstable", reason: blocked });

  if (request.kind === "failover-hold") {
    const mutex = snapshot.mutex && standing(snapshot.mutex, admission, time);
    if (mutex?.type === "ahead") return { type: "again" };
    if (snapshot.mutex === null || mutex?.type !== "active") {
      return refuse({ type: "forbidden" }, settle("mutex", snapshot.mutex, mutex, time));
    }
    if (!sameHolder(snapshot.mutex, request.holder)) return refuse({ type: "forbidden" });
  }

  const found = target && standing(target, admission, time);
  if (found?.type === "ahead") return { type: "again" };
  const regrant = target !== null && found?.type === "active";
  if (regrant && !sameHolder(target, request.holder)) {
    return refuse({ type: "held", by: target });
  }
  const sameOperation = target?.operationId === request.holder.operationId;

  // Revocation is by operation id alone, whoever asks: deploy-api 7.2 step 7.
  const tombstone = request.kind === "migration" && snapshot.own?.state === "revoked"
    ? snapshot.own
    : null;
  if (tombstone !== null) {
    return refuse({
      type: "revoked",
      reason: tombstone.reason ?? "operator_revoked",
      generation: admission.generation,
    });
  }
  if (sameOperation && found?.type === "revoked") {
    return refuse(
      { type: "revoked", reason: found.reason, generation: admission.generation },
      settle(place, target, found, time),
    );
  }
  const runOut = found?.type === "expired" && !found.written;
  // Another operation's lease ended by time alone: with an uncertain clock nobody may take it (state protocol 2.5).
  if (runOut && !sameOperation && !time.certain) return refuse({ type: "unavailable" });

  const now = formatTime(time.latestMs);
  return {
    type: "write",
    created: !regrant,
    record: {
      // A re-grant writes the same record again, so it keeps the members that this version does not know.
      ...(regrant ? target : {}),
      kind: request.kind,
      operationId: request.holder.operationId,
      instance: request.holder.instance,
      expiresAt: formatTime(time.latestMs + clampTtlSeconds(request.ttlSeconds) * 1000),
      topologyGeneration: admission.generation,
      namespace: request.holder.namespace,
      serviceAccount: request.holder.serviceAccount,
      tokenHash: request.tokenHash,
      createdAt: regrant ? target.createdAt : now,
      state: "active",
    },
    archive: target !== null && !sameOperation && found?.type === "revoked"
      ? {
        record: { ...target, state: "revoked", reason: found.reason },
        written: found.written,
      }
      : null,
    expires: runOut ? target : null,
  };
}

function refuse(
  refusal: Refusal,
  found: readonly { readonly place: Place; readonly record: LeaseRecord }[] = [],
): GrantDecision {
  return { type: "refuse", refusal, settle: found };
}

function settle(
  place: Place,
  record: LeaseRecord | null,
  found: Standing | null,
  time: LeaseInstant,
): readonly { readonly place: Place; readonly record: LeaseRecord }[] {
  const next = record && found && settled(record, found, time);
  return next ? [{ place, record: next }] : [];
}

/** Who renews or releases: one of the instances that the caller is authorized for, with a token. */
export interface HolderClaim {
  readonly operationId: string;
  readonly namespace: string;
  readonly serviceAccount: string;
  /** The instances that the caller is authorized for, in the order of the list (deploy-api 2.5). */
  readonly instances: readonly string[];
  readonly token: string;
}

/**
 * The instance under which a claim fits a record, or `null`: 403 `token_mismatch`. The contract tries each instance in
 * turn and only a mismatch moves on; since a record has one instance, that comes to this one look-up.
 */
export function claimedInstance(record: LeaseRecord, claim: HolderClaim): string | null {
  const instance = claim.instances.find((candidate) =>
    sameHolder(record, {
      operationId: claim.operationId,
      instance: candidate,
      namespace: claim.namespace,
      serviceAccount: claim.serviceAccount,
    })
  );
  // The token is compared in every case, so that the time of the answer tells nothing of the identity.
  const matches = tokenMatches(record, claim.token);
  return instance !== undefined && matches ? instance : null;
}

/** What a renewal or a release decides from. */
export interface HolderSnapshot {
  readonly admission: Admission;
  readonly time: LeaseInstant;
  /** The record of the operation: in its slot, or under its own name; `null` when there is none. */
  readonly record: LeaseRecord | null;
}

/** What a renewal comes to. */
export type RenewDecision =
  | { readonly type: "refuse"; readonly refusal: Refusal; readonly settle: LeaseRecord | null }
  | { readonly type: "again" }
  | { readonly type: "write"; readonly record: LeaseRecord };

/** The limits that a renewal obeys beside the contract. */
export interface RenewLimits {
  /** Milliseconds after which a hold is not renewed any more (difference 21); 0 = never. */
  readonly maxHoldAgeMs: number;
}

/** Decides a renewal: deploy-api 7.3. */
export function decideRenew(
  snapshot: HolderSnapshot,
  claim: HolderClaim,
  ttlSeconds: number | undefined,
  limits: RenewLimits,
): RenewDecision {
  const { admission, time, record } = snapshot;
  if (record === null) return { type: "refuse", refusal: { type: "not_found" }, settle: null };
  const found = standing(record, admission, time);
  const settle = settled(record, found, time);
  if (claimedInstance(record, claim) === null) {
    return { type: "refuse", refusal: { type: "token_mismatch" }, settle };
  }
  if (found.type === "ahead") return { type: "again" };
  if (found.type === "revoked") {
    return {
      type: "refuse",
      refusal: { type: "revoked", reason: found.reason, generation: admission.generation },
      settle,
    };
  }
  if (found.type !== "active") return { type: "refuse", refusal: { type: "not_found" }, settle };
  const blocked = blockedReason(admission);
  if (blocked !== "") {
    return { type: "refuse", refusal: { type: "unstable", reason: blocked }, settle: null };
  }
  if (tooOld(record, time, limits)) {
    return {
      type: "refuse",
      refusal: { type: "revoked", reason: "operator_revoked", generation: admission.generation },
      settle: { ...record, state: "revoked", reason: "operator_revoked" },
    };
  }
  const expiresAt = formatTime(time.latestMs + clampTtlSeconds(ttlSeconds) * 1000);
  return { type: "write", record: { ...record, expiresAt } };
}

function tooOld(record: LeaseRecord, time: LeaseInstant, limits: RenewLimits): boolean {
  return record.kind === "failover-hold" && limits.maxHoldAgeMs > 0 &&
    time.earliestMs - Date.parse(record.createdAt) > limits.maxHoldAgeMs;
}

/** What a release comes to. */
export type ReleaseDecision =
  | { readonly type: "refuse"; readonly refusal: Refusal; readonly settle: LeaseRecord | null }
  /** 204; `write` is what is stored first, if anything. */
  | { readonly type: "done"; readonly write: LeaseRecord | null };

/** Decides a release: deploy-api 7.4. It consults neither the gate nor stability, so that it always works. */
export function decideRelease(snapshot: HolderSnapshot, claim: HolderClaim): ReleaseDecision {
  const { admission, time, record } = snapshot;
  if (record === null) return { type: "done", write: null };
  const found = standing(record, admission, time);
  const settle = settled(record, found, time);
  if (claimedInstance(record, claim) === null) {
    return { type: "refuse", refusal: { type: "token_mismatch" }, settle };
  }
  // A record that is ahead of our look is released all the same: its holder says that it is done.
  if (found.type === "active" || found.type === "ahead") {
    return { type: "done", write: { ...record, state: "released" } };
  }
  return { type: "done", write: settle };
}
