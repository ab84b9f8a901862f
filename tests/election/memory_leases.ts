/**
 * Leases in memory, with the API server's rules for versions and with faults, on the test clock.
 *
 * The server's part of a call goes on when its client has given up, so a write may be stored long after.
 *
 * @module
 */

import {
  AlreadyExistsError,
  type CallIdentity,
  ConflictError,
  ForbiddenError,
  KubeTimeoutError,
  NotFoundError,
  UnavailableError,
} from "../../lib/kube/errors.ts";
import type {
  CallOptions,
  KubeApi,
  KubeObject,
  ObjectList,
  ObjectName,
  Patch,
  Resource,
  ServerVersion,
  Stored,
  Watch,
  WatchEvent,
  WatchOptions,
} from "../../lib/kube/api.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DeadlineExceededError, sleep, startDeadline } from "../../lib/runtime/clock.ts";

/** What goes wrong with one call. */
export type Fault =
  /** The request takes this long to the server, and the answer this long back. */
  | { readonly type: "slow"; readonly thereMs: number; readonly backMs: number }
  /** Nothing reaches the server, and no answer comes. */
  | { readonly type: "hang" }
  /** The write is stored, and no answer comes. */
  | { readonly type: "lost_answer" }
  | {
    readonly type: "unavailable";
    readonly mayHaveLanded: boolean;
    readonly retryAfterMs?: number;
  }
  | { readonly type: "forbidden" }
  | { readonly type: "conflict" }
  | { readonly type: "not_found" };

/** The verbs that the election uses. */
export type LeaseVerb = "get" | "create" | "patch" | "watch";

type StoredLease = Stored<Lease>;
type Listener = (event: WatchEvent<Lease>) => void;

/** The store of all clients. */
export class MemoryLeases {
  readonly #objects = new Map<string, StoredLease>();
  readonly #listeners = new Set<Listener>();
  #version = 100;
  #uids = 0;

  constructor(readonly clock: Clock) {}

  /** The Lease as it is; throws when it is missing. */
  read(name: string): StoredLease {
    const lease = this.#objects.get(name);
    if (lease === undefined) throw new NotFoundError(identity("get", name));
    return lease;
  }

  has(name: string): boolean {
    return this.#objects.has(name);
  }

