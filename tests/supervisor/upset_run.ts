/**
 * A run whose surroundings are upset while it works: the service is restarted, its leader changes, the API server is
 * restarted. It goes on, as long as one renewal fits its deadline.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { EffectiveSettings } from "../../lib/client/settings.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { DEPLOYMENT_LEASE_ANNOTATION, holdName, slotName } from "../../lib/records/names.ts";
import { expiresAtMs, parseRecord } from "../../lib/records/record.ts";
import { environmentOf, type RealCaller } from "../client/real_caller.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { CutNetwork } from "../handlers/commands/cut_network.ts";
import type { ServiceProcess } from "../service/service_process.ts";
import { Beats } from "./beats.ts";
import { judge, QUICK_ELECTION } from "./lost_rounds.ts";
import { otherInstance, takeNext } from "./next_holder.ts";
import { startWorking } from "./working_run.ts";

/** How long to upset a run, and how. */
export interface Upset {
  readonly ttlSeconds: number;
  /** How long the run lasts at least, in milliseconds. */
  readonly forMs: number;
  /** Gets a line for each thing that was done. */
  readonly onDone?: (line: string) => void;
}

/** What came of it. */
export interface UpsetFigure {
  /** How often something was done to the surroundings. */
  readonly disturbances: number;
  readonly seconds: number;
}

const OPERATION = "upset";

/** Two replicas of the service behind one address. */
class Replicas {
  readonly #caller: RealCaller;
  readonly #network: CutNetwork;
  #running: ServiceProcess[];

  constructor(caller: RealCaller, network: CutNetwork, running: readonly ServiceProcess[]) {
    this.#caller = caller;
    this.#network = network;
    this.#running = [...running];
  }

  /** Kills all replicas, and starts as many. */
  async restart(): Promise<void> {
    const before = this.#running;
    for (const service of before) service.kill("SIGKILL");
    this.#serve(await Promise.all(before.map(() => this.#start())));
  }

  /** Ends the replica that leads, and starts another one. */
  async changeLeader(): Promise<void> {
    const leading = await Promise.all(this.#running.map(leads));
    const [leader] = this.#running.filter((_, index) => leading[index]);
    if (leader === undefined) throw new Error("Cannot change the leader as nobody leads");
    leader.kill("SIGTERM");
    const others = this.#running.filter((service) => service !== leader);
    this.#serve([...others, await this.#start()]);
    assert.equal(await leader.ended(), 0);
  }

  #start(): Promise<ServiceProcess> {
    return this.#caller.startService({ env: QUICK_ELECTION });
  }

  #serve(running: ServiceProcess[]): void {
    this.#running = running;
    this.#network.services = running.map((service) => `https://${service.address("tls")}`);
  }
}

/** Whether a replica leads, as its own metrics say. */
async function leads(service: ServiceProcess): Promise<boolean> {
  const scrape = await fetch(`http://${service.address("metrics")}/metrics`);
  return /^leader_election_master_status\{[^}]*\} 1$/m.test(await scrape.text());
}

/** When both leases of the run end, in milliseconds since 1970: it moves with each renewal. */
async function expiries(
  cluster: Cluster,
  namespace: string,
  group: string,
): Promise<readonly number[]> {
  const { signal } = new AbortController();
  return await Promise.all([slotName(group), holdName(group, OPERATION)].map(async (name) => {
    const { metadata } = await cluster.adminApi.get(LEASES, { namespace, name }, { signal });
    const record = parseRecord(metadata.annotations?.[DEPLOYMENT_LEASE_ANNOTATION] ?? "");
    assert.deepEqual([record.operationId, record.state], [OPERATION, "active"]);
    return expiresAtMs(record);
  }));
}

/**
 * Runs a command, and upsets its surroundings until the time is over. Somebody else waits for the lease all the while.
 *
 * @param caller Its service must have {@linkcode QUICK_ELECTION}.
 * @throws The run was lost, or somebody else was granted the lease before its end.
 */
export async function upsetRun(caller: RealCaller, upset: Upset): Promise<UpsetFigure> {
  const { cluster, folder, namespace } = caller;
  const settings = await caller.openGroup("upset");
  const second = await caller.startService({ env: QUICK_ELECTION });
  const services = [caller.service, second];
  await using network = new CutNetwork(...services.map((one) => `https://${one.address("tls")}`));
  const replicas = new Replicas(caller, network, services);
  const own: EffectiveSettings = { ...settings, url: network.url };
  const beats = new Beats(`${folder}/beats-upset`);
  const args = ["--operation", OPERATION, "--ttl", `${upset.ttlSeconds}s`];
  await using working = await startWorking(args, environmentOf(own), beats);
  const { group: processGroup, run } = working;
  const startedMs = Date.now();
  const enough = new AbortController();
  const waiting = takeNext(otherInstance(own), processGroup, {
    waitSeconds: 600,
    signal: enough.signal,
  });
  await using over = new AsyncDisposableStack();
  over.defer(async () => {
    enough.abort();
    await waiting.then(({ lease }) => lease.release(), () => {});
  });

  const untilRenewed = async (since: string) => {
    const before = await expiries(cluster, namespace, settings.group);
    const limitMs = Date.now() + upset.ttlSeconds * 1_000;
    for (;;) {
      const now = await expiries(cluster, namespace, settings.group);
      if (now.every((ms, index) => ms > (before[index] ?? Infinity))) return;
      if (Date.now() > limitMs) throw new Error(`Cannot see a renewal since ${since}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };

  const kinds: readonly (readonly [string, () => Promise<void>])[] = [
    ["the service was restarted", () => replicas.restart()],
    ["the leader changed", () => replicas.changeLeader()],
    ["the API server was restarted", () => cluster.restartApiServer()],
  ];
  let disturbances = 0;
  const deadlineMs = startedMs + upset.forMs;
  while (disturbances < kinds.length || Date.now() < deadlineMs) {
    const [what, disturb] = kinds[disturbances % kinds.length] ?? ["", () => Promise.resolve()];
    const beganMs = Date.now();
    await disturb();
    const tookMs = Date.now() - beganMs;
    await untilRenewed(what);
    upset.onDone?.(`${what} in ${(tookMs / 1_000).toFixed(1)} s, and the leases were renewed`);
    disturbances++;
  }

  const endedMs = Date.now();
  run.kill("SIGTERM");
  const { code, stderr } = await run.ended();
  assert.equal(code, 143, stderr);
  assert.doesNotMatch(stderr, /Cannot go on/);
  const next = await waiting;
  judge("upset", await beats.last(), next);
  assert.ok(next.sentMs > endedMs, "somebody else was granted the lease while the run worked");
  return { disturbances, seconds: (endedMs - startedMs) / 1_000 };
}
