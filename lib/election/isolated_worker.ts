/**
 * The worker's side of an isolated task: knows what it was started for, and runs the task under a term of its own.
 *
 * ## Why the worker may rely on its own clock
 *
 * The worker reads its clock before it says that it is ready, and the program reads its own after it heard that. So a
 * time of the program lies no earlier on the worker's clock than that first reading plus the time since the second. The
 * worker takes exactly that for the end of belief: the delay of a message makes its belief shorter and never longer.
 *
 * @module
 */

import { z } from "zod";
import type { CancelTimer, Clock } from "../runtime/clock.ts";
import { type Order, orderIn, type Report, SharedBelief, taskNameOf } from "./isolated_protocol.ts";
import { isAbort, LeadershipLostError, type LossReason } from "./loss.ts";
import { clockJumped } from "./policy.ts";
import { type SendInstant, sendInstant, type Term } from "./term.ts";

/** The work of an isolated task: as {@linkcode LeaderTask.run}, with the input of the task beside the term. */
export type IsolatedTaskRun = (term: Term, input: unknown) => Promise<void> | void;

/** What {@linkcode hostIsolatedTasks} needs. */
export interface IsolatedTasksHost {
  /** The global scope: `self` or `globalThis`. */
  readonly scope: object;
  /** The clock of this worker. */
  readonly clock: Clock;
  /** The tasks that this file can run, by name. */
  readonly tasks: Readonly<Record<string, IsolatedTaskRun>>;
}

/** The part of a worker's global scope that is needed. */
interface Port {
  readonly taskName: string;
  post(report: Report): void;
  listen(hear: (event: unknown) => void): void;
}

type Begin = Order & { readonly type: "begin" };

/**
 * Runs an isolated task, if this file was loaded into a worker for one. Call it first in the program's first file: what
 * stands before it runs in each worker too.
 *
 * ```ts
 * import { hostIsolatedTasks, type Term } from "@holdfast/holdfast/election";
 * import { systemClock as clock } from "@holdfast/holdfast/system";
 *
 * const tasks = { compact: (term: Term) => compact(term.signal) };
 * if (!hostIsolatedTasks({ scope: self, clock, tasks })) startProgram();
 *
 * async function compact(_signal: AbortSignal): Promise<void> {}
 * function startProgram(): void {}
 * ```
 *
 * @returns False when this is not such a worker: go on with the program.
 */
export function hostIsolatedTasks({ scope, clock, tasks }: IsolatedTasksHost): boolean {
  const port = portOf(scope);
  if (port === null) return false;
  const run = Object.hasOwn(tasks, port.taskName) ? tasks[port.taskName] : undefined;
  if (run === undefined) {
    const known = Object.keys(tasks).join(", ");
    const message =
      `Cannot run the isolated task '${port.taskName}' as the worker's file must have it: it has ${
        known || "none"
      }`;
    port.post({ type: "failed", error: new RangeError(message) });
    return true;
  }
  const ready = sendInstant(clock);
  let term: WorkerTerm | null = null;
  port.listen((event) => {
    const order = orderIn(event);
    if (order?.type === "ping") port.post({ type: "pong" });
    else if (order?.type === "end") term?.end(order.reason);
    else if (order?.type === "begin" && term === null) {
      const begun = new WorkerTerm({ order, ready, clock, port });
      term = begun;
      void report(port, begun, () => run(begun, order.input));
    }
  });
  port.post({ type: "ready" });
  return true;
}

/** Runs the task to its end, with all work that it registered, and tells how it ended. */
async function report(
  port: Port,
  term: WorkerTerm,
  run: () => Promise<void> | void,
): Promise<void> {
  try {
    await run();
    await term.settle();
    port.post({ type: "done" });
  } catch (error) {
    const stopped = term.signal.aborted && isAbort(error, term.signal);
    // Work that was registered may wait for the end of the term, so the term must not wait for that work.
    if (!stopped) term.resign();
    await term.settle();
    if (stopped) return port.post({ type: "done" });
    try {
      port.post({ type: "failed", error });
    } catch {
      const message = "Cannot show what the isolated task threw as it must be cloneable";
      port.post({ type: "failed", error: new TypeError(message) });
    }
  }
}

