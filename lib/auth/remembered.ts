/**
 * What is remembered of a permission, and what may be done with it: pure rules.
 *
 * A memory never answers. It tells where reads may begin early, and which databases are worth a look by name before all of
 * them are listed: on the API server a list waits for its cache, and a look by name does not (ADR 161).
 *
 * @module
 */

import type { MysqlDatabase } from "../group/types.ts";
import type { ObjectName, Stored } from "../kube/api.ts";
import { authorize, type Caller, naming } from "./authorize.ts";

/** How long a permission is remembered, in milliseconds. */
export const REMEMBERED_MS = 60_000;

/** How many databases are looked at by name. Where there are more they are listed, so that a request costs no call more. */
export const MAX_BY_NAME = 1;

/** Who asks for what. */
export interface Question {
  readonly caller: Caller;
  readonly group: string;
  /** For a grant: the database that it names. */
  readonly instance: string | undefined;
}

/** What a caller may do. */
export interface Authorized {
  /** The namespace of the databases, and so of the group. */
  readonly namespace: string;
  /** The databases that name the caller, in the order of the list. For a grant: the one that was asked for. */
  readonly instances: readonly string[];
}

/** What is remembered of a caller in a group. Times are monotonic milliseconds. */
export interface Remembered {
  /** The namespace of the last permission. */
  readonly namespace: string;
  /** When the last permission was given, by a list or by names. */
  readonly permittedAtMs: number;
  /** All databases that named the caller in the last list, whatever its request was about. */
  readonly databases: readonly ObjectName[];
  /** When that list was sent. What was declared before is in it. */
  readonly listedAtMs: number;
}

/** A list, and when it was sent. */
export interface Listed {
  readonly databases: readonly Stored<MysqlDatabase>[];
  readonly atMs: number;
}

/** What a list comes to: the permission and what to remember of it, or `null` when it gives none. */
export function judgeList(
  { databases, atMs }: Listed,
  { caller, group, instance }: Question,
  nowMs: number,
): { readonly authorized: Authorized; readonly remembered: Remembered } | null {
  const verdict = authorize(databases, caller, group, instance);
  if (verdict.outcome === "forbidden") return null;
  const { namespace, instances } = verdict;
  return {
    authorized: { namespace, instances },
    remembered: {
      namespace,
      permittedAtMs: nowMs,
      // Those of other instances too: the next request may be about another one, or about none.
      databases: naming(databases, caller, group).map(({ metadata }) => ({
        namespace: metadata.namespace,
        name: metadata.name,
      })),
      listedAtMs: atMs,
    },
  };
}

/** Where reads of the group may begin beside the fresh permission; `null` when there was none within the last minute. */
export function earlyNamespace(remembered: Remembered | undefined, nowMs: number): string | null {
  const isFresh = remembered !== undefined && nowMs - remembered.permittedAtMs < REMEMBERED_MS;
  return isFresh ? remembered.namespace : null;
}

/**
 * The databases to look at by name; none when all must be listed.
 *
 * The minute counts from the last list and not from the last permission. So a database in another namespace, which makes it
 * unclear what group is meant, is seen after a minute however often the caller comes.
 */
export function databasesToAsk(
  remembered: Remembered | undefined,
  instance: string | undefined,
  nowMs: number,
): readonly ObjectName[] {
  if (remembered === undefined || nowMs - remembered.listedAtMs >= REMEMBERED_MS) return [];
  const databases = remembered.databases.filter(({ name }) =>
    instance === undefined || name === instance
  );
  return databases.length <= MAX_BY_NAME ? databases : [];
}

/**
 * The permission that a look by name gives; `null` unless it is a clear yes, by the same rule as for a list, of every
 * database that was asked. Then all must be listed: no refusal rests on a look by name.
 */
export function judgeByName(
  asked: readonly ObjectName[],
  found: readonly MysqlDatabase[],
  { caller, group, instance }: Question,
): Authorized | null {
  const verdict = authorize(found, caller, group, instance);
  if (verdict.outcome === "forbidden" || verdict.instances.length !== asked.length) return null;
  return { namespace: verdict.namespace, instances: verdict.instances };
}
