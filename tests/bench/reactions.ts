/** How long after its cause the leader has stored an expiry, a new generation and a revocation, with nobody asking. */

import {
  MYSQL_DATABASES,
  MYSQL_FAILOVER_GROUPS,
  REVOKE_ANNOTATION,
} from "../../lib/group/types.ts";
import type { KubeApi, Stored } from "../../lib/kube/api.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import { DEPLOYMENT_LEASE_ANNOTATION, gateName, slotName } from "../../lib/records/names.ts";
import { expiresAtMs, parseRecord } from "../../lib/records/record.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { ordersDatabase, ordersGroup, setStatus, stableStatus } from "../service/orders.ts";
import { Workplace } from "../service/workplace.ts";
import { type Figure, quantile } from "./figures.ts";

const GROUPS = 30;
const { signal } = new AbortController();

/** Measures each in a number of groups, one after the other; expiries of all groups come at once. */
export async function measureReactions(cluster: Cluster): Promise<readonly Figure[]> {
  await using place = await Workplace.open(cluster, "bench-reactions");
  const { namespace } = place;
  const { adminApi: api } = cluster;
  const client = await place.client(await place.startService());
  await place.untilLeading(client);
  await using sight = new Sight(api, namespace);
  const groups = Array.from({ length: GROUPS }, (_, number) => `group-${number}`);
  const deployers = [{ namespace, serviceAccount: "deployer" }];
  const grant = async (group: string, operation: string, ttlSeconds: number) => {
    const { status, text } = await client.with({ group }).grant(operation, group, { ttlSeconds });
    if (status !== 201) throw new Error(`Cannot grant: ${status} ${text}`);
  };
  for (const name of groups) {
    await api.create(MYSQL_FAILOVER_GROUPS, ordersGroup(namespace, name), { signal });
    await api.create(MYSQL_DATABASES, ordersDatabase(namespace, name, name, deployers), { signal });
    await setStatus(api, { namespace, name }, stableStatus, signal);
  }

  const expiry = await Promise.all(groups.map(async (name) => {
    await grant(name, "op-1", 5);
    const { lease, atMs } = await sight.of(slotName(name), (found) => stateOf(found) === "expired");
    return atMs - expiresAtMs(recordOf(lease));
  }));

  const generation: number[] = [];
  const revocation: number[] = [];
  const annotation: number[] = [];
  for (const name of groups) {
    await grant(name, "op-2", 120);
    const group = { namespace, name };
    const moved = sight.of(gateName(name), ({ spec }) => spec?.leaseTransitions === 8);
    const ended = sight.of(slotName(name), (found) => stateOf(found) === "revoked");
    await setStatus(api, group, { topologyGeneration: 8 }, signal);
    const causedMs = Date.now();
    generation.push((await moved).atMs - causedMs);
    revocation.push((await ended).atMs - causedMs);
    await grant(name, "op-3", 120);
    const taken = sight.of(
      slotName(name),
      (found) => recordOf(found).operationId === "op-3" && stateOf(found) === "revoked",
    );
    await api.patch(MYSQL_FAILOVER_GROUPS, group, {
      type: "merge",
      body: { metadata: { annotations: { [REVOKE_ANNOTATION]: "true" } } },
    }, { signal });
    const askedMs = Date.now();
    annotation.push((await taken).atMs - askedMs);
  }
  return [
    ...figures("an expiry is stored after its time", expiry),
    ...figures("a new generation is stored after its status", generation),
    ...figures("its revocation is stored after the status", revocation),
    ...figures("a revocation is stored after its annotation", annotation),
  ];
}

function figures(what: string, samples: readonly number[]): readonly Figure[] {
  return [
    { what: `${what}, median`, value: quantile(samples, 0.5), unit: "ms" },
    { what: `${what}, longest`, value: Math.max(...samples), unit: "ms", goal: { atMost: 100 } },
  ];
}

function recordOf(lease: Stored<Lease>) {
  return parseRecord(lease.metadata.annotations?.[DEPLOYMENT_LEASE_ANNOTATION] ?? "");
}

function stateOf(lease: Stored<Lease>): string {
  return recordOf(lease).state;
}

interface Seen {
  readonly lease: Stored<Lease>;
  /** When the watch told of it, in milliseconds since 1970. */
  readonly atMs: number;
}

/** What a watch tells of the Leases of a namespace. */
class Sight implements AsyncDisposable {
  readonly #end = new AbortController();
  readonly #waiting = new Set<(seen: Seen) => void>();
  readonly #watching: Promise<void>;

  constructor(api: KubeApi, namespace: string) {
    this.#watching = this.#watch(api, namespace);
  }

  /** The next state of a Lease that is as it should be. */
  of(name: string, isIt: (lease: Stored<Lease>) => boolean): Promise<Seen> {
    return new Promise((resolve) => {
      const look = (seen: Seen) => {
        if (seen.lease.metadata.name !== name || !isIt(seen.lease)) return;
        this.#waiting.delete(look);
        resolve(seen);
      };
      this.#waiting.add(look);
    });
  }

  async #watch(api: KubeApi, namespace: string): Promise<void> {
    for await (const event of api.watch(LEASES, { namespace, signal: this.#end.signal })) {
      const atMs = Date.now();
      if ("list" in event || (event.type !== "added" && event.type !== "modified")) continue;
      for (const look of this.#waiting) look({ lease: event.object, atMs });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#watching.catch(() => {});
  }
}
