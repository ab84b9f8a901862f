import assert from "node:assert/strict";
import { GroupNotFoundError } from "../../lib/group/topology.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { holdName, slotName, tombstoneName } from "../../lib/records/names.ts";
import { type LeaseRecord, RecordError } from "../../lib/records/record.ts";
import { ContendedError, NotLeaderError } from "../../lib/lease/turn.ts";
import { Between } from "../conformance/between.ts";
import {
  granted,
  HOLD,
  mustBe,
  mustBeRevoked,
  RECORD_ANNOTATION,
  seedHolds,
  storedLease,
  storedRecord,
} from "../conformance/support.ts";
import { InProcessService, NAMESPACE } from "../service/in_process.ts";

const { signal } = new AbortController();
const slot = slotName("orders");
const hold = holdName("orders", "op-1");
const tombstone = tombstoneName("orders", "op-1");
const slotWrite = /^PUT .*-orders-migration$/;

/** A service on whose way to the API server a test can act; `told` has the revocations that it told of. */
class Rig implements Disposable {
  readonly between = new Between();
  readonly told: LeaseRecord[] = [];
  readonly service = new InProcessService({
    send: this.between.wrap,
    onRevoked: (_, record) => this.told.push(record),
  });
  readonly client = this.service.client();

  revoke(operationId?: string, group = "orders") {
    return this.service.coordinator.revoke(
      { namespace: NAMESPACE, name: group },
      { reason: "operator_revoked", operationId },
      signal,
    );
  }

  /** Writes members of a stored record, as another replica would. */
  change(name: string, change: Partial<LeaseRecord>): void {
    const lease = storedLease(this.service, name);
    assert.ok(lease);
    const record = { ...storedRecord(this.service, name), ...change };
    const { labels } = lease.metadata;
    this.service.fake.seed(LEASES, {
      ...lease,
      metadata: {
        ...lease.metadata,
        labels: { ...labels, "bloodraven.shipstream.io/deployment-state": record.state },
        annotations: { [RECORD_ANNOTATION]: JSON.stringify(record) },
      },
    });
  }

  state(name: string): readonly [string, string, string | undefined] {
    const { operationId, state, reason } = storedRecord(this.service, name);
    return [operationId, state, reason];
  }

  async revocations(kind: string): Promise<number | null> {
    const labels = `group="orders",kind="${kind}",reason="operator_revoked"`;
    return await this.service.metric(`bloodraven_deploy_lease_revocations_total{${labels}}`);
  }

  [Symbol.dispose](): void {
    this.service[Symbol.dispose]();
  }
}

const names = (records: readonly LeaseRecord[] | null) =>
  records?.map(({ kind, operationId }) => `${kind} ${operationId}`);

Deno.test("a group is revoked: the mutex first, every hold after it, one write, count and message each", async () => {
  using rig = new Rig();
  await granted(rig.client);
  await granted(rig.client, "op-1", HOLD);
  seedHolds(rig.service, 2);
  rig.service.fake.calls.reset();
  const revoked = await rig.revoke();
  assert.deepEqual(names(revoked)?.[0], "migration op-1");
  assert.deepEqual(names(revoked)?.toSorted(), [
    "failover-hold earlier-0",
    "failover-hold earlier-1",
    "failover-hold op-1",
    "migration op-1",
  ]);
  assert.deepEqual(names(rig.told), names(revoked));
  assert.equal(rig.service.fake.calls.count({ verb: "update" }), 4);
  assert.deepEqual([await rig.revocations("migration"), await rig.revocations("failover-hold")], [
    1,
    3,
  ]);
  const updates = rig.service.fake.calls.entries.filter(({ verb }) => verb === "update");
  assert.equal(updates[0]?.name, slot);
  assert.deepEqual(await rig.revoke(), []);
});

Deno.test("a hold that is granted while the mutex is revoked does not escape", async () => {
  using rig = new Rig();
  await granted(rig.client);
  const replica = new InProcessService({ fake: rig.service.fake, clock: rig.service.clock });
  let answer: unknown;
  rig.between.before(slotWrite, async () => {
    answer = (await replica.client().grant("op-1", "tenant", HOLD)).status;
  });
  const revoked = await rig.revoke();
  assert.equal(answer, 201);
  assert.deepEqual(names(revoked), ["migration op-1", "failover-hold op-1"]);
  replica[Symbol.dispose]();
});

