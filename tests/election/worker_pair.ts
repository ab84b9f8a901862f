/**
 * A worker in memory: both sides of it, on test clocks, with messages that a test can hold back.
 *
 * @module
 */

import {
  hostIsolatedTasks,
  type IsolatedTaskRun,
  type IsolatedWorker,
} from "../../lib/election/mod.ts";
import type { Clock } from "../../lib/runtime/clock.ts";

type Listener = (event: Event) => void;

/** A clock that shows the time of another one as if it had been started at another moment. */
export function shiftedClock(clock: Clock, byMs: number): Clock {
  return {
    monotonic: () => clock.monotonic() + byMs,
    wall: () => clock.wall(),
    timer: (delayMs, callback) => clock.timer(delayMs, callback),
  };
}

/** A way for messages. What is posted while it is closed waits. */
class Way {
  readonly #listeners: Listener[] = [];
  readonly #waiting: unknown[] = [];
  #open = true;

  post(message: unknown): void {
    // Shared memory stays shared; all else is copied, and what cannot be is refused here as the platform does.
    this.#waiting.push(structuredClone(message));
    queueMicrotask(() => this.#deliver());
  }

  listen(listener: Listener): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.#open = false;
  }

  open(): void {
    this.#open = true;
    this.#deliver();
  }

  drop(): void {
    this.#listeners.length = 0;
  }

  #deliver(): void {
    if (!this.#open) return;
    for (const data of this.#waiting.splice(0)) {
      for (const listener of this.#listeners) listener(new MessageEvent("message", { data }));
    }
  }
}

/** What a {@linkcode WorkerPair} is made of. */
export interface WorkerPairOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly tasks: Readonly<Record<string, IsolatedTaskRun>>;
  /** The messages to the worker, or from it, wait from the start. */
  readonly closed?: "toWorker" | "toProgram";
}

/** A worker, and the global scope inside it. */
export class WorkerPair implements IsolatedWorker {
  readonly toWorker = new Way();
  readonly toProgram = new Way();
  readonly #errors: Listener[] = [];
  terminated = false;

  constructor({ name, clock, tasks, closed }: WorkerPairOptions) {
    if (closed !== undefined) this[closed].close();
    const scope = {
      name,
      postMessage: (message: unknown) => this.toProgram.post(message),
      addEventListener: (_type: string, listener: Listener) => this.toWorker.listen(listener),
    };
    queueMicrotask(() => hostIsolatedTasks({ scope, clock, tasks }));
  }

  postMessage(message: unknown): void {
    this.toWorker.post(message);
  }

  terminate(): void {
    this.terminated = true;
    this.toWorker.drop();
    this.toProgram.drop();
  }

  addEventListener(type: string, listener: Listener): void {
    if (type === "message") this.toProgram.listen(listener);
    if (type === "error") this.#errors.push(listener);
  }

  /** The worker throws what nobody catches; says whether the program kept it from ending the program. */
  crash(message?: string): boolean {
    const event = message === undefined
      ? new Event("error", { cancelable: true })
      : new ErrorEvent("error", { message, cancelable: true });
    for (const listener of this.#errors) listener(event);
    return event.defaultPrevented;
  }
}
