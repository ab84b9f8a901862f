/**
 * Isolated tasks in the worker threads of Node, which have another interface than the workers of the web.
 *
 * Nothing of Node is imported: the caller brings its threads. So the same program runs on Deno too, which has both kinds.
 *
 * @module
 */

import type { IsolatedWorker } from "./isolated_task.ts";

/** The part of a `Worker` of `node:worker_threads` that is needed. */
export interface NodeThread {
  /** Hands a message over. */
  postMessage(message: unknown): void;
  /** Ends the thread. */
  terminate(): unknown;
  /** Listens for what the thread posts, for what it throws, and for its end with its exit code. */
  on(
    event: "message" | "messageerror" | "error" | "exit",
    listener: (value: unknown) => void,
  ): unknown;
}

/** The part of `parentPort` of `node:worker_threads` that is needed. */
export interface NodeThreadPort {
  /** Hands a message to the program. */
  postMessage(message: unknown): void;
  /** Listens for what the program posts. */
  on(event: "message", listener: (value: unknown) => void): unknown;
}

/**
 * A thread of Node as the worker of an isolated task.
 *
 * ```ts
 * import { fromNodeThread, type IsolatedLeaderTask } from "@holdfast/holdfast/election";
 * import { Worker } from "node:worker_threads";
 *
 * const task: IsolatedLeaderTask = {
 *   name: "compact",
 *   isolated: true,
 *   worker: (name) => fromNodeThread(new Worker(new URL(import.meta.url), { workerData: name })),
 * };
 * ```
 *
 * A thread that ends by itself, by `process.exit` or for want of memory, fails its task.
 */
export function fromNodeThread(thread: NodeThread): IsolatedWorker {
  return {
    postMessage: (message) => thread.postMessage(message),
    terminate: () => void thread.terminate(),
    addEventListener(type, listener) {
      thread.on(type, (value) => listener(eventOf(type, value)));
      if (type !== "error") return;
      // A worker of the web has no end of its own. Here it is told as a failure, which a task that is done ignores.
      thread.on("exit", (code) => listener(eventOf(type, new Error(`it ended with ${code}`))));
    },
  };
}

/**
 * The scope of `hostIsolatedTasks` in a program on Node.
 *
 * ```ts
 * import { hostIsolatedTasks, nodeThreadScope, type Term } from "@holdfast/holdfast/election";
 * import { systemClock as clock } from "@holdfast/holdfast/system";
 * import { parentPort, workerData } from "node:worker_threads";
 *
 * const tasks = { compact: (term: Term) => compact(term.signal) };
 * const scope = nodeThreadScope(parentPort, workerData);
 * if (!hostIsolatedTasks({ scope, clock, tasks })) startProgram();
 *
 * async function compact(_signal: AbortSignal): Promise<void> {}
 * function startProgram(): void {}
 * ```
 *
 * @param port `parentPort`; `null` in the program itself, whose scope is then that of no worker.
 * @param name `workerData`, where {@linkcode IsolatedLeaderTask.worker} puts the name of the worker.
 */
export function nodeThreadScope(port: NodeThreadPort | null, name: unknown): object {
  if (port === null || typeof name !== "string") return {};
  return {
    name,
    postMessage: (message: unknown) => port.postMessage(message),
    addEventListener: (type: "message", listener: (event: Event) => void) =>
      port.on(type, (value) => listener(eventOf(type, value))),
  };
}

/** What a listener of the web gets. */
function eventOf(type: string, value: unknown): Event {
  const event = new Event(type);
  return type === "error"
    ? Object.assign(event, { message: value instanceof Error ? value.message : String(value) })
    : Object.assign(event, { data: value });
}
