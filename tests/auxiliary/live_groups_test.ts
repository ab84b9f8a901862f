import assert from "node:assert/strict";
import type { ChangeCause, GroupChange } from "../../lib/auxiliary/live_groups.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { kubeObject, resource } from "../../lib/kube/resources.ts";
import { ViewRig } from "./support.ts";

const NAMESPACE = "db";
const SITES = ["iad", "pdx"].map((name) => ({ name, role: "primary-candidate" }));

function group(name: string, activeSite = "iad"): MysqlFailoverGroup {
  return {
    metadata: { name, namespace: NAMESPACE },
    spec: { sites: SITES },
    status: { activeSite },
  };
}

const NOBODY: MysqlFailoverGroup = { metadata: { name: "nobody", uid: "uid-of-nobody" } };

function lease(name: string, owner: MysqlFailoverGroup) {
  return {
    metadata: {
      name,
      namespace: NAMESPACE,
      labels: { "bloodraven.shipstream.io/deployment-kind": "migration" },
      ownerReferences: [{
        apiVersion: "shipstream.io/v1alpha1",
        kind: "MysqlFailoverGroup",
        name: owner.metadata.name ?? "",
        uid: owner.metadata.uid ?? "",
      }],
    },
    spec: { holderIdentity: "x" },
  };
}

/** The groups again, for what their own schema would not let through. */
const ANY_GROUPS = resource({ ...MYSQL_FAILOVER_GROUPS }, kubeObject);

/** What a view tells, shortened. */
class Heard {
  readonly told: string[] = [];
  readonly changes: GroupChange[] = [];
  readonly hear = (changes: readonly GroupChange[], cause: ChangeCause) => {
    this.changes.push(...changes);
    const site = (sight: GroupChange["before"]) =>
      sight === null
        ? "-"
        : `${sight.group.status?.activeSite}${sight.leases.length > 0 ? "+" : ""}`;
    this.told.push(
      `${cause}: ${
        changes.map(({ key, before, after }) => `${key} ${site(before)}>${site(after)}`).join(", ")
      }`,
    );
  };

  take(): readonly string[] {
    return this.told.splice(0);
  }
}

Deno.test("all groups are told first, then each change with how it was before", async () => {
  await using rig = new ViewRig();
  const heard = new Heard();
  rig.groups.subscribe(heard.hear);
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("b"));
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a"));
  assert.equal(rig.groups.synced, false);
  await rig.start();
  assert.equal(rig.groups.synced, true);
  assert.deepEqual(rig.groups.keys(), ["db/a", "db/b"]);
  assert.deepEqual(heard.take(), ["initial: db/a ->iad, db/b ->iad"]);

  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a", "pdx"));
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("c"));
  rig.fake.remove(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "b" });
  await rig.settle();
  assert.deepEqual(heard.take(), [
    "watch: db/a iad>pdx",
    "watch: db/c ->iad",
    "watch: db/b iad>-",
  ]);
  assert.deepEqual(rig.groups.keys(), ["db/a", "db/c"]);
  assert.equal(rig.groups.sight("db/a")?.group.status?.activeSite, "pdx");
  assert.equal(rig.groups.sight("db/b"), null);
});

Deno.test("that there are no groups is told too", async () => {
  await using rig = new ViewRig();
  const heard = new Heard();
  rig.groups.subscribe(heard.hear);
  await rig.start();
  assert.deepEqual(heard.take(), ["initial: "]);
  assert.deepEqual([rig.groups.synced, rig.groups.keys()], [true, []]);
});

Deno.test("however many listen, and however often somebody looks, the cluster is asked once", async () => {
  await using rig = new ViewRig({ leases: true });
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a"));
  await rig.start();
  const before = rig.fake.calls.total;
  const ends = Array.from({ length: 100 }, () => rig.groups.subscribe(() => {}));
  for (let count = 0; count < 100; count++) rig.groups.sight("db/a");
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a", "pdx"));
  await rig.settle();
  for (const end of ends) end();
  assert.equal(rig.fake.calls.total, before);
});

Deno.test("who has ended listening hears nothing more", async () => {
  await using rig = new ViewRig();
  await rig.start();
  const heard = new Heard();
  const end = rig.groups.subscribe(heard.hear);
  end();
  end();
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a"));
  await rig.settle();
  assert.deepEqual(heard.take(), []);
});

Deno.test("the Leases of a group are a part of it, when they are asked for", async () => {
  await using rig = new ViewRig({ leases: true });
  const owner = rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a"));
  rig.fake.seed(LEASES, lease("one", owner));
  rig.fake.seed(LEASES, lease("strange", NOBODY));
  const heard = new Heard();
  rig.groups.subscribe(heard.hear);
  await rig.start();
  assert.deepEqual(heard.take(), ["initial: db/a ->iad+"]);
  rig.fake.remove(LEASES, { namespace: NAMESPACE, name: "one" });
  await rig.settle();
  assert.deepEqual(heard.take(), ["watch: db/a iad+>iad"]);
  rig.fake.seed(LEASES, lease("two", owner));
  await rig.settle();
  rig.fake.seed(LEASES, { ...lease("two", owner), spec: { holderIdentity: "y" } });
  await rig.settle();
  assert.deepEqual(heard.take(), ["watch: db/a iad>iad+", "watch: db/a iad+>iad+"]);
});

