/** What becomes of a grant that was stored and may not stand: state protocol 2.3. */

import assert from "node:assert/strict";
import { LEASES } from "../../lib/kube/resources.ts";
import { holdName, slotName } from "../../lib/records/names.ts";
import type { DeploymentClient } from "../service/deployment_client.ts";
import { InProcessService } from "../service/in_process.ts";
import { Between, GROUP_READ, HOLD_WRITE, SLOT_WRITE } from "./between.ts";
import { referenceHash } from "./reference_form.ts";
import {
  annotate,
  granted,
  HOLD,
  mustBe,
  mustBeUnstable,
  REVOKE,
  setStatus,
  storedLease,
  storedRecord,
  tokenOf,
} from "./support.ts";

const slot = slotName("orders");
const hold = holdName("orders", "op-1");

const kinds = [
  ["migration", slot, SLOT_WRITE],
  ["failover-hold", hold, HOLD_WRITE],
] as const;

/** What a grant of the kind needs before it. */
async function prepare(service: InProcessService, kind: string): Promise<void> {
  const client = service.client();
  if (kind === "failover-hold") await granted(client);
  else mustBe(await client.observe(), 200);
}

for (const [kind, name, write] of kinds) {
  Deno.test(`a re-grant of a ${kind} that may not stand gives the old token and the old expiry back`, async () => {
    const between = new Between();
    using service = new InProcessService({ send: between.wrap });
    const client = service.client();
    await prepare(service, kind);
    const token = await granted(client, "op-1", { kind });
    const before = storedRecord(service, name);
    await service.clock.advance(1_000);
    between.after(write, () => setStatus(service, { updatePhase: "Failover" }));
    mustBeUnstable(
      await client.grant("op-1", "tenant", { kind, ttlSeconds: 120 }),
      "OrderedUpdate",
    );
    assert.deepEqual(storedRecord(service, name), before);
    assert.equal(await service.metric('holdfast_retractions_total{result="restored"}'), 1);
    // The group is as unstable as before: the holder goes on all the same.
    mustBe(await client.renew("op-1", token, { kind }), 200);
  });

  Deno.test(`a ${kind} whose answer was lost behind the write is granted with the token that was stored`, async () => {
    using service = new InProcessService();
    const client = service.client();
    await prepare(service, kind);
    const lost = service.fake.faults.add({
      verb: "update",
      name,
      count: 1,
      fault: { type: "lost-answer", as: "reset" },
    });
    const token = tokenOf(mustBe(await client.grant("op-1", "tenant", { kind }), 201));
    assert.equal(lost.hits, 1);
    assert.equal(storedRecord(service, name).tokenHash, referenceHash(token));
    mustBe(await client.renew("op-1", token, { kind }), 200);
    assert.equal(await service.metric('holdfast_decide_retries_total{request="grant"}'), 1);
  });

  Deno.test(`a re-grant of a ${kind} whose answer was lost is still 200, and still taken back if it may not stand`, async () => {
    for (const stands of [true, false]) {
      const between = new Between();
      using service = new InProcessService({ send: between.wrap });
      const client = service.client();
      await prepare(service, kind);
      const old = await granted(client, "op-1", { kind });
      service.fake.faults.add({
        verb: "update",
        name,
        count: 1,
        fault: { type: "lost-answer", as: "reset" },
      });
      if (!stands) {
        between.before(GROUP_READ, () => setStatus(service, { updatePhase: "Failover" }), {
          skip: 1,
        });
      }
      const answer = await client.grant("op-1", "tenant", { kind });
      if (stands) {
        const token = tokenOf(mustBe(answer, 200));
        mustBe(await client.renew("op-1", token, { kind }), 200);
      } else {
        mustBeUnstable(answer, "OrderedUpdate");
        mustBe(await client.renew("op-1", old, { kind }), 200);
      }
    }
  });

  Deno.test(`a ${kind} is taken back when its look fails, and the answer is 503`, async () => {
    using service = new InProcessService();
    const client = service.client();
    await prepare(service, kind);
    service.fake.faults.add({
      resource: "mysqlfailovergroups",
      skip: 1,
      fault: { type: "status", code: 500 },
    });
    mustBe(await client.grant("op-1", "tenant", { kind }), 503, "unavailable");
    assert.equal(storedRecord(service, name).state, "released");
    assert.equal(await service.metric('holdfast_retractions_total{result="released"}'), 1);
  });

  Deno.test(`a ${kind} is taken back within a budget of its own when the request's time is over`, async () => {
    using service = new InProcessService();
    const client = service.client();
    await prepare(service, kind);
    service.fake.faults.add({
      resource: "mysqlfailovergroups",
      skip: 1,
      fault: { type: "hang" },
    });
    const answer = client.grant("op-1", "tenant", { kind });
    await service.clock.advance(9_999);
    assert.equal(storedRecord(service, name).state, "active");
    await service.clock.advance(1);
    mustBe(await answer, 503, "unavailable");
    assert.equal(storedRecord(service, name).state, "released");
  });

  Deno.test(`a ${kind} whose answer was lost is found and taken back when the request's time is over`, async () => {
    using service = new InProcessService();
    const client = service.client();
    await prepare(service, kind);
    service.fake.faults.add({
      verb: "update",
      name,
      count: 1,
      fault: { type: "lost-answer", as: "hang" },
    });
    const answer = client.grant("op-1", "tenant", { kind });
    await service.clock.advance(10_000);
    mustBe(await answer, 503, "unavailable");
    assert.equal(storedRecord(service, name).state, "released");
  });

  Deno.test(`a ${kind} that cannot be taken back either is 503, is counted, and ends by its time`, async () => {
    const between = new Between();
    using service = new InProcessService({ send: between.wrap });
    const client = service.client();
    await prepare(service, kind);
    between.after(write, () => {
      setStatus(service, { updatePhase: "Failover" });
      service.fake.faults.add({ verb: "update", name, fault: { type: "reset" } });
    });
    mustBe(await client.grant("op-1", "tenant", { kind }), 503, "unavailable");
    assert.equal(storedRecord(service, name).state, "active");
    assert.equal(await service.metric('holdfast_retractions_total{result="failed"}'), 1);
    service.fake.faults.clear();
    await service.clock.advance(30_001);
    mustBe(await client.observe(), 200);
    assert.equal(storedRecord(service, name).state, "expired");
  });

  Deno.test(`a conflict ends the retraction of a ${kind}: the record is then somebody else's`, async () => {
    const between = new Between();
    using service = new InProcessService({ send: between.wrap });
    using other = new InProcessService({ fake: service.fake, clock: service.clock, seed: 2 });
    const client = service.client();
    await prepare(service, kind);
    let token = "";
    between.after(write, async () => {
      token = tokenOf(await other.client().grant("op-1", "tenant", { kind }));
      setStatus(service, { updatePhase: "Failover" });
    });
    mustBeUnstable(await client.grant("op-1", "tenant", { kind }), "OrderedUpdate");
    assert.equal(storedRecord(service, name).tokenHash, referenceHash(token));
    mustBe(await other.client().renew("op-1", token, { kind }), 200);
  });
}

