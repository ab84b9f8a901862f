import assert from "node:assert/strict";
import { effectiveGeneration } from "../../lib/group/gate.ts";
import { GateError, parseGate } from "../../lib/group/gate_lease.ts";
import {
  type ConfirmedTopology,
  GateContendedError,
  GroupNotFoundError,
  TopologyReader,
} from "../../lib/group/topology.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../lib/group/types.ts";
import type { Stored } from "../../lib/kube/api.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import { gateName, slotName } from "../../lib/records/names.ts";
import type { LeaseInstant } from "../../lib/lease_time/lease_time.ts";
import { grantedBody } from "../service/deployment_client.ts";
import { InProcessService, NAMESPACE } from "../service/in_process.ts";

const options = { signal: new AbortController().signal };
const orders = { namespace: NAMESPACE, name: "orders" };
const gate = { namespace: NAMESPACE, name: gateName("orders") };

function reader(service: InProcessService, maxStatusAgeMs = 0): TopologyReader {
  const { api, clock } = service;
  return new TopologyReader({ api, clock, maxStatusAgeMs });
}

async function look(topology: TopologyReader): Promise<ConfirmedTopology> {
  return await topology.confirm(await topology.read(NAMESPACE, "orders", options), options);
}

function now({ clock }: InProcessService): LeaseInstant {
  return { earliestMs: clock.wall(), latestMs: clock.wall(), certain: true };
}

/** Writes the status as the operator would. */
function operatorWrites(service: InProcessService, status: MysqlFailoverGroup["status"]): void {
  const group = service.fake.read(MYSQL_FAILOVER_GROUPS, orders);
  assert.ok(group);
  service.fake.seed(MYSQL_FAILOVER_GROUPS, { ...group, status: { ...group.status, ...status } });
}

function readGate(service: InProcessService) {
  const lease = service.fake.read(LEASES, gate);
  const group = service.fake.read(MYSQL_FAILOVER_GROUPS, orders);
  assert.ok(lease && group);
  return parseGate(lease as Stored<Lease>, group.metadata.uid ?? "");
}

/** Changes the gate as another process would. */
function writeGate(service: InProcessService, changes: object): void {
  const lease = service.fake.read(LEASES, gate);
  assert.ok(lease);
  const name = "bloodraven.shipstream.io/deployment-gate";
  const { annotations } = lease.metadata;
  const record = { ...JSON.parse(annotations?.[name] ?? "{}"), ...changes };
  const metadata = { ...lease.metadata, annotations: { [name]: JSON.stringify(record) } };
  service.fake.seed(LEASES, { ...lease, metadata });
}

Deno.test("the first look at a group makes its gate from the status", async () => {
  using service = new InProcessService();
  const { admission } = await look(reader(service));
  assert.equal(admission(now(service)).generation, 7);
  const { site, generation, observedGeneration } = readGate(service);
  assert.deepEqual({ site, generation, observedGeneration }, {
    site: "iad",
    generation: 7,
    observedGeneration: 7,
  });
});

Deno.test("a look that confirms the gate costs two reads and no write", async () => {
  using service = new InProcessService();
  const topology = reader(service);
  await look(topology);
  const before = service.fake.revision;
  service.fake.calls.reset();
  await look(topology);
  assert.equal(service.fake.calls.count(), 2);
  assert.equal(service.fake.revision, before);
});

Deno.test("a gate that was deleted under an active lease comes back with a higher generation", async () => {
  using service = new InProcessService();
  const granted = await service.client().grant("op-1", "tenant");
  const { token } = grantedBody.parse(granted.body);
  service.fake.remove(LEASES, gate);
  assert.equal((await look(reader(service))).admission(now(service)).generation, 8);
  const renewed = await service.client().renew("op-1", token);
  assert.deepEqual([renewed.status, renewed.body.reason], [409, "topology_changed"]);
});

Deno.test("a moved primary is seen in the same look in which a restore ends", async () => {
  using service = new InProcessService();
  const topology = reader(service);
  operatorWrites(service, { restoreInPlace: { phase: "Restoring" } });
  await look(topology);
  writeGate(service, { restoreFencing: true });
  const fenced = readGate(service).generation;
  operatorWrites(service, { activeSite: "pdx", restoreInPlace: { phase: "Succeeded" } });
  const { admission } = await look(topology);
  assert.equal(admission(now(service)).generation, fenced + 1);
  assert.equal(readGate(service).site, "pdx");
  assert.equal(readGate(service).restoreFencing, false);
});

Deno.test("a change that the status confirms clears the mark that announced it", async () => {
  using service = new InProcessService();
  const topology = reader(service);
  await look(topology);
  writeGate(service, { pending: { since: "2026-01-01T00:00:00Z", by: "operator" } });
  const marked = (await look(topology)).admission(now(service));
  assert.equal(marked.topologyBlocked, "TopologyPersistencePending");
  operatorWrites(service, { activeSite: "pdx", topologyGeneration: 8 });
  const confirmed = (await look(topology)).admission(now(service));
  assert.deepEqual([confirmed.generation, confirmed.topologyBlocked], [8, ""]);
  assert.equal(readGate(service).pending, null);
});

