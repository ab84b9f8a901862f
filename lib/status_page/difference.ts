/**
 * The difference between two states of the page, as the smallest parts that must be shown anew. Pure.
 *
 * The page is a tree of parts, each with an id and a place in an order. A part that is put replaces what has its id, or
 * comes to be where its order puts it; nothing else is touched. So a patch says how something is, and not what became of
 * it: a client may get only the newest one of each id, at any time, and ends up with the same page.
 *
 * @module
 */

import { expiresAtMs } from "../records/record.ts";
import { hasEnded, type PageChange } from "./changes.ts";
import type { PageGroup, PageLease, PageSite } from "./model.ts";
import { type GroupHead, headOf, notesOf, type PageSummary } from "./overview.ts";

/** Whose page it is: what happened is what this process saw. */
export interface PageSource {
  /** The name of the replica. */
  readonly replica: string;
  /** When the process began to look: milliseconds since 1970. */
  readonly sinceMs: number;
}

/** All that the page shows. */
export interface PageState {
  readonly source: PageSource;
  /** By key. */
  readonly groups: ReadonlyMap<string, PageGroup>;
  readonly summary: PageSummary;
  /** What happened, the newest first. */
  readonly changes: readonly PageChange[];
  /** What this replica cannot see, one sentence each. */
  readonly problems: readonly string[];
}

/** A part of the page, with what it shows. */
export type PagePart =
  | { readonly part: "group"; readonly group: PageGroup }
  | { readonly part: "head"; readonly head: GroupHead }
  | { readonly part: "notes"; readonly texts: readonly string[] }
  | { readonly part: "site"; readonly site: PageSite }
  | { readonly part: "lease"; readonly lease: PageLease }
  | { readonly part: "change"; readonly change: PageChange }
  | { readonly part: "source"; readonly source: PageSource }
  | { readonly part: "summary"; readonly summary: PageSummary }
  | { readonly part: "problems"; readonly problems: readonly string[] };

/** A part with its place. */
export interface Placed {
  /** One of the page has it. */
  readonly id: string;
  /** The id of the element that it is in. */
  readonly into: string;
  /** It stands before the parts beside it whose text is greater. */
  readonly order: string;
  readonly part: PagePart;
}

/** What must be done to the page. */
export type PagePatch =
  | ({ readonly type: "put" } & Placed)
  | { readonly type: "remove"; readonly id: string };

/** The id of what says whose page it is. */
export const SOURCE_ID = "source";
/** The id of what all groups are in. */
export const GROUPS_ID = "groups";
/** The id of what the time line is in. */
export const CHANGES_ID = "changes";
/** The id of what the time line and its source are in. */
export const TIMELINE_ID = "timeline";
/** The id of what the numbers and the problems are in. */
export const OVERVIEW_ID = "overview";

/** The ids of a group's parts that stand for the group alone. */
export function groupIds({ key }: Pick<PageGroup, "key">) {
  return {
    group: `group:${key}`,
    head: `head:${key}`,
    notes: `notes:${key}`,
    sites: `sites:${key}`,
    leases: `leases:${key}`,
  };
}

/** A whole group. */
export function placeGroup(group: PageGroup): Placed {
  const part = { part: "group", group } as const;
  return { id: groupIds(group).group, into: GROUPS_ID, order: group.key, part };
}

/** The rows of a group's table of sites. */
export function placeSites(group: PageGroup): readonly Placed[] {
  return unique(group.sites.map((site, at) => ({
    id: `site:${group.key}:${site.name}`,
    into: groupIds(group).sites,
    order: digits(at),
    part: { part: "site", site },
  })));
}

/** The rows of a group's table of leases: the mutex first, then by expiry, then those that ended. */
export function placeLeases(group: PageGroup): readonly Placed[] {
  return unique(group.leases.map((lease) => {
    const { kind, operationId, createdAt, stored } = lease;
    const rank = hasEnded(lease) && stored ? 2 : kind === "migration" ? 0 : 1;
    return {
      id: `lease:${group.key}:${kind}:${createdAt}:${operationId}`,
      into: groupIds(group).leases,
      order: `${rank}:${digits(expiresAtMs(lease))}:${operationId}`,
      part: { part: "lease", lease },
    };
  }));
}

