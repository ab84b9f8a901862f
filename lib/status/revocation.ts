/**
 * What a revocation will hit, and what it came to: pure functions over what is seen of a group.
 *
 * @module
 */

import type { EventReport } from "../controllers/events.ts";
import { groupSubject } from "../controllers/group_events.ts";
import type { LeaseRecord } from "../records/record.ts";
import type { GroupIdentity } from "../records/store.ts";
import type { GroupStatus, LeaseStatus } from "./report.ts";

/** What names one grant: a re-grant of the same holder keeps its time, and a new grant has another. */
type Grant = Pick<LeaseRecord, "kind" | "operationId"> & { readonly createdAt: string | null };

/** True when two name one grant. */
export function isSameGrant(a: Grant, b: Grant): boolean {
  return a.kind === b.kind && a.operationId === b.operationId && a.createdAt === b.createdAt;
}

/** Storage says that the lease is active: a revocation writes it. */
export function isStanding({ state, stored }: LeaseStatus): boolean {
  return state === "active" || !stored;
}

/** An operation with such a record is never granted again: deploy-api 6.4. */
export function isTombstone({ kind, state, stored }: LeaseStatus): boolean {
  return kind === "migration" && state === "revoked" && stored;
}

/**
 * The leases that a revocation would end.
 *
 * @param operationId Only those of one operation. @default {all of the group}
 */
export function targetsOf(group: GroupStatus, operationId?: string): readonly LeaseStatus[] {
  return group.leases.filter(isStanding)
    .filter((lease) => operationId === undefined || lease.operationId === operationId);
}

/** Those that were not among the ones that were shown: they were granted since. */
export function newcomers<T extends Grant>(
  shown: readonly Grant[],
  now: readonly T[],
): readonly T[] {
  return now.filter((lease) => !shown.some((earlier) => isSameGrant(earlier, lease)));
}

/** How far the revocation of a group is. */
export interface Progress {
  /** What was revoked since the list was shown, also what the list had not; migration leases first. */
  readonly revoked: readonly LeaseStatus[];
  /** What was on the list and ended by itself: it expired, or its holder released it. */
  readonly endedOtherwise: readonly LeaseStatus[];
  /** What was on the list and still stands. */
  readonly standing: readonly LeaseStatus[];
}

/**
 * Compares what is stored now with what was shown.
 *
 * @param before The group, with all that had ended, when the list was made.
 * @param now The same, later.
 */
export function progressOf(before: GroupStatus, now: GroupStatus): Progress {
  const targets = targetsOf(before);
  const ended = before.leases.filter((lease) => !isStanding(lease));
  const standing = now.leases.filter(isStanding);
  const revoked = now.leases.filter(({ state, stored }) => state === "revoked" && stored);
  const news = newcomers(ended, revoked);
  return {
    // A record that is moved to its own name is there twice for a moment.
    revoked: news.filter((lease, at) => news.findIndex((other) => isSameGrant(other, lease)) === at)
      .toSorted((a, b) => Number(a.kind !== "migration") - Number(b.kind !== "migration")),
    standing: standing.filter((lease) => newcomers(targets, [lease]).length === 0),
    endedOtherwise: newcomers([...standing, ...revoked], targets),
  };
}

/** Somebody asks for a revocation: who, what and why, for whoever looks at the group with `kubectl describe`. */
export function revocationRequested(
  group: GroupIdentity,
  { user, operationId, reason }: {
    readonly user: string;
    /** @default {all operations} */
    readonly operationId?: string;
    /** @default {none was given} */
    readonly reason?: string;
  },
): EventReport {
  const what = operationId === undefined ? "all leases" : `operation ${operationId}`;
  return {
    regarding: groupSubject(group),
    type: "Warning",
    reason: "DeploymentRevocationRequested",
    action: "Revoke",
    note: `${user} asked to revoke ${what}: ${reason ?? "no reason was given"}`,
  };
}