Deno.test("two re-grants that fail across each other may cost the holder its token, and never give the mutex away", async () => {
  const [first, second] = [new Between(), new Between()];
  using a = new InProcessService({ send: first.wrap });
  using b = new InProcessService({ fake: a.fake, clock: a.clock, seed: 2, send: second.wrap });
  const token = await granted(a.client());
  mustBe(await b.client().observe(), 200);
  const written = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const later = Promise.withResolvers<Awaited<ReturnType<DeploymentClient["grant"]>>>();
  // The second one replaces what the first one wrote, and looks only when the first one could not take it back.
  first.after(SLOT_WRITE, async () => {
    later.resolve(b.client().grant("op-1", "tenant"));
    await written.promise;
    setStatus(a, { updatePhase: "Failover" });
  });
  second.after(SLOT_WRITE, async () => {
    written.resolve();
    await ended.promise;
  });
  mustBeUnstable(await a.client().grant("op-1", "tenant"), "OrderedUpdate");
  ended.resolve();
  mustBeUnstable(await later.promise, "OrderedUpdate");

  // What was restored is the first one's token, which nobody has. The holder learns that its authority is over.
  const { operationId, state } = storedRecord(a);
  assert.deepEqual([operationId, state], ["op-1", "active"]);
  mustBe(await a.client().renew("op-1", token), 403, "token_mismatch");
  setStatus(a, { updatePhase: "" });
  mustBe(await a.client().grant("op-2", "tenant"), 409, "held");
  // And its operation gets the lease back by the same call as after any lost answer.
  mustBe(await a.client().grant("op-1", "tenant"), 200);
});

