/**
 * Drop-in: the reference's leases are ours from the first request on, and what we write the reference understands.
 *
 * The forms of the reference are those of `reference_form.ts`, which shares no code with lib.
 */

import assert from "node:assert/strict";
import { LEASES } from "../../lib/kube/resources.ts";
import { DEPLOYER, InProcessService, NAMESPACE, seedGroup } from "../service/in_process.ts";
import {
  OUR_LABEL,
  readAsReference,
  referenceHash,
  referenceLease,
  referenceName,
  type ReferencePlace,
  type ReferenceRecord,
} from "./reference_form.ts";
import {
  annotate,
  granted,
  HOLD,
  mustBe,
  mustBeRevoked,
  RECORD_ANNOTATION,
  REVOKE,
  setStatus,
  storedGroup,
  storedLease,
  tokenOf,
} from "./support.ts";

const TOKEN = "5".repeat(64);
/** The test clock stands at midnight: a lease of the reference with nanoseconds, in its 20th second. */
const EXPIRES_AT = "2026-01-01T00:00:20.123456789Z";
const LONG = "a-group-whose-name-is-so-long-that-no-lease-name-can-carry-all-of-it";

function record(changes: Partial<ReferenceRecord> = {}): ReferenceRecord {
  return {
    kind: "migration",
    operationId: "theirs <&>",
    instance: "tenant",
    expiresAt: EXPIRES_AT,
    topologyGeneration: 7,
    ...DEPLOYER,
    tokenHash: referenceHash(TOKEN),
    createdAt: "2025-12-31T23:59:50.000000001Z",
    state: "active",
    ...changes,
  };
}

function place(service: InProcessService, changes: Partial<ReferencePlace> = {}): ReferencePlace {
  const group = changes.group ?? "orders";
  return {
    namespace: NAMESPACE,
    group,
    uid: storedGroup(service, group).metadata.uid ?? "",
    renewTime: "2025-12-31T23:59:50.000000Z",
    leaseDurationSeconds: 30,
    ...changes,
  };
}

function seed(
  service: InProcessService,
  changes: Partial<ReferenceRecord> = {},
  where: Partial<ReferencePlace> = {},
): ReferenceRecord {
  const written = record(changes);
  service.fake.seed(LEASES, referenceLease(written, place(service, where)));
  return written;
}

/** Reads what is stored as the reference would. */
function reference(service: InProcessService, name: string, group = "orders"): ReferenceRecord {
  const lease = storedLease(service, name);
  assert.ok(lease, name);
  const { uid = "" } = storedGroup(service, group).metadata;
  return readAsReference(lease, { name: group, uid });
}

const slot = referenceName("orders", "migration");
const hold = (operation: string) => referenceName("orders", "failover-hold", operation);
const tombstone = (operation: string) => referenceName("orders", "migration", operation);

Deno.test("an active migration of the reference is shown, honoured, renewed and released", async () => {
  using service = new InProcessService();
  const client = service.client();
  const theirs = seed(service);
  const { operationId, expiresAt } = theirs;

  const held = mustBe(await client.grant("op-2", "tenant"), 409, "held");
  assert.deepEqual(held.body.holder, { expiresAt, instance: "tenant", operationId });
  const view = mustBe(await client.observe(), 200);
  assert.deepEqual(view.body.leases, [
    { expiresAt, instance: "tenant", kind: "migration", operationId, topologyGeneration: 7 },
  ]);
  mustBe(await client.renew(operationId, "wrong"), 403, "token_mismatch");
  assert.deepEqual(reference(service, slot), theirs, "nothing was written but our label");

  const renewed = mustBe(await client.renew(operationId, TOKEN, { ttlSeconds: 60 }), 200);
  assert.equal(renewed.body.expiresAt, "2026-01-01T00:01:00Z");
  assert.deepEqual(reference(service, slot), { ...theirs, expiresAt: "2026-01-01T00:01:00Z" });
  mustBe(await client.release(operationId, TOKEN), 204);
  assert.equal(reference(service, slot).state, "released");
});

