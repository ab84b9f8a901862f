import assert from "node:assert/strict";
import { LEASES } from "../../lib/kube/resources.ts";
import { holdName, slotName, tombstoneName } from "../../lib/records/names.ts";
import { Between } from "../conformance/between.ts";
import {
  annotate,
  granted,
  HOLD,
  mustBe,
  mustBeRevoked,
  mustBeUnstable,
  REVOKE,
  storedGroup,
  storedLease,
  storedRecord,
} from "../conformance/support.ts";
import { InProcessService, NAMESPACE } from "../service/in_process.ts";
import { Rig } from "./rig.ts";

const slot = slotName("orders");
const hold = holdName("orders", "op-1");
const GROUP_PATCH = { verb: "patch", resource: "mysqlfailovergroups" };
const patchOfGroup = /^PATCH .*\/mysqlfailovergroups\/orders$/;

/** A rig whose operation `op-1` holds both leases, on a way on which a test can act. */
async function held(between = new Between()) {
  const rig = new Rig({ send: between.wrap });
  await rig.start();
  const client = rig.service.client();
  const migration = await granted(client, "op-1", { ttlSeconds: 120 });
  const token = await granted(client, "op-1", { ...HOLD, ttlSeconds: 120 });
  await rig.settle();
  return { rig, client, migration, hold: token };
}

function annotation(rig: Rig): string | undefined {
  return storedGroup(rig.service).metadata.annotations?.[REVOKE];
}

Deno.test("deploy-api 16 item 50: the annotation revokes every lease, and is then removed alone", async () => {
  const { rig, client, migration, hold: token } = await held();
  await using _ = rig;
  annotate(rig.service, "example.com/kept", "yes");
  annotate(rig.service, REVOKE, "");
  await rig.advance(100);
  assert.deepEqual(storedGroup(rig.service).metadata.annotations, { "example.com/kept": "yes" });
  mustBeRevoked(await client.renew("op-1", migration), "operator_revoked");
  mustBeRevoked(await client.renew("op-1", token, HOLD), "operator_revoked");
  await granted(client, "op-2");
  for (const kind of ["migration", "failover-hold"]) {
    const series = "bloodraven_deploy_lease_revocations_total";
    const labels = `{group="orders",kind="${kind}",reason="operator_revoked"}`;
    assert.equal(await rig.service.metric(`${series}${labels}`), 1);
  }
  assert.deepEqual(rig.stored.map(({ note }) => note), [
    "The migration lease of operation op-1 for tenant was revoked: operator_revoked",
    "The failover-hold lease of operation op-1 for tenant was revoked: operator_revoked",
  ]);
});

Deno.test("deploy-api 16 item 50: a controller that fails keeps no revocation from being served", async () => {
  const rig = new Rig();
  const failing = {
    name: "failing",
    reconcile: () => Promise.reject(new Error("Cannot go on")),
  };
  const { RevocationController } = await import("../../lib/controllers/revocation.ts");
  const { api, coordinator } = rig.service;
  await using other = new Rig({
    fake: rig.service.fake,
    clock: rig.service.clock,
    controllers: [new RevocationController({ api, adoption: coordinator.adoption }), failing],
  });
  await using _ = rig;
  await granted(rig.service.client());
  annotate(rig.service, REVOKE, "true");
  await other.start();
  assert.equal(annotation(rig), undefined);
  assert.equal(storedRecord(rig.service).state, "revoked");
});

