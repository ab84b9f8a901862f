/** Whole applications as processes, on a real API server, with the rights that are generated for them. */

import assert from "node:assert/strict";
import { EVENTS, LEASES } from "../../lib/kube/mod.ts";
import { rbacRules } from "../../lib/manifests/mod.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { pause } from "../cluster/keeper.ts";
import { longestGapMs, overlaps } from "../election/beliefs.ts";
import { CandidateProcesses } from "../election/candidate_process.ts";

const clusterTest = useCluster({ crds: false });
const TIMING = { leaseDurationMs: 4_000, renewDeadlineMs: 3_000, retryPeriodMs: 1_000 };
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