Deno.test("a renewal that comes first is revoked all the same", async () => {
  using rig = new Rig();
  await granted(rig.client);
  await granted(rig.client, "op-1", HOLD);
  const expiresAt = "2026-01-01T00:01:00Z";
  rig.between.before(slotWrite, () => rig.change(slot, { expiresAt }));
  rig.between.before(/^PUT .*-failover-hold-|^PUT .*-orders-fa/, () => {
    rig.change(hold, { expiresAt });
  });
  await rig.revoke();
  for (const name of [slot, hold]) {
    assert.deepEqual(rig.state(name), ["op-1", "revoked", "operator_revoked"]);
    assert.equal(storedRecord(rig.service, name).expiresAt, expiresAt);
  }
  assert.equal(await rig.service.metric('holdfast_decide_retries_total{request="revoke"}'), 2);
});

Deno.test("a new lease of the same operation is newer, and is left alone", async () => {
  using rig = new Rig();
  await granted(rig.client);
  const createdAt = "2026-01-01T00:00:09Z";
  rig.between.before(slotWrite, () => rig.change(slot, { createdAt }));
  assert.deepEqual(await rig.revoke(), []);
  assert.deepEqual(rig.state(slot), ["op-1", "active", undefined]);
  assert.equal(storedLease(rig.service, tombstone), null);
});

Deno.test("a lease that its holder released just before stays released", async () => {
  using rig = new Rig();
  await granted(rig.client);
  rig.between.before(slotWrite, () => rig.change(slot, { state: "released" }));
  assert.deepEqual(await rig.revoke(), []);
  assert.deepEqual(rig.state(slot), ["op-1", "released", undefined]);
  assert.deepEqual(rig.told, []);
});

Deno.test("a migration whose Lease was deleted meanwhile gets its tombstone", async () => {
  using rig = new Rig();
  await granted(rig.client);
  rig.between.before(slotWrite, () => {
    rig.service.fake.remove(LEASES, { namespace: NAMESPACE, name: slot });
  });
  assert.deepEqual(names(await rig.revoke()), ["migration op-1"]);
  assert.deepEqual(rig.state(tombstone), ["op-1", "revoked", "operator_revoked"]);
  mustBeRevoked(await rig.client.grant("op-1", "tenant"), "operator_revoked");
});

Deno.test("expiry beats revocation: a lease whose time was over is expired, and not counted as revoked", async () => {
  using rig = new Rig();
  await granted(rig.client);
  await granted(rig.client, "op-1", { ...HOLD, ttlSeconds: 120 });
  await rig.service.clock.advance(30_001);
  assert.deepEqual(names(await rig.revoke()), ["failover-hold op-1"]);
  assert.deepEqual(rig.state(slot), ["op-1", "expired", undefined]);
  assert.equal(await rig.revocations("migration"), null);
});

Deno.test("a hold that cannot be read keeps none of the others, and is told of", async () => {
  using rig = new Rig();
  await granted(rig.client);
  await granted(rig.client, "op-1", HOLD);
  seedHolds(rig.service, 1);
  const other = holdName("orders", "earlier-0");
  const lease = storedLease(rig.service, other);
  assert.ok(lease);
  const annotations = { [RECORD_ANNOTATION]: "{}" };
  rig.service.fake.seed(LEASES, { ...lease, metadata: { ...lease.metadata, annotations } });
  await assert.rejects(rig.revoke(), RecordError);
  assert.deepEqual(names(rig.told), ["migration op-1", "failover-hold op-1"]);
});

Deno.test("a write whose answer was lost is found again, counted once, and told of once", async () => {
  using rig = new Rig();
  await granted(rig.client);
  rig.service.fake.faults.add({
    verb: "update",
    resource: "leases",
    name: slot,
    count: 1,
    fault: { type: "lost-answer", as: "reset" },
  });
  assert.deepEqual(names(await rig.revoke()), ["migration op-1"]);
  assert.equal(await rig.revocations("migration"), 1);
  assert.deepEqual(names(rig.told), ["migration op-1"]);
});

Deno.test("a write that failed is an error, and so is a race that is lost each time", async () => {
  using rig = new Rig();
  await granted(rig.client);
  const rule = { verb: "update", resource: "leases", name: slot };
  rig.service.fake.faults.add({ ...rule, count: 1, fault: { type: "reset" } });
  await assert.rejects(rig.revoke(), { name: "UnavailableError" });
  rig.service.fake.faults.add({ ...rule, count: 3, fault: { type: "status", code: 409 } });
  await assert.rejects(rig.revoke(), ContendedError);
  assert.deepEqual(rig.told, []);
});

Deno.test("a replica that does not lead any more writes nothing", async () => {
  using rig = new Rig();
  await granted(rig.client);
  rig.service.leads = false;
  await assert.rejects(rig.revoke(), NotLeaderError);
  await assert.rejects(rig.revoke("op-1"), NotLeaderError);
  assert.deepEqual(rig.state(slot), ["op-1", "active", undefined]);
});

