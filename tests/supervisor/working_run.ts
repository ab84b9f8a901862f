/**
 * A run whose command works.
 *
 * @module
 */

import { signalGroup } from "../../lib/supervisor/process_group.ts";
import { livingOf, RunProcess } from "../handlers/commands/run_process.ts";
import type { Beats } from "./beats.ts";

/** A run, and the process group of its command. */
export class WorkingRun implements AsyncDisposable {
  constructor(readonly run: RunProcess, readonly group: number) {}

  /** Ends both: what a run has left alive by a mistake must not outlive the test that found it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if ((await livingOf(this.group)).length > 0) signalGroup(this.group, "SIGKILL");
    await this.run[Symbol.asyncDispose]();
  }
}

/** The guard of a run: it started the command. @param group The process group of the command. */
export function guardOf(group: number): number {
  const stat = Deno.readTextFileSync(`/proc/${group}/stat`);
  // Behind the name, which may hold anything: state, parent.
  const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(parent);
}

/** So many runs start at a time. Each is three programs that load, and a lease of 8 s does not wait for a busy machine. */
const STARTS_AT_A_TIME = 4;

/** A machine that is busier than that may cost a lease before the command is there: that is no finding, and tried again. */
const TRIES = 3;

let starting = 0;
const waiting: (() => void)[] = [];

/**
 * Starts a run, and waits until all processes of its command have said that they live.
 *
 * @param args All but the command, which is that of `beats`.
 * @param env The settings of the caller.
 */
export async function startWorking(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  beats: Beats,
): Promise<WorkingRun> {
  if (starting >= STARTS_AT_A_TIME) await new Promise<void>((resolve) => waiting.push(resolve));
  starting++;
  try {
    for (let tries = 1;; tries++) {
      const run = new RunProcess([...args, ...beats.command], { ...env, ...beats.env });
      try {
        const group = await run.commandPid();
        await beats.untilAllLive();
        return new WorkingRun(run, group);
      } catch (error) {
        await run[Symbol.asyncDispose]();
        const wasLost = /its deadline is near and no renewal succeeded/.test(run.stderr);
        if (!wasLost || tries === TRIES) throw error;
      }
    }
  } finally {
    starting--;
    waiting.shift()?.();
  }
}