  create(name: string, lease: Lease): StoredLease {
    if (this.#objects.has(name)) throw new AlreadyExistsError(identity("update", name));
    return this.#store(name, lease, `uid-${++this.#uids}`, "added");
  }

  /** A merge patch with version and uid as preconditions. */
  patch(name: string, body: Readonly<Record<string, unknown>>): StoredLease {
    const known = this.read(name);
    const patched = LEASES.parse(merge(known, body));
    if (
      patched.metadata.resourceVersion !== known.metadata.resourceVersion ||
      patched.metadata.uid !== known.metadata.uid
    ) throw new ConflictError(identity("patch", name));
    return this.#store(name, patched, known.metadata.uid, "modified");
  }

  /** Writes as a person with kubectl would: under no version. */
  edit(name: string, body: Readonly<Record<string, unknown>>): StoredLease {
    const known = this.read(name);
    return this.#store(name, LEASES.parse(merge(known, body)), known.metadata.uid, "modified");
  }

  delete(name: string): void {
    const known = this.read(name);
    this.#objects.delete(name);
    const object = { ...known, metadata: { ...known.metadata, resourceVersion: this.#next() } };
    this.#tell({ type: "deleted", object });
  }

  list(name: string): ObjectList<Lease> {
    const lease = this.#objects.get(name);
    return {
      items: lease === undefined ? [] : [lease],
      resourceVersion: String(this.#version),
      undecodable: [],
    };
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #store(name: string, lease: Lease, uid: string, type: "added" | "modified"): StoredLease {
    const metadata = { ...lease.metadata, name, uid, resourceVersion: this.#next() };
    const object = { ...lease, metadata };
    this.#objects.set(name, object);
    this.#tell({ type, object });
    return object;
  }

  #next(): string {
    return String(++this.#version);
  }

  #tell(event: WatchEvent<Lease>): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}

/** How a client's watch behaves. */
export type WatchMode = "works" | "forbidden" | "silent";

/** One client: its own connection, faults and counts. */
export class LeaseClient implements KubeApi {
  readonly defaultNamespace = "default";
  /** The verbs that were called, in order. */
  readonly calls: LeaseVerb[] = [];
  /** Asked for each call. */
  fault: (verb: LeaseVerb) => Fault | null = () => null;
  watchMode: WatchMode = "works";
  /** How long a watch event takes. */
  watchDelayMs = 0;
  /** How long a call takes there, and back. */
  latencyMs = 0;

  constructor(readonly leases: MemoryLeases, readonly clock: Clock) {}

  count(verb: LeaseVerb): number {
    return this.calls.filter((call) => call === verb).length;
  }

  async get<T extends KubeObject>(
    resource: Resource<T>,
    { name }: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>> {
    return stored(resource, await this.#call("get", name, options, () => this.leases.read(name)));
  }

  async createNamed<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: CallOptions,
  ): Promise<Stored<T>> {
    const name = object.metadata.name ?? "";
    const lease = LEASES.parse(object);
    return stored(
      resource,
      await this.#call("create", name, options, () => this.leases.create(name, lease)),
    );
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    { name }: ObjectName,
    patch: Patch,
    options: CallOptions,
  ): Promise<Stored<T>> {
    if (patch.type !== "merge") {
      throw new TypeError("Cannot patch: the election uses merge patches");
    }
    const { body } = patch;
    return stored(
      resource,
      await this.#call("patch", name, options, () => this.leases.patch(name, body)),
    );
  }

  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): Watch<T> {
    this.calls.push("watch");
    const name = (options.fieldSelector ?? "").replace("metadata.name=", "");
    const events = this.#watchEvents(name, options.signal);
    return {
      restart() {},
      async *[Symbol.asyncIterator]() {
        for await (const event of events) {
          if (event.type === "failed" || event.type === "undecodable") yield event;
          else if (event.type === "initial" || event.type === "restarted") {
            const items = event.list.items.map((item) => stored(resource, item));
            yield { ...event, list: { ...event.list, items } };
          } else yield { ...event, object: stored(resource, event.object) };
        }
      },
    };
  }

  async *#watchEvents(name: string, signal: AbortSignal): AsyncGenerator<WatchEvent<Lease>> {
    while (this.watchMode === "forbidden") {
      yield { type: "failed", error: new ForbiddenError(identity("watch", name)) };
      if (!await pause(this.clock, 1_000, signal)) return;
    }
    const queue: WatchEvent<Lease>[] = [];
    let wake = () => {};
    const stop = this.leases.listen((event) => {
      if (this.watchMode === "silent") return;
      after(this.clock, this.watchDelayMs, () => {
        queue.push(event);
        wake();
      });
    });
    signal.addEventListener("abort", () => wake());
    try {
      yield { type: "initial", list: this.leases.list(name) };
      while (!signal.aborted) {
        const next = queue.shift();
        if (next === undefined) {
          const woken = Promise.withResolvers<void>();
          wake = woken.resolve;
          await woken.promise;
        } else {
          yield next;
        }
      }
    } finally {
      stop();
    }
  }

  async #call<R>(
    verb: LeaseVerb,
    name: string,
    { signal, timeoutMs = 10_000 }: CallOptions,
    work: () => R,
  ): Promise<R> {
    this.calls.push(verb);
    const call = identity(verb, name);
    const fault = this.fault(verb);
    using deadline = startDeadline(this.clock, timeoutMs, signal);
    const givenUp = Promise.withResolvers<never>();
    const onAbort = () => {
      const reason: unknown = deadline.signal.reason;
      givenUp.reject(
        reason instanceof DeadlineExceededError
          ? new KubeTimeoutError(call, timeoutMs, { mayHaveLanded: verb !== "get" })
          : reason,
      );
    };
    if (deadline.signal.aborted) onAbort();
    else deadline.signal.addEventListener("abort", onAbort, { once: true });
    return await Promise.race([givenUp.promise, this.#serve(call, fault, work)]);
  }

  #serve<R>(call: CallIdentity, fault: Fault | null, work: () => R): Promise<R> {
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    const answer = (thereMs: number, backMs: number) =>
      after(this.leases.clock, thereMs, () => {
        try {
          const result = work();
          after(this.clock, backMs, () => resolve(result));
        } catch (error) {
          after(this.clock, backMs, () => reject(error));
        }
      });
    const fail = (error: Error) => after(this.clock, this.latencyMs, () => reject(error));
    switch (fault?.type) {
      case undefined:
        answer(this.latencyMs, this.latencyMs);
        break;
      case "slow":
        answer(fault.thereMs, fault.backMs);
        break;
      case "hang":
        break;
      case "lost_answer":
        after(this.leases.clock, this.latencyMs, () => {
          try {
            work();
          } catch {
            // The refusal is lost like any answer.
          }
        });
        break;
      case "unavailable":
        fail(new UnavailableError(call, { status: 503, ...fault }));
        break;
      case "forbidden":
        fail(new ForbiddenError(call));
        break;
      case "conflict":
        fail(new ConflictError(call));
        break;
      case "not_found":
        fail(new NotFoundError(call));
        break;
    }
    return promise;
  }

  list(): Promise<never> {
    return unused();
  }
  create(): Promise<never> {
    return unused();
  }
  replace(): Promise<never> {
    return unused();
  }
  delete(): Promise<never> {
    return unused();
  }
  createSubresource(): Promise<never> {
    return unused();
  }
  version(): Promise<ServerVersion> {
    return unused();
  }
}

function unused(): Promise<never> {
  return Promise.reject(new TypeError("Cannot call this: the election does not use it"));
}

function identity(verb: string, name: string): CallIdentity {
  return { verb, resource: "leases.coordination.k8s.io", target: `default/${name}` };
}

function after(clock: Clock, delayMs: number, callback: () => void): void {
  if (delayMs === 0) callback();
  else clock.timer(delayMs, callback);
}

async function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(clock, delayMs, signal);
    return true;
  } catch {
    return false;
  }
}

function stored<T extends KubeObject>(resource: Resource<T>, lease: StoredLease): Stored<T> {
  const { name, uid, resourceVersion } = lease.metadata;
  const object = resource.parse(structuredClone(lease));
  return { ...object, metadata: { ...object.metadata, name, uid, resourceVersion } };
}

function merge(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merge(result[key], value);
  }
  return result;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
