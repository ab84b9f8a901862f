/** From the start of the process to its first answer, and the memory that it then has. */

import type { Cluster } from "../cluster/cluster.ts";
import { Workplace } from "../service/workplace.ts";
import { type Figure, quantile } from "./figures.ts";

const RUNS = 7;

/** Measures a start on a free election Lease. */
export async function measureStart(cluster: Cluster): Promise<readonly Figure[]> {
  await using place = await Workplace.open(cluster, "bench-start");
  const starts: number[] = [];
  const memory: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const started = performance.now();
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client, 2);
    starts.push(performance.now() - started);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    memory.push(await residentMegabytes(service.pid));
    service.kill("SIGTERM");
    await service.ended();
  }
  return [
    {
      what: "start to first 200 on GET group, median",
      value: quantile(starts, 0.5),
      unit: "ms",
      goal: { atMost: 400 },
    },
    {
      what: "resident memory, idle",
      value: quantile(memory, 0.5),
      unit: "MB",
      goal: { atMost: 90 },
    },
  ];
}

/** The resident memory of a process, as Linux tells it. */
export async function residentMegabytes(pid: number): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}
