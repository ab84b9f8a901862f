/** deploy-api 16.2 and 16.3: what the leases do, item by item, and what of 16.1 needs more than a request. */

import assert from "node:assert/strict";
import {
  MYSQL_DATABASES,
  MYSQL_FAILOVER_GROUPS,
  type MysqlFailoverGroup,
} from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { gateName, holdName, leaseName, slotName, tombstoneName } from "../../lib/records/names.ts";
import { DEPLOYER, InProcessService, NAMESPACE, seedGroup } from "../service/in_process.ts";
import { ordersDatabase, stableStatus } from "../service/orders.ts";
import {
  Between,
  GATE_READ,
  GATE_WRITE,
  GROUP_READ,
  HOLD_WRITE,
  LEASE_LIST,
  SLOT_WRITE,
} from "./between.ts";
import {
  annotate,
  changeGate,
  granted,
  HOLD,
  mustBe,
  mustBeRevoked,
  mustBeUnstable,
  REVOKE,
  setStatus,
  storedGroup,
  storedLease,
  storedRecord,
  tokenOf,
} from "./support.ts";
import { referenceHash } from "./reference_form.ts";

type Status = NonNullable<MysqlFailoverGroup["status"]>;

/** The kinds of lease, each with the write that stores it and the name of its object. */
const kinds = [
  ["migration", SLOT_WRITE, slotName("orders")],
  ["failover-hold", HOLD_WRITE, holdName("orders", "op-1")],
] as const;

function leasesOf(body: Readonly<Record<string, unknown>>): readonly Record<string, unknown>[] {
  assert.ok(Array.isArray(body.leases));
  return body.leases;
}

Deno.test("deploy-api 16 item 23: a view is made of one fresh read of the group", async () => {
  using service = new InProcessService();
  const client = service.client();
  mustBe(await client.observe(), 200);
  setStatus(service, {
    activeSite: "pdx",
    topologyGeneration: 9,
    sites: [
      { name: "iad", state: "read-only", replicating: true, secondsBehindSource: 9 },
      { name: "pdx", state: "writable", recoveryState: "RecoveryBlocked" },
    ],
    plannedFailover: { phase: "Deferred", reason: "DeploymentHold" },
    restoreInPlace: { phase: "Succeeded" },
    dragonfly: { phase: "Ready", upgrade: { phase: "Failed" } },
  });
  const { body } = mustBe(await client.observe(), 200);
  assert.deepEqual(body, {
    activeSite: "pdx",
    group: "orders",
    health: {
      degradedReason: "",
      ready: true,
      recoveryPending: true,
      replicationLagSeconds: 9,
      replicationRunning: true,
    },
    leases: [],
    namespace: NAMESPACE,
    operations: {
      dragonflyUpgrade: "Failed",
      plannedFailover: { phase: "Deferred", reason: "DeploymentHold" },
      restoreInPlace: "Succeeded",
      updatePhase: "",
    },
    stable: false,
    topologyGeneration: 9,
    unstableReason: "PlannedFailover",
  });
});

Deno.test("deploy-api 16 item 26: pending topology and a reservation close all but the release", async () => {
  const planned = {
    operation: "RestoreInPlace",
    id: "c7f1b9f4-6f0e-4c53-a1d0-3ad9b0c3a001",
    by: "operator",
    since: "2026-01-01T00:00:00Z",
    state: "admitted",
  } as const;
  const pending = { since: "2026-01-01T00:00:00Z", by: "operator" };
  const rows = [
    [{ pending }, "TopologyPersistencePending"],
    [{ planned }, "RestoreInPlace"],
    [{ planned: { ...planned, state: "withdrawing" } }, "RestoreInPlace"],
  ] as const;
  for (const [change, reason] of rows) {
    using service = new InProcessService();
    const client = service.client();
    const token = await granted(client);
    const { expiresAt } = storedRecord(service);
    changeGate(service, change);
    await service.clock.advance(1_000);
    mustBeUnstable(await client.observe(), reason);
    mustBeUnstable(await client.renew("op-1", token), reason);
    mustBeUnstable(await client.grant("op-1", "tenant"), reason);
    mustBeUnstable(await client.grant("op-2", "tenant"), reason);
    assert.equal(storedRecord(service).expiresAt, expiresAt);
    mustBe(await client.release("op-1", token), 204);
    assert.equal(storedRecord(service).state, "released");
  }
});

