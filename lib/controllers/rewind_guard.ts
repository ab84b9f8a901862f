/**
 * Finds that the store went back in time: a restored backup of etcd. State protocol 2.4.
 *
 * A watch that is resumed from a version that is still to come drops events without an error. The watch itself compares
 * versions where it lists; this guard does so for every other call: the answer to a write that is older than what the
 * watches knew *before the call was sent*, and a read that shows an older version of the same object (same uid) than the
 * watches knew by then. Then what the watches showed is worth nothing, and they begin anew.
 *
 * @module
 */

import type {
  CallOptions,
  KubeObject,
  ListOptions,
  ObjectList,
  ObjectName,
  Patch,
  Resource,
  Stored,
  WriteOptions,
} from "../kube/api.ts";
import { ApiDecorator } from "../kube/api_decorator.ts";
import { isRewound } from "../kube/versions.ts";

/** What the watches know. */
export interface KnownVersions {
  /** The newest version that the watch of a kind told; empty for a kind that is not watched, and before its first list. */
  newest(resource: Resource): string;
  /** Which object the watches showed last under a name, and in which version; `null` when they showed none. */
  shown(
    resource: Resource,
    name: ObjectName,
  ): { readonly uid: string; readonly resourceVersion: string } | null;
}

/** A cluster, and a look at the versions of its answers. */
export class RewindGuard extends ApiDecorator {
  #known: KnownVersions | null = null;
  #onRewound = () => {};

  /** Begins to compare. `onRewound` may be called several times before the watches have begun anew. */
  begin(known: KnownVersions, onRewound: () => void): void {
    this.#known = known;
    this.#onRewound = onRewound;
  }

  /** Ends comparing. */
  end(): void {
    this.#known = null;
  }

  override async get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>> {
    const shown = this.#known?.shown(resource, name) ?? null;
    const object = await super.get(resource, name, options);
    const { uid, resourceVersion } = object.metadata;
    if (shown?.uid === uid) this.#compare(resourceVersion, shown.resourceVersion);
    return object;
  }

  override async list<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions,
  ): Promise<ObjectList<T>> {
    const newest = this.#newest(resource);
    const list = await super.list(resource, options);
    // A cache may be behind without anything having gone back.
    if (options.cached !== true) this.#compare(list.resourceVersion, newest);
    return list;
  }

  override createNamed<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return this.#written(resource, () => super.createNamed(resource, object, options));
  }

  override replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return this.#written(resource, () => super.replace(resource, object, options));
  }

  override patch<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    patch: Patch,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return this.#written(resource, () => super.patch(resource, name, patch, options));
  }

  /** A write gives the object the newest version that there is. (One that changes nothing does not, and costs a list.) */
  async #written<T extends KubeObject>(
    resource: Resource<T>,
    write: () => Promise<Stored<T>>,
  ): Promise<Stored<T>> {
    const newest = this.#newest(resource);
    const object = await write();
    this.#compare(object.metadata.resourceVersion, newest);
    return object;
  }

  #newest(resource: Resource): string {
    return this.#known?.newest(resource) ?? "";
  }

  #compare(version: string, known: string): void {
    if (isRewound(version, known)) this.#onRewound();
  }
}
