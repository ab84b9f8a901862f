/**
 * Reads the databases that authorization is decided from: anew for every request, so that an edit counts at once.
 *
 * @module
 */

import type { KubeApi, ListOptions, ObjectName, Stored, UndecodableObject } from "../kube/api.ts";
import { DecodeError, ForbiddenError, InvalidError, NotFoundError } from "../kube/errors.ts";
import { MYSQL_DATABASES, type MysqlDatabase } from "../group/types.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";

/** How long all databases are listed before the field selector is tried again, in milliseconds. */
export const SELECTOR_RETRY_MS = 60_000;

/** How long nothing is read by name after the role did not allow it, in milliseconds. */
export const NAMED_RETRY_MS = 60_000;

/** How often, in milliseconds, a log line may tell of databases that cannot be read. */
const WARN_EVERY_MS = 60_000;
/** How many of them a log line names. */
const NAMED = 10;

/** What a {@linkcode DatabaseReader} is made of. */
export interface DatabaseReaderParts {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Lists the databases of a group, across all namespaces, and reads one by name. */
export class DatabaseReader {
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Until this monotonic instant the server is taken not to know the field selector. */
  #unselectableUntilMs = -Infinity;
  /** Until this monotonic instant the role is taken not to allow `get`. */
  #unnamedUntilMs = -Infinity;
  #warnedAtMs = -Infinity;

  constructor({ api, clock, log }: DatabaseReaderParts) {
    this.#api = api;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Lists the databases that may belong to a group.
   *
   * The server selects them where the CRD declares `selectableFields` (difference 11). Where it does not, it answers 400,
   * and all databases are listed, those of other groups too; that is tried again every {@linkcode SELECTOR_RETRY_MS}.
   *
   * A database that does not have its form is left out, so that it authorizes nobody and harms no other.
   *
   * @param group The name of the group: a DNS-1123 subdomain, so that it needs no escape in the selector.
   * @param signal Ends the call.
   * @throws {KubeError} The list could not be read: 503.
   */
  async list(group: string, signal: AbortSignal): Promise<readonly Stored<MysqlDatabase>[]> {
    return await this.#select(group, { signal });
  }

  /**
   * The same from the API server's cache, which waits for nothing: where to look by name (ADR 164).
   *
   * @returns `null` where nothing can be read by name, so that this would be of no use.
   * @throws {KubeError} The list could not be read: 503.
   */
  async listCached(
    group: string,
    signal: AbortSignal,
  ): Promise<readonly Stored<MysqlDatabase>[] | null> {
    if (!this.#mayName()) return null;
    return await this.#select(group, { cached: true, signal });
  }

  async #select(group: string, options: ListOptions): Promise<readonly Stored<MysqlDatabase>[]> {
    if (this.#clock.monotonic() >= this.#unselectableUntilMs) {
      try {
        return await this.#list({ ...options, fieldSelector: `spec.groupRef.name=${group}` });
      } catch (error) {
        if (!(error instanceof InvalidError) || error.status !== 400) throw error;
        this.#unselectableUntilMs = this.#clock.monotonic() + SELECTOR_RETRY_MS;
        this.#log.warn("databases are listed whole: their CRD declares no selectableFields", {
          field: "spec.groupRef.name",
        });
      }
    }
    return await this.#list(options);
  }

  #mayName(): boolean {
    return this.#clock.monotonic() >= this.#unnamedUntilMs;
  }

  /**
   * Reads one database by name. A list waits until the API server's cache has seen the last write to the cluster; this does
   * not (ADR 161).
   *
   * @param name Which one.
   * @param signal Ends the call.
   * @returns `null` when it is not there or has not its form. Also where the role does not allow `get`: that is tried again
   * every {@linkcode NAMED_RETRY_MS}.
   * @throws {KubeError} It could not be read: 503.
   */
  async named(name: ObjectName, signal: AbortSignal): Promise<Stored<MysqlDatabase> | null> {
    if (!this.#mayName()) return null;
    try {
      return await this.#api.get(MYSQL_DATABASES, name, { signal });
    } catch (error) {
      // One that is gone or has not its form authorizes nobody; the list says more of it in the log.
      if (error instanceof NotFoundError || error instanceof DecodeError) return null;
      if (!(error instanceof ForbiddenError)) throw error;
      this.#unnamedUntilMs = this.#clock.monotonic() + NAMED_RETRY_MS;
      this.#log.warn("databases are listed for each request: the role does not allow to get them", {
        verb: "get",
        resource: error.call.resource,
      });
      return null;
    }
  }

  async #list(options: ListOptions): Promise<readonly Stored<MysqlDatabase>[]> {
    const { items, undecodable } = await this.#api.list(MYSQL_DATABASES, options);
    if (undecodable.length > 0) this.#warn(undecodable);
    return items;
  }

  /** The list is read for every request: a line for each would bury the log. */
  #warn(undecodable: readonly UndecodableObject[]): void {
    const now = this.#clock.monotonic();
    if (now - this.#warnedAtMs < WARN_EVERY_MS) return;
    this.#warnedAtMs = now;
    this.#log.warn("databases authorize nobody: they cannot be read", {
      count: undecodable.length,
      databases: undecodable.slice(0, NAMED).map(({ namespace, name, paths }) =>
        `${namespace}/${name}: ${paths.join(", ")}`
      ),
    });
  }
}
