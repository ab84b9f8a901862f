/** The elector in processes of its own, on a real API server: crashes, a frozen leader, a rolling update, an outage. */

import assert from "node:assert/strict";
import { print } from "../checks/shell.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { pause } from "../cluster/keeper.ts";
import { longestGapMs, overlaps } from "./beliefs.ts";
import { CandidateProcesses, replaceOneByOne, until } from "./candidate_process.ts";

const clusterTest = useCluster({ crds: false });
const HASTY = { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 400 };
const PATIENT = { leaseDurationMs: 40_000, renewDeadlineMs: 30_000, retryPeriodMs: 1_000 };

const nowMs = () => performance.timeOrigin + performance.now();

clusterTest(
  "three processes, two of them killed: never two leaders, and each led",
  async (cluster) => {
    await using processes = await CandidateProcesses.in(cluster, "killed", HASTY);
    await Promise.all(["a", "b", "c"].map((identity) => processes.start(identity)));
    for (let crash = 0; crash < 2; crash++) {
      const leader = await processes.leader();
      await pause(1_000);
      await leader.kill();
    }
    await processes.leader();
    await pause(1_000);
    const reigns = processes.reigns();
    assert.deepEqual(overlaps(reigns), []);
    assert.deepEqual([...new Set(reigns.map(({ process }) => process))].sort(), ["a", "b", "c"]);
    const samples = processes.all.reduce((sum, { samples }) => sum + samples.length, 0);
    assert.ok(samples >= 1_500, `${samples} samples`);
    // A killed leader told nobody: its Lease had to run out.
    assert.ok(longestGapMs(reigns) > 1_000);
  },
);

clusterTest(
  "a leader that is frozen past its lease does not believe for even one call",
  async (cluster) => {
    await using processes = await CandidateProcesses.in(cluster, "frozen", HASTY);
    await Promise.all(["a", "b"].map((identity) => processes.start(identity)));
    for (let round = 0; round < 2; round++) {
      const leader = await processes.leader();
      const { token } = leader.samples.at(-1) ?? {};
      leader.signal("SIGSTOP");
      await processes.leader(processes.all.filter((process) => process !== leader));
      await pause(500);
      const goesOnMs = nowMs();
      leader.signal("SIGCONT");
      const later = () => leader.samples.filter(({ beforeMs }) => beforeMs >= goesOnMs);
      await until("answers of the thawed process", () => later().length >= 100);
      assert.deepEqual(later().filter((sample) => sample.token === token), []);
      assert.deepEqual(overlaps(processes.reigns()), []);
    }
  },
);

clusterTest("a rolling update of two replicas has no leader for a moment only", async (cluster) => {
  await using processes = await CandidateProcesses.in(cluster, "rolling", HASTY);
  const old = [await processes.start("old-1"), await processes.start("old-2")];
  await processes.leader();
  await pause(1_000);
  await replaceOneByOne(processes, old);
  const leader = await processes.leader();
  assert.match(leader.identity, /^new-/);
  await pause(500);
  const reigns = processes.reigns();
  assert.deepEqual(overlaps(reigns), []);
  const gapMs = longestGapMs(reigns);
  print(`rolling update of two replicas: at most ${gapMs.toFixed(1)} ms without a leader`);
  // By expiry it would be 3 s.
  assert.ok(gapMs < 1_000, `${gapMs} ms`);
});

clusterTest(
  "an outage ends no term whose renew deadline is longer, and ends the others in time",
  async (cluster) => {
    await using patient = await CandidateProcesses.in(cluster, "patient", PATIENT);
    await using hasty = await CandidateProcesses.in(cluster, "hasty", HASTY);
    for (const processes of [patient, hasty]) {
      await Promise.all(["a", "b"].map((identity) => processes.start(identity)));
    }
    await patient.leader();
    await hasty.leader();
    await pause(2_000);
    await cluster.killApiServer();
    const outageMs = nowMs();
    await until("the end of belief", () => !hasty.all.some((process) => process.leads));
    await pause(1_000);
    assert.ok(!hasty.all.some((process) => process.leads));
    await cluster.startApiServer();
    const backMs = nowMs();
    await hasty.leader();
    await pause(3_000);

    const reigns = hasty.reigns();
    assert.deepEqual(overlaps(reigns), []);
    const before = reigns.findLast(({ fromMs }) => fromMs < outageMs);
    const after = reigns.find(({ fromMs }) => fromMs >= outageMs);
    assert.ok(before !== undefined && after !== undefined);
    assert.ok(before.toMs <= outageMs + HASTY.renewDeadlineMs, "belief ends with its deadline");
    assert.ok(after.fromMs >= before.toMs + 1_000, "nobody leads during the outage");
    assert.ok(BigInt(after.token) > BigInt(before.token));

    const [term, ...others] = patient.reigns();
    assert.deepEqual(others, [], "one and the same term");
    assert.ok((term?.toMs ?? 0) > backMs + 2_000, "it goes on after the outage");
    assert.equal(await patient.transitions(), 0);
    print(
      `outage of ${Math.round(backMs - outageMs)} ms: one term went on, one ended and came back`,
    );
  },
);
