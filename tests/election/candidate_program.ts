/**
 * A candidate as a process: campaigns for a Lease, and writes every few milliseconds whether it believes that it leads.
 *
 * Its orders come in one line of JSON on its input. SIGTERM ends it as Kubernetes ends a pod.
 *
 * @module
 */

import { Registry } from "prom-client";
import { z } from "zod";
import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { Elector } from "../../lib/election/mod.ts";
import { silentLogger } from "../../lib/runtime/log.ts";
import { Caller } from "../cluster/caller.ts";
import { formatSample } from "./beliefs.ts";

/** The time between two samples. */
export const SAMPLE_EVERY_MS = 5;

const ordersSchema = z.strictObject({
  url: z.string(),
  caPem: z.string(),
  token: z.string(),
  namespace: z.string(),
  leaseName: z.string(),
  identity: z.string(),
  timing: z.strictObject({
    leaseDurationMs: z.number(),
    renewDeadlineMs: z.number(),
    retryPeriodMs: z.number(),
  }),
});

/** What a candidate is told. */
export type CandidateOrders = z.infer<typeof ordersSchema>;

/** Milliseconds since 1970, finer than a millisecond, and the same for all processes of the machine. */
export const nowMs = () => Number((performance.timeOrigin + performance.now()).toFixed(3));

/** Reads the orders from the input of this process. */
export async function readOrders(): Promise<CandidateOrders> {
  return ordersSchema.parse(await new Response(Deno.stdin.readable).json());
}

async function main(): Promise<void> {
  const orders = await readOrders();
  const { url, caPem, token, ...names } = orders;
  const client = Deno.createHttpClient({ caCerts: [caPem] });
  const elector = new Elector({
    api: new Caller(url, (request) => fetch(request, { client }), token).api(),
    clock: systemClock,
    entropy: systemEntropy,
    logger: silentLogger,
    metrics: new Registry(),
    ...names,
  });
  const encoder = new TextEncoder();
  const sampling = setInterval(() => {
    const beforeMs = nowMs();
    const { term } = elector.leadership;
    const afterMs = nowMs();
    const sample = { beforeMs, afterMs, token: term?.token ?? null };
    Deno.stdout.writeSync(encoder.encode(`${formatSample(sample)}\n`));
  }, SAMPLE_EVERY_MS);
  const stop = async () => {
    await elector.stop(new AbortController().signal);
    clearInterval(sampling);
    Deno.exit(0);
  };
  Deno.addSignalListener("SIGTERM", () => void stop());
  elector.start();
}

if (import.meta.main) await main();
