/**
 * Decides which API call goes next.
 *
 * Every process of a simulation gets a {@linkcode ScheduledApi}: its calls wait until the simulation picks one. Between two
 * calls a process only computes, so whoever chooses the order of calls chooses the interleaving, and a process that is
 * never picked again has crashed.
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
  Stored,
  WriteOptions,
} from "../../lib/kube/api.ts";
import { UnavailableError } from "../../lib/kube/errors.ts";
import { ApiDecorator } from "../../lib/kube/api_decorator.ts";

/** A call that waits for its turn. */
export interface WaitingCall {
  /** Which process made it. */
  readonly process: string;
  /** What it does, for traces: `planner-1: replace leases orders-gate`. */
  readonly label: string;
  /** False while it would have nothing to do. */
  readonly enabled: () => boolean;
  readonly perform: () => Promise<unknown>;
  readonly answer: (outcome: PromiseSettledResult<unknown>) => void;
}

const LOST: PromiseSettledResult<unknown> = {
  status: "rejected",
  reason: new UnavailableError({ verb: "any", resource: "any", target: "" }, {
    mayHaveLanded: true,
  }),
};

/** The calls of all processes, and the order in which they came. */
export class Scheduler {
  #waiting: WaitingCall[] = [];
  readonly #observe: (process: string, label: string, outcome: unknown) => void;

  /** @param observe Is told of each call that was performed, with its answer or error. */
  constructor(observe: (process: string, label: string, outcome: unknown) => void) {
    this.#observe = observe;
  }

  /** The calls that can go next. Their order depends on nothing but the calls that went before. */
  get choices(): readonly WaitingCall[] {
    return this.#waiting.filter((call) => call.enabled());
  }

  /** Labels of all calls that wait: part of the state of a simulation. */
  get waiting(): readonly string[] {
    return this.#waiting.map(({ label }) => label);
  }

  /**
   * Lets one call through, and all computing that follows from its answer.
   *
   * @param lost The call is served, and its answer is lost on the way.
   */
  async step(call: WaitingCall, lost = false): Promise<void> {
    this.#waiting = this.#waiting.filter((other) => other !== call);
    const [served] = await Promise.allSettled([call.perform()]);
    const outcome = lost ? LOST : served;
    this.#observe(
      call.process,
      call.label,
      outcome.status === "fulfilled" ? outcome.value : String(outcome.reason),
    );
    call.answer(outcome);
    await computed();
  }

  /** Waits like a call until the simulation picks it. */
  wait<T>(
    process: string,
    what: string,
    perform: () => Promise<T>,
    enabled: () => boolean = () => true,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      let value: Promise<T> | undefined;
      this.#waiting.push({
        process,
        label: `${process}: ${what}`,
        enabled,
        perform: () => value = perform(),
        answer: (outcome) => {
          if (outcome.status === "fulfilled" && value !== undefined) resolve(value);
          else if (outcome.status === "rejected") reject(outcome.reason);
        },
      });
      // In the order of names: calls that were made at once have no order of their own.
      this.#waiting.sort((a, b) => a.label < b.label ? -1 : a.label > b.label ? 1 : 0);
    });
  }
}

/** Returns when all promises that can settle have: between two calls no process waits for anything else. */
export function computed(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => resolve()));
}

/** The cluster as one process sees it. */
export class ScheduledApi extends ApiDecorator {
  readonly #scheduler: Scheduler;
  readonly #process: string;

  constructor(inner: KubeApi, scheduler: Scheduler, process: string) {
    super(inner);
    this.#scheduler = scheduler;
    this.#process = process;
  }

  override get<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    options: CallOptions,
  ): Promise<Stored<T>> {
    return this.#wait("get", resource, name.name, () => this.inner.get(resource, name, options));
  }

  override list<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions,
  ): Promise<ObjectList<T>> {
    const what = options.labelSelector ?? "";
    return this.#wait("list", resource, what, () => this.inner.list(resource, options));
  }

  override create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ): Promise<T> {
    const { name = "" } = object.metadata;
    const perform = () => this.inner.create(resource, object, options);
    return this.#wait("create", resource, name, perform);
  }

  override delete<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    preconditions: DeletePreconditions,
    options: CallOptions,
  ): Promise<void> {
    const perform = () => this.inner.delete(resource, name, preconditions, options);
    return this.#wait("delete", resource, name.name, perform);
  }

  override createNamed<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    const { name = "" } = object.metadata;
    const perform = () => this.inner.createNamed(resource, object, options);
    return this.#wait("create", resource, name, perform);
  }

  override replace<T extends KubeObject>(
    resource: Resource<T>,
    object: Stored<T>,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    const perform = () => this.inner.replace(resource, object, options);
    return this.#wait("replace", resource, object.metadata.name, perform);
  }

  override patch<T extends KubeObject>(
    resource: Resource<T>,
    name: ObjectName,
    patch: Patch,
    options: WriteOptions,
  ): Promise<Stored<T>> {
    const what = `${name.name} ${options.subresource ?? "metadata"}`;
    const perform = () => this.inner.patch(resource, name, patch, options);
    return this.#wait("patch", resource, what, perform);
  }

  #wait<T>(
    verb: string,
    { plural }: Resource,
    name: string,
    perform: () => Promise<T>,
  ): Promise<T> {
    return this.#scheduler.wait(this.#process, `${verb} ${plural} ${name}`, perform);
  }
}
