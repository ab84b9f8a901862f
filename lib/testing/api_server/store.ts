/**
 * What etcd does for an API server: objects under keys, one version counter for all of them, and a history of changes.
 *
 * It knows nothing of kinds, schemas or users. Objects are frozen when they are stored.
 *
 * @module
 */

import { frozenCopy, type JsonObject, objectAt, stringAt } from "./json.ts";

/** One change, as a watch tells it. */
export interface Change {
  /** The version that the change made. */
  readonly revision: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** The key of the kind: see `kindKey`. */
  readonly kindKey: string;
  readonly key: string;
  /** The object after the change. For `DELETED`: as it was last, with the version of its deletion. */
  readonly object: JsonObject;
  /** The object before the change; `null` when it was added. */
  readonly previous: JsonObject | null;
}

/** The state of a store at one moment. */
export interface StoreSnapshot {
  readonly revision: number;
  readonly objects: ReadonlyMap<string, ReadonlyMap<string, JsonObject>>;
}

/** Who follows a store. */
export interface StoreListener {
  /** A change was stored. */
  onChange(change: Change): void;
  /** The store went back to an earlier state: nothing that was told before holds. */
  onRestore(): void;
}

/** The first version of a store. Like etcd, it starts above 0, for clients take `0` as "any version". */
const FIRST_REVISION = 1;

/** The key of an object: the order of keys is the order of lists. */
export function objectKey(namespace: string, name: string): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

/** The key of an object that has its metadata. */
export function keyOf(object: JsonObject): string {
  const metadata = objectAt(object, "metadata");
  return objectKey(stringAt(metadata, "namespace"), stringAt(metadata, "name"));
}

/** The object with this version. */
export function withRevision(object: JsonObject, revision: number): JsonObject {
  return {
    ...object,
    metadata: { ...objectAt(object, "metadata"), resourceVersion: String(revision) },
  };
}

/** Objects, versions and history. */
export class Store {
  readonly #listeners = new Set<StoreListener>();
  readonly #historyLimit: number;
  #objects = new Map<string, Map<string, JsonObject>>();
  #history: Change[] = [];
  #revision = FIRST_REVISION;
  #compactedTo = 0;

  /** @param historyLimit How many changes are kept; the oldest are compacted away. */
  constructor(historyLimit: number) {
    this.#historyLimit = historyLimit;
  }

  /** The version of the last change. */
  get revision(): number {
    return this.#revision;
  }

  /** The version below which nothing is remembered: a watch can start from it, and not from one before it. */
  get compactedTo(): number {
    return this.#compactedTo;
  }

  /** One object, or `null`. */
  get(kindKey: string, key: string): JsonObject | null {
    return this.#objects.get(kindKey)?.get(key) ?? null;
  }

  /** All objects of a kind in the order of their keys; of one namespace when `namespace` is not empty. */
  list(kindKey: string, namespace: string): JsonObject[] {
    return inOrder(this.#objects.get(kindKey) ?? new Map(), namespace);
  }

  /** As {@linkcode list}, at an earlier version. `null` when that version is not remembered. */
  listAt(kindKey: string, namespace: string, revision: number): JsonObject[] | null {
    if (revision < this.#compactedTo || revision > this.#revision) return null;
    const objects = new Map(this.#objects.get(kindKey));
    for (const change of this.#history.toReversed()) {
      if (change.revision <= revision) break;
      if (change.kindKey !== kindKey) continue;
      if (change.previous === null) objects.delete(change.key);
      else objects.set(change.key, change.previous);
    }
    return inOrder(objects, namespace);
  }

  /** The changes after a version, oldest first. `null` when that version is not remembered. */
  changesAfter(kindKey: string, revision: number): Change[] | null {
    if (revision < this.#compactedTo) return null;
    return this.#history.filter((change) =>
      change.kindKey === kindKey && change.revision > revision
    );
  }

  /** Stores an object under a new version, and returns it as stored. */
  put(kindKey: string, object: JsonObject): JsonObject {
    const key = keyOf(object);
    const previous = this.get(kindKey, key);
    const stored = frozenCopy(withRevision(object, ++this.#revision));
    let ofKind = this.#objects.get(kindKey);
    if (ofKind === undefined) this.#objects.set(kindKey, ofKind = new Map());
    ofKind.set(key, stored);
    this.#record({
      revision: this.#revision,
      type: previous === null ? "ADDED" : "MODIFIED",
      kindKey,
      key,
      object: stored,
      previous,
    });
    return stored;
  }

  /** Removes an object. Returns it as it was last, with the version of the deletion; `null` when it was not there. */
  remove(kindKey: string, key: string): JsonObject | null {
    const previous = this.get(kindKey, key);
    if (previous === null) return null;
    this.#objects.get(kindKey)?.delete(key);
    const object = frozenCopy(withRevision(previous, ++this.#revision));
    this.#record({ revision: this.#revision, type: "DELETED", kindKey, key, object, previous });
    return object;
  }

  /** Forgets the history up to this version. */
  compact(revision: number): void {
    this.#compactedTo = Math.max(this.#compactedTo, Math.min(revision, this.#revision));
    this.#history = this.#history.filter((change) => change.revision > this.#compactedTo);
  }

  /** The state now. Objects are frozen, so it costs a copy of the maps only. */
  snapshot(): StoreSnapshot {
    const objects = new Map(
      [...this.#objects].map(([kindKey, ofKind]) => [kindKey, new Map(ofKind)] as const),
    );
    return { revision: this.#revision, objects };
  }

  /** Goes back to an earlier state, as a restored backup of etcd does: versions that were given are given again. */
  restore(snapshot: StoreSnapshot): void {
    this.#objects = new Map(
      [...snapshot.objects].map(([kindKey, ofKind]) => [kindKey, new Map(ofKind)] as const),
    );
    this.#revision = snapshot.revision;
    this.#history = [];
    this.#compactedTo = snapshot.revision;
    for (const listener of [...this.#listeners]) listener.onRestore();
  }

  /** Tells a listener of every change from now on. Returns a function that ends it. */
  subscribe(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #record(change: Change): void {
    this.#history.push(change);
    if (this.#history.length > this.#historyLimit) {
      // Half at once, so that a long run pays for a copy seldom.
      const oldest = this.#history[Math.floor(this.#historyLimit / 2)];
      if (oldest) this.compact(oldest.revision);
    }
    for (const listener of [...this.#listeners]) listener.onChange(change);
  }
}

function inOrder(objects: ReadonlyMap<string, JsonObject>, namespace: string): JsonObject[] {
  const prefix = `${namespace}/`;
  const keys = [...objects.keys()].filter((key) => namespace === "" || key.startsWith(prefix));
  const found: JsonObject[] = [];
  for (const key of keys.sort(byBytes)) {
    const object = objects.get(key);
    if (object) found.push(object);
  }
  return found;
}

/** The order of etcd. Names and namespaces are ASCII, for which code units and bytes are the same. */
function byBytes(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