Deno.test("an active hold of the reference is found although it lacks our label, and is adopted", async () => {
  using service = new InProcessService();
  const client = service.client();
  const theirs = seed(service, { kind: "failover-hold" });
  const before = storedLease(service, hold(theirs.operationId));
  assert.equal(before?.metadata.labels?.[OUR_LABEL], undefined);

  const view = mustBe(await client.observe(), 200);
  assert.ok(Array.isArray(view.body.leases));
  assert.equal(view.body.leases.length, 1);
  const after = storedLease(service, hold(theirs.operationId));
  assert.equal(after?.metadata.labels?.[OUR_LABEL], "orders");
  assert.deepEqual(after?.spec, before?.spec);
  assert.deepEqual(after?.metadata.annotations, before?.metadata.annotations);

  mustBe(await client.renew(theirs.operationId, TOKEN, { ...HOLD, ttlSeconds: 60 }), 200);
  assert.equal(
    reference(service, hold(theirs.operationId)).expiresAt,
    "2026-01-01T00:01:00Z",
  );
  mustBe(await client.release(theirs.operationId, TOKEN, HOLD), 204);
  assert.equal(reference(service, hold(theirs.operationId)).state, "released");
});

Deno.test("a migration of the reference is enough for a hold of ours, and its re-grant rotates the token", async () => {
  using service = new InProcessService();
  const client = service.client();
  const { operationId, createdAt } = seed(service);
  await granted(client, operationId, HOLD);
  assert.equal(reference(service, hold(operationId)).state, "active");
  const token = tokenOf(mustBe(await client.grant(operationId, "tenant"), 200));
  assert.equal(reference(service, slot).createdAt, createdAt);
  mustBe(await client.renew(operationId, TOKEN), 403, "token_mismatch");
  mustBe(await client.renew(operationId, token), 200);
});

Deno.test("a lease of the reference counts to its last nanosecond, and is stored as expired after it", async () => {
  for (const kind of ["migration", "failover-hold"] as const) {
    using service = new InProcessService();
    const client = service.client();
    const theirs = seed(service, { kind });
    const name = kind === "migration" ? slot : hold(theirs.operationId);
    await service.clock.advance(20_124);
    assert.equal(Array(mustBe(await client.observe(), 200).body.leases).flat().length, 1);
    await service.clock.advance(1);
    assert.equal(Array(mustBe(await client.observe(), 200).body.leases).flat().length, 0);
    assert.deepEqual(reference(service, name), { ...theirs, state: "expired" });
    assert.equal(storedLease(service, name)?.spec?.leaseDurationSeconds, 1);
    mustBe(await client.renew(theirs.operationId, TOKEN, { kind }), 404, "not_found");
    mustBe(await client.release(theirs.operationId, "wrong", { kind }), 403, "token_mismatch");
    mustBe(await client.release(theirs.operationId, TOKEN, { kind }), 204);
  }
});

Deno.test("terminal records of the reference have the outcomes of deploy-api 7.5", async () => {
  for (const state of ["expired", "released"] as const) {
    using service = new InProcessService();
    const client = service.client();
    const theirs = seed(service, { state });
    mustBe(await client.renew(theirs.operationId, TOKEN), 404, "not_found");
    mustBe(await client.renew(theirs.operationId, "wrong"), 403, "token_mismatch");
    mustBe(await client.release(theirs.operationId, TOKEN), 204);
    mustBe(await client.release(theirs.operationId, "wrong"), 403, "token_mismatch");
    assert.deepEqual(reference(service, slot), theirs);
    mustBe(await client.grant(theirs.operationId, "tenant"), 201);
    assert.equal(storedLease(service, tombstone(theirs.operationId)), null);
  }
  for (const reason of ["topology_changed", "operator_revoked"] as const) {
    using service = new InProcessService();
    const client = service.client();
    const theirs = seed(service, { state: "revoked", reason });
    mustBeRevoked(await client.renew(theirs.operationId, TOKEN), reason);
    mustBe(await client.renew(theirs.operationId, "wrong"), 403, "token_mismatch");
    mustBe(await client.release(theirs.operationId, TOKEN), 204);
    mustBe(await client.release(theirs.operationId, "wrong"), 403, "token_mismatch");
    mustBeRevoked(await client.grant(theirs.operationId, "tenant"), reason);

    const token = await granted(client, "op-2");
    assert.deepEqual(reference(service, tombstone(theirs.operationId)), theirs);
    assert.equal(reference(service, slot).operationId, "op-2");
    mustBeRevoked(await client.renew(theirs.operationId, TOKEN), reason);
    // The lease that is held comes first: deploy-api 7.2 step 6.
    mustBe(await client.grant(theirs.operationId, "tenant"), 409, "held");
    mustBe(await client.release("op-2", token), 204);
    mustBeRevoked(await client.grant(theirs.operationId, "billing"), reason);
  }
});

