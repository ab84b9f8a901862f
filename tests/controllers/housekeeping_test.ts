import assert from "node:assert/strict";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { LeaseTime } from "../../lib/lease_time/lease_time.ts";
import { gateName, holdName, slotName } from "../../lib/records/names.ts";
import { expiresAtMs } from "../../lib/records/record.ts";
import { TestClock } from "../../lib/testing/mod.ts";
import {
  annotate,
  granted,
  HOLD,
  mustBe,
  mustBeRevoked,
  REVOKE,
  seedHolds,
  setStatus,
  storedLease,
  storedRecord,
} from "../conformance/support.ts";
import { NAMESPACE, seedGroup } from "../service/in_process.ts";
import { Rig } from "./rig.ts";

const slot = slotName("orders");
const hold = holdName("orders", "op-1");
const active = (kind: string) => `bloodraven_deploy_leases_active{group="orders",kind="${kind}"}`;
const age = (kind: string) => `bloodraven_deploy_lease_age_seconds{group="orders",kind="${kind}"}`;

Deno.test("a group without a gate gets one, and is then quiet", async () => {
  await using rig = new Rig();
  await rig.start();
  assert.ok(storedLease(rig.service, gateName("orders")));
  rig.service.fake.calls.reset();
  await rig.advance(60_000);
  assert.deepEqual(rig.service.fake.calls.entries, []);
});

Deno.test("deploy-api 16 item 31: a lease that nobody renews is stored as expired, not before its time and at once after it", async () => {
  await using rig = new Rig();
  await rig.start();
  const client = rig.service.client();
  await granted(client);
  await granted(client, "op-1", HOLD);
  await rig.advance(30_000);
  assert.equal(storedRecord(rig.service, slot).state, "active");
  await rig.advance(100);
  assert.equal(storedRecord(rig.service, slot).state, "expired");
  assert.equal(storedRecord(rig.service, hold).state, "expired");
  const expirations = "bloodraven_deploy_lease_expirations_total";
  for (const kind of ["migration", "failover-hold"]) {
    assert.equal(
      await rig.service.metric(`${expirations}{group="orders",kind="${kind}"}`),
      1,
    );
  }
  assert.deepEqual(rig.stored, []);
});

Deno.test("a renewal moves the expiry, and costs housekeeping no call", async () => {
  await using rig = new Rig();
  await rig.start();
  const client = rig.service.client();
  const token = await granted(client);
  await rig.advance(20_000);
  rig.service.fake.calls.reset();
  mustBe(await client.renew("op-1", token), 200);
  const calls = rig.service.fake.calls.total;
  await rig.settle();
  assert.equal(rig.service.fake.calls.total, calls);
  await rig.advance(30_000);
  assert.equal(storedRecord(rig.service).state, "active");
  await rig.advance(100);
  assert.equal(storedRecord(rig.service).state, "expired");
});

Deno.test("deploy-api 7.9: a new generation is stored, and ends every lease, as soon as status shows it", async () => {
  await using rig = new Rig();
  await rig.start();
  const client = rig.service.client();
  await granted(client);
  await granted(client, "op-1", HOLD);
  setStatus(rig.service, { activeSite: "pdx", topologyGeneration: 8 });
  await rig.advance(100);
  for (const name of [slot, hold]) {
    const { state, reason } = storedRecord(rig.service, name);
    assert.deepEqual([state, reason], ["revoked", "topology_changed"]);
  }
  assert.equal(storedLease(rig.service, gateName("orders"))?.spec?.leaseTransitions, 8);
  assert.deepEqual(rig.stored.map(({ reason, type, note }) => [reason, type, note]), [
    [
      "DeploymentLeaseRevoked",
      "Warning",
      "The migration lease of operation op-1 for tenant was revoked: topology_changed",
    ],
    [
      "DeploymentLeaseRevoked",
      "Warning",
      "The failover-hold lease of operation op-1 for tenant was revoked: topology_changed",
    ],
  ]);
});

Deno.test("a status that went backwards is taken as a change after 60 s, with nobody asking", async () => {
  await using rig = new Rig();
  await rig.start();
  await granted(rig.service.client(), "op-1", { ttlSeconds: 120 });
  setStatus(rig.service, { topologyGeneration: 5 });
  await rig.advance(59_000);
  assert.equal(storedRecord(rig.service).state, "active");
  await rig.advance(1_100);
  assert.equal(storedRecord(rig.service).reason, "topology_changed");
  assert.equal(storedLease(rig.service, gateName("orders"))?.spec?.leaseTransitions, 8);
});

Deno.test("a status that came back within 60 s ends no lease", async () => {
  await using rig = new Rig();
  await rig.start();
  await granted(rig.service.client(), "op-1", { ttlSeconds: 120 });
  setStatus(rig.service, { topologyGeneration: 5 });
  await rig.advance(30_000);
  setStatus(rig.service, { topologyGeneration: 7 });
  await rig.advance(60_000);
  assert.equal(storedRecord(rig.service).state, "active");
});

