/**
 * Work that runs on the leader alone: kubernetes-plugin 7.
 *
 * All tasks start together, once in each term, and are told to stop by the term's signal. A promise cannot be killed: a
 * task that goes on after that is named in a warning, and the tasks of the next term wait for it. Only the end of the
 * process ends such a task for certain, which `onOverrun: "exit"` asks for. A task in a worker of its own (`isolated`)
 * can be ended as long as its worker answers.
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";
import { type IsolatedLeaderTask, IsolatedRun } from "./isolated_task.ts";
import type { Candidate } from "./leadership.ts";
import { isAbort } from "./loss.ts";
import { checkTiming, type ElectionTiming } from "./options.ts";
import { taskStopTimeoutMs } from "./policy.ts";
import type { Term } from "./term.ts";
import { errorClass } from "../runtime/error_class.ts";

/** One task of the leader. */
export interface LeaderTask {
  /** Names the task in log lines and errors. Not blank, and unique among the tasks. */
  readonly name: string;
  /**
   * Does the work of one term. It must end soon after `term.signal` aborts. When it returns early, it runs again in the
   * next term; when it throws, the term ends and the Lease is released.
   */
  run(term: Term): Promise<void> | void;
  /**
   * What happens when the task still runs at the stop deadline: `wait` warns, and this replica does not campaign before
   * the task has settled; `exit` warns and ends the process.
   *
   * @default {"wait"}
   */
  readonly onOverrun?: "wait" | "exit";
}

/** A leader task threw. */
export class LeaderTaskError extends Error {
  override readonly name = "LeaderTaskError";
  /** The name of the task. */
  readonly taskName: string;

  constructor(taskName: string, cause: unknown) {
    super(`Cannot go on leading as the leader task '${taskName}' failed: see the cause`, { cause });
    this.taskName = taskName;
  }
}

/** The options of {@linkcode runLeaderTasks}. */
export interface LeaderTasksOptions {
  /** Where the terms come from. */
  readonly candidate: Candidate;
  readonly tasks: readonly (LeaderTask | IsolatedLeaderTask)[];
  /** The times of the election, which give the tasks their time to stop. */
  readonly timing: ElectionTiming;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Is told of each task that throws. The term is then ending already. It must not throw. */
  readonly onTaskError: (error: LeaderTaskError) => void;
  /** Ends the process, for tasks with `onOverrun: "exit"` and for isolated ones whose worker does not answer. */
  readonly exit: (code: number) => void;
}

/**
 * Runs the tasks in every term of a candidate, until the candidate has ended and all tasks have settled.
 *
 * Run it once for a candidate, from before its start on.
 *
 * @throws {RangeError} Two tasks have one name, a name is blank, or a time breaks a rule.
 */
export async function runLeaderTasks(options: LeaderTasksOptions): Promise<void> {
  const { candidate, tasks, timing } = options;
  checkTiming(timing);
  checkTaskNames(tasks);
  // The body of the loop is work of its term, so neither the release nor the next term comes before it is done.
  for await (const term of candidate.terms()) await runTerm(term, options);
}

/** A task under way. */
interface RunningTask {
  readonly task: LeaderTask | IsolatedLeaderTask;
  /** The run in a worker; `null` for a task that runs here. */
  readonly isolated: IsolatedRun | null;
  readonly settled: Promise<void>;
}

async function runTerm(term: Term, options: LeaderTasksOptions): Promise<void> {
  const running = new Set(options.tasks.map((task) => startTask(task, term, options)));
  const cancelDeadline = startStopDeadline(term, running, options);
  await Promise.all([...running].map(async (task) => {
    await settle(task, term, options);
    running.delete(task);
  }));
  cancelDeadline();
}

function startTask(
  task: LeaderTask | IsolatedLeaderTask,
  term: Term,
  { candidate, clock }: LeaderTasksOptions,
): RunningTask {
  try {
    if ("run" in task) return { task, isolated: null, settled: Promise.resolve(task.run(term)) };
    const isolated = new IsolatedRun({ task, term, leadership: candidate.leadership, clock });
    return { task, isolated, settled: isolated.settled };
  } catch (error) {
    return { task, isolated: null, settled: Promise.reject(error) };
  }
}

async function settle(
  { task, settled }: RunningTask,
  term: Term,
  options: LeaderTasksOptions,
): Promise<void> {
  try {
    await settled;
  } catch (error) {
    // Throwing what the signal aborted with is the usual way to stop.
    if (term.signal.aborted && isAbort(error, term.signal)) return;
    options.logger.error("A leader task failed, so the lead is given up", {
      task: task.name,
      error: errorClass(error),
    });
    term.resign();
    options.onTaskError(new LeaderTaskError(task.name, error));
  }
}

/** Acts on the tasks that still run when their time to stop is over. All tasks of a term share that time. */
function startStopDeadline(
  term: Term,
  running: ReadonlySet<RunningTask>,
  options: LeaderTasksOptions,
): () => void {
  const { clock, timing } = options;
  const limitMs = taskStopTimeoutMs(timing.leaseDurationMs, timing.renewDeadlineMs);
  let cancelTimer = () => {};
  const onEnd = () => {
    cancelTimer = clock.timer(limitMs, () => onOverrun([...running], limitMs, options));
  };
  if (term.signal.aborted) onEnd();
  else term.signal.addEventListener("abort", onEnd, { once: true });
  return () => {
    term.signal.removeEventListener("abort", onEnd);
    cancelTimer();
  };
}

function onOverrun(
  late: readonly RunningTask[],
  limitMs: number,
  options: LeaderTasksOptions,
): void {
  for (const { task, isolated } of late) {
    const fields = { task: task.name, limit_ms: limitMs };
    if (isolated === null) {
      options.logger.warn(
        "A leader task did not stop in time; the next term's tasks wait for it",
        fields,
      );
    } else {
      options.logger.warn("A leader task did not stop in time, so its worker is ended", fields);
      void endWorker(isolated, fields, options);
    }
  }
  if (late.some(({ task }) => "run" in task && task.onOverrun === "exit")) options.exit(1);
}

async function endWorker(
  isolated: IsolatedRun,
  fields: { readonly task: string; readonly limit_ms: number },
  { timing, logger, exit }: LeaderTasksOptions,
): Promise<void> {
  const gapMs = timing.leaseDurationMs - timing.renewDeadlineMs - fields.limit_ms;
  if (await isolated.endByForce(gapMs)) return;
  logger.error("The worker of a leader task does not answer, so the process ends", fields);
  exit(1);
}

function checkTaskNames(tasks: readonly { readonly name: string }[]): void {
  const names = new Set<string>();
  for (const { name } of tasks) {
    if (name.trim() === "" || names.has(name)) {
      throw new RangeError(
        `Cannot run leader tasks as each must have a name of its own: current name is ${
          JSON.stringify(name)
        }`,
      );
    }
    names.add(name);
  }
}