Deno.test("a tombstone of the reference keeps its operation revoked for good", async () => {
  using service = new InProcessService();
  const client = service.client();
  const theirs = seed(service, { state: "revoked", reason: "operator_revoked" }, {
    tombstone: true,
  });
  mustBeRevoked(await client.renew(theirs.operationId, TOKEN), "operator_revoked");
  mustBeRevoked(await client.grant(theirs.operationId, "tenant"), "operator_revoked");
  const token = await granted(client, "op-2");
  mustBe(await client.release("op-2", token), 204);
  mustBeRevoked(await client.grant(theirs.operationId, "tenant"), "operator_revoked");
  assert.deepEqual(reference(service, tombstone(theirs.operationId)), theirs);
});

Deno.test("active leases of the reference are revoked by a new generation and by the annotation", async () => {
  for (const reason of ["topology_changed", "operator_revoked"] as const) {
    for (const kind of ["migration", "failover-hold"] as const) {
      using service = new InProcessService();
      const client = service.client();
      const theirs = seed(service, { kind });
      if (reason === "operator_revoked") annotate(service, REVOKE, "true");
      else setStatus(service, { topologyGeneration: 8 });
      const generation = reason === "operator_revoked" ? 7 : 8;
      // A group that never had a gate takes what status says: the older lease is below it.
      mustBeRevoked(await client.renew(theirs.operationId, TOKEN, { kind }), reason, generation);
      const name = kind === "migration" ? slot : hold(theirs.operationId);
      assert.deepEqual(reference(service, name), { ...theirs, state: "revoked", reason });
    }
  }
});

Deno.test("a group with a long name has the reference's names, in every kind and state", async () => {
  using service = new InProcessService();
  seedGroup(service.fake, LONG, ["long"]);
  const client = service.client(DEPLOYER, { group: LONG });
  const slot = referenceName(LONG, "migration");
  assert.ok(slot.length <= 63 && !slot.includes(LONG));
  const theirs = seed(service, { instance: "long" }, { group: LONG });
  const kept = seed(service, { operationId: "hold", kind: "failover-hold", instance: "long" }, {
    group: LONG,
  });
  const view = mustBe(await client.observe(), 200);
  assert.equal(Array(view.body.leases).flat().length, 2);
  mustBe(await client.renew(theirs.operationId, TOKEN), 200);
  mustBe(await client.renew(kept.operationId, TOKEN, HOLD), 200);
  assert.equal(reference(service, slot, LONG).operationId, theirs.operationId);
  const name = referenceName(LONG, "failover-hold", kept.operationId);
  assert.equal(reference(service, name, LONG).operationId, kept.operationId);

  annotate(service, REVOKE, "true", LONG);
  mustBe(await client.renew(theirs.operationId, TOKEN), 409, "revoked");
  annotate(service, REVOKE, null, LONG);
  mustBe(await client.grant("op-2", "long"), 201);
  const archived = referenceName(LONG, "migration", theirs.operationId);
  assert.equal(reference(service, archived, LONG).state, "revoked");
});

Deno.test("a time with another offset, as a reference in another time zone writes it, is the same instant", async () => {
  using service = new InProcessService();
  const client = service.client();
  const theirs = seed(service, { expiresAt: "2026-01-01T02:00:20.5+02:00" });
  await service.clock.advance(20_500);
  mustBe(await client.grant("op-2", "tenant"), 409, "held");
  await service.clock.advance(1);
  mustBe(await client.grant("op-2", "tenant"), 201);
  assert.notEqual(reference(service, slot).operationId, theirs.operationId);
});

Deno.test("members, labels and annotations that we do not know survive a renewal", async () => {
  using service = new InProcessService();
  const client = service.client();
  const lease = referenceLease(record(), place(service));
  const newer = { ...record(), approvedBy: { name: "somebody" } };
  service.fake.seed(LEASES, {
    ...lease,
    metadata: {
      ...lease.metadata,
      labels: { ...lease.metadata.labels, "app.example/team": "blue" },
      annotations: { "app.example/note": "kept", [RECORD_ANNOTATION]: JSON.stringify(newer) },
    },
  });
  mustBe(await client.renew(newer.operationId, TOKEN), 200);
  const after = storedLease(service, slot);
  assert.equal(after?.metadata.labels?.["app.example/team"], "blue");
  assert.equal(after?.metadata.annotations?.["app.example/note"], "kept");
  const stored: unknown = JSON.parse(after?.metadata.annotations?.[RECORD_ANNOTATION] ?? "");
  assert.deepEqual(Object(stored).approvedBy, { name: "somebody" });
});

