/**
 * The permission of one request, asked anew for every request.
 *
 * The list of databases that decides it may run beside the reads that the request needs, when this caller was authorized
 * for this group within the last minute: nothing of those reads is used unless the fresh answer allows it (state protocol
 * 2.3, difference 25). An unknown caller causes no read of the group.
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";
import { authorize, type Caller } from "./authorize.ts";
import type { DatabaseReader } from "./databases.ts";

/** How long an earlier permission lets reads start early. */
const REMEMBERED_MS = 60_000;
/** How many permissions are remembered; the oldest goes first. */
const REMEMBERED_ENTRIES = 4096;

/** What a caller may do. */
export interface Authorized {
  /** The namespace of the databases, and so of the group. */
  readonly namespace: string;
  /** The databases that name the caller, in the order of the list. For a grant: the one that was asked for. */
  readonly instances: readonly string[];
}

/** The caller is not authorized for the group: 403 `forbidden`. It says nothing of whether the group exists. */
export class AccessDeniedError extends Error {
  override readonly name = "AccessDeniedError";
  constructor(group: string) {
    super(
      `Cannot act on group ${group}: no database of it names the caller as a deployment client`,
    );
  }
}

/** The permission of one request. */
export interface Access {
  readonly caller: Caller;
  readonly group: string;
  /** Where the group is likely to be: of an earlier permission, or else of the fresh one. */
  namespace(): Promise<string>;
  /** The fresh permission; the list behind it is read once per request. @throws {AccessDeniedError} */
  confirm(): Promise<Authorized>;
  /** The fresh permission when it is there, for the log line; `null` before and without it. */
  readonly granted: Authorized | null;
}

/** What an {@linkcode AccessControl} is made of. */
export interface AccessControlParts {
  readonly databases: Pick<DatabaseReader, "list">;
  readonly clock: Clock;
}

/** Opens permissions. */
export class AccessControl {
  readonly #parts: AccessControlParts;
  readonly #remembered = new Map<string, { readonly namespace: string; readonly atMs: number }>();

  constructor(parts: AccessControlParts) {
    this.#parts = parts;
  }

  /**
   * Opens the permission of one request.
   *
   * @param instance For a grant: the database that it names.
   */
  open(caller: Caller, group: string, instance: string | undefined, signal: AbortSignal): Access {
    // Without the instance: all databases of a group are in its namespace, so any permission says where that is.
    const key = JSON.stringify([caller.namespace, caller.serviceAccount, group]);
    let pending: Promise<Authorized> | null = null;
    let granted: Authorized | null = null;
    const confirm = () =>
      pending ??= this.#ask(key, caller, group, instance, signal).then((found) => granted = found);
    return {
      caller,
      group,
      confirm,
      namespace: async () => granted?.namespace ?? this.#recall(key) ?? (await confirm()).namespace,
      get granted() {
        return granted;
      },
    };
  }

  async #ask(
    key: string,
    caller: Caller,
    group: string,
    instance: string | undefined,
    signal: AbortSignal,
  ): Promise<Authorized> {
    const databases = await this.#parts.databases.list(group, signal);
    const verdict = authorize(databases, caller, group, instance);
    this.#remembered.delete(key);
    if (verdict.outcome === "forbidden") throw new AccessDeniedError(group);
    this.#remembered.set(key, {
      namespace: verdict.namespace,
      atMs: this.#parts.clock.monotonic(),
    });
    for (const oldest of this.#remembered.keys()) {
      if (this.#remembered.size <= REMEMBERED_ENTRIES) break;
      this.#remembered.delete(oldest);
    }
    return { namespace: verdict.namespace, instances: verdict.instances };
  }

  #recall(key: string): string | null {
    const known = this.#remembered.get(key);
    const fresh = known !== undefined &&
      this.#parts.clock.monotonic() - known.atMs < REMEMBERED_MS;
    return fresh ? known.namespace : null;
  }
}
