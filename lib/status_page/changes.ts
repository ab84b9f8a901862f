/**
 * What happened between two looks at a group: the lines of the page's time line. Pure.
 *
 * A watch tells what is, and not what was: several writes may come as one. What must have happened in between is concluded
 * from the rules by which leases end, so that no grant and no end is left out.
 *
 * @module
 */

import type { RevocationReason } from "../records/record.ts";
import type { LeaseStatus } from "../status/report.ts";
import { isSameGrant } from "../status/revocation.ts";
import { leaseHolder, shown } from "../status/words.ts";
import type { PageGroup, PageLease } from "./model.ts";

/** The most lines that are kept. */
export const MOST_CHANGES = 200;

/** What can happen. */
export type ChangeKind = "granted" | "released" | "expired" | "revoked" | "removed" | "switched";

/** One line of the time line. */
export interface PageChange {
  /** Counts up from 1 with each change that this process saw. */
  readonly number: number;
  /** When it was seen: milliseconds since 1970, by lease time. */
  readonly atMs: number;
  readonly kind: ChangeKind;
  /** The group's namespace and name, joined by a slash. */
  readonly group: string;
  /** What it happened to, and why, in words; the kind says what happened. */
  readonly text: string;
}

/** A change that has no number and no time yet. */
export type Happened = Pick<PageChange, "kind" | "group" | "text">;

/**
 * Tells what happened to a group, in an order in which it can have happened.
 *
 * @param before The look before; `null` for a group that was not there: what it brings along is no news.
 */
export function happenedBetween(before: PageGroup | null, after: PageGroup): readonly Happened[] {
  if (before === null || !before.readable || !after.readable) return [];
  const group = after.key;
  const told = (lease: PageLease, kind: ChangeKind, more = ""): Happened => ({
    kind,
    group,
    text: more === "" ? leaseInWords(lease) : `${leaseInWords(lease)}: ${more}`,
  });
  const known = (lease: PageLease) => before.leases.find((one) => isSameGrant(one, lease));
  const ended = after.leases.filter(hasEnded).flatMap((lease) => {
    const earlier = known(lease);
    if (earlier !== undefined && hasEnded(earlier)) return [];
    const more = lease.state === "revoked" ? revocationInWords(lease.reason) : "";
    return [
      // It was granted and ended between the two looks.
      ...(earlier === undefined ? [told(lease, "granted")] : []),
      told(lease, lease.state === "active" ? "removed" : lease.state, more),
    ];
  });
  const gone = before.leases.filter((lease) =>
    !hasEnded(lease) && !after.leases.some((one) => isSameGrant(one, lease))
  ).map((lease) => {
    const mutex = after.leases.find(({ kind }) => kind === "migration");
    // Only a lease that ended is overwritten, and one that was revoked leaves a tombstone: deploy-api 6.4.
    return lease.kind === "migration" && mutex !== undefined
      ? told(lease, "released", "or its time was over before the next one came")
      : told(lease, "removed", "its object was deleted");
  });
  const granted = after.leases.filter((lease) => !hasEnded(lease) && known(lease) === undefined)
    .map((lease) => told(lease, "granted"));
  return [...switched(before, after), ...ended, ...gone, ...granted];
}

/** Puts what happened before what is known, the newest first, and lets go of what is too old to be kept. */
export function addChanges(
  known: readonly PageChange[],
  happened: readonly Happened[],
  atMs: number,
): readonly PageChange[] {
  if (happened.length === 0) return known;
  const last = known[0]?.number ?? 0;
  const news = happened.map((one, at): PageChange => ({ ...one, number: last + 1 + at, atMs }));
  return [...news.toReversed(), ...known].slice(0, MOST_CHANGES);
}

/** True for a lease that counts no more, whether that is stored yet or not. */
export function hasEnded({ state }: Pick<LeaseStatus, "state">): boolean {
  return state !== "active";
}

/** Why a lease was revoked, in plain words; empty for a reason that there is not. */
export function revocationInWords(reason: string): string {
  return REVOCATIONS.get(reason) ?? reason;
}

const REVOCATIONS: ReadonlyMap<string, string> = new Map<RevocationReason, string>([
  ["topology_changed", "the primary moved, or its data changed under it"],
  ["operator_revoked", "somebody took it back"],
]);

function switched(before: PageGroup, after: PageGroup): readonly Happened[] {
  const from = before.activeSite === "" ? "no site" : shown(before.activeSite);
  const to = after.activeSite === "" ? "no site" : shown(after.activeSite);
  if (before.activeSite === after.activeSite) return [];
  const generation = after.topologyGeneration;
  const counted = generation === null ? "" : `, generation ${generation}`;
  return [{
    kind: "switched",
    group: after.key,
    text: `the active site from ${from} to ${to}${counted}`,
  }];
}

function leaseInWords({ kind, operationId, instance, holder }: PageLease): string {
  const who = holder === null ? "" : `, by ${leaseHolder({ holder })}`;
  return `${kind} lease of ${shown(operationId)} for ${shown(instance)}${who}`;
}
