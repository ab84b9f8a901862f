/** A thousand groups, each renewing its lease every ten seconds. */

import type { Cluster } from "../cluster/cluster.ts";
import { MYSQL_DATABASES, MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { grantedBody } from "../service/deployment_client.ts";
import { ordersDatabase, ordersGroup, setStatus, stableStatus } from "../service/orders.ts";
import { Workplace } from "../service/workplace.ts";
import { type Figure, quantile } from "./figures.ts";
import { openShipped } from "./shipped.ts";
import { processorMs, residentMegabytes } from "./start.ts";

const GROUPS = 1_000;
const PERIOD_MS = 10_000;
const DURATION_MS = 40_000;
const { signal } = new AbortController();

/** Measures the renewals of all groups for a while. */
export async function measureLoad(cluster: Cluster): Promise<readonly Figure[]> {
  await using place = await Workplace.open(cluster, "bench-load");
  const { namespace } = place;
  await using shipped = await openShipped(place);
  const service = await shipped.start();
  const client = await place.client(service);
  await place.untilLeading(client);
  const names = Array.from({ length: GROUPS }, (_, number) => `load-${number}`);
  const tokens = new Map<string, string>();
  const deployers = [{ namespace, serviceAccount: "deployer" }];
  await inParallel(names, async (name) => {
    const { adminApi } = cluster;
    await adminApi.create(MYSQL_FAILOVER_GROUPS, ordersGroup(namespace, name), { signal });
    const database = ordersDatabase(namespace, name, name, deployers);
    await adminApi.create(MYSQL_DATABASES, database, { signal });
    await setStatus(adminApi, { namespace, name }, stableStatus, signal);
    const granted = await client.with({ group: name }).grant("load", name, { ttlSeconds: 120 });
    tokens.set(name, grantedBody.parse(granted.body).token);
  });

  const latencies: number[] = [];
  let failures = 0;
  const renew = async (name: string) => {
    const started = performance.now();
    const token = tokens.get(name) ?? "";
    const { status } = await client.with({ group: name }).renew("load", token, { ttlSeconds: 30 });
    latencies.push(performance.now() - started);
    if (status !== 200) failures++;
  };
  const pending = new Set<Promise<void>>();
  const busyBefore = await processorMs(service.pid);
  const started = performance.now();
  for (let number = 0;; number++) {
    const due = number * (PERIOD_MS / GROUPS);
    if (due > DURATION_MS) break;
    const wait = started + due - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const work = renew(names[number % GROUPS] ?? "").catch(() => void failures++);
    pending.add(work);
    void work.finally(() => pending.delete(work));
  }
  await Promise.all(pending);
  const busy = await processorMs(service.pid) - busyBefore;
  return [
    { what: `renewals of ${GROUPS} groups`, value: latencies.length, unit: "" },
    { what: "errors", value: failures, unit: "", goal: { atMost: 0 } },
    { what: "latency, median", value: quantile(latencies, 0.5), unit: "ms" },
    { what: "latency, p99", value: quantile(latencies, 0.99), unit: "ms", goal: { atMost: 50 } },
    { what: "processor time for a renewal", value: busy / latencies.length, unit: "ms" },
    {
      what: "resident memory under load",
      value: await residentMegabytes(service.pid),
      unit: "MB",
      goal: { atMost: 130 },
    },
  ];
}

async function inParallel(names: readonly string[], work: (name: string) => Promise<void>) {
  const left = [...names];
  await Promise.all(Array.from({ length: 16 }, async () => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) await work(name);
  }));
}
