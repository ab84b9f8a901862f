/**
 * What is told of groups at a glance: the numbers above them all, and what stands above and below each one's tables. Pure.
 *
 * @module
 */

import { expiresAtMs } from "../records/record.ts";
import { gateStates, operationState, shown } from "../status/words.ts";
import { hasEnded } from "./changes.ts";
import type { PageGroup } from "./model.ts";

/** The numbers. */
export interface PageSummary {
  readonly groups: number;
  /** Groups that grant no lease now. */
  readonly closed: number;
  readonly migrations: number;
  readonly holds: number;
  /** Operations that are asked for or under way. */
  readonly operations: number;
}

/**
 * How much a group needs somebody's look, the most first: it grants nothing; an operation or a fault is to be told; a lease
 * is held; nothing of these.
 */
export type Attention = "closed" | "busy" | "held" | "quiet";

/** A group at a glance. */
export interface GroupHead extends
  Pick<
    PageGroup,
    | "key"
    | "namespace"
    | "name"
    | "readable"
    | "activeSite"
    | "topologyGeneration"
    | "lagSeconds"
    | "stable"
    | "closedReason"
    | "why"
  > {
  readonly attention: Attention;
  /** The expiry of the lease that ends first: milliseconds since 1970; `null` when none is held. */
  readonly nextExpiryMs: number | null;
}

/** Counts. */
export function summaryOf(groups: Iterable<PageGroup>): PageSummary {
  let count = 0;
  let closed = 0;
  let migrations = 0;
  let holds = 0;
  let operations = 0;
  for (const group of groups) {
    count++;
    if (group.closedReason !== "") closed++;
    operations += group.operations.length;
    for (const lease of group.leases) {
      if (hasEnded(lease)) continue;
      if (lease.kind === "migration") migrations++;
      else holds++;
    }
  }
  return { groups: count, closed, migrations, holds, operations };
}

/** What stands above a group's tables. */
export function headOf(group: PageGroup): GroupHead {
  const { key, namespace, name, readable, activeSite, topologyGeneration } = group;
  const { lagSeconds, stable, closedReason, why, leases } = group;
  const ends = leases.filter((lease) => !hasEnded(lease)).map(expiresAtMs);
  return {
    ...{ key, namespace, name, readable, activeSite, topologyGeneration },
    ...{ lagSeconds, stable, closedReason, why },
    attention: attentionOf(group),
    nextExpiryMs: ends.length === 0 ? null : Math.min(...ends),
  };
}

/** What stands below a group's tables: operations with what they wait for, the gate, and what could not be read. */
export function notesOf(group: PageGroup): readonly string[] {
  return [
    ...group.operations.flatMap(operationState),
    ...gateStates(group).map((text) => `Gate: ${text}`),
    ...group.problems.map(shown),
  ].map(inWholeSeconds);
}

/** Nobody reads the nanoseconds of a time in the middle of a sentence. */
function inWholeSeconds(text: string): string {
  return text.replace(/(T\d\d:\d\d:\d\d)\.\d+Z/g, "$1Z");
}

function attentionOf(group: PageGroup): Attention {
  if (group.closedReason !== "") return "closed";
  if (group.operations.length > 0 || group.problems.length > 0) return "busy";
  return group.leases.some((lease) => !hasEnded(lease)) ? "held" : "quiet";
}
