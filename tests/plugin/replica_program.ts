/**
 * A whole application on the library as a process: one host, the plugin, a kubeconfig, and the configuration from its
 * variables. Every few milliseconds it writes whether it believes that it leads, as its own handlers are told.
 *
 * Its orders come in one line of JSON on its input, as those of an elector alone do.
 *
 * @module
 */

import { createHost, kubernetes } from "../../lib/plugin/mod.ts";
import { productionSystem } from "../../handlers/commands/system.ts";
import { silentLogger } from "../../lib/runtime/log.ts";
import { kubeconfig } from "../cluster/access.ts";
import { formatSample } from "../election/beliefs.ts";
import { nowMs, readOrders, SAMPLE_EVERY_MS } from "../election/candidate_program.ts";

async function main(): Promise<void> {
  const { url, caPem, token, namespace, leaseName, identity, timing } = await readOrders();
  const file = await Deno.makeTempFile({ prefix: "holdfast-replica-" });
  await Deno.writeTextFile(file, kubeconfig(url, caPem, { token }, namespace));
  const seconds = (ms: number) => String(ms / 1_000);
  const system = {
    ...productionSystem(),
    env: {
      KUBECONFIG: file,
      POD_NAME: identity,
      POD_NAMESPACE: namespace,
      HOLDFAST__HOST__LISTEN: "127.0.0.1:0",
      HOLDFAST__HOST__PRESTOP_GRACE_SECS: "0",
      AUTUMN_KUBERNETES__REQUIRED: "true",
      AUTUMN_KUBERNETES__LEADER_ELECTION__ENABLED: "true",
      AUTUMN_KUBERNETES__LEADER_ELECTION__LEASE_NAME: leaseName,
      AUTUMN_KUBERNETES__LEADER_ELECTION__LEASE_DURATION_SECS: seconds(timing.leaseDurationMs),
      AUTUMN_KUBERNETES__LEADER_ELECTION__RENEW_DEADLINE_SECS: seconds(timing.renewDeadlineMs),
      AUTUMN_KUBERNETES__LEADER_ELECTION__RETRY_PERIOD_SECS: seconds(timing.retryPeriodMs),
    },
  };
  const plugin = kubernetes();
  const host = createHost({ system, logger: silentLogger, plugins: [plugin] });
  const encoder = new TextEncoder();
  const sampling = setInterval(() => {
    const { leadership } = plugin.runtime ?? {};
    if (leadership === undefined || leadership === null) return;
    const beforeMs = nowMs();
    const leads = leadership.isLeader();
    const sample = {
      beforeMs,
      afterMs: nowMs(),
      token: leads ? leadership.term?.token ?? null : null,
    };
    Deno.stdout.writeSync(encoder.encode(`${formatSample(sample)}\n`));
  }, SAMPLE_EVERY_MS);
  try {
    Deno.exitCode = await host.run();
  } finally {
    clearInterval(sampling);
    await Deno.remove(file);
  }
}

await main();
