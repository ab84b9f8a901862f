/** Groups of the page, a view that a test fills, and a client that keeps what it gets. */

import type {
  ChangeCause,
  ChangeListener,
  WholeSight,
  WholeView,
} from "../../lib/auxiliary/mod.ts";
import type { MysqlFailoverGroup } from "../../lib/group/types.ts";
import type { WebSocketClient } from "../../lib/host/web_socket_client.ts";
import type { Stored, UndecodableObject } from "../../lib/kube/api.ts";
import type { Lease } from "../../lib/kube/resources.ts";
import { lookAt, type PageGroup } from "../../lib/status_page/model.ts";
import { healthyGroup } from "../group/fixtures.ts";
import { gate, gateOf, NOW, snapshotOf } from "../status/fixtures.ts";

/** A group with its gate and leases, as the page shows it. */
export function pageGroup(
  leases: readonly Stored<Lease>[] = [],
  group: Stored<MysqlFailoverGroup> = healthyGroup(),
  time = NOW,
): PageGroup {
  const found = lookAt(snapshotOf([group], [gateOf(gate()), ...leases]), time);
  if (found === null) throw new Error("There is a group in the snapshot");
  return found.group;
}

/** A group of another name. */
export function named(name: string, group = healthyGroup()): Stored<MysqlFailoverGroup> {
  return { ...group, metadata: { ...group.metadata, name, uid: `uid-of-${name}` } };
}

/** A view that shows what a test puts into it. */
export class PageView implements WholeView {
  synced = true;
  troubles: string[] = [];
  readonly unreadable = new Map<string, UndecodableObject>();
  readonly groups = new Map<string, WholeSight>();
  readonly #listeners = new Set<ChangeListener>();

  get listeners(): number {
    return this.#listeners.size;
  }

  keys(): readonly string[] {
    return [...this.groups.keys()].sort();
  }

  sight(key: string): WholeSight | null {
    return this.groups.get(key) ?? null;
  }

  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Puts a group in with its leases, and tells of it. */
  put(
    group: Stored<MysqlFailoverGroup>,
    leases: readonly Stored<Lease>[] = [],
    cause: ChangeCause = "watch",
    strangers: readonly Stored<Lease>[] = [],
  ): void {
    const key = `${group.metadata.namespace}/${group.metadata.name}`;
    const before = this.sight(key);
    const after = { group, leases, strangers };
    this.groups.set(key, after);
    for (const listener of this.#listeners) listener([{ key, before, after }], cause);
  }

  /** Takes a group out, and tells of it. */
  remove(key: string): void {
    const before = this.sight(key);
    this.groups.delete(key);
    for (const listener of this.#listeners) listener([{ key, before, after: null }], "watch");
  }

  /** Tells of a group that cannot be read. */
  break(object: UndecodableObject): void {
    const key = `${object.namespace}/${object.name}`;
    const before = this.sight(key);
    this.groups.delete(key);
    this.unreadable.set(key, object);
    for (const listener of this.#listeners) listener([{ key, before, after: null }], "watch");
  }
}

/** A client as fast as it is asked: it keeps its messages, the newest of each key, until they are taken. */
export class KeepingClient implements WebSocketClient {
  readonly #gone = new AbortController();
  readonly #waiting = new Map<string, string>();

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  put(key: string, text: string, place: "kept" | "last" = "kept"): void {
    if (place === "last") this.#waiting.delete(key);
    this.#waiting.set(key, text);
  }

  /** Takes what waits. */
  take(): readonly Record<string, unknown>[] {
    const messages = [...this.#waiting.values()].map((text) => JSON.parse(text));
    this.#waiting.clear();
    return messages;
  }

  /** How many messages wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  leave(): void {
    this.#gone.abort();
  }
}
