/**
 * `deno task soak [--rounds N] [--minutes M] [--where real|memory|runs|all] [--race TEXT] [--cuts N] [--seconds S]`: runs
 * the races for long and prints how their rounds ended, and `holdfast run` under faults.
 *
 * `--rounds` is for each race (default 2000); `--minutes` ends a race earlier. `--where` chooses the real API server with
 * two processes, the cluster in memory with two services in this process, or `holdfast run` as a process (default: all).
 * `--race` runs those whose name has the text. `--seed` begins the interleavings in memory elsewhere (default: the time).
 * For `runs`, `--cuts` is how often a network is cut (default 100), and `--seconds` how long a run is upset (default 180).
 *
 * @module
 */

import { parseArgs } from "node:util";
import { print } from "../checks/shell.ts";
import { type Binaries, ensureBinaries, SKIPPED_LINE } from "../cluster/binaries.ts";
import { startCluster } from "../cluster/cluster.ts";
import type { Arena } from "../races/arena.ts";
import { openFakeArena } from "../races/fake_arena.ts";
import { TwoLeaders } from "../races/process_arena.ts";
import type { Race } from "../races/race.ts";
import { type RaceLimits, races, run } from "../races/races.ts";
import { soakRuns } from "./runs.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    rounds: { type: "string", default: "2000" },
    minutes: { type: "string", default: "Infinity" },
    where: { type: "string", default: "all" },
    race: { type: "string", default: "" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    cuts: { type: "string", default: "100" },
    seconds: { type: "string", default: "180" },
  },
});
const rounds = positive("rounds", values.rounds);
const minutes = positive("minutes", values.minutes);
const seed = positive("seed", values.seed);
const cuts = positive("cuts", values.cuts);
const seconds = positive("seconds", values.seconds);
const { where } = values;
if (!["real", "memory", "runs", "all"].includes(where)) {
  throw new RangeError(`Cannot run as 'where' must be real, memory, runs or all: ${where}`);
}
const chosen = races.filter(({ name }) => name.includes(values.race));

let failed = 0;
if (where === "real" || where === "all") await soakReal();
if (where === "memory" || where === "all") await soakMemory();
if (where === "runs" || where === "all") await soakCommand();
print(failed === 0 ? "all rounds held" : `${failed} of them failed`);
Deno.exit(failed === 0 ? 0 : 1);

async function programs(): Promise<Binaries | null> {
  const binaries = await ensureBinaries({ onProgress: print });
  if (binaries === null) {
    print(SKIPPED_LINE);
    failed++;
  }
  return binaries;
}

async function soakCommand(): Promise<void> {
  const binaries = await programs();
  if (binaries === null) return;
  try {
    await soakRuns({ binaries, cuts, seconds, print });
  } catch (error) {
    failed++;
    print(`  FAILED: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function soakReal(): Promise<void> {
  const binaries = await programs();
  if (binaries === null) return;
  await using cluster = await startCluster({ binaries });
  await using leaders = await TwoLeaders.start(cluster, "soak");
  // Side by side, each in a group of its own: a request waits for the API server most of its time.
  await Promise.all(chosen.map(async (race) => {
    await soak("real API server, two processes", race, await leaders.openArena());
  }));
}

async function soakMemory(): Promise<void> {
  for (const [index, race] of chosen.entries()) {
    await using opened = await openFakeArena(seed + index);
    await soak(`in memory, seed ${seed + index}`, race, opened.arena);
  }
}

async function soak(where: string, race: Race, arena: Arena): Promise<void> {
  const startedMs = performance.now();
  const limits: RaceLimits = { rounds, untilMs: startedMs + minutes * 60_000 };
  try {
    const outcomes = await run(race, arena, limits);
    const seconds = (performance.now() - startedMs) / 1000;
    const count = Object.values(outcomes).reduce((sum, many) => sum + many, 0);
    const { count: versions } = arena.parts.history;
    print(`${where}: ${race.name}`);
    print(`  ${count} rounds in ${seconds.toFixed(0)} s, ${versions} versions judged`);
    for (const [outcome, many] of Object.entries(outcomes).sort(([, a], [, b]) => b - a)) {
      print(`  ${String(many).padStart(6)}  ${outcome}`);
    }
  } catch (error) {
    failed++;
    print(`${where}: ${race.name}`);
    print(`  FAILED: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (value > 0) return value;
  throw new RangeError(
    `Cannot run as '${name}' must be a positive number: current value is ${text}`,
  );
}
