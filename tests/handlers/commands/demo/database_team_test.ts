import assert from "node:assert/strict";
import { GROUP, manifests } from "../../../../handlers/commands/demo/cast.ts";
import { readDefinitions } from "../../../../handlers/commands/demo/crds.ts";
import { databaseTeam } from "../../../../handlers/commands/demo/database_team.ts";
import { MYSQL_FAILOVER_GROUPS, PLANNED_FAILOVER_ANNOTATION } from "../../../../lib/group/types.ts";
import type { KubeApi } from "../../../../lib/kube/api.ts";
import { LEASES } from "../../../../lib/kube/resources.ts";
import { DEPLOYMENT_STATE_LABEL } from "../../../../lib/records/names.ts";
import { connectTo, FakeCluster, seededEntropy, TestClock } from "../../../../lib/testing/mod.ts";

/** The team in a cluster without a service. */
async function withTeam(
  test: (parts: {
    readonly team: ReturnType<typeof databaseTeam>;
    readonly clock: TestClock;
    readonly api: KubeApi;
    readonly controller: AbortController;
  }) => Promise<void>,
): Promise<void> {
  const clock = new TestClock();
  const entropy = seededEntropy(1);
  await using cluster = new FakeCluster({ clock, entropy });
  for (const object of [...readDefinitions(), ...manifests()]) cluster.apply(object);
  const controller = new AbortController();
  const api = connectTo(cluster, { clock, entropy });
  const team = databaseTeam({ api, clock, signal: controller.signal });
  await test({ team, clock, api, controller });
}

Deno.test("the team asks by the annotation alone, and looks until the group is as wanted", async () => {
  await withTeam(async ({ team, clock, api, controller: { signal } }) => {
    const before = await api.get(MYSQL_FAILOVER_GROUPS, GROUP, { signal });
    let done = false;
    const seen = team.watchGroup(({ metadata }) =>
      metadata.annotations?.[PLANNED_FAILOVER_ANNOTATION] === "pdx"
    ).finally(() => void (done = true));
    await clock.advance(1_000);
    assert.equal(done, false);
    await team.askForFailover("pdx");
    await clock.advance(50);
    const group = await seen;
    assert.deepEqual([group.spec, group.status], [before.spec, before.status]);
  });
});

Deno.test("a look ends after ten seconds with what is there", async () => {
  await withTeam(async ({ team, clock }) => {
    let done = false;
    const seen = team.watchGroup(() => false).finally(() => void (done = true));
    await clock.advance(9_900);
    assert.equal(done, false);
    await clock.advance(200);
    assert.equal((await seen).status?.activeSite, "iad");
  });
});

Deno.test("a demo that ends ends a look with it", async () => {
  await withTeam(async ({ team, clock, controller }) => {
    const reason = new Error("the demo ends");
    const seen = assert.rejects(team.watchGroup(() => false), reason);
    await clock.advance(100);
    controller.abort(reason);
    await seen;
  });
});

Deno.test("the state of a Lease is what its label says", async () => {
  await withTeam(async ({ team, api, controller: { signal } }) => {
    const { namespace } = GROUP;
    for (
      const [name, labels] of [["one", { [DEPLOYMENT_STATE_LABEL]: "active" }], [
        "two",
        {},
      ]] as const
    ) {
      await api.create(LEASES, { metadata: { namespace, name, labels }, spec: {} }, { signal });
    }
    assert.equal(await team.leaseState("one"), "active");
    assert.equal(await team.leaseState("two"), undefined);
    await assert.rejects(team.leaseState("three"), { name: "NotFoundError" });
  });
});
