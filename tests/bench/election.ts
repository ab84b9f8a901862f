/** How fast the lead changes hands, and what an election costs while nothing happens. */

import { Registry } from "prom-client";
import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { Elector } from "../../lib/election/mod.ts";
import { LEASES } from "../../lib/kube/mod.ts";
import { silentLogger } from "../../lib/runtime/log.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { type Figure, quantile, timed } from "./figures.ts";

const HAND_OVERS = 100;
/** The election of controller-runtime and of our defaults. */
const TIMING = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };
const COUNT_MS = 60_000;
const { signal } = new AbortController();

/** A candidate whose requests are looked at. */
interface Candidate extends AsyncDisposable {
  readonly elector: Elector;
  /** The requests since the last reset: `watch`, `read` or `write`. */
  readonly calls: string[];
  /** When the answer to its last release came. */
  readonly releasedAt: () => number;
}

/** Measures hand-overs from one candidate to another, and counts the calls of both over a minute. */
export async function measureElection(cluster: Cluster): Promise<readonly Figure[]> {
  const namespace = `bench-election-${crypto.randomUUID().slice(0, 8)}`;
  await cluster.createNamespace(namespace);
  return [...await handOvers(cluster, namespace), ...await callsOfAMinute(cluster, namespace)];
}

async function handOvers(cluster: Cluster, namespace: string): Promise<readonly Figure[]> {
  const { adminApi } = cluster;
  const served = { namespace, name: "served" };
  await adminApi.createNamed(LEASES, { metadata: served, spec: {} }, { signal });
  const gaps: number[] = [];
  let leader = start(cluster, namespace, "candidate-0");
  await leader.elector.leadership.waitUntilLeader(signal);
  for (let run = 1; run <= HAND_OVERS; run++) {
    const next = start(cluster, namespace, `candidate-${run}`);
    // Its watch must be there: a candidate that has just come asks anyway.
    await pause(50);
    const isServed = next.elector.leadership.waitUntilLeader(signal).then(async () => {
      const annotations = { run: String(run) };
      await adminApi.patch(LEASES, served, { type: "merge", body: { metadata: { annotations } } }, {
        signal,
      });
      return performance.now();
    });
    await leader[Symbol.asyncDispose]();
    gaps.push(await isServed - leader.releasedAt());
    leader = next;
  }
  await leader[Symbol.asyncDispose]();
  return [
    {
      what: "from the release to the next leader's first served write, median",
      value: quantile(gaps, 0.5),
      unit: "ms",
      goal: { atMost: 25 },
    },
    {
      what: "from the release to the next leader's first served write, p99",
      value: quantile(gaps, 0.99),
      unit: "ms",
      goal: { atMost: 100 },
    },
  ];
}

async function callsOfAMinute(cluster: Cluster, namespace: string): Promise<readonly Figure[]> {
  await using leader = start(cluster, namespace, "leader");
  await leader.elector.leadership.waitUntilLeader(signal);
  await using waiter = start(cluster, namespace, "waiter");
  await pause(TIMING.retryPeriodMs);
  for (const { calls } of [leader, waiter]) calls.length = 0;
  await pause(COUNT_MS);
  const count = ({ calls }: Candidate, kind: string) =>
    calls.filter((call) => call === kind).length;
  return [
    {
      what: "writes of a leader in a minute",
      value: count(leader, "write"),
      unit: "",
      goal: { atMost: 30 },
    },
    {
      what: "reads of a leader in a minute",
      value: count(leader, "read"),
      unit: "",
      goal: { atMost: 0 },
    },
    {
      what: "calls of a waiter in a minute, beside its watch",
      value: count(waiter, "read") + count(waiter, "write"),
      unit: "",
      goal: { atMost: 4 },
    },
  ];
}

function start(cluster: Cluster, namespace: string, identity: string): Candidate {
  const { certPem: cert, keyPem: key } = cluster.adminCredentials;
  const client = Deno.createHttpClient({ caCerts: [cluster.caPem], cert, key });
  const calls: string[] = [];
  let releasedAt = NaN;
  const send = async (request: Request) => {
    calls.push(kindOf(request));
    const isRelease = request.method !== "GET" && isFree(await request.clone().text());
    const response = await fetch(request, { client });
    if (isRelease) releasedAt = performance.now();
    return response;
  };
  const elector = new Elector({
    api: cluster.adminCaller.api({ send }),
    clock: systemClock,
    entropy: systemEntropy,
    logger: silentLogger,
    metrics: new Registry(),
    namespace,
    leaseName: "app",
    identity,
    timing: TIMING,
  });
  elector.start();
  return {
    elector,
    calls,
    releasedAt: () => releasedAt,
    async [Symbol.asyncDispose]() {
      await elector.stop(signal);
      client.close();
    },
  };
}

function kindOf({ method, url }: Request): string {
  if (method !== "GET") return "write";
  return new URL(url).searchParams.has("watch") ? "watch" : "read";
}

/** True for a body that gives a Lease up. */
function isFree(body: string): boolean {
  return /"holderIdentity":(null|"")/.test(body);
}

const pause = (ms: number) => timed(() => new Promise((resolve) => setTimeout(resolve, ms)));
