/**
 * A program with isolated tasks, to be run as a process: from this file, and as a bundle of one file.
 *
 * It leads at once, goes on for a while once its task works, stops leading, and tells what happens on its output. Its
 * argument is the task to run.
 *
 * @module
 */

import { z } from "zod";
import { systemClock } from "../../handlers/commands/system.ts";
import {
  hostIsolatedTasks,
  type IsolatedTaskRun,
  runLeaderTasks,
  staticLeadership,
  type Term,
} from "../../lib/election/mod.ts";
import { sleep } from "../../lib/runtime/clock.ts";
import { MemoryLog } from "./world.ts";

/** The task gets 800 ms to stop, and its worker 100 ms to answer. */
const TIMING = { leaseDurationMs: 2_000, renewDeadlineMs: 1_000, retryPeriodMs: 200 };

/** How long the program leads while the task works: so long a task computes without a pause. */
const LEADS_MS = 500;

/** In memory that both sides share, the task says that it works. However slow the machine is, nothing happens before. */
const input = z.instanceof(SharedArrayBuffer);

/** Computes without a pause, as long as `goesOn`. */
function compute(goesOn: () => boolean): void {
  let sum = 0;
  while (goesOn()) for (let i = 0; i < 100_000; i++) sum += i % 7;
  tell(`computed ${sum > 0}`);
}

const work: Record<string, (term: Term) => Promise<void> | void> = {
  /** Computes through the whole term, and asks in between. */
  valid: (term) => compute(() => term.isValid()),
  /** Computes for ever, and asks nobody. */
  endless: () => compute(() => true),
  /** Never ends, but yields; its timer would keep the process alive. */
  deaf: () => new Promise<void>(() => setInterval(() => {}, 1_000)),
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

const tasks = Object.fromEntries(
  Object.entries(work).map(([name, run]): [string, IsolatedTaskRun] => [name, (term, begun) => {
    Atomics.store(new Int32Array(input.parse(begun)), 0, 1);
    return run(term);
  }]),
);

function tell(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

async function main(): Promise<void> {
  const [name = ""] = Deno.args;
  const log = new MemoryLog();
  const candidate = staticLeadership({ clock: systemClock, identity: "dev", leaseName: "app" });
  const begun = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const done = runLeaderTasks({
    candidate,
    tasks: [{
      name,
      isolated: true,
      input: begun.buffer,
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
  const never = new AbortController().signal;
  while (Atomics.load(begun, 0) === 0) await sleep(systemClock, 10, never);
  let turns = 0;
  for (const untilMs = systemClock.monotonic() + LEADS_MS; systemClock.monotonic() < untilMs;) {
    await sleep(systemClock, 10, never);
    turns++;
  }
  tell(`${turns} turns`);
  const stoppedMs = systemClock.monotonic();
  // As a loss: belief is over, and the worker has to learn it although it reads no messages.
  await candidate.stop(name === "valid" ? AbortSignal.abort() : never);
  await done;
  for (const line of log.at("warn")) tell(line.message);
  tell("done");
}

if (!hostIsolatedTasks({ scope: self, clock: systemClock, tasks })) await main();
