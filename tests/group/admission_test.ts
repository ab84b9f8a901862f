import assert from "node:assert/strict";
import { Planner } from "../../lib/group/admission.ts";
import {
  PlannerContendedError,
  PlannerGroupReplacedError,
  PlannerTimeError,
} from "../../lib/group/admission_errors.ts";
import { RecordError } from "../../lib/records/record.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../lib/group/types.ts";
import type { Stored } from "../../lib/kube/api.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import {
  DEPLOYMENT_GROUP_LABEL,
  DEPLOYMENT_LEASE_ANNOTATION,
  gateName,
  holdName,
} from "../../lib/records/names.ts";
import { reading } from "../../lib/lease_time/estimator.ts";
import { parseGate } from "../../lib/group/gate_lease.ts";
import { plannerOf } from "../controllers/planned_rig.ts";
import { grantedBody } from "../service/deployment_client.ts";
import { type InProcessOptions, InProcessService, NAMESPACE } from "../service/in_process.ts";

const options = { signal: new AbortController().signal };
const orders = { namespace: NAMESPACE, name: "orders" };
const pendingPhase = () => ({ plannedFailover: { phase: "Pending" } });

class Bench implements Disposable {
  readonly service: InProcessService;
  readonly planner: Planner;

  constructor(given: InProcessOptions = {}) {
    this.service = new InProcessService(given);
    this.planner = plannerOf(this.service, "one");
  }

  get group(): Stored<MysqlFailoverGroup> {
    const group = this.service.fake.read(MYSQL_FAILOVER_GROUPS, orders);
    assert.ok(group);
    return group as Stored<MysqlFailoverGroup>;
  }

  get planned() {
    const name = { namespace: NAMESPACE, name: gateName("orders") };
    const gate = this.service.fake.read(LEASES, name);
    assert.ok(gate);
    return parseGate(gate as Stored<Lease>, this.group.metadata.uid).planned;
  }

  admit(operation: Parameters<Planner["admitPlanned"]>[1] = "PlannedFailover") {
    return this.planner.admitPlanned(this.group, operation, options);
  }

  async admitted() {
    const result = await this.admit();
    assert(result.type === "admitted");
    return result;
  }

  async hold(ttlSeconds = 30) {
    const client = this.service.client();
    assert.equal((await client.grant("op-1", "tenant", { ttlSeconds: 120 })).status, 201);
    const granted = await client.grant("op-1", "tenant", { kind: "failover-hold", ttlSeconds });
    assert.equal(granted.status, 201, granted.text);
    return { client, token: grantedBody.parse(granted.body).token };
  }

  /** The hold as it is stored, to be changed as somebody else would. */
  get storedHold(): Lease {
    const name = { namespace: NAMESPACE, name: holdName("orders", "op-1") };
    const hold = this.service.fake.read(LEASES, name);
    assert.ok(hold);
    return hold;
  }

  [Symbol.dispose](): void {
    this.service[Symbol.dispose]();
  }
}

Deno.test("the first admission of a group makes its gate, and then costs four calls", async () => {
  using bench = new Bench();
  const first = await bench.admitted();
  assert.deepEqual(bench.planned, first.admission);
  await bench.planner.withdraw(bench.group, first.admission, options);
  bench.service.fake.calls.reset();
  const second = await bench.admitted();
  assert.equal(bench.service.fake.calls.count(), 4);
  assert.notEqual(second.admission.id, first.admission.id);
});

Deno.test("a hold defers to its expiry, whoever wrote it", async () => {
  using bench = new Bench();
  await bench.hold();
  const hold = bench.storedHold;
  // As the reference writes it: without our label of the group.
  const { [DEPLOYMENT_GROUP_LABEL]: _, ...labels } = hold.metadata.labels ?? {};
  bench.service.fake.seed(LEASES, { ...hold, metadata: { ...hold.metadata, labels } });
  const result = await bench.admit();
  assert(result.type === "deferred");
  assert.equal(result.hold.operationId, "op-1");
  assert.equal(result.untilMs, bench.service.clock.wall() + 30_000);
});

Deno.test("a hold of another owner defers nothing", async () => {
  using bench = new Bench();
  await bench.hold();
  const hold = bench.storedHold;
  const ownerReferences = hold.metadata.ownerReferences?.map((owner) => ({
    ...owner,
    uid: "another",
  }));
  bench.service.fake.seed(LEASES, { ...hold, metadata: { ...hold.metadata, ownerReferences } });
  assert.equal((await bench.admit()).type, "admitted");
});

