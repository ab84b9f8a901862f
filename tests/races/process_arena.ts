/**
 * Two services as processes on a real API server. Each has an election Lease of its own, so both lead, and both serve the
 * same groups: what a real cluster has for a moment when a leader is frozen, it has here all the time.
 *
 * @module
 */

import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { Planner } from "../../lib/group/admission.ts";
import { TopologyReader } from "../../lib/group/topology.ts";
import { LeaseTime } from "../../lib/lease_time/lease_time.ts";
import { LeaseStore } from "../../lib/records/store.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { DeploymentClient } from "../service/deployment_client.ts";
import { seedOrders } from "../service/orders.ts";
import { AUDIENCE, Workplace } from "../service/workplace.ts";
import { Arena } from "./arena.ts";
import { LeaseHistory } from "./lease_history.ts";

/** So many requests are timed: a pause must be able to end anywhere in one, on a quick machine and on a busy one. */
const TIMED_REQUESTS = 5;

/** The variable that gives a service an election of its own. */
export function ownElection(name: string): Readonly<Record<string, string>> {
  return { HOLDFAST__KUBERNETES__LEADER_ELECTION__LEASE_NAME: name };
}

/** Two processes that lead. */
export class TwoLeaders implements AsyncDisposable {
  readonly place: Workplace;
  readonly #cluster: Cluster;
  readonly #clients: readonly [DeploymentClient, DeploymentClient];
  readonly #stack: AsyncDisposableStack;

  private constructor(
    cluster: Cluster,
    place: Workplace,
    clients: readonly [DeploymentClient, DeploymentClient],
    stack: AsyncDisposableStack,
  ) {
    this.#cluster = cluster;
    this.place = place;
    this.#clients = clients;
    this.#stack = stack;
  }

  /** Starts both services and waits until both lead. */
  static async start(cluster: Cluster, name: string): Promise<TwoLeaders> {
    await using stack = new AsyncDisposableStack();
    const place = stack.use(await Workplace.open(cluster, name));
    const services = await Promise.all([
      place.startService(ownElection("first-leader")),
      place.startService(ownElection("second-leader")),
    ]);
    const [first, second] = await Promise.all(services.map((service) => place.client(service)));
    if (first === undefined || second === undefined) throw new Error("Cannot race alone");
    for (const client of [first, second]) await place.untilLeading(client);
    return new TwoLeaders(cluster, place, [first, second], stack.move());
  }

  /** Makes a group of its own for a race: races of different groups do not touch one another. */
  async openArena(): Promise<Arena> {
    const cluster = this.#cluster;
    const namespace = `race-${crypto.randomUUID().slice(0, 8)}`;
    await cluster.createNamespace(namespace);
    const deployer = { namespace, serviceAccount: "deployer" };
    await cluster.createServiceAccount(namespace, deployer.serviceAccount);
    await seedOrders(cluster.adminApi, {
      namespace,
      databases: { tenant: [deployer] },
      signal: new AbortController().signal,
    });
    const token = await cluster.token({ ...deployer, audiences: [AUDIENCE] });
    const [first, second] = this.#clients;
    const clients = [first.with({ token }), second.with({ token })] as const;
    const longestPauseMs = 2 * await typicalMs(clients[0]);
    const history = this.#stack.use(await LeaseHistory.start(cluster.adminApi, namespace));
    return new Arena({
      api: cluster.adminApi,
      namespace,
      clients,
      planners: [operator(cluster, "first operator"), operator(cluster, "second operator")],
      history,
      pause: () => new Promise((resolve) => setTimeout(resolve, Math.random() * longestPauseMs)),
      nowMs: () => Date.now(),
      random: () => Math.random(),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** An operator of its own: its client, and its own knowledge of the API server's time. */
function operator({ adminCaller }: Cluster, by: string): Planner {
  const time = new LeaseTime({ clock: systemClock });
  const api = adminCaller.api({ observer: time.observe });
  return new Planner({
    api,
    topology: new TopologyReader({ api, clock: systemClock, maxStatusAgeMs: 0 }),
    store: new LeaseStore(api),
    time,
    clock: systemClock,
    entropy: systemEntropy,
    by,
    maxClockOffsetMs: 1_000,
  });
}

/** The median time of a request that writes, in milliseconds. */
async function typicalMs(client: DeploymentClient): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < TIMED_REQUESTS; index++) {
    const startedMs = performance.now();
    await client.grant("timing", "tenant");
    times.push(performance.now() - startedMs);
  }
  return times.sort((a, b) => a - b)[Math.floor(TIMED_REQUESTS / 2)] ?? 0;
}
