import assert from "node:assert/strict";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { groupNamed, ViewRig } from "./support.ts";

const NAMESPACE = "database-ns";

Deno.test("the Leases of a former group are told beside those of the group that has its name now, and when they go", async () => {
  await using rig = new ViewRig({ leases: true });
  const { metadata: _metadata, ...plain } = groupNamed("orders");
  const group = rig.fake.seed(MYSQL_FAILOVER_GROUPS, {
    ...plain,
    metadata: { name: "orders", namespace: NAMESPACE },
  });
  const lease = (name: string, uid: string) =>
    rig.fake.seed(LEASES, {
      metadata: {
        name,
        namespace: NAMESPACE,
        labels: { "bloodraven.shipstream.io/deployment-kind": "migration" },
        ownerReferences: [{
          apiVersion: "shipstream.io/v1alpha1",
          kind: "MysqlFailoverGroup",
          name: "orders",
          uid,
        }],
      },
      spec: { holderIdentity: "x" },
    });
  lease("own", group.metadata.uid ?? "");
  await rig.start();
  const names = () => {
    const sight = rig.groups.sight(`${NAMESPACE}/orders`);
    return [sight?.leases, sight?.strangers].map((leases) =>
      leases?.map(({ metadata }) => metadata.name)
    );
  };
  assert.deepEqual(names(), [["own"], []]);
  let told = 0;
  rig.groups.subscribe(() => told++);
  lease("former", "uid-of-the-former");
  await rig.settle();
  assert.deepEqual([names(), told], [[["own"], ["former"]], 1]);
  rig.fake.remove(LEASES, { namespace: NAMESPACE, name: "former" });
  await rig.settle();
  assert.deepEqual([names(), told], [[["own"], []], 2]);
});
