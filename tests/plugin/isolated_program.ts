/**
 * A whole application with an isolated leader task, to be bundled into one file: a host, the plugin, and an API server in
 * memory. The worker of the task is the bundle's own file.
 *
 * It tells on its output how often the program had its turn while the task computed, and what the task was given.
 *
 * @module
 */

import { z } from "zod";
import { productionSystem, systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { hostIsolatedTasks, type Term } from "../../lib/election/mod.ts";
import { createHost, kubernetes, sleep } from "../../lib/plugin/mod.ts";
import { silentLogger } from "../../lib/runtime/log.ts";
import { connectTo, FakeCluster } from "../../lib/testing/mod.ts";

const Input = z.object({ shared: z.instanceof(SharedArrayBuffer), table: z.string() });
const never = new AbortController().signal;

/** What both sides write into the memory that they share. */
const BEGUN = 0;
const TABLE_LENGTH = 1;
const TOKEN = 2;
const STOPPED = 3;

const tasks = {
  compact(term: Term, input: unknown) {
    const { shared, table } = Input.parse(input);
    const cells = new Int32Array(shared);
    Atomics.store(cells, TABLE_LENGTH, table.length);
    Atomics.store(cells, TOKEN, Number(term.token));
    Atomics.store(cells, BEGUN, 1);
    // It computes, and lets nobody have a turn in its thread.
    let sum = 0;
    while (term.isValid()) for (let i = 0; i < 100_000; i++) sum += i % 7;
    Atomics.store(cells, STOPPED, sum > 0 ? 1 : 0);
  },
};

async function main(): Promise<void> {
  const fake = new FakeCluster({ clock: systemClock, entropy: systemEntropy });
  const shared = new SharedArrayBuffer(4 * Int32Array.BYTES_PER_ELEMENT);
  const cells = new Int32Array(shared);
  const plugin = kubernetes({
    api: connectTo(fake, { clock: systemClock, entropy: systemEntropy }),
    podInfo: { name: "web-1", namespace: "default", labels: {}, inCluster: true },
    config: {
      leader_election: {
        enabled: true,
        lease_name: "web",
        lease_duration_secs: 3,
        renew_deadline_secs: 2,
        retry_period_secs: 1,
      },
    },
    leaderTasks: [{
      name: "compact",
      isolated: true,
      worker: (name) => new Worker(import.meta.url, { type: "module", name }),
      input: { shared, table: "orders" },
    }],
  });
  const system = { ...productionSystem(), env: { HOLDFAST__HOST__PRESTOP_GRACE_SECS: "0" } };
  const host = createHost({ system, listen: null, logger: silentLogger, plugins: [plugin] });
  await host.start();
  while (Atomics.load(cells, BEGUN) === 0) await sleep(systemClock, 10, never);
  // Longer than the renew deadline: a task that starved the elector would have cost the lead by now.
  let turns = 0;
  for (
    const untilMs = systemClock.monotonic() + 2_500;
    systemClock.monotonic() < untilMs;
    turns++
  ) {
    await sleep(systemClock, 10, never);
  }
  const leads = plugin.runtime?.leadership?.isLeader() ?? false;
  const token = plugin.runtime?.leadership?.term?.token;
  // Without belief the task stops; the lead is lost as in an outage.
  fake.faults.add({ resource: "leases", fault: { type: "reset" } });
  while (Atomics.load(cells, STOPPED) === 0) await sleep(systemClock, 10, never);
  // The worker stops believing no later than its program, and may do so a moment earlier.
  const lostByMs = systemClock.monotonic() + 1_000;
  while (plugin.runtime?.leadership?.isLeader() && systemClock.monotonic() < lostByMs) {
    await sleep(systemClock, 10, never);
  }
  const report = {
    turns,
    leads,
    sameToken: Number(token) === Atomics.load(cells, TOKEN),
    tableLength: Atomics.load(cells, TABLE_LENGTH),
    leadsStill: plugin.runtime?.leadership?.isLeader() ?? false,
    code: await host.stop("the program is over"),
  };
  await fake.close();
  Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(report)}\n`));
}

if (!hostIsolatedTasks({ scope: self, clock: systemClock, tasks })) await main();
