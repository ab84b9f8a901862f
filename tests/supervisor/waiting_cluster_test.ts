import assert from "node:assert/strict";
import { fromEnvironment } from "../../handlers/commands/client.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { DEPLOYMENT_LEASE_ANNOTATION, slotName } from "../../lib/records/names.ts";
import { parseRecord } from "../../lib/records/record.ts";
import { callerOf, environmentOf, type RealCaller } from "../client/real_caller.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { HoldfastProcess } from "../handlers/commands/holdfast_process.ts";
import { RunProcess } from "../handlers/commands/run_process.ts";
import { Beats } from "./beats.ts";
import { startWorking } from "./working_run.ts";

/** Time enough to start a program that looks at the dead holder, also on a busy machine. */
const TTL_SECONDS = 15;

async function expiresAt({ cluster, namespace }: RealCaller, group: string): Promise<string> {
  const { signal } = new AbortController();
  const name = { namespace, name: slotName(group) };
  const { metadata } = await cluster.adminApi.get(LEASES, name, { signal });
  return parseRecord(metadata.annotations?.[DEPLOYMENT_LEASE_ANNOTATION] ?? "").expiresAt;
}

/** Waits for the next renewal, so that what follows comes right after it. */
async function untilRenewed(caller: RealCaller, group: string): Promise<string> {
  const before = await expiresAt(caller, group);
  for (;;) {
    const now = await expiresAt(caller, group);
    if (now !== before) return now;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * A holder is killed right after it renewed, which is the longest that it can keep others out.
 *
 * @returns Milliseconds from its death to the grant of one who waited for long.
 */
async function killHolder(caller: RealCaller, group: string): Promise<number> {
  const settings = await caller.openGroup(group);
  const env = environmentOf(settings);
  const beats = new Beats(`${caller.folder}/beats-${group}`);
  await using working = await startWorking(
    ["--operation", "the-dead", "--ttl", `${TTL_SECONDS}s`, "--wait", "30s"],
    env,
    beats,
  );
  const holder = working.run;
  const work = ["--", "bash", "-c", "echo granted $EPOCHREALTIME"];
  const other = ["--instance", `billing-${group}`, "--ttl", "8s", "--wait", "1m", ...work];
  await using next = new RunProcess(other, env);
  await next.said(/Waiting for up to .*'the-dead' of/);
  await untilRenewed(caller, group);
  const expiry = await untilRenewed(caller, group);
  holder.kill("SIGKILL");
  const killedMs = Date.now();

  const args = ["status", "--namespace", caller.namespace, "--group", group, "--json"];
  const kubeconfig = `${caller.folder}/kubeconfig`;
  const seen = await HoldfastProcess.run(args, { KUBECONFIG: kubeconfig });
  assert.deepEqual([seen.code, seen.stderr], [0, ""]);
  const [{ leases }] = JSON.parse(seen.stdout).groups;
  const dead = leases.find(({ kind }: { kind: string }) => kind === "migration");
  assert.deepEqual([dead.operationId, dead.expiresAt], ["the-dead", expiry]);
  assert.ok(dead.leftSeconds > 0 && dead.leftSeconds <= TTL_SECONDS, JSON.stringify(dead));

  const { code, stdout, stderr } = await next.ended();
  assert.equal(code, 0, stderr);
  const [, grantedAt] = /^granted (\S+)$/m.exec(stdout) ?? [];
  return Number(grantedAt) * 1_000 - killedMs;
}

/** @returns Milliseconds from the beginning of the wait to its end. */
async function waitInVain(caller: RealCaller, group: string, waitSeconds: number): Promise<number> {
  const settings = await caller.openGroup(group);
  const holder = await fromEnvironment(settings);
  await using _lease = await holder.acquire({ operationId: "the-holder" });
  const args = ["--instance", `billing-${group}`, "--wait", `${waitSeconds}s`, "--", "true"];
  await using waiting = new RunProcess(args, environmentOf(settings));
  await waiting.said(/^holdfast: Operation/m);
  const startMs = Date.now();
  const { code, stderr } = await waiting.ended();
  const tookMs = Date.now() - startMs;
  assert.equal(code, 113, stderr);
  assert.match(stderr, /Waiting for up to 1\ds: .*'the-holder' of 'tenant-/);
  assert.equal(stderr.match(/Waiting/g)?.length, 1, "One line for each change");
  assert.match(
    stderr,
    /holdfast: Cannot take the migration lease .* 'the-holder' of 'tenant-.*\n$/,
  );
  return tookMs;
}

clusterTest(
  "a wait ends at its time with 113 and the holder's name, and one for a holder that was killed within its ttl and 1 s; status shows the dead one until then",
  async (cluster) => {
    await using caller = await callerOf(cluster, "waiting");
    await Deno.writeTextFile(`${caller.folder}/kubeconfig`, cluster.kubeconfig());
    const [waitedMs, ...grantedMs] = await Promise.all([
      waitInVain(caller, "in-vain", 15),
      ...["killed-1", "killed-2", "killed-3"].map((group) => killHolder(caller, group)),
    ]);
    // The guard starts first. Machines that are busy take their time for it.
    assert.ok(waitedMs > 14_900 && waitedMs < 18_000, `${waitedMs}`);
    for (const one of grantedMs) assert.ok(one < (TTL_SECONDS + 1) * 1_000, `${grantedMs}`);
  },
);