const scopeSchema = z.object({
  name: z.string(),
  postMessage: z.custom<(message: unknown) => void>((value) => typeof value === "function"),
  addEventListener: z.custom<(type: string, listener: (event: unknown) => void) => void>(
    (value) => typeof value === "function",
  ),
});

/** The way to the program; `null` when this is no worker for an isolated task. */
function portOf(scope: object): Port | null {
  const { data } = scopeSchema.safeParse(scope);
  const taskName = data === undefined ? null : taskNameOf(data.name);
  if (data === undefined || taskName === null) return null;
  return {
    taskName,
    post: (report) => data.postMessage.call(scope, report),
    listen: (hear) => data.addEventListener.call(scope, "message", hear),
  };
}

interface WorkerTermParts {
  readonly order: Begin;
  /** What this worker's clocks said before it was ready. */
  readonly ready: SendInstant;
  readonly clock: Clock;
  readonly port: Port;
}

/** The term as the worker sees it. */
class WorkerTerm implements Term {
  readonly token: string;
  readonly #parts: WorkerTermParts;
  readonly #belief: SharedBelief;
  readonly #ended = new AbortController();
  readonly #work = new Set<Promise<unknown>>();
  #lost = false;
  #settled = false;
  #cancelDeadline: CancelTimer = () => {};

  constructor(parts: WorkerTermParts) {
    this.token = parts.order.token;
    this.#parts = parts;
    this.#belief = new SharedBelief(parts.order.belief);
    this.#armDeadline();
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  get validUntil(): number | null {
    const { validUntil } = this.#belief.read();
    const { ready, order } = this.#parts;
    return validUntil === null ? null : ready.atMs + (validUntil - order.nowMs);
  }

  isValid(): boolean {
    if (this.#lost) return false;
    const reason = this.#loss();
    if (reason === null) return true;
    this.#lost = true;
    this.#cancelDeadline();
    // The task ends now, so the term has to: no other replica would do its work.
    if (!this.signal.aborted) this.resign();
    this.end(reason);
    return false;
  }

  waitUntil(work: Promise<unknown>): void {
    if (this.#settled) throw this.#error("stopped");
    this.#work.add(work);
    const remove = () => this.#work.delete(work);
    work.then(remove, remove);
  }

  resign(): void {
    this.#parts.port.post({ type: "resign" });
  }

  end(reason: LossReason): void {
    if (!this.signal.aborted) this.#ended.abort(this.#error(reason));
  }

  /** Waits for all work that was registered; nothing can be registered afterwards. */
  async settle(): Promise<void> {
    while (this.#work.size > 0) await Promise.allSettled(this.#work);
    this.#settled = true;
    this.#cancelDeadline();
  }

  #loss(): LossReason | null {
    const { ready, order, clock } = this.#parts;
    const { over, wallOffsetMs } = this.#belief.read();
    const { validUntil } = this;
    if (over || (validUntil !== null && Math.ceil(clock.monotonic()) >= validUntil)) {
      return "renew_deadline";
    }
    // Both clocks of the machine moved alike for both sides, unless it stood still since the program looked.
    const movedHere = sendInstant(clock).wallOffsetMs - ready.wallOffsetMs;
    const movedThere = wallOffsetMs - order.wallOffsetMs;
    return clockJumped(movedThere, movedHere) ? "clock_jump" : null;
  }

  /** Ends the term by this worker's own clock, for the case that the program is starved and tells nothing. */
  #armDeadline(): void {
    const { validUntil } = this;
    if (validUntil === null) return;
    const { clock } = this.#parts;
    this.#cancelDeadline = clock.timer(Math.max(0, validUntil - clock.monotonic()), () => {
      if (this.isValid()) this.#armDeadline();
    });
  }

  #error(reason: LossReason): LeadershipLostError {
    return new LeadershipLostError(this.#parts.order.leaseName, reason);
  }
}
