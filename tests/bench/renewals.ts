/** How long a renewal takes, beside what it cannot avoid and beside the calls of the reference. */

import type { Cluster } from "../cluster/cluster.ts";
import { MYSQL_DATABASES, MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { grantedBody } from "../service/deployment_client.ts";
import { ordersDatabase, ordersGroup, setStatus, stableStatus } from "../service/orders.ts";
import { Workplace } from "../service/workplace.ts";
import { BareCalls } from "./bare_calls.ts";
import { type Figure, quantile, timed } from "./figures.ts";

const WARM_UP = 50;
const RUNS = 300;
const MANY_DATABASES = 10_000;
const { signal } = new AbortController();

/** Measures with 10 databases in the cluster, and with 10,000. */
export async function measureRenewals(cluster: Cluster): Promise<readonly Figure[]> {
  await using place = await Workplace.open(cluster, "bench-renew");
  const { namespace } = place;
  const service = await place.startService();
  const client = await place.client(service);
  await place.untilLeading(client);
  // A group of its own for the bare calls: two writers of one Lease would conflict.
  const bareGroup = { namespace, name: "bare" };
  const deployers = [{ namespace, serviceAccount: "deployer" }];
  const { adminApi } = cluster;
  await adminApi.create(MYSQL_FAILOVER_GROUPS, ordersGroup(namespace, "bare"), { signal });
  const bareDatabase = ordersDatabase(namespace, "bare", "bare", deployers);
  await adminApi.create(MYSQL_DATABASES, bareDatabase, { signal });
  await setStatus(adminApi, bareGroup, stableStatus, signal);
  await client.with({ group: "bare" }).grant("bare", "bare");
  const granted = await client.grant("bench", "tenant", { ttlSeconds: 120 });
  const { token } = grantedBody.parse(granted.body);
  const renew = async () => {
    const { status, text } = await client.renew("bench", token, { ttlSeconds: 120 });
    if (status !== 200) throw new Error(`Cannot renew: ${status} ${text}`);
  };
  using bare = new BareCalls({
    cluster,
    namespace,
    group: "bare",
    database: "bare",
    token: await place.serviceToken(),
  });

  const figures = await compare(10, renew, bare, RUNS);
  await addDatabases(cluster, namespace, MANY_DATABASES);
  return [...figures, ...await compare(MANY_DATABASES, renew, bare, 30)];
}

async function compare(
  databases: number,
  renew: () => Promise<void>,
  bare: BareCalls,
  runs: number,
): Promise<readonly Figure[]> {
  const ours: number[] = [];
  const rounds: number[] = [];
  const reference: number[] = [];
  for (let run = -Math.min(WARM_UP, runs); run < runs; run++) {
    const samples = [
      await timed(renew),
      await timed(() => bare.renewalRounds()),
      await timed(() => bare.referenceRenewal()),
    ] as const;
    if (run < 0) continue;
    ours.push(samples[0]);
    rounds.push(samples[1]);
    reference.push(samples[2]);
  }
  const p50 = quantile(ours, 0.5);
  const at = `with ${databases} databases`;
  return [
    { what: `renew ${at}, median`, value: p50, unit: "ms" },
    { what: `renew ${at}, p99`, value: quantile(ours, 0.99), unit: "ms" },
    { what: `three bare rounds ${at}, median`, value: quantile(rounds, 0.5), unit: "ms" },
    { what: `calls of the reference ${at}, median`, value: quantile(reference, 0.5), unit: "ms" },
    {
      what: `renew against the bare rounds ${at}`,
      value: p50 / quantile(rounds, 0.5),
      unit: "x",
      goal: { atMost: 1.2 },
    },
    {
      what: `the reference's calls against our renewal ${at}`,
      value: quantile(reference, 0.5) / p50,
      unit: "x",
      goal: { atLeast: databases > 1_000 ? 30 : 2 },
    },
  ];
}

async function addDatabases(cluster: Cluster, namespace: string, count: number): Promise<void> {
  const { adminApi } = cluster;
  await adminApi.create(MYSQL_FAILOVER_GROUPS, ordersGroup(namespace, "others"), { signal });
  let next = 0;
  const work = async () => {
    while (next < count) {
      const database = ordersDatabase(namespace, `other-${next++}`, "others", []);
      await adminApi.create(MYSQL_DATABASES, database, { signal });
    }
  };
  await Promise.all(Array.from({ length: 32 }, work));
}