Deno.test("deploy-api 16 item 51: with one revocation that fails the annotation stays, and the next look finishes", async () => {
  const { rig, client, migration, hold: token } = await held();
  await using _ = rig;
  // The hold cannot be written, neither by the revocation nor by a heartbeat.
  const fault = rig.service.fake.faults.add({
    verb: "update",
    resource: "leases",
    name: hold,
    fault: { type: "status", code: 500 },
  });
  annotate(rig.service, REVOKE, "true");
  await rig.settle();
  assert.equal(annotation(rig), "true");
  assert.equal(storedRecord(rig.service, slot).state, "revoked");
  mustBeRevoked(await client.renew("op-1", migration), "operator_revoked");
  const before = storedRecord(rig.service, hold).expiresAt;
  mustBe(await client.renew("op-1", token, HOLD), 503, "unavailable");
  assert.equal(storedRecord(rig.service, hold).expiresAt, before);
  mustBeUnstable(await client.grant("op-2", "tenant"), "DeploymentRevocationPending");
  const [line] = rig.logged("deployment lease housekeeping failed");
  assert.deepEqual([line?.group, line?.error], ["orders", "UnavailableError"]);

  fault.remove();
  // A heartbeat may complete its own revocation.
  mustBeRevoked(await client.renew("op-1", token, HOLD), "operator_revoked");
  await rig.advance(1_000);
  assert.equal(annotation(rig), undefined);
  await granted(client, "op-2");
});

Deno.test("deploy-api 16 item 52: a removal that is refused is tried again, and takes no lease granted afterwards", async () => {
  const { rig, client } = await held();
  await using _ = rig;
  rig.service.fake.faults.add({
    ...GROUP_PATCH,
    count: 1,
    fault: { type: "status", code: 500 },
  });
  annotate(rig.service, REVOKE, "true");
  await rig.settle();
  assert.equal(annotation(rig), "true");
  await rig.advance(1_300);
  assert.equal(annotation(rig), undefined);
  await granted(client, "op-2");
  await rig.advance(20_000);
  assert.equal(storedRecord(rig.service).state, "active");
});

Deno.test("deploy-api 16 item 52: a removal whose answer was lost never revokes newer leases", async () => {
  const { rig, client } = await held();
  await using _ = rig;
  rig.service.fake.faults.add({
    ...GROUP_PATCH,
    count: 1,
    fault: { type: "lost-answer", as: "reset" },
  });
  annotate(rig.service, REVOKE, "true");
  await rig.settle();
  assert.equal(annotation(rig), undefined);
  await granted(client, "op-2");
  // The second look comes after the new lease.
  await rig.advance(5_000);
  const { operationId, state } = storedRecord(rig.service);
  assert.deepEqual([operationId, state], ["op-2", "active"]);
});

Deno.test("deploy-api 16 item 53: a lease that is granted while the annotation appears is revoked by its own look", async () => {
  const between = new Between();
  const rig = new Rig({ send: between.wrap });
  await using _ = rig;
  await rig.start();
  between.after(/^PUT .*-orders-migration$/, () => annotate(rig.service, REVOKE, "true"));
  mustBeRevoked(await rig.service.client().grant("op-1", "tenant"), "operator_revoked");
  await rig.settle();
  assert.equal(annotation(rig), undefined);
  assert.equal(storedRecord(rig.service).state, "revoked");
});

Deno.test("deploy-api 16 item 54: a value that changes midway is served anew, and other edits survive", async () => {
  const between = new Between();
  const { rig } = await held(between);
  await using _ = rig;
  const values: (string | undefined)[] = [];
  between.before(/^PUT .*-orders-migration$/, () => {
    annotate(rig.service, REVOKE, "second");
    annotate(rig.service, "example.com/kept", "yes");
  });
  between.before(patchOfGroup, () => void values.push(annotation(rig)));
  annotate(rig.service, REVOKE, "first");
  await rig.settle();
  // It is removed in the try that saw one value throughout.
  assert.deepEqual(values, ["second"]);
  assert.deepEqual(storedGroup(rig.service).metadata.annotations, { "example.com/kept": "yes" });
});

Deno.test("deploy-api 16 item 54: an edit between the last read and the removal makes it try again", async () => {
  const between = new Between();
  const { rig } = await held(between);
  await using _ = rig;
  between.before(patchOfGroup, () => annotate(rig.service, "example.com/kept", "yes"));
  annotate(rig.service, REVOKE, "true");
  await rig.settle();
  assert.deepEqual(storedGroup(rig.service).metadata.annotations, { "example.com/kept": "yes" });
});

