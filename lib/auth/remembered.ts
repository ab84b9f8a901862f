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

/** How old a list may be before it is read again beside a request, in milliseconds. */
export const LIST_AGAIN_MS = 30_000;

/**
 * How old a list may be, in milliseconds. A caller of the last minute always has one: the list was read again beside its last
 * request, or was not due then.
 */
export const LIST_MS: number = REMEMBERED_MS + LIST_AGAIN_MS;

/** Who asks for what. */
export interface Question {
  readonly caller: Caller;
  readonly group: string;
  /** For a grant: the database that it names. */
  readonly instance?: string;
  /** For all that is about one operation: its id. */
  readonly operationId?: string;
}

/** What a caller may do. */
export interface Authorized {
  /** The namespace of the databases, and so of the group. */
  readonly namespace: string;
  /**
   * Databases that name the caller, in the order of the list: those that were looked at. For a grant: the one that was asked
   * for.
   */
  readonly instances: readonly string[];
  /** The one database that the request can be about, for its log line; `null` when there are several. */
  readonly sole: string | null;
}

/** What is remembered of a caller in a group. Times are monotonic milliseconds. */
export interface Remembered {
  /** The namespace of the last permission. */
  readonly namespace: string;
  /** When the last permission was given, by a list or by names. */
  readonly permittedAtMs: number;
  /** All databases that named the caller in the last list, whatever its request was about; one at least. */
  readonly databases: readonly ObjectName[];
  /** When that list was sent. */
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
    authorized: { namespace, instances, sole: onlyOne(instances) },
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

/** Whether a list can still tell where to look. */
export function isListUsable({ listedAtMs }: Remembered, nowMs: number): boolean {
  return nowMs - listedAtMs < LIST_MS;
}

/** Whether to read the list again although it is still good, so that no caller of the last minute is without one. */
export function isListDue({ listedAtMs }: Remembered, nowMs: number): boolean {
  return nowMs - listedAtMs >= LIST_AGAIN_MS;
}

/** Where reads of the group may begin beside the fresh permission; `null` when there was none within the last minute. */
export function earlyNamespace(remembered: Remembered | undefined, nowMs: number): string | null {
  const isFresh = remembered !== undefined && nowMs - remembered.permittedAtMs < REMEMBERED_MS;
  return isFresh ? remembered.namespace : null;
}

/**
 * The one database to look at by name; `null` when all must be listed.
 *
 * One is enough. A grant is about the database that it names, and a renewal or a release about that of its operation. A look
 * at the group is allowed by any. Where the operation is not known, every database may be the one: a look at each would cost
 * a request more calls than the list.
 *
 * @param operation The database that the operation of the question was granted for, when that is known.
 */
export function databaseToAsk(
  { databases }: Remembered,
  { instance, operationId }: Question,
  operation: string | undefined,
): ObjectName | null {
  const wanted = instance ?? operation;
  // Only a grant says by its instance which of two namespaces is meant. For all else the list refuses.
  if (instance === undefined && new Set(databases.map(({ namespace }) => namespace)).size > 1) {
    return null;
  }
  if (wanted !== undefined) return onlyOne(databases.filter(({ name }) => name === wanted));
  return operationId === undefined ? databases[0] ?? null : onlyOne(databases);
}

/**
 * The permission that a look by name gives; `null` unless it is a clear yes, by the same rule as for a list. Then all must be
 * listed: no refusal rests on a look by name.
 *
 * @param found The database that was asked, as it is now; `null` when it is gone.
 */
export function judgeByName(
  found: MysqlDatabase | null,
  { caller, group, instance }: Question,
  { databases }: Remembered,
): Authorized | null {
  const verdict = authorize(found === null ? [] : [found], caller, group, instance);
  if (verdict.outcome === "forbidden") return null;
  const { namespace, instances } = verdict;
  const isOnly = instance !== undefined || databases.length === 1;
  return { namespace, instances, sole: isOnly ? onlyOne(instances) : null };
}

function onlyOne<T>(values: readonly T[]): T | null {
  return values.length === 1 ? values[0] ?? null : null;
}
