/**
 * A revocation that another replica completes between the write and the look of a request: its annotation came and is gone
 * again before the look, so that the group shows nothing of it (ADR 165). Two replicas that both lead for a moment can do
 * that to each other; within one, the turns of the group forbid it.
 */

import assert from "node:assert/strict";
import { LEASES } from "../../lib/kube/resources.ts";
import { slotName } from "../../lib/records/names.ts";
import { InProcessService, NAMESPACE } from "../service/in_process.ts";
import { Between, GROUP_READ, HOLD_WRITE, SLOT_WRITE } from "./between.ts";
import { CallRounds } from "./call_rounds.ts";
import {
  annotate,
  granted,
  HOLD,
  mustBe,
  mustBeRevoked,
  REVOKE,
  setStatus,
  storedLease,
  storedRecord,
  tokenOf,
} from "./support.ts";

const { signal } = new AbortController();

/** A replica, and another one that serves the same cluster. */
function twoReplicas(): Disposable & {
  readonly between: Between;
  readonly service: InProcessService;
  readonly other: InProcessService;
} {
  const between = new Between();
  const service = new InProcessService({ send: between.wrap });
  const other = new InProcessService({ fake: service.fake, clock: service.clock, seed: 2 });
  return {
    between,
    service,
    other,
    [Symbol.dispose]() {
      other[Symbol.dispose]();
      service[Symbol.dispose]();
    },
  };
}

/** The annotation is there before `write` lands; when it has landed, the other replica completes the revocation. */
function revokeAround(
  { between, service, other }: ReturnType<typeof twoReplicas>,
  write: RegExp,
): void {
  between.before(write, () => annotate(service, REVOKE, "incident"));
  between.after(write, async () => {
    const group = { namespace: NAMESPACE, name: "orders" };
    assert.ok(await other.coordinator.revoke(group, { reason: "operator_revoked" }, signal));
    annotate(service, REVOKE, null);
  });
}

for (const [kind, write] of [["migration", SLOT_WRITE], [HOLD.kind, HOLD_WRITE]] as const) {
  Deno.test(`ADR 165: a renewal of a ${kind} is not confirmed when its revocation was completed before the look`, async () => {
    using replicas = twoReplicas();
    const { service } = replicas;
    const client = service.client();
    const migration = await granted(client);
    const token = kind === "migration" ? migration : await granted(client, "op-1", HOLD);
    revokeAround(replicas, write);
    mustBeRevoked(await client.renew("op-1", token, { kind }), "operator_revoked");
    mustBeRevoked(await client.renew("op-1", token, { kind }), "operator_revoked");
  });
}

for (const what of ["grant", "re-grant"] as const) {
  Deno.test(`ADR 165: a ${what} of a migration is not confirmed when its revocation was completed before the look`, async () => {
    using replicas = twoReplicas();
    const { service } = replicas;
    const client = service.client();
    mustBe(await client.observe(), 200);
    if (what === "re-grant") await granted(client);
    revokeAround(replicas, SLOT_WRITE);
    mustBeRevoked(await client.grant("op-1", "tenant"), "operator_revoked");
    const { state, reason } = storedRecord(service);
    assert.deepEqual({ state, reason }, { state: "revoked", reason: "operator_revoked" });
  });
}

Deno.test("ADR 165: a grant of a hold is not confirmed when its revocation was completed before the look", async () => {
  using replicas = twoReplicas();
  const client = replicas.service.client();
  await granted(client);
  revokeAround(replicas, HOLD_WRITE);
  mustBeRevoked(await client.grant("op-1", "tenant", HOLD), "operator_revoked");
});

Deno.test("ADR 165: a grant whose answer was lost is not confirmed when its revocation was completed before it was found", async () => {
  using replicas = twoReplicas();
  const { between, service, other } = replicas;
  const client = service.client();
  mustBe(await client.observe(), 200);
  const name = slotName("orders");
  const fault = { type: "lost-answer", as: "reset" } as const;
  const lost = service.fake.faults.add({ verb: "update", name, count: 1, fault });
  between.before(SLOT_WRITE, () => annotate(service, REVOKE, "incident"));
  // The group of the second snapshot is read when the record of it was: it shows the revocation no more.
  between.before(GROUP_READ, async () => {
    await new Promise((resolve) => setTimeout(resolve));
    const group = { namespace: NAMESPACE, name: "orders" };
    assert.ok(await other.coordinator.revoke(group, { reason: "operator_revoked" }, signal));
    annotate(service, REVOKE, null);
  }, { skip: 1 });
  mustBeRevoked(await client.grant("op-1", "tenant"), "operator_revoked");
  assert.equal(lost.hits, 1);
});

Deno.test("ADR 165: where the group changed before the look, one read more confirms what is still stored", async () => {
  const between = new Between();
  const rounds = new CallRounds();
  using service = new InProcessService({ send: (send) => between.wrap(rounds.wrap(send)) });
  const client = service.client();
  const token = await granted(client);
  const change = () => setStatus(service, { replicationLagSeconds: service.clock.monotonic() });
  for (const changes of [false, true]) {
    await service.clock.advance(1_000);
    if (changes) between.after(SLOT_WRITE, change);
    const seen = await rounds.of(async () => mustBe(await client.renew("op-1", token), 200));
    assert.equal(seen.flat().length, changes ? 8 : 7);
  }
  between.after(SLOT_WRITE, change);
  mustBe(await client.release("op-1", token), 204);
  between.after(SLOT_WRITE, change, { skip: 1 });
  mustBe(
    await client.renew("op-2", tokenOf(mustBe(await client.grant("op-2", "tenant"), 201))),
    200,
  );
});

Deno.test("ADR 165: a lease that was deleted while the group changed is not confirmed, and not recreated", async () => {
  using replicas = twoReplicas();
  const { between, service } = replicas;
  const client = service.client();
  const token = await granted(client);
  between.after(SLOT_WRITE, () => {
    service.fake.remove(LEASES, { namespace: NAMESPACE, name: slotName("orders") });
    annotate(service, "note", "changed");
  });
  mustBe(await client.renew("op-1", token), 404, "not_found");
  assert.equal(storedLease(service, slotName("orders")), null);
});

Deno.test("ADR 165: a renewal that another replica's renewal overtook while the group changed is decided again", async () => {
  using replicas = twoReplicas();
  const { between, service, other } = replicas;
  const client = service.client();
  const token = await granted(client);
  between.after(SLOT_WRITE, async () => {
    mustBe(await other.client().renew("op-1", token, { ttlSeconds: 90 }), 200);
    annotate(service, "note", "changed");
  });
  const { body } = mustBe(await client.renew("op-1", token, { ttlSeconds: 60 }), 200);
  assert.equal(storedRecord(service).expiresAt, body.expiresAt);
});

Deno.test("ADR 165: a grant whose last read fails is taken back, and the answer is 503", async () => {
  using replicas = twoReplicas();
  const { between, service } = replicas;
  const client = service.client();
  mustBe(await client.observe(), 200);
  between.after(SLOT_WRITE, () => {
    annotate(service, "note", "changed");
    service.fake.faults.add({
      verb: "get",
      name: slotName("orders"),
      fault: { type: "status", code: 500 },
    });
  });
  mustBe(await client.grant("op-1", "tenant"), 503, "unavailable");
  assert.equal(storedRecord(service).state, "released");
});
