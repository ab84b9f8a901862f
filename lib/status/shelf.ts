/**
 * What a watch has shown so far, also of objects that cannot be read.
 *
 * @module
 */

import type { KubeObject, ObjectList, Stored, UndecodableObject, WatchEvent } from "../kube/api.ts";

/** A copy of a kind of objects. */
export class Shelf<T extends KubeObject> {
  readonly #objects = new Map<string, Stored<T>>();
  readonly #undecodable = new Map<string, UndecodableObject>();
  #trouble = "";

  /** The class of the error while the watch fails, for example `unavailable`; empty while it works. */
  get trouble(): string {
    return this.#trouble;
  }

  /** Takes an event. */
  apply(event: WatchEvent<T>): void {
    this.#trouble = event.type === "failed" ? event.error.kind : "";
    switch (event.type) {
      case "initial":
      case "restarted":
        this.fill(event.list);
        break;
      case "added":
      case "modified":
        this.#undecodable.delete(keyOf(event.object.metadata));
        this.#objects.set(keyOf(event.object.metadata), event.object);
        break;
      case "deleted":
        this.#undecodable.delete(keyOf(event.object.metadata));
        this.#objects.delete(keyOf(event.object.metadata));
        break;
      case "undecodable":
        this.#objects.delete(keyOf(event.object));
        this.#undecodable.set(keyOf(event.object), event.object);
    }
  }

  /** Forgets what it knew and takes a list. */
  fill(list: Pick<ObjectList<T>, "items" | "undecodable">): void {
    this.#objects.clear();
    this.#undecodable.clear();
    for (const object of list.items) this.#objects.set(keyOf(object.metadata), object);
    for (const object of list.undecodable) this.#undecodable.set(keyOf(object), object);
  }

  /** What there is now. */
  list(): Pick<ObjectList<T>, "items" | "undecodable"> {
    return {
      items: [...this.#objects.values()],
      undecodable: [...this.#undecodable.values()],
    };
  }
}

function keyOf(
  { namespace = "", name = "" }: { readonly namespace?: string; readonly name?: string },
) {
  return `${namespace}/${name}`;
}