Deno.test("a group that does not exist cannot be revoked, and one without leases has nothing to revoke", async () => {
  using rig = new Rig();
  await assert.rejects(rig.revoke(undefined, "absent"), GroupNotFoundError);
  assert.deepEqual(await rig.revoke(), []);
});

Deno.test("a gate that is broken keeps nobody from revoking", async () => {
  using rig = new Rig();
  await granted(rig.client);
  rig.service.fake.seed(LEASES, {
    metadata: { namespace: NAMESPACE, name: "bloodraven-deploy-orders-gate" },
  });
  assert.deepEqual(names(await rig.revoke()), ["migration op-1"]);
});

Deno.test("difference 22: one operation is revoked, and the leases of others stay", async () => {
  using rig = new Rig();
  const token = await granted(rig.client);
  await granted(rig.client, "op-1", HOLD);
  seedHolds(rig.service, 1);
  assert.deepEqual(names(await rig.revoke("op-1")), ["migration op-1", "failover-hold op-1"]);
  mustBeRevoked(await rig.client.renew("op-1", token), "operator_revoked");
  assert.equal(storedRecord(rig.service, holdName("orders", "earlier-0")).state, "active");
  await granted(rig.client, "op-2");
  assert.deepEqual(await rig.revoke("op-1"), []);
});

Deno.test("difference 22: an operation whose record is not in the slot gets its tombstone, and cannot come back", async () => {
  using rig = new Rig();
  const token = await granted(rig.client);
  const holdToken = await granted(rig.client, "op-1", HOLD);
  mustBe(await rig.client.release("op-1", token), 204);
  await granted(rig.client, "op-2");
  assert.deepEqual(names(await rig.revoke("op-1")), ["migration op-1", "failover-hold op-1"]);
  assert.deepEqual(rig.state(tombstone), ["op-1", "revoked", "operator_revoked"]);
  assert.deepEqual(rig.state(slot), ["op-2", "active", undefined]);
  mustBeRevoked(await rig.client.renew("op-1", holdToken, HOLD), "operator_revoked");
  const lease = storedLease(rig.service, slot);
  assert.ok(lease);
  rig.change(slot, { state: "released" });
  mustBeRevoked(await rig.client.grant("op-1", "tenant"), "operator_revoked");
});

Deno.test("difference 22: an operation that was released in the slot cannot come back either", async () => {
  using rig = new Rig();
  const token = await granted(rig.client);
  mustBe(await rig.client.release("op-1", token), 204);
  assert.deepEqual(names(await rig.revoke("op-1")), ["migration op-1"]);
  assert.deepEqual(rig.state(slot), ["op-1", "released", undefined]);
  mustBeRevoked(await rig.client.grant("op-1", "tenant"), "operator_revoked");
  assert.equal(await rig.revocations("migration"), 1);
});

Deno.test("difference 22: an operation that the group never saw is told apart", async () => {
  using rig = new Rig();
  await granted(rig.client);
  assert.equal(await rig.revoke("op-9"), null);
  assert.deepEqual(rig.state(slot), ["op-1", "active", undefined]);
});

Deno.test("difference 22: the time of an operation that was over does not keep it from being revoked", async () => {
  using rig = new Rig();
  await granted(rig.client);
  await rig.service.clock.advance(30_001);
  assert.deepEqual(names(await rig.revoke("op-1")), ["migration op-1"]);
  assert.deepEqual(rig.state(slot), ["op-1", "revoked", "operator_revoked"]);
});

Deno.test("a tombstone that is in the way and is not revoked is replaced, and one that others write is contended", async () => {
  using rig = new Rig();
  const token = await granted(rig.client);
  mustBe(await rig.client.release("op-1", token), 204);
  const lease = storedLease(rig.service, slot);
  assert.ok(lease);
  const { resourceVersion: _, uid: __, ...metadata } = lease.metadata;
  rig.service.fake.seed(LEASES, { ...lease, metadata: { ...metadata, name: tombstone } });
  const rule = { verb: "update", resource: "leases", name: tombstone };
  const conflict = rig.service.fake.faults.add({ ...rule, fault: { type: "status", code: 409 } });
  await assert.rejects(rig.revoke("op-1"), ContendedError);
  conflict.remove();
  assert.deepEqual(names(await rig.revoke("op-1")), ["migration op-1"]);
  assert.deepEqual(rig.state(tombstone), ["op-1", "revoked", "operator_revoked"]);
});

Deno.test("a revocation is counted where it is stored, and its tombstone is not counted again", async () => {
  using rig = new Rig();
  await granted(rig.client);
  await rig.revoke();
  await granted(rig.client, "op-2");
  assert.deepEqual(rig.state(tombstone), ["op-1", "revoked", "operator_revoked"]);
  assert.equal(await rig.revocations("migration"), 1);
  assert.deepEqual(names(rig.told), ["migration op-1"]);
});