Deno.test("the gauges show what is there, and ages grow without a look", async () => {
  await using rig = new Rig();
  await rig.start();
  const client = rig.service.client();
  const token = await granted(client, "op-1", { ttlSeconds: 120 });
  await granted(client, "op-1", { ...HOLD, ttlSeconds: 120 });
  seedHolds(rig.service, 1);
  await rig.settle();
  assert.equal(await rig.service.metric(active("migration")), 1);
  assert.equal(await rig.service.metric(active("failover-hold")), 2);
  assert.equal(await rig.service.metric(age("migration")), 0);
  await rig.advance(7_000);
  assert.equal(await rig.service.metric(age("migration")), 7);
  mustBe(await client.release("op-1", token), 204);
  await rig.settle();
  assert.equal(await rig.service.metric(active("migration")), 0);
  assert.equal(await rig.service.metric(age("migration")), 0);
});

Deno.test("the series of a group that is deleted go, and so do those of a leader that is deposed", async () => {
  await using rig = new Rig();
  seedGroup(rig.service.fake, "other", []);
  await rig.start();
  const other = 'bloodraven_deploy_leases_active{group="other",kind="migration"}';
  assert.equal(await rig.service.metric(other), 0);
  assert.equal(await rig.service.metric("holdfast_groups"), 2);
  rig.service.fake.remove(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "other" });
  await rig.settle();
  assert.equal(await rig.service.metric(other), null);
  assert.equal(await rig.service.metric(active("migration")), 0);
  await rig.stop();
  assert.equal(await rig.service.metric(active("migration")), null);
  assert.equal(await rig.service.metric("holdfast_groups"), 0);
});

Deno.test("a lease of the reference is adopted before the term's first answer, and again when the watch shows one", async () => {
  await using rig = new Rig();
  const unlabel = () => {
    const lease = storedLease(rig.service, slot);
    assert.ok(lease);
    const { "bloodraven.shipstream.io/deployment-group": _, ...labels } = lease.metadata.labels ??
      {};
    rig.service.fake.seed(LEASES, { ...lease, metadata: { ...lease.metadata, labels } });
  };
  const label = () =>
    storedLease(rig.service, slot)?.metadata.labels?.["bloodraven.shipstream.io/deployment-group"];
  await granted(rig.service.client(), "op-1", { ttlSeconds: 120 });
  unlabel();
  await rig.start();
  assert.equal(label(), "orders");
  unlabel();
  await rig.settle();
  assert.equal(label(), "orders");
  assert.equal(storedRecord(rig.service).state, "active");
});

Deno.test("difference 10: a hold that ended is removed after a day, and what was revoked is kept", async () => {
  await using rig = new Rig();
  await rig.start();
  const client = rig.service.client();
  await granted(client);
  await granted(client, "op-1", HOLD);
  seedHolds(rig.service, 1);
  await rig.advance(121_000);
  assert.equal(storedRecord(rig.service, hold).state, "expired");
  await rig.advance(86_400_000 - 121_000);
  assert.ok(storedLease(rig.service, hold));
  await rig.advance(200_000);
  assert.equal(storedLease(rig.service, hold), null);
  assert.equal(storedLease(rig.service, holdName("orders", "earlier-0")), null);
  // The slot of the mutex is one object of the group, and stays.
  assert.equal(storedRecord(rig.service, slot).state, "expired");
});

Deno.test("a revoked hold is never removed, and with 0 none is", async () => {
  for (const retentionMs of [86_400_000, 0]) {
    await using rig = new Rig({ retentionMs });
    await rig.start();
    const client = rig.service.client();
    await granted(client);
    await granted(client, "op-1", HOLD);
    if (retentionMs > 0) annotate(rig.service, REVOKE, "true");
    await rig.advance(87_000_000);
    assert.equal(storedRecord(rig.service, hold).state, retentionMs > 0 ? "revoked" : "expired");
  }
});

Deno.test("a hold that was granted anew is not removed with the one that ended before", async () => {
  await using rig = new Rig({ retentionMs: 60_000 });
  await rig.start();
  const client = rig.service.client();
  const migration = await granted(client, "op-1", { ttlSeconds: 120 });
  const token = await granted(client, "op-1", HOLD);
  mustBe(await client.release("op-1", token, HOLD), 204);
  await rig.advance(59_000);
  // The watch is silent, so the loop does not see the new grant.
  rig.service.fake.faults.add({ verb: "watch", fault: { type: "watch-silence" } });
  mustBe(await client.renew("op-1", migration, { ttlSeconds: 120 }), 200);
  await granted(client, "op-1", HOLD);
  await rig.advance(5_000);
  assert.equal(storedRecord(rig.service, hold).state, "active");
});