Deno.test("deploy-api 16 item 30: a re-grant rotates the token, and storage holds only the hash", async () => {
  using service = new InProcessService();
  const client = service.client();
  const tokens = [await granted(client)];
  for (let times = 0; times < 3; times++) {
    tokens.push(tokenOf(mustBe(await client.grant("op-1", "tenant"), 200)));
  }
  assert.equal(new Set(tokens).size, 4);
  assert.equal(storedRecord(service).tokenHash, referenceHash(tokens[3] ?? ""));
  const stored = JSON.stringify(service.fake.readAll(LEASES));
  for (const token of tokens) assert.ok(!stored.includes(token));
});

Deno.test("deploy-api 16 item 31: a lease counts at its very expiry, also after a restart, and no longer", async () => {
  for (const restart of [false, true]) {
    using first = new InProcessService();
    const token = await granted(first.client(), "op-1", { ttlSeconds: 5 });
    await first.clock.advance(5_000);
    using second = new InProcessService({ fake: first.fake, clock: first.clock, seed: 2 });
    const client = (restart ? second : first).client();
    mustBe(await client.grant("op-2", "tenant"), 409, "held");
    assert.equal(leasesOf(mustBe(await client.observe(), 200).body).length, 1);
    await first.clock.advance(1);
    mustBe(await client.renew("op-1", token), 404, "not_found");
    assert.equal(storedRecord(first).state, "expired");
    mustBe(await client.grant("op-2", "tenant"), 201);
  }
});

Deno.test("deploy-api 16 item 32: a hold needs the migration holder's full identity", async () => {
  using service = new InProcessService();
  const client = service.client();
  const other = { namespace: "second-ns", serviceAccount: DEPLOYER.serviceAccount };
  for (const name of ["tenant", "billing"]) {
    service.fake.seed(
      MYSQL_DATABASES,
      ordersDatabase(NAMESPACE, name, "orders", [DEPLOYER, other]),
    );
  }
  await granted(client);
  mustBe(await service.client(other).grant("op-1", "tenant", HOLD), 403, "forbidden");
  mustBe(await client.grant("op-1", "billing", HOLD), 403, "forbidden");
  mustBe(await client.grant("op-2", "tenant", HOLD), 403, "forbidden");
  mustBe(await client.grant("op-1", "tenant", HOLD), 201);
});

Deno.test("deploy-api 16 item 33: a revoked operation stays revoked after others took and released the slot", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  annotate(service, REVOKE, "true");
  mustBeRevoked(await client.renew("op-1", token), "operator_revoked");
  annotate(service, REVOKE, null);
  for (const operation of ["op-2", "op-3"]) {
    const next = await granted(client, operation);
    mustBeRevoked(await client.renew("op-1", token), "operator_revoked");
    mustBe(await client.release(operation, next), 204);
    mustBeRevoked(await client.grant("op-1", "tenant"), "operator_revoked");
  }
  mustBe(await client.release("op-1", "wrong"), 403, "token_mismatch");
  mustBe(await client.release("op-1", token), 204);
  assert.equal(storedRecord(service, tombstoneName("orders", "op-1")).state, "revoked");
});

Deno.test("deploy-api 16 item 36: while topology is pending or cannot be stored, nothing is granted or renewed", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  const before = storedRecord(service);
  setStatus(service, { topologyGeneration: 8 });
  const broken = service.fake.faults.add({
    verb: "update",
    resource: "leases",
    name: gateName("orders"),
    fault: { type: "status", code: 500 },
  });
  for (let times = 0; times < 3; times++) {
    mustBe(await client.renew("op-1", token), 503, "unavailable");
    mustBe(await client.grant("op-2", "tenant"), 503, "unavailable");
    mustBe(await client.observe(), 503, "unavailable");
  }
  assert.deepEqual(storedRecord(service), before);
  broken.remove();
  mustBeRevoked(await client.renew("op-1", token), "topology_changed", 8);
});

Deno.test("deploy-api 16 item 36: a mark of pending topology counts while it is renewed, and 60 s beyond that", async () => {
  using service = new InProcessService();
  const client = service.client();
  mustBe(await client.observe(), 200);
  for (let second = 0; second < 3; second++) {
    const since = `2026-01-01T00:00:0${second}Z`;
    changeGate(service, { pending: { since, by: "operator" } });
    mustBeUnstable(await client.observe(), "TopologyPersistencePending");
    await service.clock.advance(59_000);
    mustBeUnstable(await client.grant("op-1", "tenant"), "TopologyPersistencePending");
  }
  await service.clock.advance(1_000);
  mustBe(await client.grant("op-1", "tenant"), 201);
});

