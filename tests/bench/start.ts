/**
 * From the start of the process to its first answer, and the memory that it then has.
 *
 * What ships is measured. The figures of the way to the first answer show where the time goes.
 */

import type { Cluster } from "../cluster/cluster.ts";
import type { ServiceProcess } from "../service/service_process.ts";
import { Workplace } from "../service/workplace.ts";
import { type Figure, quantile } from "./figures.ts";
import { openShipped } from "./shipped.ts";

const RUNS = 9;

/** Measures a start on a free election Lease. */
export async function measureStart(cluster: Cluster): Promise<readonly Figure[]> {
  await using place = await Workplace.open(cluster, "bench-start");
  await using shipped = await openShipped(place);
  const samples: number[][] = [];
  for (let run = 0; run < RUNS; run++) {
    const started = Date.now();
    const service = await shipped.start();
    const client = await place.client(service);
    await place.untilLeading(client, 2);
    const answered = Date.now() - started;
    const busy = await processorMs(service.pid);
    await service.logged(LEADS);
    const steps = [LISTENS, CONNECTED, LEADS].map((wanted) => timeOf(service, wanted) - started);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    samples.push([...steps, answered, await residentMegabytes(service.pid), busy]);
    service.kill("SIGTERM");
    await service.ended();
  }
  const median = (at: number) => quantile(samples.map((sample) => sample[at] ?? NaN), 0.5);
  return [
    {
      what: "the bundle as the image runs it: start until it listens",
      value: median(0),
      unit: "ms",
    },
    { what: "until the cluster has answered", value: median(1), unit: "ms" },
    { what: "until it leads", value: median(2), unit: "ms" },
    { what: "processor time until the first 200", value: median(5), unit: "ms" },
    {
      what: "start to first 200 on GET group, median",
      value: median(3),
      unit: "ms",
      goal: { atMost: 400 },
    },
    { what: "resident memory, idle", value: median(4), unit: "MB", goal: { atMost: 90 } },
  ];
}

type Line = ServiceProcess["lines"][number];

const LISTENS = (line: Line) => line.msg === "listening" && line.listener === "tls";
const CONNECTED = (line: Line) => line.msg === "kubernetes plugin started";
const LEADS = (line: Line) => line.msg === "This replica leads";

function timeOf(service: ServiceProcess, wanted: (line: Line) => boolean): number {
  return Date.parse(String(service.lines.find(wanted)?.time));
}

/** The processor time that a process has taken, as Linux tells it: in hundredths of a second. */
export async function processorMs(pid: number): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/stat`);
  const fields = status.slice(status.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** The resident memory of a process, as Linux tells it. */
export async function residentMegabytes(pid: number): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}