/** A line of the time line. */
export function placeChange(change: PageChange): Placed {
  const order = digits(Number.MAX_SAFE_INTEGER - change.number);
  const part = { part: "change", change } as const;
  return { id: `change:${change.number}`, into: CHANGES_ID, order, part };
}

/** Whose page it is. */
export function placeSource(source: PageSource): Placed {
  return { id: SOURCE_ID, into: TIMELINE_ID, order: "1", part: { part: "source", source } };
}

/** The numbers. */
export function placeSummary(summary: PageSummary): Placed {
  return {
    id: "summary",
    into: OVERVIEW_ID,
    order: "1",
    part: { part: "summary", summary },
  };
}

/** What this replica cannot see. */
export function placeProblems(problems: readonly string[]): Placed {
  return {
    id: "problems",
    into: OVERVIEW_ID,
    order: "2",
    part: { part: "problems", problems },
  };
}

/**
 * What turns one state of the page into another. Nothing says that a line of the time line became too old: whoever shows
 * them lets go of the oldest.
 *
 * @param touched The keys of the groups that can differ. @default {all groups}
 */
export function difference(
  before: PageState,
  after: PageState,
  touched: Iterable<string> = new Set([...before.groups.keys(), ...after.groups.keys()]),
): readonly PagePatch[] {
  const last = before.changes[0]?.number ?? 0;
  return [
    ...[...touched].flatMap((key) =>
      groupDifference(before.groups.get(key) ?? null, after.groups.get(key) ?? null)
    ),
    ...listDifference([placeSource(before.source)], [placeSource(after.source)]),
    ...listDifference([placeSummary(before.summary)], [placeSummary(after.summary)]),
    ...listDifference([placeProblems(before.problems)], [placeProblems(after.problems)]),
    ...after.changes.filter(({ number }) => number > last).map(placeChange).map(put).reverse(),
  ];
}

function groupDifference(before: PageGroup | null, after: PageGroup | null): readonly PagePatch[] {
  if (before === after) return [];
  if (before === null) return after === null ? [] : [put(placeGroup(after))];
  if (after === null) return [{ type: "remove", id: groupIds(before).group }];
  return listDifference(placeParts(before), placeParts(after));
}

/** The parts of a group that are put by themselves. */
export function placeParts(group: PageGroup): readonly Placed[] {
  const { group: into, head, notes } = groupIds(group);
  return [
    { id: head, into, order: "0", part: { part: "head", head: headOf(group) } },
    { id: notes, into, order: "1", part: { part: "notes", texts: notesOf(group) } },
    ...placeSites(group),
    ...placeLeases(group),
  ];
}

/** What turns one list of parts into another. Parts that are only in other places do not count: their order says it. */
export function listDifference(
  before: readonly Placed[],
  after: readonly Placed[],
): readonly PagePatch[] {
  const earlier = new Map(before.map((placed) => [placed.id, placed]));
  const later = new Set(after.map(({ id }) => id));
  return [
    ...before.filter(({ id }) => !later.has(id)).map(({ id }) => ({ type: "remove", id } as const)),
    ...after.filter((placed) => !isSame(earlier.get(placed.id), placed)).map(put),
  ];
}

function put(placed: Placed): PagePatch {
  return { type: "put", ...placed };
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** As text that sorts like the number. @param value A whole number, 0 or more. */
function digits(value: number): string {
  return String(Math.max(0, value)).padStart(16, "0");
}

/** Gives what has an id that is there already another one: two sites of one name must not take each other's place. */
function unique(parts: readonly Placed[]): readonly Placed[] {
  const counts = new Map<string, number>();
  return parts.map((placed) => {
    const count = (counts.get(placed.id) ?? 0) + 1;
    counts.set(placed.id, count);
    return count === 1 ? placed : { ...placed, id: `${placed.id}#${count}` };
  });
}
