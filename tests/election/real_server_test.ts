/** The elector against a real API server, as a service account with no more than the Role that it needs. */

import assert from "node:assert/strict";
import { Registry } from "prom-client";
import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { Elector, LeadershipLostError, type Term } from "../../lib/election/mod.ts";
import { LEASES } from "../../lib/kube/mod.ts";
import { sleep } from "../../lib/runtime/clock.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { MemoryLog } from "./world.ts";

const clusterTest = useCluster({ crds: false });
const never = new AbortController().signal;
const TIMING = { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 400 };
const group = { apiGroups: ["coordination.k8s.io"], resources: ["leases"] };

/** The candidates of one Lease, in a namespace of their own. */
class Candidates implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #namespace: string;
  readonly #token: string;
  readonly electors: Elector[] = [];

  private constructor(cluster: Cluster, namespace: string, token: string) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#token = token;
  }

  static async in(cluster: Cluster, namespace: string): Promise<Candidates> {
    await cluster.createNamespace(namespace);
    await cluster.createServiceAccount(namespace, "app");
    const subject = { namespace, serviceAccount: "app" };
    await cluster.grant({
      subject,
      namespace,
      rules: [{
        ...group,
        resourceNames: ["app"],
        verbs: ["get", "create", "update", "patch", "list", "watch"],
      }],
    });
    return new Candidates(cluster, namespace, await cluster.token(subject));
  }

  start(identity: string): Elector {
    const elector = new Elector({
      api: this.#cluster.caller({ token: this.#token }).api(),
      clock: systemClock,
      entropy: systemEntropy,
      logger: new MemoryLog(),
      metrics: new Registry(),
      namespace: this.#namespace,
      leaseName: "app",
      identity,
      timing: TIMING,
    });
    this.electors.push(elector);
    elector.start();
    return elector;
  }

  lease() {
    const name = { namespace: this.#namespace, name: "app" };
    return this.#cluster.adminApi.get(LEASES, name, { signal: never });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.electors.map((elector) => elector.stop(AbortSignal.abort())));
  }
}

/** The term in force once this candidate leads. */
async function termOf(elector: Elector): Promise<Term> {
  assert.equal(await elector.leadership.waitUntilLeader(never), true);
  const { term } = elector.leadership;
  assert.ok(term !== null);
  return term;
}

clusterTest(
  "three electors with two crashes: never two leaders in 1500 samples, and all three led",
  async (cluster) => {
    await using candidates = await Candidates.in(cluster, "three");
    const led = new Set<string>();
    for (const identity of ["a", "b", "c"]) candidates.start(identity);
    for (let sample = 0; sample < 1_500; sample++) {
      await sleep(systemClock, 10, never);
      const leaders = candidates.electors.filter((elector) => elector.leadership.isLeader());
      assert.ok(leaders.length <= 1, `sample ${sample}: ${leaders.length} leaders`);
      for (const leader of leaders) led.add(leader.leadership.identity);
      if (sample === 200 || sample === 800) leaders[0]?.abort();
    }
    assert.deepEqual([...led].sort(), ["a", "b", "c"]);
  },
);

clusterTest(
  "a clean hand-over takes a few milliseconds, and the next token is greater",
  async (cluster) => {
    await using candidates = await Candidates.in(cluster, "handover");
    const a = candidates.start("a");
    const first = await termOf(a);
    const b = candidates.start("b");
    await sleep(systemClock, 1_000, never);
    const start = systemClock.monotonic();
    await a.stop(never);
    const second = await termOf(b);
    const tookMs = systemClock.monotonic() - start;
    // A waiter that polls would take 400 ms and more.
    assert.ok(tookMs < 300, `${tookMs} ms`);
    assert.ok(BigInt(second.token) > BigInt(first.token));
    assert.equal((await candidates.lease()).spec?.leaseTransitions, 1);
  },
);

clusterTest(
  "a Lease that is deleted ends the term at once, and the next one has a greater token",
  async (cluster) => {
    await using candidates = await Candidates.in(cluster, "deleted");
    const a = candidates.start("a");
    const first = await termOf(a);
    await sleep(systemClock, 500, never);
    const answer = await cluster.admin(
      "DELETE",
      "/apis/coordination.k8s.io/v1/namespaces/deleted/leases/app",
    );
    assert.equal(answer.status, 200);
    while (!first.signal.aborted) await sleep(systemClock, 5, never);
    const reason: unknown = first.signal.reason;
    assert.ok(reason instanceof LeadershipLostError && reason.reason === "deleted");
    const second = await termOf(a);
    assert.ok(BigInt(second.token) > BigInt(first.token));
  },
);

clusterTest(
  "labels, annotations and owners of others survive renewals and the release",
  async (cluster) => {
    await using candidates = await Candidates.in(cluster, "foreign");
    const a = candidates.start("a");
    const term = await termOf(a);
    const uid = (await candidates.lease()).metadata.uid;
    const ownerReferences = [{ apiVersion: "v1", kind: "Namespace", name: "foreign", uid }];
    const metadata = { labels: { team: "x" }, annotations: { note: "y" }, ownerReferences };
    await cluster.adminApi.patch(
      LEASES,
      { namespace: "foreign", name: "app" },
      { type: "merge", body: { metadata } },
      { signal: never },
    );
    const before = term.validUntil ?? 0;
    await sleep(systemClock, 1_500, never);
    assert.ok((term.validUntil ?? 0) > before, "it was renewed, in one and the same term");
    await a.stop(never);
    const lease = await candidates.lease();
    assert.deepEqual(lease.metadata.labels, metadata.labels);
    assert.deepEqual(lease.metadata.annotations, metadata.annotations);
    assert.deepEqual(lease.metadata.ownerReferences, ownerReferences);
    assert.equal(lease.spec?.holderIdentity, undefined);
    assert.match(lease.spec?.renewTime ?? "", /\.\d{6}Z$/);
  },
);
