/** Whole applications as processes, on a real API server, with the rights that are generated for them. */

import assert from "node:assert/strict";
import { Hono } from "hono";
import { z } from "zod";
import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { configSchema } from "../../lib/config/schema.ts";
import { EVENTS, LEASES } from "../../lib/kube/mod.ts";
import { rbacRules } from "../../lib/manifests/mod.ts";
import { createHost, kubernetes, type KubernetesEnv } from "../../lib/plugin/mod.ts";
import { silentLogger } from "../../lib/runtime/log.ts";
import { TestSystem } from "../../lib/testing/test_system.ts";
import { print } from "../checks/shell.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { pause } from "../cluster/keeper.ts";
import { longestGapMs, overlaps } from "../election/beliefs.ts";
import { CandidateProcesses, replaceOneByOne, until } from "../election/candidate_process.ts";
import { nowMs } from "../election/candidate_program.ts";
import { answerOf } from "../host/host_world.ts";
import { eventually } from "../host/support.ts";

const clusterTest = useCluster({ crds: false });
const TIMING = { leaseDurationMs: 4_000, renewDeadlineMs: 3_000, retryPeriodMs: 1_000 };
const Page = z.looseObject({ version: z.looseObject({ gitVersion: z.string() }) });
const HOW = {
  program: new URL("replica_program.ts", import.meta.url),
  rules: rbacRules({ leaseName: "app", events: true }),
};

clusterTest(
  "three applications, two leaders of which are killed: never two leaders over 1,500 samples, and each led",
  async (cluster) => {
    const namespace = "killed";
    await using processes = await CandidateProcesses.in(cluster, namespace, TIMING, HOW);
    await Promise.all(["a", "b", "c"].map((pod) => processes.start(pod)));
    for (let crash = 0; crash < 2; crash++) {
      const leader = await processes.leader();
      await pause(1_000);
      await leader.kill();
    }
    const last = await processes.leader();
    await pause(500);
    const reigns = processes.reigns();
    assert.deepEqual(overlaps(reigns), []);
    assert.deepEqual([...new Set(reigns.map(({ process }) => process))].sort(), ["a", "b", "c"]);
    const samples = processes.all.reduce((sum, { samples }) => sum + samples.length, 0);
    assert.ok(samples >= 1_500, `${samples} samples`);
    // A killed leader told nobody: its Lease had to run out.
    assert.ok(longestGapMs(reigns) > 1_000);
    const tokens = reigns.map(({ token }) => BigInt(token));
    assert.deepEqual(tokens, [...tokens].sort((a, b) => a < b ? -1 : 1));

    // The last one ends as a pod does: the Lease is free, and its Events say what happened.
    last.signal("SIGTERM");
    assert.equal(await last.ended(), 0);
    const call = { signal: new AbortController().signal };
    const lease = await cluster.adminApi.get(LEASES, { namespace, name: "app" }, call);
    assert.equal(lease.spec?.holderIdentity ?? "", "");
    assert.equal(lease.spec?.leaseTransitions, 2);
    const { items } = await cluster.adminApi.list(EVENTS, { namespace, ...call });
    const told = items.filter(({ regarding }) => regarding?.name === last.identity);
    assert.deepEqual(told.map(({ reason }) => reason).sort(), [
      "LeaderElected",
      "Started",
      "Stopping",
    ]);
  },
);

clusterTest(
  "an application that is frozen past its lease does not believe for even one call once it goes on",
  async (cluster) => {
    await using processes = await CandidateProcesses.in(cluster, "frozen", TIMING, HOW);
    await Promise.all(["a", "b"].map((pod) => processes.start(pod)));
    const leader = await processes.leader();
    const { token } = leader.samples.at(-1) ?? {};
    leader.signal("SIGSTOP");
    await processes.leader(processes.all.filter((process) => process !== leader));
    await pause(300);
    const goesOnMs = nowMs();
    leader.signal("SIGCONT");
    const later = () => leader.samples.filter(({ beforeMs }) => beforeMs >= goesOnMs);
    await until("answers of the thawed application", () => later().length >= 100);
    assert.deepEqual(later().filter((sample) => sample.token === token), []);
    assert.deepEqual(overlaps(processes.reigns()), []);
  },
);

clusterTest(
  "a rolling update of two applications has no leader for a moment only",
  async (cluster) => {
    await using processes = await CandidateProcesses.in(cluster, "rolling", TIMING, HOW);
    const old = [await processes.start("old-1"), await processes.start("old-2")];
    await processes.leader();
    await replaceOneByOne(processes, old);
    assert.match((await processes.leader()).identity, /^new-/);
    await pause(300);
    const reigns = processes.reigns();
    assert.deepEqual(overlaps(reigns), []);
    const gapMs = longestGapMs(reigns);
    print(`rolling update of two applications: at most ${gapMs.toFixed(1)} ms without a leader`);
    // By expiry it would be 4 s.
    assert.ok(gapMs < 1_000, `${gapMs} ms`);
  },
);

clusterTest(
  "an application finds its client and its health on a real API server",
  async (cluster) => {
    const namespace = "state";
    await cluster.createNamespace(namespace);
    const app = new Hono<KubernetesEnv>();
    app.get("/", async (c) => {
      const { api, mode, podInfo } = c.var.kubernetes;
      const version = await api?.version({ signal: c.req.raw.signal });
      return c.json({ mode, pod: podInfo.name, namespace: c.var.kubernetes.namespace, version });
    });
    const host = createHost({
      system: new TestSystem({ clock: systemClock, entropy: systemEntropy }),
      logger: silentLogger,
      config: configSchema.parse({
        kubernetes: { required: true, config_maps: { watch: ["absent"] } },
        host: { prestop_grace_secs: 0 },
      }),
      listen: { host: "127.0.0.1", port: 0 },
      healthDetails: true,
      app,
      plugins: [kubernetes({
        api: cluster.adminCaller.api({ defaultNamespace: "default" }),
        podInfo: { name: "web-1", namespace, labels: {}, inCluster: true },
      })],
    });
    await host.start();
    try {
      const [status, page] = await answerOf(host.request("/"));
      assert.equal(status, 200);
      const { version, ...rest } = Page.parse(page);
      assert.match(version.gitVersion, /^v1\./);
      assert.deepEqual(rest, { mode: "custom", pod: "web-1", namespace });
      const health = () => answerOf(host.request("/health"));
      await eventually(
        async () => JSON.stringify(await health()).includes('"absent":"missing"'),
        "the page tells of the ConfigMap that is not there",
      );
      assert.equal((await health())[0], 200);
    } finally {
      assert.equal(await host.stop("the test is over"), 0);
    }
  },
);
