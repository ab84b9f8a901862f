/** The places where we differ from the reference: state protocol 3, each by its number. */

import assert from "node:assert/strict";
import { LeaseTime } from "../../lib/lease_time/lease_time.ts";
import { loadConfig } from "../../lib/config/layers.ts";
import { seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { FakeCluster } from "../../lib/testing/mod.ts";
import { DEPLOYER, InProcessService, NAMESPACE, seedCluster } from "../service/in_process.ts";
import { ordersDatabase } from "../service/orders.ts";
import { MYSQL_DATABASES } from "../../lib/group/types.ts";
import { inWorld, LEASE } from "../election/world.ts";
import {
  changeGate,
  granted,
  HOLD,
  mustBe,
  mustBeUnstable,
  setStatus,
  storedGroup,
  tokenOf,
} from "./support.ts";

/** Another replica over the same storage: one that started just now, or one that leads at the same time. */
function another({ fake, clock }: InProcessService, more = {}): InProcessService {
  return new InProcessService({ fake, clock, seed: 2, ...more });
}

Deno.test("difference 6: reservations and pending topology survive a restart and an overlap of leaders", async () => {
  const planned = {
    operation: "OrderedUpdate",
    id: "c7f1b9f4-6f0e-4c53-a1d0-3ad9b0c3a001",
    by: "operator",
    since: "2026-01-01T00:00:00Z",
    state: "admitted",
  } as const;
  const pending = { since: "2026-01-01T00:00:00Z", by: "operator" };
  const rows = [
    [{ planned }, "OrderedUpdate"],
    [{ pending }, "TopologyPersistencePending"],
  ] as const;
  for (const [change, reason] of rows) {
    using first = new InProcessService();
    mustBe(await first.client().observe(), 200);
    changeGate(first, change);
    using second = another(first);
    for (const service of [first, second]) {
      mustBeUnstable(await service.client().grant("op-1", "tenant"), reason);
      mustBeUnstable(await service.client().observe(), reason);
    }
    changeGate(first, { planned: null, pending: null });
    mustBe(await second.client().grant("op-1", "tenant"), 201);
  }
});

Deno.test("difference 7: after a restart nothing is pending while the status is unchanged", async () => {
  using first = new InProcessService();
  const token = await granted(first.client());
  using second = another(first);
  mustBe(await second.client().renew("op-1", token), 200);
  using third = another(first);
  mustBe(await third.client().observe(), 200);
  using fourth = another(first);
  mustBe(await fourth.client().release("op-1", token), 204);
  using fifth = another(first);
  mustBe(await fifth.client().grant("op-2", "tenant"), 201);
});

Deno.test("difference 7: a status that the operator refreshes no more is not believed with max_status_age", async () => {
  using service = new InProcessService({ maxStatusAgeMs: 60_000 });
  const client = service.client();
  const seenAt = (lastSeen: string) => {
    const sites = storedGroup(service).status?.sites?.map((site) => ({ ...site, lastSeen }));
    setStatus(service, { sites });
  };
  seenAt("2026-01-01T00:00:00Z");
  const token = await granted(client, "op-1", { ttlSeconds: 120 });
  await service.clock.advance(60_000);
  mustBe(await client.renew("op-1", token, { ttlSeconds: 120 }), 200);
  await service.clock.advance(1);
  mustBeUnstable(await client.renew("op-1", token), "TopologyNotObserved");
  mustBeUnstable(await client.grant("op-2", "tenant"), "TopologyNotObserved");
  mustBeUnstable(await client.observe(), "TopologyNotObserved");
  seenAt("2026-01-01T00:01:00Z");
  mustBe(await client.renew("op-1", token), 200);
  mustBe(await client.release("op-1", token), 204);
});

Deno.test("difference 13: a replica that lost the lead says so, closes the connection, and serves again later", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  service.leads = false;
  const requests = [
    () => client.observe(),
    () => client.grant("op-1", "tenant"),
    () => client.renew("op-1", token),
    () => client.release("op-1", token),
  ];
  for (const request of requests) {
    const answer = mustBe(await request(), 503, "not_leader");
    assert.equal(answer.headers.get("Connection"), "close");
    assert.equal(answer.headers.get("Retry-After"), "1");
  }
  service.leads = true;
  const served = mustBe(await client.renew("op-1", token), 200);
  assert.equal(served.headers.get("Connection"), null);
});

