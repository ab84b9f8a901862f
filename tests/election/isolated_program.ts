/**
 * A program with isolated tasks, to be run as a process: from this file, and as a bundle of one file.
 *
 * It leads at once, stops leading when its tasks have begun to work, and tells what happens on its output. Its argument
 * is the task to run.
 *
 * @module
 */

import { systemClock } from "../../handlers/commands/system.ts";
import {
  hostIsolatedTasks,
  type IsolatedTaskRun,
  runLeaderTasks,
  staticLeadership,
} from "../../lib/election/mod.ts";
import { sleep } from "../../lib/runtime/clock.ts";
import { MemoryLog } from "./world.ts";

const TIMING = { leaseDurationMs: 1_200, renewDeadlineMs: 1_000, retryPeriodMs: 200 };

/** How long the program leads, and how long a task computes without a pause. */
const LEADS_MS = 1_000;

/** Computes without a pause, as long as `goesOn`. */
function compute(goesOn: () => boolean): void {
  let sum = 0;
  while (goesOn()) for (let i = 0; i < 100_000; i++) sum += i % 7;
  tell(`computed ${sum > 0}`);
}

const tasks: Record<string, IsolatedTaskRun> = {
  /** Computes through the whole term, and asks in between. */
  valid: (term) => compute(() => term.isValid()),
  /** Computes for ever, and asks nobody. */
  endless: () => compute(() => true),
  /** Never ends, but yields; its timer would keep the process alive. */
  deaf: () => new Promise<void>(() => setInterval(() => {}, 10)),
  /** Ends with its term. */
  patient: async (term) => {
    await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
    tell(`ends as ${term.signal.reason}`);
  },
  /** Throws in a timer, where nobody can catch it. */
  crash: () =>
    new Promise<void>(() =>
      setTimeout(() => {
        throw new Error("out of nowhere");
      }, 10)
    ),
};

function tell(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

async function main(): Promise<void> {
  const [name = ""] = Deno.args;
  const log = new MemoryLog();
  const candidate = staticLeadership({ clock: systemClock, identity: "dev", leaseName: "app" });
  const done = runLeaderTasks({
    candidate,
    tasks: [{
      name,
      isolated: true,
      worker: (workerName) => new Worker(import.meta.url, { type: "module", name: workerName }),
    }],
    timing: TIMING,
    clock: systemClock,
    logger: log,
    onTaskError: (error) => tell(`failed: ${error.cause}`),
    exit: (code) => {
      for (const level of ["warn", "error"] as const) {
        for (const line of log.at(level)) tell(line.message);
      }
      tell(`exit ${code} after ${Math.round(systemClock.monotonic() - stoppedMs)} ms`);
      Deno.exit(code);
    },
  });
  candidate.start();
  let longestPauseMs = 0;
  const never = new AbortController().signal;
  const startedMs = systemClock.monotonic();
  for (let atMs = startedMs; atMs - startedMs < LEADS_MS;) {
    await sleep(systemClock, 10, never);
    const nowMs = systemClock.monotonic();
    longestPauseMs = Math.max(longestPauseMs, nowMs - atMs);
    atMs = nowMs;
  }
  tell(`longest pause ${Math.round(longestPauseMs)} ms`);
  const stoppedMs = systemClock.monotonic();
  // As a loss: belief is over, and the worker has to learn it although it reads no messages.
  const stopping = candidate.stop(name === "valid" ? AbortSignal.abort() : never);
  await stopping;
  await done;
  for (const line of log.at("warn")) tell(line.message);
  tell("done");
}

if (!hostIsolatedTasks({ scope: self, clock: systemClock, tasks })) await main();
