// A program on Node with isolated tasks. It leads at once, goes on for a while once its task works, and stops leading.
// It tells on its output what happens. Its argument is the task to run.
import {
  fromNodeThread,
  hostIsolatedTasks,
  nodeThreadScope,
  runLeaderTasks,
  staticLeadership,
} from "@holdfast/holdfast/election";
import { systemClock as clock } from "@holdfast/holdfast/system";
import process from "node:process";
import { parentPort, Worker, workerData } from "node:worker_threads";

// In memory that both sides share, the task says that it works, and then what it made.
const say = (shared, at) => Atomics.store(new Int32Array(shared), at, 1);
const tell = (line) => process.stdout.write(`${line}\n`);
const logger = { debug() {}, info() {}, warn: tell, error: tell };

const tasks = {
  computes(term, shared) {
    say(shared, 0);
    let sum = 0;
    while (term.isValid()) for (let i = 0; i < 100_000; i++) sum += i % 7;
    if (sum > 0) say(shared, 1);
  },
  deaf(_term, shared) {
    say(shared, 0);
    return new Promise(() => setInterval(() => {}, 1_000));
  },
  crashes(_term, shared) {
    setTimeout(() => {
      say(shared, 0);
      throw new Error("out of nowhere");
    }, 10);
    return new Promise(() => {});
  },
  exits(_term, shared) {
    say(shared, 0);
    process.exit(3);
  },
};

async function main() {
  const [, , name] = process.argv;
  const candidate = staticLeadership({ clock, identity: "dev", leaseName: "app" });
  const shared = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  const done = runLeaderTasks({
    candidate,
    tasks: [{
      name,
      isolated: true,
      input: shared.buffer,
      worker: (workerName) =>
        fromNodeThread(new Worker(new URL(import.meta.url), { workerData: workerName })),
    }],
    timing: { leaseDurationMs: 2_000, renewDeadlineMs: 1_000, retryPeriodMs: 200 },
    clock,
    logger,
    onTaskError: (error) => tell(`failed: ${error.cause.message}`),
    exit: (code) => process.exit(code),
  });
  candidate.start();
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  while (Atomics.load(shared, 0) === 0) await pause(10);
  let turns = 0;
  for (const endMs = clock.monotonic() + 500; clock.monotonic() < endMs; turns++) await pause(10);
  tell(`${turns} turns`);
  // A task that computes learns of a loss from the shared memory alone. The others are stopped in order.
  const { signal } = new AbortController();
  await candidate.stop(name === "computes" ? AbortSignal.abort() : signal);
  await done;
  if (Atomics.load(shared, 1) === 1) tell("computed");
  tell("done");
}

const scope = nodeThreadScope(parentPort, workerData);
if (!hostIsolatedTasks({ scope, clock, tasks })) await main();