Deno.test("difference 14: each grant has a fence, which is the version of its write and rises with every grant", async () => {
  using service = new InProcessService();
  const client = service.client();
  const fences: bigint[] = [];
  for (let index = 0; index < 4; index++) {
    const operation = `op-${index}`;
    const first = mustBe(await client.grant(operation, "tenant"), 201);
    const again = mustBe(await client.grant(operation, "tenant"), 200);
    const hold = mustBe(await client.grant(operation, "tenant", HOLD), 201);
    for (const answer of [first, again, hold]) {
      const fence = answer.headers.get("X-Lease-Fence") ?? "";
      assert.match(fence, /^[1-9]\d*$/);
      assert.ok(BigInt(fence) < 2n ** 64n);
      fences.push(BigInt(fence));
    }
    const token = tokenOf(again);
    const others = [
      mustBe(await client.renew(operation, token), 200),
      mustBe(await client.observe(), 200),
      mustBe(await client.grant("rival", "tenant"), 409),
      mustBe(await client.release(operation, token), 204),
    ];
    for (const answer of others) assert.equal(answer.headers.get("X-Lease-Fence"), null);
  }
  assert.deepEqual(fences, [...new Set(fences)].sort((a, b) => (a < b ? -1 : 1)));
});

Deno.test("difference 15: the names of JSON members are exact", async () => {
  using service = new InProcessService();
  const client = service.client();
  const good = { kind: "migration", operationId: "op-1", instance: "tenant", ttlSeconds: 30 };
  for (const name of Object.keys(good)) {
    const other = name[0]?.toUpperCase() + name.slice(1);
    const body = JSON.stringify(good).replace(`"${name}"`, `"${other}"`);
    mustBe(await client.call("POST", "/leases", { body }), 400, "invalid_request");
  }
  const token = await granted(client);
  for (const body of [`{"Token":"${token}"}`, `{"token":"${token}","TTLSeconds":30}`]) {
    const answer = await client.call("PUT", "/leases/migration/op-1", { body });
    mustBe(answer, 400, "invalid_request");
  }
});

Deno.test("difference 16: 423, 503 and 409 held say when to come back", async () => {
  using service = new InProcessService();
  const client = service.client();
  await granted(client);
  await service.clock.advance(10_500);
  const held = mustBe(await client.grant("op-2", "tenant"), 409, "held");
  assert.equal(held.headers.get("Retry-After"), "20");
  setStatus(service, { updatePhase: "Failover" });
  const unstable = mustBe(await client.grant("op-2", "tenant"), 423);
  assert.equal(unstable.headers.get("Retry-After"), "1");
  service.fake.faults.add({ resource: "leases", fault: { type: "status", code: 500 } });
  const unavailable = mustBe(await client.observe(), 503, "unavailable");
  assert.equal(unavailable.headers.get("Retry-After"), "1");
});

Deno.test("difference 20: configuration is YAML with the contract's keys, and a text of TOML is refused", () => {
  const load = (text: string) =>
    loadConfig({
      env: {},
      profile: undefined,
      readTextFile: (path) => path.endsWith("holdfast.yaml") ? text : undefined,
      options: [],
    });
  assert.equal(load("deploy_api:\n  enabled: true\n").config.deploy_api.enabled, true);
  assert.throws(() => load("[deploy_api]\nenabled = true\n"));
});

/** A service that knows the time by the answers of an API server whose clock is `offsetMs` ahead of this machine's. */
function withServerTime(offsetMs: number): InProcessService {
  const clock = new TestClock();
  const fake = new FakeCluster({ clock, entropy: seededEntropy(3), serverClockOffsetMs: offsetMs });
  seedCluster(fake);
  const time = new LeaseTime({ clock });
  return new InProcessService({
    fake,
    clock,
    time,
    send: (send) => async (request) => {
      const sentMs = clock.monotonic();
      const answer = await send(request);
      time.observe({
        sentMs,
        receivedMs: clock.monotonic(),
        serverDateMs: Date.parse(answer.headers.get("date") ?? ""),
        status: answer.status,
        verb: "",
        resource: "",
      });
      return answer;
    },
  });
}

Deno.test("difference 23: expiry is judged by the API server's time, however wrong this machine's clock is", async () => {
  for (const offsetMs of [0, 3_600_000, -3_600_000]) {
    using service = withServerTime(offsetMs);
    const { clock } = service;
    const client = service.client();
    const answer = mustBe(await client.grant("op-1", "tenant", { ttlSeconds: 10 }), 201);
    const token = tokenOf(answer);
    const expiresMs = Date.parse(String(answer.body.expiresAt));
    const serverMs = () => clock.wall() + offsetMs;
    // Never earlier than it was asked for, and later by no more than the width of a second's bound.
    assert.ok(expiresMs >= serverMs() + 10_000 && expiresMs <= serverMs() + 11_100);
    await clock.advance(10_000);
    mustBe(await client.renew("op-1", token, { ttlSeconds: 10 }), 200);
    await clock.advance(13_000);
    mustBe(await client.renew("op-1", token), 404, "not_found");
  }
});

