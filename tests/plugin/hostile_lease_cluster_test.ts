/** Leases that others wrote, as odd as the API server stores them: a replica waits, leads once they are free, and lives on. */

import assert from "node:assert/strict";
import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import { configSchema } from "../../lib/config/schema.ts";
import { LEASES } from "../../lib/kube/mod.ts";
import { startKubernetes } from "../../lib/plugin/start.ts";
import { TestSystem } from "../../lib/testing/test_system.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { member, mustSucceed } from "../cluster/raw_client.ts";
import { MemoryLog } from "../election/world.ts";
import { eventually } from "../host/support.ts";

const clusterTest = useCluster({ crds: false });
const call = { signal: new AbortController().signal };
const NAMESPACE = "hostile";
const PATH = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;

const MAX_INT32 = 2_147_483_647;
const held = { holderIdentity: "stranger", leaseDurationSeconds: 3_600 };

/** What stands in the Lease, by what is odd about it. */
const ODD: Readonly<Record<string, Record<string, unknown>>> = {
  "sixty-eight-years": { ...held, leaseDurationSeconds: MAX_INT32 },
  "highest-transitions": { ...held, leaseTransitions: MAX_INT32 },
  "ten-kilobytes": { ...held, holderIdentity: "x".repeat(10_240) },
  "lines-and-more": { ...held, holderIdentity: 'a\nb\t"\u2028 {"msg":"x"} \u{1f600}' },
  "no-times-no-duration": { holderIdentity: "stranger" },
  "times-far-away": {
    ...held,
    acquireTime: "0001-01-01T00:00:00.000001Z",
    renewTime: "9999-12-31T23:59:59.999999Z",
  },
  "another-offset": { ...held, renewTime: "2026-01-01T00:00:00.123456+14:00" },
};

clusterTest("an odd Lease of another is waited for, and taken once it is free", async (cluster) => {
  await cluster.createNamespace(NAMESPACE);
  await Promise.all(
    Object.entries(ODD).map(async ([name, spec]) => {
      mustSucceed(
        await cluster.admin("PUT", `${PATH}/${name}`, { body: { metadata: { name }, spec } }),
        `store the Lease ${name}`,
      );
      const log = new MemoryLog();
      const replica = await startKubernetes({
        config: configSchema.parse({
          kubernetes: {
            namespace: NAMESPACE,
            leader_election: {
              enabled: true,
              lease_name: name,
              // Longer than the test takes, so that none is taken for its age.
              lease_duration_secs: 120,
              renew_deadline_secs: 60,
              retry_period_secs: 1,
            },
          },
        }),
        system: new TestSystem({ clock: systemClock, entropy: systemEntropy }),
        logger: log,
        signal: call.signal,
        connector: () => cluster.adminApi,
        podInfo: { name: "web-1", namespace: NAMESPACE, labels: {}, inCluster: true },
      });
      const { leadership } = replica;
      assert.ok(leadership, name);
      await eventually(() => leadership.holder === spec.holderIdentity, `${name} is seen`);
      assert.equal(leadership.isLeader(), false, name);

      const free = { spec: { holderIdentity: null } };
      await cluster.adminApi.patch(LEASES, { name, namespace: NAMESPACE }, {
        type: "merge",
        body: free,
      }, call);
      assert.equal(await leadership.waitUntilLeader(call.signal), true, name);
      const stored = await cluster.adminApi.get(LEASES, { name, namespace: NAMESPACE }, call);
      assert.equal(stored.spec?.holderIdentity, leadership.identity);
      assert.equal(stored.spec?.leaseDurationSeconds, 120);
      const wanted = spec.leaseTransitions === MAX_INT32 ? MAX_INT32 : 1;
      assert.equal(stored.spec?.leaseTransitions, wanted, name);
      assert.equal((await replica.health()).status, "up", name);
      await replica.shutdown(call.signal);
      assert.deepEqual(log.at("warn").concat(log.at("error")), [], name);
    }),
  );
});

clusterTest(
  "the API server itself refuses a duration of 0 or below, counts beyond 32 bits, and times without six fraction digits",
  async (cluster) => {
    await cluster.createNamespace(NAMESPACE);
    const refused: readonly (readonly [string, unknown, number])[] = [
      ["leaseDurationSeconds", 0, 422],
      ["leaseDurationSeconds", -1, 422],
      ["leaseDurationSeconds", 2 ** 31, 400],
      ["leaseTransitions", -1, 422],
      ["leaseTransitions", 2 ** 31, 400],
      ["renewTime", "2026-01-01T00:00:00Z", 400],
      ["renewTime", "2026-01-01T00:00:00.123Z", 400],
    ];
    for (const [key, value, status] of refused) {
      const body = { metadata: { name: "refused" }, spec: { ...held, [key]: value } };
      const answer = await cluster.admin("PUT", `${PATH}/refused`, { body });
      assert.equal(answer.status, status, `${key} ${value}: ${member(answer.body, "message")}`);
    }
  },
);
