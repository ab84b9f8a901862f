/**
 * Walks through the interleavings of a {@linkcode World}: all of them, or many at random.
 *
 * A run cannot be forked in the middle, so a walk repeats the choices that lead to where it goes on. States that were seen
 * before are not entered again.
 *
 * @module
 */

import { seededEntropy } from "../../lib/testing/mod.ts";
import type { GateWorld } from "./gate_world.ts";

/** What can be walked through: processes whose calls wait until one is picked. */
export type World = Pick<GateWorld, "begin" | "step" | "violation" | "key" | "scheduler">;

/** What a walk found. */
export interface Walk {
  /** How many different states were entered, or how many runs were made. */
  readonly count: number;
  /** False when the limit ended the walk. */
  readonly complete: boolean;
  /** The calls that lead to a violation, and what it is; `null` when there is none. */
  readonly violation: { readonly what: string; readonly trace: readonly string[] } | null;
}

/** Enters every state that can be reached, crashes included: a process that is not picked any more has crashed. */
export async function exploreAll(world: World, limit: number): Promise<Walk> {
  const seen = new Set<string>();
  const ahead: (readonly number[])[] = [[]];
  for (let prefix = ahead.pop(); prefix !== undefined; prefix = ahead.pop()) {
    await world.begin();
    const trace: string[] = [];
    const way: number[] = [];
    const go = async (choice: number) => {
      trace.push(await world.step(choice));
      way.push(choice);
    };
    for (const choice of prefix) await go(choice);
    for (;;) {
      const what = world.violation();
      if (what !== null) return { count: seen.size, complete: false, violation: { what, trace } };
      const key = world.key();
      if (seen.has(key)) break;
      seen.add(key);
      if (seen.size >= limit) return { count: seen.size, complete: false, violation: null };
      const choices = world.scheduler.choices.length;
      if (choices === 0) break;
      for (let choice = 1; choice < choices; choice++) ahead.push([...way, choice]);
      await go(0);
    }
  }
  return { count: seen.size, complete: true, violation: null };
}

/** How a walk begins: each entry lets a process go on through the first call whose label has the text. */
export type Opening = readonly (readonly [process: string, through: string])[];

/** How a run at random goes. */
export interface RandomWalkOptions {
  readonly runs: number;
  readonly seed: number;
  /** @default {[]} */
  readonly opening?: Opening;
  /** From 0 to 1: how often an answer is lost after its call was served. @default {0} */
  readonly loss?: number;
}

/** From 0 to 1: how often the process goes on that went last. Faults need few switches, at the right places. */
const STICKINESS = 0.75;

/** Makes runs at random, each to its end. */
export async function exploreRandom(
  world: World,
  { runs, seed, opening = [], loss = 0 }: RandomWalkOptions,
): Promise<Walk> {
  const entropy = seededEntropy(seed);
  for (let run = 1; run <= runs; run++) {
    await world.begin();
    const trace = await open(world, opening);
    let last = "";
    for (;;) {
      const what = world.violation();
      if (what !== null) return { count: run, complete: false, violation: { what, trace } };
      const all = world.scheduler.choices.map(({ process }, index) => ({ process, index }));
      const same = all.filter(({ process }) => process === last);
      const from = same.length > 0 && entropy.fraction() < STICKINESS ? same : all;
      const picked = from[Math.floor(entropy.fraction() * from.length)];
      if (picked === undefined) break;
      last = picked.process;
      trace.push(await world.step(picked.index, entropy.fraction() < loss));
    }
  }
  return { count: runs, complete: true, violation: null };
}

/** Lets a process go on through a call, or to its end, and tells what it called. */
export async function advance(
  world: World,
  process: string,
  through: string | null = null,
): Promise<string[]> {
  const trace: string[] = [];
  for (;;) {
    const index = world.scheduler.choices.findIndex((call) => call.process === process);
    if (index < 0) return trace;
    const label = await world.step(index);
    trace.push(label);
    if (through !== null && label.includes(through)) return trace;
  }
}

async function open(world: World, opening: Opening): Promise<string[]> {
  const trace: string[] = [];
  for (const [process, through] of opening) trace.push(...await advance(world, process, through));
  return trace;
}