Deno.test("all that we write, a strict reader of the reference's form understands", async () => {
  using service = new InProcessService();
  const client = service.client();
  const first = await granted(client, "op-1", { ttlSeconds: 120 });
  const written = reference(service, slot);
  assert.deepEqual(written, {
    kind: "migration",
    operationId: "op-1",
    instance: "tenant",
    expiresAt: "2026-01-01T00:02:00Z",
    topologyGeneration: 7,
    ...DEPLOYER,
    tokenHash: referenceHash(first),
    createdAt: "2026-01-01T00:00:00Z",
    state: "active",
  });
  await service.clock.advance(1_500);
  const token = tokenOf(mustBe(await client.grant("op-1", "tenant"), 200));
  assert.deepEqual(reference(service, slot), {
    ...written,
    tokenHash: referenceHash(token),
    expiresAt: "2026-01-01T00:00:31.5Z",
  });
  const kept = await granted(client, "op-1", HOLD);
  assert.equal(reference(service, hold("op-1")).tokenHash, referenceHash(kept));
  mustBe(await client.renew("op-1", kept, { ...HOLD, ttlSeconds: 7 }), 200);
  assert.equal(reference(service, hold("op-1")).expiresAt, "2026-01-01T00:00:08.5Z");
  await service.clock.advance(7_001);
  mustBe(await client.observe(), 200);
  assert.equal(reference(service, hold("op-1")).state, "expired");
  mustBe(await client.release("op-1", token), 204);
  assert.equal(reference(service, slot).state, "released");

  await granted(client, "op-3");
  setStatus(service, { topologyGeneration: 8 });
  mustBe(await client.grant("op-4", "tenant"), 201);
  assert.equal(reference(service, tombstone("op-3")).reason, "topology_changed");
  assert.equal(reference(service, slot).topologyGeneration, 8);
});

Deno.test("a reference that goes on beside us and writes over our lease is read as before", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  const ours = reference(service, slot);
  const longer = { ...ours, expiresAt: "2026-01-01T00:01:30.000000007Z" };
  // Its own writes carry its own labels alone, so ours is gone again.
  seed(service, longer, { leaseDurationSeconds: 90 });
  mustBe(await client.renew("op-1", token, { ttlSeconds: 120 }), 200);
  assert.equal(reference(service, slot).expiresAt, "2026-01-01T00:02:00Z");
  assert.equal(storedLease(service, slot)?.metadata.labels?.[OUR_LABEL], "orders");
});

Deno.test("the strict reader refuses what is not of the reference's form", () => {
  using service = new InProcessService();
  const where = place(service);
  const group = { name: "orders", uid: where.uid };
  const good = referenceLease(record(), { ...where, leaseDurationSeconds: 30 });
  assert.deepEqual(readAsReference(good, group), record());
  const annotated = (value: object) => ({
    ...good,
    metadata: { ...good.metadata, annotations: { [RECORD_ANNOTATION]: JSON.stringify(value) } },
  });
  const offenders = [
    annotated({ ...record(), fence: "7" }),
    annotated({ ...record(), reason: "operator_revoked" }),
    annotated({ ...record(), expiresAt: "2026-01-01T00:00:20.120Z" }),
    annotated(Object.fromEntries(Object.entries(record()).reverse())),
    { ...good, spec: { ...good.spec, acquireTime: "2026-01-01T00:00:00.000000Z" } },
    { ...good, spec: { ...good.spec, leaseDurationSeconds: 29 } },
    { ...good, metadata: { ...good.metadata, name: "another" } },
    { ...good, metadata: { ...good.metadata, labels: { more: "than two" } } },
    { ...good, metadata: { ...good.metadata, ownerReferences: [] } },
  ];
  for (const offender of offenders) {
    assert.throws(() => readAsReference(offender, group), JSON.stringify(offender));
  }
});