Deno.test("the same value set again meanwhile is another request, and revokes what was granted in between", async () => {
  const between = new Between();
  const { rig } = await held(between);
  await using _ = rig;
  const { fake, clock } = rig.service;
  using other = new InProcessService({ fake, clock, seed: 2 });
  // Another leader serves the request to its end, a lease is granted, and the operator asks once more in the same words.
  between.after(/^PUT .*-failover-.*$/, async () => {
    annotate(rig.service, REVOKE, null);
    await granted(other.client(), "op-2");
    annotate(rig.service, REVOKE, "true");
  });
  annotate(rig.service, REVOKE, "true");
  await rig.settle();
  assert.equal(annotation(rig), undefined);
  const { operationId, state } = storedRecord(rig.service);
  assert.deepEqual([operationId, state], ["op-2", "revoked"]);
});

Deno.test("an annotation that changes all the time is told of, and served later", async () => {
  const between = new Between();
  const { rig } = await held(between);
  await using _ = rig;
  let count = 0;
  between.before(
    patchOfGroup,
    () => annotate(rig.service, "example.com/count", String(count++)),
    { times: 3 },
  );
  annotate(rig.service, REVOKE, "true");
  await rig.settle();
  assert.equal(annotation(rig), "true");
  const [line] = rig.logged("deployment lease housekeeping failed");
  assert.equal(line?.error, "ContendedError");
  await rig.advance(1_300);
  assert.equal(annotation(rig), undefined);
});

Deno.test("an annotation that somebody takes off before the leases are read revokes nothing", async () => {
  const between = new Between();
  const { rig } = await held(between);
  await using _ = rig;
  // The controller has read the annotation; before the leases are judged it is gone.
  let armed = true;
  between.before(/^GET .*-orders-migration$/, () => {
    if (armed) annotate(rig.service, REVOKE, null);
    armed = false;
  });
  annotate(rig.service, REVOKE, "true");
  await rig.settle();
  assert.equal(storedRecord(rig.service, slot).state, "active");
  assert.equal(storedRecord(rig.service, hold).state, "active");
});

Deno.test("a migration that another operation replaced meanwhile gets its tombstone, and the newer lease is left alone", async () => {
  const between = new Between();
  const { rig, client, migration } = await held(between);
  await using _ = rig;
  const replica = new Rig({ fake: rig.service.fake, clock: rig.service.clock });
  await using __ = replica;
  // Another replica serves a release and a grant just before the mutex is written.
  between.before(/^PUT .*-orders-migration$/, async () => {
    const elsewhere = replica.service.client();
    mustBe(await elsewhere.release("op-1", migration), 204);
    await granted(elsewhere, "op-2", { ttlSeconds: 120 });
  });
  const revoked = await rig.service.coordinator.revoke(
    { namespace: NAMESPACE, name: "orders" },
    { reason: "operator_revoked" },
    new AbortController().signal,
  );
  assert.deepEqual(revoked?.map(({ kind, operationId }) => [kind, operationId]), [
    ["migration", "op-1"],
    ["failover-hold", "op-1"],
  ]);
  const inSlot = storedRecord(rig.service);
  assert.deepEqual([inSlot.operationId, inSlot.state], ["op-2", "active"]);
  const tombstone = storedRecord(rig.service, tombstoneName("orders", "op-1"));
  assert.deepEqual([tombstone.state, tombstone.reason], ["revoked", "operator_revoked"]);
  mustBe(await client.release("op-1", migration), 204);
});

Deno.test("a revocation is read by the contract's labels, also where ours are missing", async () => {
  const { rig } = await held();
  await using _ = rig;
  const lease = storedLease(rig.service, hold);
  assert.ok(lease);
  const { "bloodraven.shipstream.io/deployment-group": __, ...labels } = lease.metadata.labels ??
    {};
  await rig.stop();
  rig.service.fake.seed(LEASES, { ...lease, metadata: { ...lease.metadata, labels } });
  annotate(rig.service, REVOKE, "true");
  await rig.start();
  assert.equal(storedRecord(rig.service, hold).state, "revoked");
});
