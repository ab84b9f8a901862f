/**
 * The end of a process, in order: everything learns at once that it ends, then its parts stop stage by stage, what was
 * started last first, all within one budget (kubernetes-plugin 14).
 *
 * @module
 */

import { type Clock, type Deadline, startDeadline } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";
import { errorClass } from "../runtime/error_class.ts";

/** What the process is to exit with: 1 when it did not end in order. */
export type ExitCode = 0 | 1;

/**
 * Stops one part. It gets the deadline of the whole shutdown: what it waits for should end with its signal.
 * What it throws is logged by class, and the next hook runs.
 */
export type ShutdownHook = (deadline: Deadline) => void | Promise<void>;

/**
 * When a hook runs. `early`: at once, while clients still come, for what another replica is to take over without a gap.
 * `traffic`: with the end of the requests. `late`: after them, when nobody needs the part any more.
 */
export type ShutdownStage = "early" | "traffic" | "late";

const STAGES: readonly ShutdownStage[] = ["early", "traffic", "late"];

/** What {@linkcode createLifecycle} takes. */
export interface LifecycleOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Calls `handler` with the name of each signal that asks this process to end, and gives a function that stops that. */
  readonly onSignal: (handler: (signal: string) => void) => () => void;
  /** Milliseconds for all hooks together. More than 0. @default {30000} */
  readonly budgetMs?: number;
}

/** The end of a process. */
export interface Lifecycle {
  /** Aborts when the end begins, before any hook runs: readiness fails from then on, and new work is refused. */
  readonly stopping: AbortSignal;
  /** Settles when the end is over, and never rejects. The composition root exits with it. */
  readonly done: Promise<ExitCode>;
  /**
   * Registers what stops a part. Hooks of one stage run last in, first out: what was started on top of something stops
   * before it.
   *
   * @param name Says in the log which part it is.
   * @param stage @default {"late"}
   */
  onShutdown(name: string, hook: ShutdownHook, stage?: ShutdownStage): void;
  /**
   * Begins the end as a signal would. A second call changes nothing.
   *
   * @param reason For the log.
   * @param code What the process exits with when all goes well: 1 when it ends for a fault. @default {0}
   * @returns {@linkcode Lifecycle.done}.
   */
  stop(reason: string, code?: ExitCode): Promise<ExitCode>;
}

/**
 * Makes a lifecycle and listens for signals.
 *
 * The first signal begins the end. A second one settles `done` with 1 at once: whoever sends it does not want to wait.
 */
export function createLifecycle(options: LifecycleOptions): Lifecycle {
  const { clock, logger, budgetMs = 30_000 } = options;
  const stopping = new AbortController();
  const finished = Promise.withResolvers<ExitCode>();
  const hooks: Registered[] = [];

  const ignoreSignals = options.onSignal((signal) => {
    if (!stopping.signal.aborted) {
      begin(signal, 0);
      return;
    }
    logger.warn("shutdown abandoned", { reason: signal });
    finish(1);
  });

  function finish(code: ExitCode): void {
    ignoreSignals();
    finished.resolve(code);
  }

  function begin(reason: string, code: ExitCode): void {
    if (stopping.signal.aborted) return;
    logger.info("shutdown started", { reason, budget_ms: budgetMs });
    stopping.abort();
    runHooks(code).then(finish, () => finish(1));
  }

  async function runHooks(code: ExitCode): Promise<ExitCode> {
    using deadline = startDeadline(clock, budgetMs);
    const over = new Promise<"over">((resolve) => {
      deadline.signal.addEventListener("abort", () => resolve("over"), { once: true });
    });
    for (let next = takeNext(hooks); next !== undefined; next = takeNext(hooks)) {
      const { name, hook } = next;
      if (await Promise.race([runHook(name, hook, deadline), over]) === "over") {
        logger.error("shutdown overran its budget", {
          hook: name,
          skipped: inOrder(hooks).map((left) => left.name),
        });
        return 1;
      }
    }
    logger.info("shutdown complete");
    return code;
  }

  async function runHook(name: string, hook: ShutdownHook, deadline: Deadline): Promise<void> {
    try {
      await hook(deadline);
    } catch (error) {
      logger.error("shutdown hook failed", {
        hook: name,
        error: errorClass(error),
      });
    }
  }

  return {
    stopping: stopping.signal,
    done: finished.promise,
    onShutdown(name, hook, stage = "late") {
      hooks.push({ name, hook, stage });
    },
    stop(reason, code = 0) {
      begin(reason, code);
      return finished.promise;
    },
  };
}

interface Registered {
  readonly name: string;
  readonly hook: ShutdownHook;
  readonly stage: ShutdownStage;
}

/** The hooks in the order in which they run. */
function inOrder(hooks: readonly Registered[]): Registered[] {
  const lastFirst = hooks.toReversed();
  return STAGES.flatMap((stage) => lastFirst.filter((hook) => hook.stage === stage));
}

function takeNext(hooks: Registered[]): Registered | undefined {
  const [next] = inOrder(hooks);
  if (next !== undefined) hooks.splice(hooks.indexOf(next), 1);
  return next;
}