Deno.test("deploy-api 16 item 37: names are valid, at most 63 characters, and apart for each kind and operation", () => {
  const groups = ["a", "orders", "x".repeat(30), "x".repeat(46), "x".repeat(253), "a.b-c.d"];
  // Two groups that part only behind the place where names are cut.
  groups.push(`${"y".repeat(60)}-1`, `${"y".repeat(60)}-2`, `${"z".repeat(19)}-.`.slice(0, 20));
  const names = groups.flatMap((group) => [
    gateName(group),
    slotName(group),
    ...["op-1", "op-2", "x".repeat(128), "ü/&"].flatMap((operation) => [
      leaseName(group, "migration", operation),
      leaseName(group, "failover-hold", operation),
    ]),
  ]);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) {
    assert.ok(name.length <= 63, name);
    assert.match(name, /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/, name);
  }
});

Deno.test("deploy-api 16 item 43: holds outlive a hand-over of the migration, and a revocation hits all", async () => {
  using service = new InProcessService();
  const client = service.client();
  const first = await granted(client, "op-1");
  const firstHold = await granted(client, "op-1", { ...HOLD, ttlSeconds: 60 });
  mustBe(await client.release("op-1", first), 204);
  await granted(client, "op-2");
  const secondHold = await granted(client, "op-2", { ...HOLD, ttlSeconds: 40 });
  const { body } = mustBe(await client.observe(), 200);
  assert.deepEqual(
    leasesOf(body).map(({ kind, operationId }) => `${kind} ${operationId}`),
    ["migration op-2", "failover-hold op-2", "failover-hold op-1"],
    "the migration first, then the holds by expiry",
  );
  const gauge = 'bloodraven_deploy_leases_active{group="orders",kind="failover-hold"}';
  assert.equal(await service.metric(gauge), 2);

  mustBe(await client.renew("op-1", firstHold, HOLD), 200);
  mustBe(await client.grant("op-1", "tenant", HOLD), 403, "forbidden");
  annotate(service, REVOKE, "true");
  mustBe(await client.observe(), 200);
  assert.equal(await service.metric(gauge), 0);
  annotate(service, REVOKE, null);
  mustBeRevoked(await client.renew("op-1", firstHold, HOLD), "operator_revoked");
  mustBeRevoked(await client.renew("op-2", secondHold, HOLD), "operator_revoked");
  assert.equal(storedRecord(service).state, "revoked");
});

const [iad, pdx] = stableStatus.sites;
const condition = (type: string, status: string, reason: string) => ({ type, status, reason });
const [ready] = stableStatus.conditions;

/** What of the status is not stable, and the reason: deploy-api 5. */
const unstable: readonly (readonly [string, Status])[] = [
  ["SiteNotObserved", { sites: [{ ...iad, name: "iad" }] }],
  ["NoPrimary", { sites: [{ name: "iad", state: "read-only" }, { ...pdx, name: "pdx" }] }],
  ["SiteNotReady", { sites: [{ ...iad, name: "iad" }, { name: "pdx", state: "writable" }] }],
  ["SiteNotReady", { sites: [{ ...iad, name: "iad" }, { name: "pdx", state: "unreachable" }] }],
  ["ReplicationNotRunning", {
    sites: [{ ...iad, name: "iad" }, { name: "pdx", state: "read-only", replicating: false }],
  }],
  ["RecoveryBlocked", {
    sites: [{ ...iad, name: "iad" }, { ...pdx, name: "pdx", recoveryState: "RecoveryBlocked" }],
  }],
  ["SourceConvergencePending", {
    sites: [{ ...iad, name: "iad" }, { ...pdx, name: "pdx", sourceConvergenceState: "Pending" }],
  }],
  ["SourceConvergenceBlocked", {
    sites: [{ ...iad, name: "iad" }, { ...pdx, name: "pdx", sourceConvergenceState: "Blocked" }],
  }],
  ["SplitBrain", { conditions: [condition("Degraded", "True", "SplitBrain")] }],
  ["Degraded", { conditions: [condition("Degraded", "True", "")] }],
  ["RecoveryInProgress", {
    conditions: [condition("RecoveryPending", "True", "RecoveryInProgress")],
  }],
  ["Cloning", { conditions: [condition("Bootstrapping", "True", "Cloning")] }],
  ["NotReady", { conditions: [condition("Ready", "False", "Polling")] }],
  ["NotReady", { conditions: [] }],
  ["DragonflyDegraded", { dragonfly: { phase: "Degraded" } }],
  ["DragonflyUpgrade", { dragonfly: { phase: "Ready", upgrade: { phase: "SavingSnapshot" } } }],
  ["Restore", { restore: { phase: "Running" } }],
  ["RestoreInPlace", { restoreInPlace: { phase: "Preflight" } }],
  ["OrderedUpdate", { updatePhase: "UpdatingReplicas" }],
  ["PlannedFailover", { plannedFailover: { phase: "Draining" } }],
];

