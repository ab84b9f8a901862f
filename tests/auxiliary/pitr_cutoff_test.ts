import assert from "node:assert/strict";
import { MYSQL_BACKUPS } from "../../lib/auxiliary/backups.ts";
import { PitrCutoff } from "../../lib/auxiliary/pitr_cutoff.ts";
import { DeadlineExceededError } from "../../lib/runtime/clock.ts";
import { FakeView, groupNamed, ViewRig } from "./support.ts";

const NAMESPACE = "database-ns";

class CutoffRig extends ViewRig {
  readonly view = new FakeView();
  readonly end = new AbortController();
  readonly cutoff = new PitrCutoff({
    api: this.api,
    groups: this.view,
    clock: this.clock,
    signal: this.end.signal,
  });

  constructor() {
    super();
    this.view.put(groupNamed("orders"));
  }

  /** Puts a backup in. */
  backup(name: string, completionTime: unknown, more: Record<string, unknown> = {}): void {
    const { group = "orders", profile = "daily", namespace = NAMESPACE, ...meta } = more;
    this.fake.apply({
      apiVersion: "shipstream.io/v1alpha1",
      kind: "MysqlBackup",
      metadata: {
        name,
        namespace,
        labels: { "shipstream.io/failover-group": group, "shipstream.io/backup-profile": profile },
        ...meta,
      },
      status: { phase: "Succeeded", completionTime },
    });
  }

  get lists(): number {
    return this.fake.calls.entries.filter(({ resource }) => resource.startsWith("mysqlbackups"))
      .length;
  }
}

Deno.test("the cut-off is the oldest completion of the group's own backups by that profile", async () => {
  await using rig = new CutoffRig();
  rig.backup("b1", "2026-01-02T00:00:00Z");
  rig.backup("b2", "2026-01-01T00:00:00Z");
  rig.backup("other-profile", "2020-01-01T00:00:00Z", { profile: "weekly" });
  rig.backup("other-group", "2019-01-01T00:00:00Z", { group: "billing" });
  rig.backup("elsewhere", "2018-01-01T00:00:00Z", { namespace: "other-ns" });
  rig.backup("going", "2017-01-01T00:00:00Z", {
    deletionTimestamp: "2026-01-01T00:00:00Z",
    finalizers: ["a/b"],
  });
  assert.equal(await rig.cutoff.of(NAMESPACE, "orders", "daily"), "2026-01-01T00:00:00Z");
  assert.equal(await rig.cutoff.of(NAMESPACE, "orders", "weekly"), "2020-01-01T00:00:00Z");
  assert.equal(await rig.cutoff.of(NAMESPACE, "orders", "monthly"), null);
});

Deno.test("an answer is used for 30 s, for all profiles of the group, and those who ask at once share one call", async () => {
  await using rig = new CutoffRig();
  rig.backup("b1", "2026-01-02T00:00:00Z");
  const ask = (profile = "daily") => rig.cutoff.of(NAMESPACE, "orders", profile);
  const first = await Promise.all(Array.from({ length: 20 }, () => ask()));
  assert.deepEqual([new Set(first).size, rig.lists], [1, 1]);
  rig.backup("b2", "2026-01-01T00:00:00Z");
  await rig.clock.advance(29_999);
  assert.equal(await ask(), "2026-01-02T00:00:00Z");
  assert.equal(await ask("weekly"), null);
  assert.equal(rig.lists, 1);
  await rig.clock.advance(1);
  assert.equal(await ask(), "2026-01-01T00:00:00Z");
  assert.equal(rig.lists, 2);
});

Deno.test("a call takes at most 5 s, and a failure is not kept", async () => {
  await using rig = new CutoffRig();
  rig.backup("b1", "2026-01-02T00:00:00Z");
  const hang = rig.fake.faults.add({ fault: { type: "hang" }, resource: "mysqlbackups" });
  const late = assert.rejects(rig.cutoff.of(NAMESPACE, "orders", "daily"), DeadlineExceededError);
  await rig.clock.advance(5_000);
  await late;
  hang.remove();
  const refused = rig.fake.faults.add({
    fault: { type: "status", code: 403 },
    resource: "mysqlbackups",
  });
  await assert.rejects(rig.cutoff.of(NAMESPACE, "orders", "daily"), { name: "ForbiddenError" });
  refused.remove();
  assert.equal(await rig.cutoff.of(NAMESPACE, "orders", "daily"), "2026-01-02T00:00:00Z");
  assert.equal(rig.clock.pendingTimers, 0);
});

Deno.test("the end of the process ends a call", async () => {
  await using rig = new CutoffRig();
  rig.fake.faults.add({ fault: { type: "hang" }, resource: "mysqlbackups" });
  const asked = assert.rejects(rig.cutoff.of(NAMESPACE, "orders", "daily"), { message: "over" });
  await rig.settle();
  rig.end.abort(new Error("over"));
  await asked;
});

Deno.test("a group that is not there costs no call, and neither does a name that is none", async () => {
  await using rig = new CutoffRig();
  for (const name of ["billing", "a=b,c", "../secrets", "x".repeat(10_000)]) {
    assert.equal(await rig.cutoff.of(NAMESPACE, name, "daily"), null);
  }
  assert.equal(rig.lists, 0);
});

Deno.test("what was known of a group that is gone is forgotten", async () => {
  await using rig = new CutoffRig();
  rig.backup("b1", "2026-01-02T00:00:00Z");
  assert.notEqual(await rig.cutoff.of(NAMESPACE, "orders", "daily"), null);
  rig.view.remove(`${NAMESPACE}/orders`);
  assert.equal(await rig.cutoff.of(NAMESPACE, "orders", "daily"), null);
  rig.fake.remove(MYSQL_BACKUPS, { namespace: NAMESPACE, name: "b1" });
  rig.view.put(groupNamed("orders"));
  assert.equal(await rig.cutoff.of(NAMESPACE, "orders", "daily"), null);
});

Deno.test("a backup that cannot be read gives no cut-off, since it may be the oldest", async () => {
  await using rig = new CutoffRig();
  rig.backup("b1", "2026-01-02T00:00:00Z");
  const list = rig.api.list.bind(rig.api);
  rig.api.list = async (resource, options) => ({
    ...await list(resource, options),
    undecodable: [{ namespace: NAMESPACE, name: "odd", paths: ["status.completionTime"] }],
  });
  await assert.rejects(rig.cutoff.of(NAMESPACE, "orders", "daily"), { name: "BackupError" });
});
