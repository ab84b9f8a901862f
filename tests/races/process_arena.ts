/**
 * Two services as processes on a real API server. Each has an election Lease of its own, so both lead, and both serve the
 * same group: what a real cluster has for a moment when a leader is frozen, it has here all the time.
 *
 * @module
 */

import type { Cluster } from "../cluster/cluster.ts";
import type { DeploymentClient } from "../service/deployment_client.ts";
import { Workplace } from "../service/workplace.ts";
import { Arena } from "./arena.ts";
import { LeaseHistory } from "./lease_history.ts";

/** So many requests are timed: a pause must be able to end anywhere in one, on a quick machine and on a busy one. */
const TIMED_REQUESTS = 9;

/** The variable that gives a service an election of its own. */
export function ownElection(name: string): Readonly<Record<string, string>> {
  return { HOLDFAST__KUBERNETES__LEADER_ELECTION__LEASE_NAME: name };
}

/** An arena of processes. */
export interface ProcessArena extends AsyncDisposable {
  readonly arena: Arena;
  readonly place: Workplace;
}

/** Starts both services and waits until both lead. */
export async function openProcessArena(cluster: Cluster, name: string): Promise<ProcessArena> {
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await Workplace.open(cluster, name));
  const services = await Promise.all([
    place.startService(ownElection("first-leader")),
    place.startService(ownElection("second-leader")),
  ]);
  const [first, second] = await Promise.all(services.map((service) => place.client(service)));
  if (first === undefined || second === undefined) throw new Error("Cannot race alone");
  for (const client of [first, second]) await place.untilLeading(client);
  const longestPauseMs = 2 * await typicalMs(first);
  const history = stack.use(await LeaseHistory.start(cluster.adminApi, place.namespace));
  const arena = new Arena({
    api: cluster.adminApi,
    namespace: place.namespace,
    clients: [first, second],
    history,
    pause: () => new Promise((resolve) => setTimeout(resolve, Math.random() * longestPauseMs)),
    nowMs: () => Date.now(),
    random: () => Math.random(),
  });
  const owned = stack.move();
  return { arena, place, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** The median time of a request, in milliseconds. */
async function typicalMs(client: DeploymentClient): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < TIMED_REQUESTS; index++) {
    const startedMs = performance.now();
    await client.observe();
    times.push(performance.now() - startedMs);
  }
  return times.sort((a, b) => a - b)[Math.floor(TIMED_REQUESTS / 2)] ?? 0;
}
