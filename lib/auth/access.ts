/**
 * The permission of one request, asked anew for every request.
 *
 * The look at the databases that decides it may run beside the reads that the request needs, when this caller was authorized
 * for this group within the last minute: nothing of those reads is used unless the fresh answer allows it (state protocol
 * 2.3, difference 25). An unknown caller causes no read of the group.
 *
 * That look is at one database by name, and at all of the group when it gives no clear yes (ADR 161). Which one to look at is
 * known from an earlier list, or from one that the API server has in its cache: neither decides anything (ADR 164).
 *
 * @module
 */

import { type Clock, startDeadline } from "../runtime/clock.ts";
import { RecentlyUsed } from "../runtime/recently_used.ts";
import type { Caller } from "./authorize.ts";
import type { DatabaseReader } from "./databases.ts";
import {
  type Authorized,
  databaseToAsk,
  earlyNamespace,
  isListDue,
  isListUsable,
  judgeByName,
  judgeList,
  type Question,
  type Remembered,
} from "./remembered.ts";

export type { Authorized, Question };

/** How many permissions are remembered, and how many operations; what was set longest ago goes first. */
const REMEMBERED_ENTRIES = 4096;
/** How long a list may take that no request waits for, in milliseconds. */
const UNAWAITED_LIST_MS = 10_000;

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
  /**
   * The fresh permission. One database is looked at by name per request at most, and all are listed once at most, beside a
   * list from the cache.
   *
   * @param instance An instance that must not be missing for want of a look: when it is not the one that was looked at by
   * name, all are listed.
   * @throws {AccessDeniedError} The list gives no permission.
   * @throws {KubeError} The databases could not be read: 503.
   */
  confirm(instance?: string): Promise<Authorized>;
  /** The fresh permission when it is there, for the log line; `null` before and without it. */
  readonly granted: Authorized | null;
}

/** What an {@linkcode AccessControl} is made of. */
export interface AccessControlParts {
  readonly databases: Pick<DatabaseReader, "list" | "listCached" | "named">;
  readonly clock: Clock;
}

/** Opens permissions. */
export class AccessControl {
  readonly #parts: AccessControlParts;
  readonly #remembered = new RecentlyUsed<Remembered>(REMEMBERED_ENTRIES);
  /** The database that each operation is about. */
  readonly #operations = new RecentlyUsed<string>(REMEMBERED_ENTRIES);
  /** The permissions whose list is being read again. */
  readonly #listing = new Set<string>();

  constructor(parts: AccessControlParts) {
    this.#parts = parts;
  }

  /** Opens the permission of one request. */
  open(question: Question, signal: AbortSignal): Access {
    let named: Promise<Authorized | null> | null = null;
    let listed: Promise<Authorized> | null = null;
    let granted: Authorized | null = null;
    const confirm = async (wanted = question.instance) => {
      const known = listed === null ? await (named ??= this.#askByName(question, signal)) : null;
      const isEnough = wanted === undefined || known?.instances.includes(wanted) === true;
      granted = isEnough ? known : null;
      granted ??= await (listed ??= this.#askByList(question, signal));
      if (wanted !== undefined) this.#learn(question, granted, wanted);
      return granted;
    };
    return {
      caller: question.caller,
      group: question.group,
      confirm,
      namespace: async () =>
        granted?.namespace ?? this.#earlyNamespace(question) ?? (await confirm()).namespace,
      get granted() {
        return granted;
      },
    };
  }

  #earlyNamespace(question: Question): string | null {
    return earlyNamespace(this.#remembered.get(keyOf(question)), this.#parts.clock.monotonic());
  }

  async #askByName(question: Question, signal: AbortSignal): Promise<Authorized | null> {
    const { clock, databases } = this.#parts;
    const key = keyOf(question);
    const known = this.#remembered.get(key);
    const remembered = known !== undefined && isListUsable(known, clock.monotonic())
      ? known
      : await this.#askCache(question, signal);
    if (remembered === null) return null;
    const operation = this.#operations.get(operationKeyOf(question));
    const asked = databaseToAsk(remembered, question, operation);
    if (asked === null) return null;
    const authorized = judgeByName(await databases.named(asked, signal), question, remembered);
    // What a list of another request has put there or taken away meanwhile is newer.
    if (authorized !== null && this.#remembered.get(key) === known) {
      const { namespace } = authorized;
      const nowMs = clock.monotonic();
      this.#remembered.set(key, { ...remembered, namespace, permittedAtMs: nowMs });
      if (isListDue(remembered, nowMs)) this.#askCacheBeside(question);
    }
    return authorized;
  }

  /** What the cache of the API server says of the caller; `null` when it is of no use. */
  async #askCache(question: Question, signal: AbortSignal): Promise<Remembered | null> {
    const { clock, databases } = this.#parts;
    const atMs = clock.monotonic();
    const listed = await databases.listCached(question.group, signal);
    if (listed === null) return null;
    return judgeList({ databases: listed, atMs }, question, clock.monotonic())?.remembered ?? null;
  }

  /**
   * Reads the list again while the requests go on. None waits for it and none is decided by it: where it says nothing, or
   * fails, the next request that needs one reads its own.
   */
  #askCacheBeside(question: Question): void {
    const key = keyOf(question);
    if (this.#listing.has(key)) return;
    this.#listing.add(key);
    const deadline = startDeadline(this.#parts.clock, UNAWAITED_LIST_MS);
    const ask = async () => {
      const sentMs = this.#parts.clock.monotonic();
      const seen = await this.#askCache(question, deadline.signal);
      const known = this.#remembered.get(key);
      // What another request learned meanwhile, from a list that was sent later, is newer.
      if (known === undefined || known.listedAtMs >= sentMs) return;
      if (seen === null) this.#remembered.delete(key);
      else this.#remembered.set(key, { ...seen, permittedAtMs: known.permittedAtMs });
    };
    void ask().catch(() => {}).finally(() => {
      deadline[Symbol.dispose]();
      this.#listing.delete(key);
    });
  }

  async #askByList(question: Question, signal: AbortSignal): Promise<Authorized> {
    const { clock, databases } = this.#parts;
    const key = keyOf(question);
    const atMs = clock.monotonic();
    const listed = { databases: await databases.list(question.group, signal), atMs };
    const judged = judgeList(listed, question, clock.monotonic());
    if (judged === null) {
      this.#remembered.delete(key);
      throw new AccessDeniedError(question.group);
    }
    this.#remembered.set(key, judged.remembered);
    return judged.authorized;
  }

  /** Only what a permission was given for: nobody else can fill the memory. */
  #learn(question: Question, { instances }: Authorized, instance: string): void {
    if (question.operationId === undefined || !instances.includes(instance)) return;
    this.#operations.set(operationKeyOf(question), instance);
  }
}

/** Without the instance: all databases of a group are in its namespace, so any permission says where that is. */
function keyOf({ caller, group }: Question): string {
  return JSON.stringify([caller.namespace, caller.serviceAccount, group]);
}

function operationKeyOf({ caller, group, operationId }: Question): string {
  return JSON.stringify([caller.namespace, caller.serviceAccount, group, operationId]);
}