Deno.test("a hold whose record cannot be read stops every admission", async () => {
  using bench = new Bench();
  await bench.hold();
  const hold = bench.storedHold;
  const annotations = { ...hold.metadata.annotations, [DEPLOYMENT_LEASE_ANNOTATION]: "{" };
  bench.service.fake.seed(LEASES, { ...hold, metadata: { ...hold.metadata, annotations } });
  await assert.rejects(bench.admit(), RecordError);
});

Deno.test("a hold that a dead leader left is ended by the planner once it is overdue, and counted", async () => {
  using bench = new Bench();
  await bench.hold(5);
  await bench.service.clock.advance(7_000);
  assert.equal((await bench.admit()).type, "deferred", "twice the offset has not passed");
  await bench.service.clock.advance(1);
  const ended: string[] = [];
  const { service } = bench;
  const planner = new Planner({
    ...service.parts,
    api: service.api,
    by: "one",
    maxClockOffsetMs: 1_000,
    onExpired: (_group, record) => ended.push(record.operationId),
  });
  const result = await planner.admitPlanned(bench.group, "OrderedUpdate", options);
  assert.equal(result.type, "admitted");
  assert.deepEqual(ended, ["op-1"]);
  assert.match(
    bench.storedHold.metadata.annotations?.[DEPLOYMENT_LEASE_ANNOTATION] ?? "",
    /expired/,
  );
});

Deno.test("item 61: terminal holds defer nothing", async () => {
  using bench = new Bench();
  const { client, token } = await bench.hold();
  await client.release("op-1", token, { kind: "failover-hold" });
  assert.equal((await bench.admit()).type, "admitted");
});

Deno.test("item 34: from an admission on a hold is refused with its name", async () => {
  using bench = new Bench();
  const client = bench.service.client();
  assert.equal((await client.grant("op-1", "tenant")).status, 201);
  await bench.admitted();
  const refused = await client.grant("op-1", "tenant", { kind: "failover-hold" });
  assert.deepEqual([refused.status, refused.body.reason], [423, "PlannedFailover"]);
});

Deno.test("a second planner is refused with the name of the first one's operation", async () => {
  using bench = new Bench();
  await bench.admitted();
  assert.deepEqual(await bench.admit("OrderedUpdate"), {
    type: "refused",
    reason: "PlannedFailover",
  });
});

Deno.test("nobody admits while lease time is unknown or too uncertain", async () => {
  for (const time of [null, reading(0, 3_000)]) {
    using bench = new Bench({ time: { reading: () => time } });
    await assert.rejects(bench.admit(), PlannerTimeError);
  }
});

Deno.test("a group that was made anew is not the one that the caller knows", async () => {
  using bench = new Bench();
  const { group } = bench;
  bench.service.fake.remove(MYSQL_FAILOVER_GROUPS, orders);
  const { uid: _, ...metadata } = group.metadata;
  bench.service.fake.seed(MYSQL_FAILOVER_GROUPS, { ...group, metadata });
  const asked = bench.planner.admitPlanned(group, "PlannedFailover", options);
  await assert.rejects(asked, PlannerGroupReplacedError);
});

Deno.test("an admission whose answer was lost is found again by its id", async () => {
  using bench = new Bench();
  await bench.planner.withdraw(bench.group, (await bench.admitted()).admission, options);
  bench.service.fake.faults.add({
    fault: { type: "lost-answer", as: "reset" },
    verb: "update",
    resource: "leases",
    count: 1,
  });
  const { admission } = await bench.admitted();
  assert.deepEqual(bench.planned, admission);
});

Deno.test("after three lost races an admission is given up", async () => {
  using bench = new Bench();
  await bench.planner.withdraw(bench.group, (await bench.admitted()).admission, options);
  bench.service.fake.faults.add({
    fault: { type: "status", code: 409 },
    verb: "update",
    resource: "leases",
  });
  await assert.rejects(bench.admit(), PlannerContendedError);
});

Deno.test("a phase is stored and found again after a lost answer", async () => {
  using bench = new Bench();
  const admitted = await bench.admitted();
  bench.service.fake.faults.add({
    fault: { type: "lost-answer", as: "reset" },
    verb: "patch",
    resource: "mysqlfailovergroups/status",
    count: 1,
  });
  const found = await bench.planner.writePhase(admitted, pendingPhase, options);
  assert.equal(found.type, "stored");
  assert.equal(bench.service.fake.calls.count({ verb: "patch" }), 1);
  await bench.planner.clear(bench.group, admitted.admission, options);
  assert.equal(bench.planned, null);
});

