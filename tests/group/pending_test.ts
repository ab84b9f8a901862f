import assert from "node:assert/strict";
import { gateObject, parseGate } from "../../lib/group/gate_lease.ts";
import { clearTopologyPending, markTopologyPending } from "../../lib/group/pending.ts";
import {
  GateContendedError,
  GroupNotFoundError,
  TopologyReader,
} from "../../lib/group/topology.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../lib/group/types.ts";
import type { Stored } from "../../lib/kube/api.ts";
import { HttpApi, staticToken } from "../../lib/kube/mod.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { gateName } from "../../lib/records/names.ts";
import type { Admission } from "../../lib/group/allowance.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { NAMESPACE, seedCluster } from "../service/in_process.ts";
import { setStatus } from "../service/orders.ts";

const { signal } = new AbortController();
const NAME = { namespace: NAMESPACE, name: "orders" };

/** A cluster with the group `orders`, and a reader of it. */
class Rig {
  readonly clock = new TestClock();
  readonly fake = new FakeCluster({ clock: this.clock, entropy: seededEntropy(1) });
  readonly api = new HttpApi({
    baseUrl: "https://fake",
    fetch: this.fake.fetch,
    credentials: staticToken(this.fake.adminToken),
    clock: this.clock,
    entropy: seededEntropy(2),
    defaultNamespace: NAMESPACE,
  });
  readonly reader = new TopologyReader({
    api: this.api,
    clock: this.clock,
    maxStatusAgeMs: 0,
  });

  constructor() {
    seedCluster(this.fake);
  }

  async confirm() {
    return await this.reader.confirm(await this.reader.read(NAMESPACE, "orders", { signal }), {
      signal,
    });
  }

  async admission(): Promise<Admission> {
    const now = this.clock.wall();
    return (await this.confirm()).admission({ earliestMs: now, latestMs: now, certain: true });
  }

  async group(): Promise<Stored<MysqlFailoverGroup>> {
    return await this.api.get(MYSQL_FAILOVER_GROUPS, NAME, { signal });
  }

  async gate() {
    const name = { namespace: NAMESPACE, name: gateName("orders") };
    const lease = await this.api.get(LEASES, name, { signal });
    return { lease, record: parseGate(lease, (await this.group()).metadata.uid) };
  }

  async status(status: Readonly<Record<string, unknown>>): Promise<void> {
    await setStatus(this.api, NAME, status, signal);
  }

  mark(by = "operator") {
    return { api: this.api, clock: this.clock, group: NAME, by };
  }
}

Deno.test("a mark of pending topology closes the API until status confirms the change", async () => {
  const rig = new Rig();
  await markTopologyPending(rig.mark(), { signal });
  assert.equal((await rig.admission()).topologyBlocked, "TopologyPersistencePending");
  assert.deepEqual((await rig.gate()).record.pending, {
    since: "2026-01-01T00:00:00Z",
    by: "operator",
  });
  await rig.status({ activeSite: "pdx", topologyGeneration: 8 });
  const after = await rig.admission();
  assert.deepEqual([after.topologyBlocked, after.generation], ["", 8]);
  assert.equal((await rig.gate()).record.pending, null);
});

Deno.test("a mark is not ended by a change of status that came before it", async () => {
  const rig = new Rig();
  await rig.confirm();
  await rig.status({ topologyGeneration: 8 });
  await markTopologyPending(rig.mark(), { signal });
  const { generation, topologyBlocked } = await rig.admission();
  assert.deepEqual([generation, topologyBlocked], [8, "TopologyPersistencePending"]);
});

Deno.test("a mark lapses after 60 s, and renewing it counts them anew", async () => {
  const rig = new Rig();
  await markTopologyPending(rig.mark(), { signal });
  await rig.admission();
  await rig.clock.advance(50_000);
  await markTopologyPending(rig.mark(), { signal });
  await rig.admission();
  await rig.clock.advance(59_000);
  assert.equal((await rig.admission()).topologyBlocked, "TopologyPersistencePending");
  await rig.clock.advance(1_000);
  assert.equal((await rig.admission()).topologyBlocked, "");
});

Deno.test("a mark is cleared by who set it and by nobody else", async () => {
  const rig = new Rig();
  await markTopologyPending(rig.mark("first"), { signal });
  const before = (await rig.gate()).lease.metadata.resourceVersion;
  await clearTopologyPending(rig.mark("second"), { signal });
  assert.equal((await rig.gate()).lease.metadata.resourceVersion, before);
  await clearTopologyPending(rig.mark("first"), { signal });
  assert.equal((await rig.gate()).record.pending, null);
});

Deno.test("clearing where nothing is marked writes nothing", async () => {
  const rig = new Rig();
  await rig.confirm();
  rig.fake.calls.reset();
  await clearTopologyPending(rig.mark(), { signal });
  assert.equal(rig.fake.calls.count({ verb: "update" }), 0);
});

Deno.test("a mark keeps the admission and unknown members of the gate", async () => {
  const rig = new Rig();
  const { gate, group } = await rig.confirm();
  const planned = {
    operation: "PlannedFailover",
    id: "id-1",
    by: "operator",
    since: "2026-01-01T00:00:00Z",
    state: "admitted",
  } as const;
  const record = { ...gate.record, planned, memberOfANewerVersion: 1 };
  await rig.api.replace(LEASES, gateObject(group, record, gate.lease), { signal });
  await markTopologyPending(rig.mark(), { signal });
  const { pending: _, seq, ...rest } = (await rig.gate()).record;
  const { pending: __, seq: seqBefore, ...before } = record;
  assert.deepEqual(rest, before);
  assert.ok(seq > seqBefore);
});

Deno.test("a mark that loses each race says so, and one that loses once is set", async () => {
  const rig = new Rig();
  await rig.confirm();
  const conflict = { type: "status", code: 409 } as const;
  const rule = { verb: "update", resource: "leases", fault: conflict };
  rig.fake.faults.add({ ...rule, count: 1 });
  await markTopologyPending(rig.mark(), { signal });
  assert.equal((await rig.gate()).record.pending?.by, "operator");
  rig.fake.faults.add({ ...rule, count: 3 });
  await assert.rejects(clearTopologyPending(rig.mark(), { signal }), GateContendedError);
});

Deno.test("a mark needs a name and a group that exists", async () => {
  const rig = new Rig();
  await assert.rejects(markTopologyPending(rig.mark(""), { signal }), {
    name: "RangeError",
    message: "Cannot mark topology as pending as 'by' must name who does it: current value is \"\"",
  });
  const mark = { ...rig.mark(), group: { ...NAME, name: "absent" } };
  await assert.rejects(markTopologyPending(mark, { signal }), GroupNotFoundError);
});
