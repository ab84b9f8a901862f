/**
 * The permission of one request, asked anew for every request.
 *
 * The look at the databases that decides it may run beside the reads that the request needs, when this caller was authorized
 * for this group within the last minute: nothing of those reads is used unless the fresh answer allows it (state protocol
 * 2.3, difference 25). An unknown caller causes no read of the group.
 *
 * That look is at the databases that authorized the caller a moment ago, by name, and at all of the group when it gives no
 * clear yes (ADR 161).
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";
import type { Caller } from "./authorize.ts";
import type { DatabaseReader } from "./databases.ts";
import {
  type Authorized,
  databasesToAsk,
  earlyNamespace,
  judgeByName,
  judgeList,
  type Question,
  type Remembered,
} from "./remembered.ts";

export type { Authorized };

/** How many permissions are remembered; the one given longest ago goes first. */
const REMEMBERED_ENTRIES = 4096;

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
   * The fresh permission. Databases are looked at by name once per request at most, and listed once at most.
   *
   * @param instance An instance that must not be missing for want of a look: when it is not among the databases that were
   * looked at by name, all are listed.
   * @throws {AccessDeniedError} The list gives no permission.
   * @throws {KubeError} The databases could not be read: 503.
   */
  confirm(instance?: string): Promise<Authorized>;
  /** The fresh permission when it is there, for the log line; `null` before and without it. */
  readonly granted: Authorized | null;
}

/** What an {@linkcode AccessControl} is made of. */
export interface AccessControlParts {
  readonly databases: Pick<DatabaseReader, "list" | "named">;
  readonly clock: Clock;
}

/** Opens permissions. */
export class AccessControl {
  readonly #parts: AccessControlParts;
  readonly #remembered = new Map<string, Remembered>();

  constructor(parts: AccessControlParts) {
    this.#parts = parts;
  }

  /**
   * Opens the permission of one request.
   *
   * @param instance For a grant: the database that it names.
   */
  open(caller: Caller, group: string, instance: string | undefined, signal: AbortSignal): Access {
    const question = { caller, group, instance };
    let named: Promise<Authorized | null> | null = null;
    let listed: Promise<Authorized> | null = null;
    let granted: Authorized | null = null;
    const confirm = async (wanted?: string) => {
      const known = listed === null ? await (named ??= this.#askByName(question, signal)) : null;
      const isEnough = wanted === undefined || known?.instances.includes(wanted) === true;
      granted = isEnough ? known : null;
      return granted ??= await (listed ??= this.#askByList(question, signal));
    };
    return {
      caller,
      group,
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
    const remembered = this.#remembered.get(key);
    const asked = databasesToAsk(remembered, question.instance, clock.monotonic());
    if (remembered === undefined || asked.length === 0) return null;
    const authorized = judgeByName(asked, await databases.named(asked, signal), question);
    // What a list of another request has put there or taken away meanwhile is newer.
    if (authorized !== null && this.#remembered.get(key) === remembered) {
      const { namespace } = authorized;
      this.#remember(key, { ...remembered, namespace, permittedAtMs: clock.monotonic() });
    }
    return authorized;
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
    this.#remember(key, judged.remembered);
    return judged.authorized;
  }

  #remember(key: string, remembered: Remembered): void {
    this.#remembered.delete(key); // A map keeps the order of insertion, so that the oldest is first.
    this.#remembered.set(key, remembered);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > REMEMBERED_ENTRIES && oldest !== undefined) {
      this.#remembered.delete(oldest);
    }
  }
}

/** Without the instance: all databases of a group are in its namespace, so any permission says where that is. */
function keyOf({ caller, group }: Question): string {
  return JSON.stringify([caller.namespace, caller.serviceAccount, group]);
}