Deno.test("nothing is told of a half of the picture", async () => {
  await using rig = new ViewRig({ leases: true });
  const hang = rig.fake.faults.add({ fault: { type: "hang" }, verb: "list", resource: "leases" });
  const heard = new Heard();
  rig.groups.subscribe(heard.hear);
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a"));
  await rig.start();
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a", "pdx"));
  await rig.settle();
  assert.deepEqual([rig.groups.synced, heard.take()], [false, []]);
  hang.remove();
  await rig.settle();
  assert.deepEqual([rig.groups.synced, heard.take()], [true, ["initial: db/a ->pdx"]]);
});

Deno.test("what a watch missed is found by a list every ten minutes, and what did not change is not told", async () => {
  await using rig = new ViewRig();
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a"));
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("b"));
  await rig.start();
  const heard = new Heard();
  rig.groups.subscribe(heard.hear);
  await rig.clock.advance(590_000);
  const silence = rig.fake.faults.add({ fault: { type: "watch-silence" }, verb: "watch" });
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a", "pdx"));
  rig.fake.remove(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "b" });
  rig.counted.length = 0;
  await rig.clock.advance(9_000);
  await rig.settle();
  assert.deepEqual(heard.take(), []);
  await rig.clock.advance(2_000);
  await rig.settle();
  assert.deepEqual(heard.take(), ["resync: db/a iad>pdx, db/b iad>-"]);
  assert.deepEqual(rig.counted, ["mysqlfailovergroups requested"]);
  silence.remove();
  await rig.clock.advance(600_000);
  await rig.settle();
  assert.deepEqual(heard.take(), []);
});

Deno.test("an outage of the API server keeps what was known, and is told in the log", async () => {
  await using rig = new ViewRig();
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a"));
  await rig.start();
  const heard = new Heard();
  rig.groups.subscribe(heard.hear);
  const outage = rig.fake.faults.add({ fault: { type: "status", code: 503 } });
  const broken = rig.fake.faults.add({ fault: { type: "watch-break" }, verb: "watch" });
  await rig.clock.advance(5_000);
  assert.deepEqual(rig.groups.keys(), ["db/a"]);
  assert.ok(rig.logger.lines.some(({ message }) => message === "watch failed"));
  assert.deepEqual(rig.groups.troubles, [
    "This replica's watch of mysqlfailovergroups fails (unavailable): what is shown may be old",
  ]);
  broken.remove();
  outage.remove();
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a", "pdx"));
  await rig.clock.advance(60_000);
  await rig.settle();
  assert.equal(rig.groups.sight("db/a")?.group.status?.activeSite, "pdx");
  assert.deepEqual(rig.groups.troubles, []);
});

Deno.test("a store that went back in time is shown as it is", async () => {
  await using rig = new ViewRig();
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a"));
  await rig.start();
  const backup = rig.fake.snapshot();
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a", "pdx"));
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("b"));
  await rig.settle();
  const heard = new Heard();
  rig.groups.subscribe(heard.hear);
  rig.fake.restore(backup);
  await rig.clock.advance(5_000);
  await rig.settle();
  assert.deepEqual(heard.take(), ["resync: db/a pdx>iad, db/b iad>-"]);
});

Deno.test("a group that cannot be read is not shown, is told in the log, and harms no other", async () => {
  await using rig = new ViewRig();
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a"));
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("b"));
  await rig.start();
  const heard = new Heard();
  rig.groups.subscribe(heard.hear);
  const odd = (name: string) => ({
    metadata: { name, namespace: NAMESPACE },
    spec: { sites: SITES },
    status: { topologyGeneration: 2 ** 52 },
  });
  rig.fake.seed(ANY_GROUPS, odd("a"));
  rig.fake.seed(ANY_GROUPS, odd("new"));
  await rig.settle();
  assert.deepEqual(heard.take(), ["watch: db/a iad>-", "watch: db/new ->-"]);
  assert.deepEqual(rig.groups.keys(), ["db/b"]);
  assert.deepEqual([...rig.groups.unreadable.keys()], ["db/a", "db/new"]);
  assert.deepEqual(
    rig.logger.lines.filter(({ message }) => message === "group cannot be shown").map((
      { fields },
    ) => fields),
    [{ namespace: "db", group: "a" }, { namespace: "db", group: "new" }],
  );
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a", "pdx"));
  await rig.settle();
  assert.deepEqual(heard.take(), ["watch: db/a ->pdx"]);
});

Deno.test("a group that could not be read from the start is told when it can be, and when it is gone", async () => {
  await using rig = new ViewRig();
  const odd = (name: string) => ({
    metadata: { name, namespace: NAMESPACE },
    spec: { sites: SITES },
    status: { topologyGeneration: 2 ** 52 },
  });
  rig.fake.seed(ANY_GROUPS, odd("a"));
  rig.fake.seed(ANY_GROUPS, odd("b"));
  const heard = new Heard();
  rig.groups.subscribe(heard.hear);
  await rig.start();
  assert.deepEqual(heard.take(), ["initial: db/a ->-, db/b ->-"]);
  assert.deepEqual([...rig.groups.unreadable.keys()], ["db/a", "db/b"]);
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, group("a"));
  await rig.settle();
  assert.deepEqual(heard.take(), ["watch: db/a ->iad"]);
  rig.fake.remove(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "b" });
  await rig.clock.advance(600_000);
  await rig.settle();
  assert.deepEqual([...rig.groups.unreadable.keys()], []);
});

Deno.test("the end leaves no timer behind", async () => {
  await using rig = new ViewRig({ leases: true });
  await rig.start();
  await rig.stop();
  assert.equal(rig.clock.pendingTimers, 0);
});
