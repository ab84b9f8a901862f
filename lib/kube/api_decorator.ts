/**
 * A `KubeApi` that hands every call on: what changes one of them leaves the others as they are.
 *
 * @module
 */

import type {
  CallOptions,
  DeletePreconditions,
  KubeApi,
  KubeObject,
  ListOptions,
  ObjectList,
  ObjectName,
  Patch,
  Resource,
  ServerVersion,
  Stored,
  Subresource,
  Watch,
  WatchOptions,
  WriteOptions,
} from "./api.ts";

/** Hands every call to another `KubeApi`. Extend it and change the calls that you mean. */
export class ApiDecorator implements KubeApi {
  /** @param inner Serves the calls. */
  constructor(protected readonly inner: KubeApi) {}

  get defaultNamespace(): string {
    return this.inner.defaultNamespace;
  }

  get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>> {
    return this.inner.get(resource, name, options);
  }

  list<T extends KubeObject>(resource: Resource<T>, options: ListOptions): Promise<ObjectList<T>> {
    return this.inner.list(resource, options);
  }

  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): Watch<T> {
    return this.inner.watch(resource, options);
  }

  create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ): Promise<T> {
    return this.inner.create(resource, object, options);
  }

  createNamed<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return this.inner.createNamed(resource, object, options);
  }

  replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return this.inner.replace(resource, object, options);
  }

  patch<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    patch: Patch,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    return this.inner.patch(resource, name, patch, options);
  }

  delete<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    preconditions: DeletePreconditions,
    options: CallOptions,
  ): Promise<void> {
    return this.inner.delete(resource, name, preconditions, options);
  }

  createSubresource<T extends KubeObject>(
    resource: Resource,
    name: ObjectName,
    subresource: Subresource,
    bodyResource: Resource<T>,
    body: T,
    options: CallOptions,
  ): Promise<T> {
    return this.inner.createSubresource(
      resource,
      name,
      subresource,
      bodyResource,
      body,
      options,
    );
  }

  version(options: CallOptions): Promise<ServerVersion> {
    return this.inner.version(options);
  }
}