for (const [reason, status] of unstable) {
  Deno.test(`deploy-api 16 item 44: ${JSON.stringify(status)} is ${reason}: no grant, but a renewal`, async () => {
    using service = new InProcessService();
    const client = service.client();
    const token = await granted(client);
    setStatus(service, status);
    const { body } = mustBe(await client.observe(), 200);
    assert.deepEqual([body.stable, body.unstableReason], [false, reason]);
    mustBeUnstable(await client.grant("op-1", "tenant"), reason);
    mustBeUnstable(await client.grant("op-1", "tenant", HOLD), reason);
    mustBe(await client.renew("op-1", token), 200);
    mustBe(await client.release("op-1", token), 204);
    const series =
      'bloodraven_deploy_lease_grants_total{group="orders",kind="migration",result="unstable"}';
    assert.equal(await service.metric(series), 1);
  });
}

Deno.test("deploy-api 16 items 44 and 55: lag alone and Degraded by lag leave a group stable", async () => {
  assert.ok(ready);
  const lagging: readonly Status[] = [
    { sites: [{ ...iad, name: "iad" }, { ...pdx, name: "pdx", secondsBehindSource: 86_400 }] },
    { conditions: [ready, condition("Degraded", "True", "ReplicationLagging")] },
  ];
  for (const status of lagging) {
    using service = new InProcessService();
    const client = service.client();
    setStatus(service, status);
    assert.equal(mustBe(await client.observe(), 200).body.stable, true);
    await granted(client);
  }
});

for (const [kind, write, name] of kinds) {
  Deno.test(`deploy-api 16 item 45: a generation that changes during the write of a ${kind} is 409`, async () => {
    for (const request of ["grant", "renew"] as const) {
      const between = new Between();
      using service = new InProcessService({ send: between.wrap });
      const client = service.client();
      const token = await prepared(client, kind, request);
      between.after(write, () => setStatus(service, { topologyGeneration: 8 }));
      const answer = request === "grant"
        ? await client.grant("op-1", "tenant", { kind })
        : await client.renew("op-1", token, { kind });
      mustBeRevoked(answer, "topology_changed", 8);
      const { state, reason } = storedRecord(service, name);
      assert.deepEqual([state, reason], ["revoked", "topology_changed"]);
    }
  });

  Deno.test(`deploy-api 16 item 53: the annotation during the write of a ${kind} is 409 and durable`, async () => {
    for (const request of ["grant", "renew"] as const) {
      const between = new Between();
      using service = new InProcessService({ send: between.wrap });
      const client = service.client();
      const token = await prepared(client, kind, request);
      between.after(write, () => annotate(service, REVOKE, ""));
      const answer = request === "grant"
        ? await client.grant("op-1", "tenant", { kind })
        : await client.renew("op-1", token, { kind });
      mustBeRevoked(answer, "operator_revoked");
      annotate(service, REVOKE, null);
      const { state, reason } = storedRecord(service, name);
      assert.deepEqual([state, reason], ["revoked", "operator_revoked"]);
    }
  });

  Deno.test(`deploy-api 16 item 49, difference 4: instability during the write of a ${kind} is 423, and taken back`, async () => {
    const between = new Between();
    using service = new InProcessService({ send: between.wrap });
    const client = service.client();
    await prepared(client, kind, "grant");
    between.after(write, () => setStatus(service, { dragonfly: { phase: "Promoting" } }));
    mustBeUnstable(await client.grant("op-1", "tenant", { kind }), "DragonflyPromoting");
    assert.equal(storedRecord(service, name).state, "released");
    assert.equal(await service.metric('holdfast_retractions_total{result="released"}'), 1);
  });
}

/** What a test of a write needs before it: the lease itself for a renewal, the migration for a hold. */
async function prepared(
  client: ReturnType<InProcessService["client"]>,
  kind: "migration" | "failover-hold",
  request: "grant" | "renew",
): Promise<string> {
  if (kind === "migration") return request === "renew" ? await granted(client) : "";
  await granted(client);
  return request === "renew" ? await granted(client, "op-1", HOLD) : "";
}