Deno.test("a mark that nobody renews lapses after 60 s", async () => {
  using service = new InProcessService();
  const topology = reader(service);
  await look(topology);
  writeGate(service, { pending: { since: "2026-01-01T00:00:00Z", by: "operator" } });
  const blocked = async () => (await look(topology)).admission(now(service)).topologyBlocked;
  assert.equal(await blocked(), "TopologyPersistencePending");
  await service.clock.advance(59_999);
  assert.equal(await blocked(), "TopologyPersistencePending");
  writeGate(service, { pending: { since: "2026-01-01T00:00:59Z", by: "operator" } });
  await blocked();
  await service.clock.advance(59_999);
  assert.equal(await blocked(), "TopologyPersistencePending");
  await service.clock.advance(1);
  assert.equal(await blocked(), "");
});

Deno.test("a status that went backwards closes the API, and counts as a change after 60 s", async () => {
  using service = new InProcessService();
  const rewound: string[] = [];
  const { api, clock } = service;
  const topology = new TopologyReader({
    api,
    clock,
    maxStatusAgeMs: 0,
    onRewound: (group) => rewound.push(group.metadata.name),
  });
  await look(topology);
  operatorWrites(service, { topologyGeneration: 5 });
  const first = (await look(topology)).admission(now(service));
  assert.deepEqual([first.generation, first.topologyBlocked], [7, "TopologyPersistencePending"]);
  await clock.advance(20_000);
  assert.equal((await look(topology)).lookAgainInMs, 40_000);
  await clock.advance(40_000);
  const confirmed = await look(topology);
  assert.equal(confirmed.lookAgainInMs, null);
  const later = confirmed.admission(now(service));
  assert.deepEqual([later.generation, later.topologyBlocked], [8, ""]);
  assert.deepEqual(rewound, ["orders"]);
});

Deno.test("a planned operation in the gate is told by its name, also while it is withdrawn", async () => {
  using service = new InProcessService();
  const topology = reader(service);
  await look(topology);
  for (const state of ["admitted", "withdrawing"]) {
    const planned = {
      operation: "OrderedUpdate",
      id: "1",
      by: "x",
      since: "2026-01-01T00:00:00Z",
      state,
    };
    writeGate(service, { planned });
    assert.equal((await look(topology)).admission(now(service)).reserved, "OrderedUpdate");
  }
});

Deno.test("max_status_age: a status that no site refreshed is not observed", async () => {
  using service = new InProcessService();
  const topology = reader(service, 10_000);
  const blocked = async () => (await look(topology)).admission(now(service)).topologyBlocked;
  assert.equal(await blocked(), "TopologyNotObserved");
  const lastSeen = new Date(service.clock.wall()).toISOString();
  operatorWrites(service, {
    sites: [{ name: "iad", state: "writable", lastSeen }, { name: "pdx", state: "read-only" }],
  });
  assert.equal(await blocked(), "");
  await service.clock.advance(10_001);
  assert.equal(await blocked(), "TopologyNotObserved");
});

Deno.test("a gate that does not parse is a fault, and never no gate", async () => {
  using service = new InProcessService();
  const topology = reader(service);
  await look(topology);
  writeGate(service, { generation: "seven" });
  await assert.rejects(look(topology), GateError);
  const answer = await service.client().observe();
  assert.deepEqual([answer.status, answer.body], [503, { error: "unavailable" }]);
});

Deno.test("a group that does not exist is told apart from a fault", async () => {
  using service = new InProcessService();
  service.fake.remove(MYSQL_FAILOVER_GROUPS, orders);
  await assert.rejects(look(reader(service)), GroupNotFoundError);
});

Deno.test("a gate that others write each time is contended, and nothing is concluded from it", async () => {
  using service = new InProcessService();
  const topology = reader(service);
  await look(topology);
  operatorWrites(service, { activeSite: "pdx", topologyGeneration: 8 });
  service.fake.faults.add({
    verb: "update",
    resource: "leases",
    fault: { type: "status", code: 409 },
  });
  await assert.rejects(look(topology), GateContendedError);
  assert.equal(readGate(service).generation, 7);
});

Deno.test("an unreadable record stops the making of a gate, since its generation is not known", async () => {
  using service = new InProcessService();
  await service.client().grant("op-1", "tenant");
  service.fake.remove(LEASES, gate);
  const slot = service.fake.read(LEASES, { namespace: NAMESPACE, name: slotName("orders") });
  assert.ok(slot);
  const annotations = { "bloodraven.shipstream.io/deployment-lease": "{" };
  service.fake.seed(LEASES, { ...slot, metadata: { ...slot.metadata, annotations } });
  assert.equal((await service.client().observe()).status, 503);
});

Deno.test("the table settles after at most two writes, so a look writes no more", () => {
  const status = { site: "pdx", generation: 7, restoreInFlight: false };
  const seen = { unchangedForMs: 0, highestRecordGeneration: 0, activeRecordCarriesLabel: false };
  const fenced = {
    exists: true,
    site: "iad",
    generation: 8,
    observedGeneration: 7,
    restoreFencing: true,
  };
  const first = effectiveGeneration(fenced, status, seen);
  assert.deepEqual([first.row, first.outcome], [5, "write"]);
  const second = effectiveGeneration({ ...first, exists: true }, status, seen);
  assert.deepEqual([second.row, second.outcome], [8, "write"]);
});
