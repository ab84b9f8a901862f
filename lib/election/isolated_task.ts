/**
 * The program's side of an isolated task: starts its worker, keeps it informed, and ends it.
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";
import { isolatedWorkerName, type Order, reportIn, SharedBelief } from "./isolated_protocol.ts";
import type { Leadership } from "./leadership.ts";
import { LeadershipLostError } from "./loss.ts";
import { sendInstant, type Term } from "./term.ts";

/** The longest time, in milliseconds, in which a worker must answer a ping before it is ended: design 4. */
const MAX_PING_MS = 100;

/** The part of the platform's `Worker` that is needed. A `Worker` is one. */
export interface IsolatedWorker {
  /** Hands a message over. Shared memory in it must stay shared. */
  postMessage(message: unknown): void;
  /** Ends the worker with its timers and its I/O. */
  terminate(): void;
  /** Listens for what the worker posts, and for what it throws and does not catch. */
  addEventListener(
    type: "message" | "messageerror" | "error",
    listener: (event: Event) => void,
  ): void;
}

/**
 * A task of the leader that runs in a worker of its own, so that it cannot starve the elector, however long it computes.
 *
 * A function cannot be sent to a worker, so the worker loads a file, and that file calls `hostIsolatedTasks`. Take the
 * program's own first file: it is the one that is still there when the program is bundled into one file.
 *
 * ```ts
 * const task: IsolatedLeaderTask = {
 *   name: "compact",
 *   isolated: true,
 *   worker: (name) => new Worker(import.meta.url, { type: "module", name }),
 *   input: { table: "orders" },
 * };
 * ```
 *
 * At the stop deadline the worker is pinged. One that answers within 100 ms is terminated. One that does not answer
 * computes without a pause, and no platform can stop it then: the process is ended.
 */
export interface IsolatedLeaderTask {
  /** Names the task in log lines and errors, and in the worker. Not blank, and unique among the tasks. */
  readonly name: string;
  readonly isolated: true;
  /**
   * Starts the worker; called once in each term.
   *
   * @param name The name that the worker must get: by it the file knows which task is meant.
   */
  readonly worker: (name: string) => IsolatedWorker;
  /** What the task gets beside its term: anything that can be cloned. @default {undefined} */
  readonly input?: unknown;
}

/** What an {@linkcode IsolatedRun} is made of. */
export interface IsolatedRunParts {
  readonly task: IsolatedLeaderTask;
  readonly term: Term;
  readonly leadership: Leadership;
  readonly clock: Clock;
}

/** Why a worker is not asked any more. */
type PingAnswer = "answered" | "silent" | "settled";

/** One run of an isolated task, for one term. */
export class IsolatedRun {
  /** Settles when the task has: it rejects with what the task threw. */
  readonly settled: Promise<void>;
  readonly #parts: IsolatedRunParts;
  readonly #belief = new SharedBelief();
  readonly #worker: IsolatedWorker;
  #succeed: () => void = () => {};
  #fail: (error: unknown) => void = () => {};
  readonly #informing = new AbortController();
  readonly #onEnd = () => this.#tellEnd();
  #begun = false;
  #onPong = () => {};

  /** @throws What `worker` of the task throws. */
  constructor(parts: IsolatedRunParts) {
    const { task, term } = parts;
    this.#parts = parts;
    this.#worker = task.worker(isolatedWorkerName(task.name));
    this.#worker.addEventListener("message", (event) => this.#hear(event));
    for (const type of ["error", "messageerror"] as const) {
      this.#worker.addEventListener(type, (event) => this.#crashed(event));
    }
    this.settled = this.#settle(
      new Promise<void>((resolve, reject) => {
        this.#succeed = resolve;
        this.#fail = reject;
      }),
    );
    if (term.signal.aborted) this.#onEnd();
    else term.signal.addEventListener("abort", this.#onEnd, { once: true });
  }

  /**
   * Ends the worker by force, if that can be done.
   *
   * @param gapMs Milliseconds until another replica may lead.
   * @returns False when the worker does not answer: it cannot be ended, and goes on.
   */
  async endByForce(gapMs: number): Promise<boolean> {
    const answer = await this.#ping(pingLimitMs(gapMs));
    if (answer === "answered") this.#succeed();
    return answer !== "silent";
  }

  async #settle(outcome: Promise<void>): Promise<void> {
    const informed = this.#inform();
    try {
      await outcome;
    } finally {
      this.#worker.terminate();
      this.#parts.term.signal.removeEventListener("abort", this.#onEnd);
      this.#informing.abort();
      await informed;
    }
  }

  /** Copies belief into the shared memory at each change of it. */
  async #inform(): Promise<void> {
    this.#writeBelief();
    for await (const _ of this.#parts.leadership.subscribe(this.#informing.signal)) {
      this.#writeBelief();
    }
    // The elector has ended, or the task has: a worker that still computes must not go on believing.
    this.#belief.write({ over: true, validUntil: null, wallOffsetMs: 0 });
  }

  #writeBelief(): void {
    const { term, clock } = this.#parts;
    this.#belief.write({
      over: !term.isValid(),
      validUntil: term.validUntil,
      wallOffsetMs: sendInstant(clock).wallOffsetMs,
    });
  }

  #hear(event: Event): void {
    const report = reportIn(event);
    switch (report?.type) {
      case "ready":
        return this.#begin();
      case "done":
        return this.#succeed();
      case "failed":
        return this.#fail(report.error);
      case "resign":
        return this.#parts.term.resign();
      case "pong":
        return this.#onPong();
    }
  }

  #begin(): void {
    const { task, term, leadership, clock } = this.#parts;
    if (this.#begun) return;
    this.#begun = true;
    this.#post({
      type: "begin",
      token: term.token,
      leaseName: leadership.leaseName,
      nowMs: Math.ceil(clock.monotonic()),
      wallOffsetMs: sendInstant(clock).wallOffsetMs,
      belief: this.#belief.buffer,
      input: task.input,
    });
  }

  #tellEnd(): void {
    // The work of the term begins with the first message. Without it there is nothing to wait for.
    if (!this.#begun) return this.#succeed();
    const reason: unknown = this.#parts.term.signal.reason;
    this.#post({
      type: "end",
      reason: reason instanceof LeadershipLostError ? reason.reason : "stopped",
    });
  }

  #crashed(event: Event): void {
    // Without this the platform takes it for an error of the program that nobody caught, and ends the program.
    event.preventDefault();
    const text = "message" in event ? event.message : undefined;
    const told = typeof text === "string" ? text : "it posted what cannot be read";
    this.#fail(new Error(`Cannot go on as the worker of the task failed: ${told}`));
  }

  #post(order: Order): void {
    try {
      this.#worker.postMessage(order);
    } catch (error) {
      // What cannot be cloned is in the task's own input.
      this.#fail(error);
    }
  }

  #ping(limitMs: number): Promise<PingAnswer> {
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.timer(limitMs, () => resolve("silent"));
      const end = (answer: PingAnswer) => {
        cancel();
        resolve(answer);
      };
      const onSettled = () => end("settled");
      this.settled.then(onSettled, onSettled);
      this.#onPong = () => end("answered");
      this.#post({ type: "ping" });
    });
  }
}

/** The time that a worker gets to answer: at most 100 ms, and never past the moment at which another may lead. */
export function pingLimitMs(gapMs: number): number {
  return Math.min(MAX_PING_MS, Math.max(1, gapMs));
}