Deno.test("a hold whose migration is gone by the look is taken back, and 403", async () => {
  const between = new Between();
  using service = new InProcessService({ send: between.wrap });
  using other = new InProcessService({ fake: service.fake, clock: service.clock, seed: 2 });
  const token = await granted(service.client());
  between.after(HOLD_WRITE, async () => {
    mustBe(await other.client().release("op-1", token), 204);
  });
  mustBe(await service.client().grant("op-1", "tenant", HOLD), 403, "forbidden");
  assert.equal(storedRecord(service, hold).state, "released");
});

Deno.test("a hold whose migration was revoked directly by the look is revoked with it", async () => {
  const between = new Between();
  using service = new InProcessService({ send: between.wrap });
  using other = new InProcessService({ fake: service.fake, clock: service.clock, seed: 2 });
  const token = await granted(service.client());
  between.after(HOLD_WRITE, async () => {
    annotate(service, REVOKE, "true");
    mustBe(await other.client().renew("op-1", token), 409, "revoked");
    annotate(service, REVOKE, null);
  });
  mustBe(await service.client().grant("op-1", "tenant", HOLD), 409, "revoked");
  const { state, reason } = storedRecord(service, hold);
  assert.deepEqual([state, reason], ["revoked", "operator_revoked"]);
});

Deno.test("a replica that loses the lead between the write and the answer takes nothing for granted", async () => {
  const between = new Between();
  using service = new InProcessService({ send: between.wrap });
  const client = service.client();
  mustBe(await client.observe(), 200);
  between.before(SLOT_WRITE, () => {
    service.leads = false;
  });
  // The write was on its way; only its version decides. The look confirms it, so that the answer may stand.
  const answer = await client.grant("op-1", "tenant");
  assert.ok([201, 503].includes(answer.status));
  const { state } = storedRecord(service);
  assert.equal(state, answer.status === 201 ? "active" : "released");
});

Deno.test("difference 3: a lost race is decided again up to three times, and then 503", async () => {
  const slotConflict = {
    verb: "update",
    name: slot,
    fault: { type: "status", code: 409 },
  } as const;
  for (const [count, status] of [[1, 201], [2, 201], [3, 503]] as const) {
    using service = new InProcessService();
    service.fake.faults.add({ ...slotConflict, count });
    const answer = mustBe(await service.client().grant("op-1", "tenant"), status);
    if (status === 503) assert.equal(answer.text, '{"error":"unavailable"}\n');
    else assert.equal(storedRecord(service).state, "active");
  }
  for (const [count, renewed, released] of [[2, 200, 204], [3, 503, 503]] as const) {
    using service = new InProcessService();
    const client = service.client();
    const token = await granted(client);
    service.fake.faults.add({ ...slotConflict, count });
    mustBe(await client.renew("op-1", token), renewed);
    service.fake.faults.add({ ...slotConflict, count });
    mustBe(await client.release("op-1", token), released);
  }
});

Deno.test("a renewal whose answer was lost is decided again, and one that is deleted meanwhile is not recreated", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  const lost = { verb: "update", name: slot, count: 1 } as const;
  service.fake.faults.add({ ...lost, fault: { type: "lost-answer", as: "reset" } });
  mustBe(await client.renew("op-1", token), 200);

  const between = new Between();
  using other = new InProcessService({
    fake: service.fake,
    clock: service.clock,
    seed: 2,
    send: between.wrap,
  });
  between.before(SLOT_WRITE, () => {
    const { namespace = "", name = "" } = storedLease(service, slot)?.metadata ?? {};
    service.fake.remove(LEASES, { namespace, name });
  });
  mustBe(await other.client().renew("op-1", token), 404, "not_found");
  assert.equal(storedLease(service, slot), null);
});
