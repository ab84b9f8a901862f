/**
 * `holdfast run` for long: networks that are cut, and a run whose surroundings are upset.
 *
 * @module
 */

import type { Binaries } from "../cluster/binaries.ts";
import { startCluster } from "../cluster/cluster.ts";
import { callerOf } from "../client/real_caller.ts";
import {
  cutRounds,
  playAll,
  playBeforeLeaderAhead,
  QUICK_ELECTION,
  type RoundFigure,
} from "../supervisor/lost_rounds.ts";
import { upsetRun } from "../supervisor/upset_run.ts";

/** So many runs are side by side: each is four processes. */
const SIDE_BY_SIDE = 10;

/** How long to go on. */
export interface RunsSoak {
  readonly binaries: Binaries;
  /** Rounds with a network that is cut. Every other wave has a new leader whose clock is 1 s ahead. */
  readonly cuts: number;
  /** How long the run lasts whose surroundings are upset. */
  readonly seconds: number;
  readonly print: (line: string) => void;
}

/** Runs both. @throws What did not hold. */
export async function soakRuns({ binaries, cuts, seconds, print }: RunsSoak): Promise<void> {
  await using cluster = await startCluster({ binaries });
  const plain: RoundFigure[] = [];
  const ahead: RoundFigure[] = [];
  while (plain.length + ahead.length < cuts) {
    const rounds = cutRounds(Math.min(SIDE_BY_SIDE, cuts - plain.length - ahead.length));
    if (plain.length <= ahead.length) {
      await using caller = await callerOf(cluster, "soak-cut");
      plain.push(...await playAll(rounds, { caller }));
    } else {
      await using caller = await callerOf(cluster, "soak-ahead", { env: QUICK_ELECTION });
      ahead.push(...await playBeforeLeaderAhead(rounds, caller));
    }
  }
  print("real API server, processes: a network that is cut ends the command before the next grant");
  tell(print, plain, "the same leader grants");
  tell(print, ahead, "a new leader grants whose clock is 1 s ahead");

  await using caller = await callerOf(cluster, "soak-upset", { env: QUICK_ELECTION });
  const onDone = (line: string) => print(`  ${line}`);
  const upset = await upsetRun(caller, { ttlSeconds: 60, forMs: seconds * 1_000, onDone });
  print("real API server, processes: a run goes on while its surroundings are upset");
  print(`  ${upset.seconds.toFixed(0)} s, ${upset.disturbances} disturbances, not lost`);
}

function tell(
  print: (line: string) => void,
  figures: readonly RoundFigure[],
  what: string,
): void {
  if (figures.length === 0) return;
  const gaps = figures.map(({ gapMs }) => gapMs).sort((a, b) => a - b);
  const seconds = (ms = NaN) => (ms / 1_000).toFixed(2);
  const middle = gaps[Math.floor(gaps.length / 2)];
  print(
    `  ${
      String(figures.length).padStart(6)
    }  rounds in which ${what}: from the last sign of life ` +
      `to the next request at least ${seconds(gaps[0])} s, in the middle ${seconds(middle)} s`,
  );
}