Deno.test("a phase is decided again when the group was written in between, and given up after three times", async () => {
  using bench = new Bench();
  const admitted = await bench.admitted();
  const conflict = { type: "status", code: 409 } as const;
  const where = { verb: "patch", resource: "mysqlfailovergroups/status" };
  const twice = bench.service.fake.faults.add({ fault: conflict, ...where, count: 3 });
  const given = bench.planner.writePhase(admitted, pendingPhase, options);
  await assert.rejects(given, PlannerContendedError);
  twice.remove();
  bench.service.fake.faults.add({ fault: conflict, ...where, count: 2 });
  const stored = await bench.planner.writePhase(admitted, pendingPhase, options);
  assert.equal(stored.type, "stored");
});

Deno.test("a phase is lost once its admission was taken back, and nothing is written", async () => {
  using bench = new Bench();
  const admitted = await bench.admitted();
  assert.equal(
    await bench.planner.withdraw(bench.group, admitted.admission, options),
    "withdrawn",
  );
  const phase = await bench.planner.writePhase(admitted, pendingPhase, options);
  assert.equal(phase.type, "lost");
  assert.equal(bench.group.status?.plannedFailover, undefined);
});

Deno.test("a phase of another operation is not written over", async () => {
  using bench = new Bench();
  const admitted = await bench.admitted();
  const { group } = bench;
  bench.service.fake.seed(MYSQL_FAILOVER_GROUPS, {
    ...group,
    status: { ...group.status, updatePhase: "WaitReplica" },
  });
  assert.equal((await bench.planner.writePhase(admitted, pendingPhase, options)).type, "lost");
});

Deno.test("a withdrawal of an operation whose phase is written only clears the gate", async () => {
  using bench = new Bench();
  const admitted = await bench.admitted();
  await bench.planner.writePhase(admitted, pendingPhase, options);
  const result = await bench.planner.withdraw(bench.group, admitted.admission, options);
  assert.equal(result, "phase_written");
  assert.equal(bench.group.status?.plannedFailover?.phase, "Pending");
  assert.equal(bench.planned, null);
});

Deno.test("a withdrawal and a clear leave another admission alone", async () => {
  using bench = new Bench();
  const first = await bench.admitted();
  await bench.planner.withdraw(bench.group, first.admission, options);
  const second = await bench.admitted();
  assert.equal(await bench.planner.withdraw(bench.group, first.admission, options), "gone");
  await bench.planner.clear(bench.group, first.admission, options);
  assert.deepEqual(bench.planned, second.admission);
});

Deno.test("a withdrawal that broke off in the middle is finished by the next one", async () => {
  using bench = new Bench();
  const { admission } = await bench.admitted();
  bench.service.fake.faults.add({
    fault: { type: "status", code: 403 },
    verb: "patch",
    resource: "mysqlfailovergroups",
    count: 1,
  });
  await assert.rejects(bench.planner.withdraw(bench.group, admission, options));
  assert.equal(bench.planned?.state, "withdrawing");
  assert.equal(await bench.planner.withdraw(bench.group, admission, options), "withdrawn");
  assert.equal(bench.planned, null);
});

Deno.test("a mark and a clear are given up after three lost races", async () => {
  using bench = new Bench();
  const { admission } = await bench.admitted();
  const fault = { type: "status", code: 409 } as const;
  bench.service.fake.faults.add({ fault, verb: "update", resource: "leases" });
  const withdrawal = bench.planner.withdraw(bench.group, admission, options);
  await assert.rejects(withdrawal, PlannerContendedError);
  const clear = bench.planner.clear(bench.group, admission, options);
  await assert.rejects(clear, PlannerContendedError);
});

Deno.test("who takes an admission over owns it, and the one before does not any more", async () => {
  using bench = new Bench();
  const first = await bench.admitted();
  const other = plannerOf(bench.service, "two");
  const taken = await other.takeOver(bench.group, first.admission, options);
  assert.equal(taken?.admission.by, "two");
  const lost = await bench.planner.writePhase(first, pendingPhase, options);
  assert.equal(lost.type, "lost");
  assert.ok(taken);
  assert.equal((await other.writePhase(taken, pendingPhase, options)).type, "stored");
});

Deno.test("an admission that is gone or being withdrawn is not taken over", async () => {
  using bench = new Bench();
  const { admission } = await bench.admitted();
  await bench.planner.withdraw(bench.group, admission, options);
  assert.equal(await bench.planner.takeOver(bench.group, admission, options), null);
});