Deno.test("a record that cannot be read is told of, harms no other group, and is looked at again", async () => {
  await using rig = new Rig();
  seedGroup(rig.service.fake, "other", ["tenant-2"]);
  const other = rig.service.client(undefined, { group: "other" });
  await granted(rig.service.client());
  mustBe(await other.grant("op-2", "tenant-2"), 201);
  const lease = storedLease(rig.service, slot);
  assert.ok(lease);
  const name = "bloodraven.shipstream.io/deployment-lease";
  rig.service.fake.seed(LEASES, {
    ...lease,
    metadata: { ...lease.metadata, annotations: { [name]: "{}" } },
  });
  await rig.start();
  await rig.advance(40_000);
  const [line] = rig.logged("deployment lease housekeeping failed");
  assert.deepEqual([line?.level, line?.group, line?.error], ["WARN", "orders", "RecordError"]);
  assert.equal(
    await rig.service.metric('holdfast_housekeeping_failures_total{controller="housekeeping"}'),
    rig.logged("deployment lease housekeeping failed").length,
  );
  assert.equal(storedRecord(rig.service, slotName("other")).state, "expired");
  // Mended by hand, it is put right at once and not after the longest pause.
  rig.service.fake.seed(LEASES, { ...lease, metadata: { ...lease.metadata } });
  await rig.advance(1_000);
  assert.equal(storedRecord(rig.service, slot).state, "expired");
});

Deno.test("after a hand-over, the new leader finishes what time did while nobody led", async () => {
  await using rig = new Rig();
  await rig.start();
  const client = rig.service.client();
  const token = await granted(client);
  await rig.stop();
  await rig.advance(60_000);
  assert.equal(storedRecord(rig.service).state, "active");
  await rig.start();
  assert.equal(storedRecord(rig.service).state, "expired");
  setStatus(rig.service, { topologyGeneration: 8 });
  await rig.settle();
  mustBe(await client.renew("op-1", token), 404);
});

Deno.test("with an uncertain clock nothing is written as expired until it is certain", async () => {
  let uncertainMs = 5_000;
  const rig: Rig = new Rig({
    time: {
      reading() {
        const now = rig.service.clock.wall();
        return {
          earliestMs: now - uncertainMs,
          latestMs: now + uncertainMs,
          uncertaintyMs: uncertainMs,
        };
      },
    },
  });
  await using _ = rig;
  await rig.start();
  await granted(rig.service.client());
  await rig.advance(60_000);
  assert.equal(storedRecord(rig.service).state, "active");
  uncertainMs = 100;
  await rig.advance(1_100);
  assert.equal(storedRecord(rig.service).state, "expired");
});

Deno.test("an idle leader that learns the time from its answers alone stores an expiry as soon as they allow it", async () => {
  const clock = new TestClock();
  const time = new LeaseTime({ clock });
  await using rig = new Rig({
    clock,
    time,
    // What HttpApi's observer does, on a way that a test may take.
    send: (send) => async (request) => {
      const sentMs = clock.monotonic();
      const answer = await send(request);
      time.observe({
        sentMs,
        receivedMs: clock.monotonic(),
        serverDateMs: Date.parse(answer.headers.get("Date") ?? ""),
        status: answer.status,
        verb: "",
        resource: "",
      });
      return answer;
    },
  });
  // The server's clock is off by more than a lease lasts: this machine's own counts for nothing.
  rig.service.fake.serverClockOffsetMs = 300_250;
  await rig.start();
  await granted(rig.service.client(), "op-1", { ttlSeconds: 120 });
  const expiresMs = expiresAtMs(storedRecord(rig.service));
  rig.service.fake.calls.reset();
  let allowedMs: number | null = null;
  while (storedRecord(rig.service).state === "active") {
    assert.ok(rig.service.fake.serverNowMs() < expiresMs + 3_000);
    const { earliestMs = 0 } = time.reading() ?? {};
    if (earliestMs > expiresMs) allowedMs ??= clock.monotonic();
    await rig.advance(10);
  }
  assert.equal(storedRecord(rig.service).state, "expired");
  assert.ok(rig.service.fake.serverNowMs() > expiresMs);
  assert.ok(allowedMs === null || clock.monotonic() - allowedMs <= 100);
  const leases = { resource: "leases.coordination.k8s.io" };
  assert.ok(rig.service.fake.calls.count(leases) < 30);
});

Deno.test("deploy-api 16 item 33: a generation that rises while the mutex is handed over keeps its tombstone", async () => {
  await using rig = new Rig();
  await rig.start();
  const client = rig.service.client();
  await granted(client);
  setStatus(rig.service, { topologyGeneration: 8 });
  await rig.settle();
  const second = await granted(client, "op-2");
  mustBe(await client.release("op-2", second), 204);
  mustBeRevoked(await client.grant("op-1", "tenant"), "topology_changed", 8);
  const revocations =
    'bloodraven_deploy_lease_revocations_total{group="orders",kind="migration",reason="topology_changed"}';
  assert.equal(await rig.service.metric(revocations), 1);
  assert.equal(rig.stored.length, 1);
});
