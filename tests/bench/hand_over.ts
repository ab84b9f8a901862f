/** How long nobody leads when the leader is asked to stop. */

import type { Cluster } from "../cluster/cluster.ts";
import { Workplace } from "../service/workplace.ts";
import { type Figure, quantile } from "./figures.ts";

const RUNS = 20;

/** Measures from the last answer of the old leader to the first of the new one, as callers of both see it. */
export async function measureHandOver(cluster: Cluster): Promise<readonly Figure[]> {
  await using place = await Workplace.open(cluster, "bench-hand-over");
  const gaps: number[] = [];
  let leader = await place.startService();
  await place.untilLeading(await place.client(leader));
  for (let run = 0; run < RUNS; run++) {
    const next = await place.startService();
    const old = await place.client(leader);
    const fresh = await place.client(next);
    let lastServed = performance.now();
    const watching = (async () => {
      while ((await old.observe().catch(() => null))?.status === 200) {
        lastServed = performance.now();
      }
    })();
    // A moment of quiet service first, so that both have their connections.
    await new Promise((resolve) => setTimeout(resolve, 300));
    leader.kill("SIGTERM");
    await place.untilLeading(fresh, 1);
    const firstServed = performance.now();
    await watching;
    gaps.push(firstServed - lastServed);
    await leader.ended();
    leader = next;
  }
  return [
    {
      what: "time without a leader in a clean hand-over, median",
      value: quantile(gaps, 0.5),
      unit: "ms",
    },
    {
      what: "time without a leader in a clean hand-over, longest",
      value: Math.max(...gaps),
      unit: "ms",
      goal: { atMost: 250 },
    },
  ];
}
