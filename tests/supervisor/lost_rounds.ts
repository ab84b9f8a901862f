/**
 * Rounds in which a run loses its authority, and what must hold in each: all that it had started is gone before the next
 * one is granted the lease.
 *
 * The times can be compared: they are of the wall clock of one machine, and the processes of the command and the next
 * holder write them down themselves.
 *
 * @module
 */

import assert from "node:assert/strict";
import { environmentOf, type RealCaller } from "../client/real_caller.ts";
import { CutNetwork } from "../handlers/commands/cut_network.ts";
import type { RunProcess } from "../handlers/commands/run_process.ts";
import type { ServiceProcess } from "../service/service_process.ts";
import { Beats, type BeatsOptions } from "./beats.ts";
import { type NextGrant, otherInstance, takeNext } from "./next_holder.ts";
import { guardOf, startWorking } from "./working_run.ts";

/** The shortest leases: deadline 8 s after the sending, stop at 4 s, kill at 6 s. */
export const QUICK = ["--ttl", "8s", "--wait", "30s"];

/** The time between two renewals of these leases, and a little less. */
const RENEWAL_MS = 2_600;

/** What a round acts on. */
export interface Struck {
  /** The supervisor. */
  readonly run: RunProcess;
  /** The process group of the command. */
  readonly group: number;
  readonly network: CutNetwork;
}

/** How one round goes. */
export interface Round {
  readonly name: string;
  readonly options?: BeatsOptions;
  /** Takes the authority away. */
  readonly strike: (on: Struck) => void;
  /** What is done once the next one has the lease. */
  readonly after?: (run: RunProcess) => void;
  /** How the run must end. */
  readonly code: number;
}

/** Where rounds are played. */
export interface RoundPlace {
  readonly caller: RealCaller;
  /** Where the next one calls. @default {the caller's own service} */
  readonly nextUrl?: string;
  /** Is called once, when authority was taken away in each of the rounds. */
  readonly onAllStruck?: () => void;
}

/** What came of one round. */
export interface RoundFigure {
  readonly name: string;
  /** Milliseconds from the last sign of life of the command to the sending of the next one's request. */
  readonly gapMs: number;
}

const CUTS = [
  ["requests", { requestsCut: true, answersCut: false }],
  ["answers", { requestsCut: false, answersCut: true }],
  ["both", { requestsCut: true, answersCut: true }],
] as const;

/** Rounds in which the network swallows requests, answers or both; every other command passes SIGTERM by. */
export function cutRounds(count: number): Round[] {
  return Array.from({ length: count }, (_, index) => {
    const [what, cut] = CUTS[index % CUTS.length] ?? CUTS[0];
    const [deaf, ddl] = [index % 2 === 0, index % 4 === 3];
    return {
      name: `network cut, ${what}${deaf ? ", deaf command" : ""}`,
      options: { deaf, ddl },
      strike: ({ network }) => void Object.assign(network, cut),
      code: ddl ? 116 : 115,
    };
  });
}

/** Rounds in which a process of the run itself is hit. */
export const processRounds: readonly Round[] = [
  { name: "supervisor killed", strike: ({ run }) => run.kill("SIGKILL"), code: 137 },
  {
    name: "supervisor killed, deaf command",
    options: { deaf: true },
    strike: ({ run }) => run.kill("SIGKILL"),
    code: 137,
  },
  {
    name: "supervisor stopped past its ttl, and resumed",
    strike: ({ run }) => run.kill("SIGSTOP"),
    after: (run) => run.kill("SIGCONT"),
    code: 115,
  },
  {
    name: "command stopped, and network cut",
    strike({ group, network }) {
      Deno.kill(-group, "SIGSTOP");
      network.requestsCut = true;
    },
    code: 115,
  },
  {
    name: "guard stopped, and network cut, deaf command",
    options: { deaf: true },
    strike({ group, network }) {
      Deno.kill(guardOf(group), "SIGSTOP");
      network.requestsCut = true;
    },
    code: 115,
  },
];

let groups = 0;

