/**
 * Keeps what is served in step with the CRDs that are stored.
 *
 * @module
 */

import { kindsOfCrd } from "./crds.ts";
import { type JsonObject, objectAt, stringAt } from "./json.ts";
import type { KindRegistry } from "./kinds.ts";
import { type Change, keyOf, type Store, type StoreListener } from "./store.ts";

const CRDS = "apiextensions.k8s.io/customresourcedefinitions";

/** Serves a kind as soon as its CRD is stored, and removes its objects with it. */
export class CrdController implements StoreListener {
  readonly #store: Store;
  readonly #kinds: KindRegistry;

  constructor(store: Store, kinds: KindRegistry) {
    this.#store = store;
    this.#kinds = kinds;
  }

  onChange(change: Change): void {
    if (change.kindKey !== CRDS) return;
    if (change.type !== "DELETED") {
      this.#kinds.serve(change.key, kindsOfCrd(change.object));
      return;
    }
    for (const object of this.#store.list(objectsKey(change.object), "")) {
      this.#store.remove(objectsKey(change.object), keyOf(object));
    }
    this.#kinds.serve(change.key, []);
  }

  onRestore(): void {
    this.#kinds.clear();
    for (const crd of this.#store.list(CRDS, "")) this.#kinds.serve(keyOf(crd), kindsOfCrd(crd));
  }
}

function objectsKey(crd: JsonObject): string {
  const spec = objectAt(crd, "spec");
  return `${stringAt(spec, "group")}/${stringAt(objectAt(spec, "names"), "plural")}`;
}
