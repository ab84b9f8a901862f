/** How long a list waits for the API server's cache after a write to another kind, and a get does not: ADR 161. */

import { MYSQL_DATABASES, MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/mod.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { ordersDatabase, ordersGroup } from "../service/orders.ts";
import { type Figure, quantile, timed } from "./figures.ts";

const RUNS = 30;
const PAUSES_MS: readonly number[] = [0, 30, 300];
const { signal } = new AbortController();

/** Measures both after a write to a Lease, at once and after a pause. */
export async function measureLists(cluster: Cluster): Promise<readonly Figure[]> {
  const namespace = "bench-lists";
  const { adminApi: api } = cluster;
  await cluster.createNamespace(namespace);
  await api.create(MYSQL_FAILOVER_GROUPS, ordersGroup(namespace, "orders"), { signal });
  const name = { namespace, name: "tenant" };
  await api.create(MYSQL_DATABASES, ordersDatabase(namespace, name.name, "orders", []), { signal });
  const figures: Figure[] = [];
  for (const pauseMs of PAUSES_MS) {
    const samples: Readonly<Record<string, number[]>> = { list: [], get: [] };
    for (let run = 0; run < RUNS; run++) {
      for (const [verb, times] of Object.entries(samples)) {
        await api.create(LEASES, { metadata: { namespace, generateName: "write-" }, spec: {} }, {
          signal,
        });
        if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
        times.push(
          await timed(() =>
            verb === "get"
              ? api.get(MYSQL_DATABASES, name, { signal })
              : api.list(MYSQL_DATABASES, { fieldSelector: "spec.groupRef.name=orders", signal })
          ),
        );
      }
    }
    for (const [verb, times] of Object.entries(samples)) {
      const what = `${verb} of databases, ${pauseMs} ms after a write to a Lease, median`;
      figures.push({ what, value: quantile(times, 0.5), unit: "ms" });
    }
  }
  return figures;
}