/** Plays rounds side by side, each in a group of its own. @throws {AggregateError} What did not hold in each. */
export async function playAll(
  rounds: readonly Round[],
  { caller, nextUrl, onAllStruck = () => {} }: RoundPlace,
): Promise<RoundFigure[]> {
  let left = rounds.length;
  const onStruck = () => void (--left === 0 && onAllStruck());
  const results = await Promise.allSettled(
    rounds.map((round) => play(round, { caller, nextUrl, onStruck })),
  );
  const faults = results.flatMap((one) => one.status === "rejected" ? [one.reason] : []);
  if (faults.length > 0) throw new AggregateError(faults, faults.map(String).join("\n"));
  return results.flatMap((one) => one.status === "fulfilled" ? [one.value] : []);
}

async function play(
  { name, options, strike, after, code }: Round,
  { caller, nextUrl, onStruck }: {
    readonly caller: RealCaller;
    readonly nextUrl?: string;
    readonly onStruck: () => void;
  },
): Promise<RoundFigure> {
  const settings = await caller.openGroup(`round-${++groups}`);
  await using network = new CutNetwork(settings.url);
  const beats = new Beats(`${caller.folder}/beats-${settings.group}`, options);
  const env = environmentOf({ ...settings, url: network.url });
  await using working = await startWorking(QUICK, env, beats);
  const { group, run } = working;
  // Somewhere between two renewals, or in the middle of one.
  await new Promise((resolve) => setTimeout(resolve, Math.random() * RENEWAL_MS));
  strike({ run, group, network });
  onStruck();
  const next = await takeNext(
    { ...otherInstance(settings), url: nextUrl ?? settings.url },
    group,
  );
  const gapMs = judge(name, await beats.last(), next);
  after?.(run);
  await next.lease.release();
  const end = await run.ended();
  assert.equal(end.code, code, `${name}: ${end.stderr}`);
  return { name, gapMs };
}

/**
 * Holds a round to the promise.
 *
 * @param last When each process of the command lived last.
 * @returns Milliseconds from the last sign of life to the sending of the next one's request.
 */
export function judge(
  name: string,
  last: ReadonlyMap<string, number>,
  { living, sentMs }: Pick<NextGrant, "living" | "sentMs">,
): number {
  assert.deepEqual(living, [], `${name}: processes lived when the next one asked`);
  assert.deepEqual([...last.keys()].sort(), ["child", "command", "grandchild"]);
  const gapMs = sentMs - Math.max(...last.values());
  assert.ok(gapMs > 0, `${name}: the command lived for ${-gapMs} ms after the next one asked`);
  return gapMs;
}

/** A service whose wall clock is 1 s ahead, as the next leader of an election that is quick to notice a death. */
export const QUICK_ELECTION = {
  HOLDFAST__KUBERNETES__LEADER_ELECTION__LEASE_DURATION_SECS: "3",
  HOLDFAST__KUBERNETES__LEADER_ELECTION__RENEW_DEADLINE_SECS: "2",
  HOLDFAST__KUBERNETES__LEADER_ELECTION__RETRY_PERIOD_SECS: "1",
};

/**
 * Plays rounds in which the leader dies once all networks are cut, so that the next one is granted by a new leader whose
 * clock is 1 s ahead.
 *
 * @param caller Its service must have {@linkcode QUICK_ELECTION}.
 */
export async function playBeforeLeaderAhead(
  rounds: readonly Round[],
  caller: RealCaller,
): Promise<RoundFigure[]> {
  const env = QUICK_ELECTION;
  const preload = new URL("../service/clock_ahead.ts", import.meta.url);
  const ahead = await caller.startService({ env, preload });
  const figures = await playAll(rounds, {
    caller,
    nextUrl: `https://${ahead.address("tls")}`,
    onAllStruck: () => caller.service.kill("SIGKILL"),
  });
  const offset = await clockOffset(ahead);
  assert.ok(offset > 0.4 && offset < 1.6, `the new leader's clock is ${offset} s ahead`);
  return figures;
}

/** Seconds by which a service's own clock is ahead of the time by which it judges. */
async function clockOffset(service: ServiceProcess): Promise<number> {
  const scrape = await fetch(`http://${service.address("metrics")}/metrics`);
  const [, value] = /^holdfast_clock_offset_seconds (\S+)$/m.exec(await scrape.text()) ?? [];
  return Number(value);
}
