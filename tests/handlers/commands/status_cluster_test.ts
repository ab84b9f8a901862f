import assert from "node:assert/strict";
import { clusterTest } from "../../cluster/cluster_test_support.ts";
import { Workplace } from "../../service/workplace.ts";
import { HoldfastProcess } from "./holdfast_process.ts";

clusterTest(
  "a holder that died is shown with who it was and its expiry, by the watch too, until the service has stored its end",
  async (cluster) => {
    await using place = await Workplace.open(cluster, "status");
    const { namespace } = place;
    const service = await place.startService();
    const client = await place.client(service);
    await place.untilLeading(client);
    const file = await Deno.makeTempFile({ prefix: "holdfast-" });
    try {
      await Deno.writeTextFile(file, cluster.kubeconfig());
      const env = { KUBECONFIG: file };
      const args = ["status", "--namespace", namespace, "--group", "orders"];
      await using watching = HoldfastProcess.start([...args, "--watch"], env);
      await watching.printed(/^group .*\/orders: active site iad, generation 7, stable$/m);
      assert.equal((await client.grant("op-1", "tenant", { ttlSeconds: 5 })).status, 201);
      await watching.printed(/operation op-1/);

      const seen = await HoldfastProcess.run([...args, "--json"], env);
      assert.deepEqual([seen.code, seen.stderr], [0, ""]);
      const [group] = JSON.parse(seen.stdout).groups;
      assert.deepEqual([group.name, group.stable, group.topologyGeneration], ["orders", true, 7]);
      const [lease] = group.leases;
      assert.deepEqual(lease.holder, { namespace, serviceAccount: "deployer" });
      assert.ok(lease.leftSeconds <= 5 && lease.ageSeconds <= 5, JSON.stringify(lease));

      // Nobody renews. The service stores the end, and the watch shows a group without a lease.
      await watching.printed(/operation op-1[^\n]*\n\nat [^\n]+\ngroup [^\n]+stable\n$/);
      watching.kill("SIGINT");
      assert.equal((await watching.ended()).code, 0);
      const all = await HoldfastProcess.run([...args, "--all"], env);
      assert.match(all.stdout, /^lease .*: migration of operation op-1 for tenant .* expired, /m);
    } finally {
      await Deno.remove(file);
    }
  },
);