Deno.test("deploy-api 16 item 48: released and expired records are overwritten without a tombstone", async () => {
  using service = new InProcessService();
  const client = service.client();
  mustBe(await client.release("op-1", await granted(client, "op-1")), 204);
  await granted(client, "op-2", { ttlSeconds: 5 });
  await service.clock.advance(5_001);
  await granted(client, "op-3");
  for (const operation of ["op-1", "op-2"]) {
    assert.equal(storedLease(service, tombstoneName("orders", operation)), null);
  }
  await service.clock.advance(30_001);
  for (const operation of ["op-1", "op-2"]) {
    mustBe(await client.release(operation, await granted(client, operation)), 204);
  }
});

Deno.test("deploy-api 16 item 51: with one revocation that fails, the annotation closes all until it is done", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  const hold = await granted(client, "op-1", HOLD);
  const before = storedRecord(service, holdName("orders", "op-1"));
  annotate(service, REVOKE, "true");
  const broken = service.fake.faults.add({
    verb: "update",
    resource: "leases",
    name: holdName("orders", "op-1"),
    fault: { type: "status", code: 500 },
  });
  mustBeRevoked(await client.renew("op-1", token), "operator_revoked");
  mustBe(await client.renew("op-1", hold, HOLD), 503, "unavailable");
  mustBeUnstable(await client.grant("op-2", "tenant"), "DeploymentRevocationPending");
  assert.deepEqual(storedRecord(service, holdName("orders", "op-1")), before);
  broken.remove();
  mustBeRevoked(await client.renew("op-1", hold, HOLD), "operator_revoked");
  annotate(service, REVOKE, null);
  mustBe(await client.grant("op-2", "tenant"), 201);
});

Deno.test("a gate that cannot be used is 503, harms no other group, and no lease is touched", async () => {
  const between = new Between();
  using service = new InProcessService({ send: between.wrap });
  seedGroup(service.fake, "second", ["other"]);
  const client = service.client();
  const token = await granted(client);
  const gate = storedLease(service, gateName("orders"));
  assert.ok(gate);
  service.fake.seed(LEASES, {
    ...gate,
    metadata: {
      ...gate.metadata,
      annotations: { "bloodraven.shipstream.io/deployment-gate": "{" },
    },
  });
  between.before(GATE_WRITE, () => assert.fail("the gate must not be written"), { times: 99 });
  const before = storedRecord(service);
  mustBe(await client.observe(), 503, "unavailable");
  mustBe(await client.renew("op-1", token), 503, "unavailable");
  mustBe(await client.grant("op-2", "tenant"), 503, "unavailable");
  assert.deepEqual(storedRecord(service), before);
  assert.ok(service.lines.some((line) => line.includes("GateError")));
  mustBe(await service.client(DEPLOYER, { group: "second" }).observe(), 200);
});

Deno.test("a group that was deleted and made again does not inherit leases: 503 until they are collected", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  const { metadata: { uid: _, ...metadata }, ...group } = storedGroup(service);
  service.fake.remove(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: "orders" });
  service.fake.seed(MYSQL_FAILOVER_GROUPS, { ...group, metadata });
  mustBe(await client.renew("op-1", token), 503, "unavailable");
  mustBe(await client.grant("op-1", "tenant"), 503, "unavailable");
  for (const lease of service.fake.readAll(LEASES, NAMESPACE)) {
    service.fake.remove(LEASES, { namespace: NAMESPACE, name: lease.metadata.name ?? "" });
  }
  mustBe(await client.renew("op-1", token), 404, "not_found");
  mustBe(await client.grant("op-1", "tenant"), 201);
});

Deno.test("a list that is newer than the group beside it revokes nothing: the look is old, and is made again", async () => {
  const between = new Between();
  using service = new InProcessService({ send: between.wrap });
  using other = new InProcessService({ fake: service.fake, clock: service.clock, seed: 2 });
  mustBe(await service.client().observe(), 200);
  const gateRead = Promise.withResolvers<void>();
  const moved = Promise.withResolvers<void>();
  let token = "";
  between.after(GATE_READ, () => gateRead.resolve());
  between.after(GROUP_READ, async () => {
    await gateRead.promise;
    setStatus(service, { topologyGeneration: 8 });
    token = await granted(other.client());
    moved.resolve();
  });
  between.before(LEASE_LIST, () => moved.promise);
  const { body } = mustBe(await service.client().observe(), 200);
  assert.deepEqual(leasesOf(body).map(({ topologyGeneration }) => topologyGeneration), [8]);
  mustBe(await other.client().renew("op-1", token), 200);
});