Deno.test("difference 23: a jump of this machine's clock neither ends a lease nor makes it longer: it costs one 503", async () => {
  for (const jumpMs of [86_400_000, -86_400_000]) {
    using service = withServerTime(0);
    const { clock, fake } = service;
    const client = service.client();
    const token = await granted(client, "op-1", { ttlSeconds: 10 });
    clock.jumpWall(jumpMs);
    fake.serverClockOffsetMs = -jumpMs;
    // What was under way when the jump is noticed is not believed: it may be from before a pause.
    mustBe(await client.renew("op-1", token), 503, "unavailable");
    await clock.advance(1);
    mustBe(await client.grant("op-2", "tenant"), 409, "held");
    mustBe(await client.renew("op-1", token, { ttlSeconds: 10 }), 200);
    await clock.advance(13_000);
    mustBe(await client.grant("op-2", "tenant"), 201);
  }
});

Deno.test("difference 24: a second process with the same identity is foreign and waits", () =>
  inWorld(async (world) => {
    const first = world.started("same");
    await world.until(() => first.leads);
    const second = world.started("same");
    await world.clock.advance(30_000);
    assert.deepEqual([first.leads, second.leads], [true, false]);
    await first.stop();
    await world.until(() => second.leads);
  }));

Deno.test("difference 25: a caller that is not authorized any more learns nothing of the reads that were under way", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  for (const name of ["tenant", "billing"]) {
    service.fake.seed(MYSQL_DATABASES, ordersDatabase(NAMESPACE, name, "orders", []));
  }
  const faults = [
    { resource: "mysqlfailovergroups", fault: { type: "status", code: 500 } },
    { resource: "mysqlfailovergroups", fault: { type: "status", code: 404 } },
    { resource: "leases", fault: { type: "reset" } },
  ] as const;
  for (const fault of [null, ...faults]) {
    // Authorized a moment ago, so that the reads begin beside the question.
    for (const name of ["tenant", "billing"]) {
      service.fake.seed(MYSQL_DATABASES, ordersDatabase(NAMESPACE, name, "orders", [DEPLOYER]));
    }
    mustBe(await client.observe(), 200);
    for (const name of ["tenant", "billing"]) {
      service.fake.seed(MYSQL_DATABASES, ordersDatabase(NAMESPACE, name, "orders", []));
    }
    const handle = fault === null ? null : service.fake.faults.add(fault);
    service.fake.calls.reset();
    service.lines.length = 0;
    const answer = mustBe(await client.renew("op-1", token), 403);
    assert.equal(answer.text, '{"error":"forbidden"}\n');
    assert.ok(service.fake.calls.count({ resource: "mysqlfailovergroups.shipstream.io" }) > 0);
    const [line = ""] = service.lines;
    assert.equal(service.lines.length, 1, service.lines.join("\n"));
    assert.equal(Object(JSON.parse(line)).namespace, "");
    handle?.remove();
    // And from then on not even a read.
    service.fake.calls.reset();
    mustBe(await client.renew("op-1", token), 403, "forbidden");
    assert.equal(service.fake.calls.count({ resource: "mysqlfailovergroups.shipstream.io" }), 0);
  }
});

Deno.test("difference 26: a waiter that saw a holder waits out its time when the election Lease vanishes", () =>
  inWorld(async (world) => {
    const holder = world.started("holder");
    await world.until(() => holder.leads);
    const waiter = world.started("waiter");
    await world.clock.advance(5_000);
    await holder.crash();
    world.leases.delete(LEASE);
    const tookMs = await world.until(() => waiter.leads);
    assert.ok(tookMs >= 10_000, `the waiter led after ${tookMs} ms`);
  }));

Deno.test("difference 26: a holder whose election Lease vanished stops believing at once, and campaigns anew", () =>
  inWorld(async (world) => {
    const holder = world.started("holder");
    await world.until(() => holder.leads);
    await world.clock.advance(5_000);
    world.leases.delete(LEASE);
    await world.until(() => holder.losses.length === 1, 3_000);
    assert.deepEqual(holder.losses, ["deleted"]);
    await world.until(() => holder.terms.length === 2 && holder.leads);
  }));
