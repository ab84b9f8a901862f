import assert from "node:assert/strict";
import { StatusExecutor } from "../../lib/controllers/planned_status_executor.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { TEST_EPOCH_MS } from "../../lib/testing/test_clock.ts";
import { PlannedRig, type PlannedRigOptions } from "./planned_rig.ts";

const test = (
  name: string,
  body: (rig: PlannedRig) => Promise<void>,
  options: PlannedRigOptions = {},
) =>
  Deno.test(name, async () => {
    await using rig = new PlannedRig(options);
    await rig.start();
    await body(rig);
  });

/** What status shows of an instant: whole seconds after the start of the test. */
const at = (seconds: number) =>
  `${new Date(TEST_EPOCH_MS + seconds * 1000).toISOString().slice(0, 19)}Z`;

test("item 38: behind a hold it is Deferred, renewing the hold works, and after its expiry it is Pending", async (rig) => {
  const hold = await rig.hold();
  await rig.ask("pdx:maxLagWait=2m");
  const { message, ...members } = rig.planned;
  assert.deepEqual(members, {
    phase: "Deferred",
    reason: "DeploymentHold",
    target: "pdx",
    sourcePrimary: "iad",
    startTime: at(0),
    retryAfter: at(30),
    maxLagWait: "2m0s",
    drainTimeout: "30s",
  });
  for (const part of ["op-1", "tenant", at(30)]) assert.ok(message?.includes(part), message ?? "");
  assert.equal(rig.asked, "pdx:maxLagWait=2m");

  await rig.advance(20_000);
  assert.equal((await hold.renew(30)).status, 200);
  assert.equal(rig.planned.retryAfter, at(50));
  assert.equal(rig.planned.startTime, at(0));

  await rig.advance(30_000);
  assert.equal(rig.planned.phase, "Deferred", "equality with the expiry still counts");
  await rig.advance(100);
  const { phase, reason, retryAfter, startTime } = rig.planned;
  assert.deepEqual({ phase, reason, retryAfter, startTime }, {
    phase: "Pending",
    reason: undefined,
    retryAfter: undefined,
    startTime: at(0),
  });
  assert.equal(rig.asked, undefined);
  assert.equal(rig.gate.planned, null);
  assert.deepEqual(rig.reasons, ["PlannedFailoverDeferred", "PlannedFailoverStarted"]);
  const series =
    `bloodraven_planned_failovers_deferred_total{group="orders",reason="DeploymentHold"}`;
  assert.equal(await rig.service.metric(series), 1);
});

test("a release ends the deferral at once", async (rig) => {
  const hold = await rig.hold();
  await rig.ask("pdx");
  assert.equal(rig.planned.maxLagWait, "5m0s");
  await hold.release();
  assert.equal(rig.planned.phase, "Pending");
});

test("item 58: two holds defer to the earlier and then to the later, and an unhealthy target fails only then", async (rig) => {
  const first = await rig.hold("op-1", 60);
  await first.releaseMigration();
  await rig.hold("op-2", 20);
  await rig.ask("pdx");
  assert.equal(rig.planned.retryAfter, at(20));
  await rig.operate({
    sites: [{ name: "iad", state: "writable" }, { name: "pdx", state: "unreachable" }],
  });
  await rig.advance(20_100);
  assert.equal(rig.planned.phase, "Deferred");
  assert.equal(rig.planned.retryAfter, at(60));
  await rig.advance(40_000);
  assert.deepEqual([rig.planned.phase, rig.planned.reason], ["Failed", "TargetUnhealthy"]);
  assert.equal(rig.asked, undefined);
  assert.equal(rig.planned.completionTime, at(60));
});

test("item 59: an emergency failover goes on while a planned one is Deferred, and the request then finds the site active", async (rig) => {
  await rig.hold();
  await rig.ask("pdx");
  await rig.operate({
    activeSite: "pdx",
    topologyGeneration: 8,
    sites: [{ name: "iad", state: "read-only", replicating: true }, {
      name: "pdx",
      state: "writable",
    }],
  });
  await rig.advance(0);
  assert.deepEqual([rig.planned.phase, rig.planned.reason], ["Failed", "AlreadyActive"]);
  assert.equal(rig.gate.generation, 8);
  assert(rig.reasons.includes("PlannedFailoverSkipped"));
});

test("a migration lease alone defers nothing", async (rig) => {
  const client = rig.service.client();
  assert.equal((await client.grant("op-1", "tenant")).status, 201);
  await rig.ask("pdx");
  assert.equal(rig.planned.phase, "Pending");
});

test("while it waits grants are refused with PlannedFailover and renewals go on", async (rig) => {
  const hold = await rig.hold();
  await rig.ask("pdx");
  const refused = await rig.service.client().grant("op-2", "tenant");
  assert.deepEqual([refused.status, refused.body.reason], [423, "PlannedFailover"]);
  assert.equal((await hold.renew(60)).status, 200);
});

test("item 60: accepted it is Pending with the defaults and without its annotation", async (rig) => {
  await rig.ask(" pdx ");
  const { phase, maxLagWait, drainTimeout, target } = rig.planned;
  assert.deepEqual([phase, maxLagWait, drainTimeout, target], ["Pending", "5m0s", "30s", "pdx"]);
  assert.equal(rig.asked, undefined);
});

test("item 60: an unknown site is Failed with UnknownSite", async (rig) => {
  await rig.ask("mars");
  assert.deepEqual([rig.planned.phase, rig.planned.reason], ["Failed", "UnknownSite"]);
  assert.equal(rig.asked, undefined);
  assert.deepEqual(rig.reasons, ["PlannedFailoverRejected"]);
  const series = `bloodraven_planned_failovers_total{target_site="mars",result="rejected"}`;
  assert.equal(await rig.service.metric(series), 1);
  assert.equal(rig.gate.planned, null);
});

test("item 60: within the cooldown it fails, unless it is to be deferred", async (rig) => {
  await rig.operate({ lastFailover: at(-60) });
  await rig.ask("pdx");
  assert.deepEqual([rig.planned.phase, rig.planned.reason], ["Failed", "CooldownActive"]);

  await rig.specify({ plannedFailover: { onCooldown: "defer" } });
  await rig.ask("pdx");
  assert.deepEqual([rig.planned.phase, rig.planned.reason], ["Deferred", "CooldownActive"]);
  assert.equal(rig.planned.retryAfter, at(240));
  await rig.advance(240_100);
  assert.equal(rig.planned.phase, "Pending");
  assert.equal(rig.planned.startTime, at(0));
  const series =
    `bloodraven_planned_failovers_deferred_total{group="orders",reason="CooldownActive"}`;
  assert.equal(await rig.service.metric(series), null);
});

test("a cooldown that becomes a hold counts as a first entry", async (rig) => {
  await rig.hold("op-1", 60);
  await rig.operate({
    lastFailover: at(-60),
    plannedFailover: { phase: "Deferred", reason: "CooldownActive", target: "pdx" },
  });
  await rig.ask("pdx");
  assert.equal(rig.planned.reason, "DeploymentHold");
  assert(rig.reasons.includes("PlannedFailoverDeferred"));
});

test("item 60: without its annotation a deferred one is Failed with Cancelled", async (rig) => {
  await rig.hold();
  await rig.ask("pdx");
  await rig.ask(null);
  const { phase, reason, target } = rig.planned;
  assert.deepEqual([phase, reason, target], ["Failed", "Cancelled", "pdx"]);
  assert.deepEqual(rig.reasons, ["PlannedFailoverDeferred", "PlannedFailoverFailed"]);
});

test("item 60: one that is edited to the active site while it waits fails with AlreadyActive after the hold", async (rig) => {
  const hold = await rig.hold();
  await rig.ask("pdx");
  await rig.ask("iad");
  assert.deepEqual([rig.planned.phase, rig.planned.target], ["Deferred", "iad"]);
  await hold.release();
  assert.deepEqual([rig.planned.phase, rig.planned.reason], ["Failed", "AlreadyActive"]);
});

test("one that is edited to nonsense while it waits fails with InvalidAnnotation", async (rig) => {
  await rig.hold();
  await rig.ask("pdx");
  await rig.ask("pdx:fast");
  assert.deepEqual([rig.planned.phase, rig.planned.reason], ["Failed", "InvalidAnnotation"]);
  assert.equal(rig.asked, undefined);
});

test("a fresh nonsense is removed, told and counted without a site, and status stays as it was", async (rig) => {
  await rig.ask("pdx:maxLagWait=0s");
  assert.equal(rig.asked, undefined);
  assert.deepEqual(rig.planned, {});
  assert.deepEqual(rig.reasons, ["PlannedFailoverRejected"]);
  const series = `bloodraven_planned_failovers_total{target_site="",result="rejected"}`;
  assert.equal(await rig.service.metric(series), 1);
});

test("a fresh request for the active site is skipped", async (rig) => {
  await rig.ask("iad");
  assert.equal(rig.asked, undefined);
  assert.deepEqual(rig.planned, {});
  assert.deepEqual(rig.reasons, ["PlannedFailoverSkipped"]);
});

test("a second request during a run is removed with a warning", async (rig) => {
  await rig.operate({ plannedFailover: { phase: "Draining", target: "pdx" } });
  await rig.ask("iad");
  assert.equal(rig.asked, undefined);
  assert.equal(rig.planned.phase, "Draining");
  assert.deepEqual(rig.reasons, ["PlannedFailoverRejected"]);
});

test("item 60: a stale duplicate of the request that was accepted is removed in silence", async (rig) => {
  await rig.operate({ plannedFailover: { phase: "Pending", target: "pdx" } });
  await rig.ask("pdx:maxLagWait=5m");
  assert.equal(rig.asked, undefined);
  assert.equal(rig.planned.phase, "Pending");
  assert.deepEqual(rig.reasons, []);
});

test("item 57: a run before its draining waits for a hold too, and its annotation comes back with its wait", async (rig) => {
  const hold = await rig.hold();
  await rig.operate({
    plannedFailover: {
      phase: "Validating",
      target: "pdx",
      maxLagWait: "1m30s",
      startTime: at(-5),
      completionTime: at(-100),
    },
  });
  assert.equal(rig.asked, "pdx:maxLagWait=1m30s");
  const { phase, startTime, completionTime, retryAfter, maxLagWait } = rig.planned;
  assert.deepEqual([phase, startTime, completionTime], ["Deferred", at(-5), undefined]);
  assert.deepEqual([retryAfter, maxLagWait], [at(30), "1m30s"]);
  await hold.release();
  assert.deepEqual([rig.planned.phase, rig.planned.startTime], ["Pending", at(-5)]);
});

test("from its draining on holds are not consulted", async (rig) => {
  await rig.hold();
  await rig.operate({ plannedFailover: { phase: "Draining", target: "pdx" } });
  assert.equal(rig.planned.phase, "Draining");
});

test("a refused admission changes no status, and is asked for again", async (rig) => {
  await rig.operate({ updatePhase: "WaitReplica" });
  await rig.ask("pdx");
  assert.deepEqual(rig.planned, {});
  assert.equal(rig.asked, "pdx");
  await rig.operate({ updatePhase: "" });
  await rig.advance(10_000);
  assert.equal(rig.planned.phase, "Pending");
});

test("a restore that waits as well and would wait for ever makes the planned failover fail", async (rig) => {
  const hold = await rig.hold();
  await rig.ask("pdx");
  await rig.operate({ restoreInPlace: { phase: "Preflight" } });
  assert.equal(rig.planned.phase, "Deferred");
  await hold.release();
  await rig.advance(10_000);
  assert.deepEqual([rig.planned.phase, rig.planned.reason], ["Failed", "ConcurrentOperation"]);
});

test("an idle group costs the controllers of planned operations no call", async (rig) => {
  await rig.advance(1_000);
  rig.service.fake.calls.reset();
  await rig.operate({ memberOfANewerOperator: 1 });
  assert.equal(rig.service.fake.calls.count(), 0);
});

test("an admission that another planner left is withdrawn after 10 s", async (rig) => {
  await rig.admitAs("operator-7");
  await rig.advance(9_900);
  assert.equal(rig.gate.planned?.state, "admitted");
  const refused = await rig.service.client().grant("op-1", "tenant");
  assert.deepEqual([refused.status, refused.body.reason], [423, "PlannedFailover"]);
  await rig.advance(200);
  assert.equal(rig.gate.planned, null);
  const touch = "bloodraven.shipstream.io/deployment-gate-touch";
  assert.match(rig.group.metadata.annotations?.[touch] ?? "", /^[0-9a-f]{16}$/);
});

test("whoever finds a withdrawal that was begun finishes it at once", async (rig) => {
  await rig.admitAs("operator-7", "withdrawing");
  assert.equal(rig.gate.planned, null);
});

test("a new leader carries on what an earlier one admitted while the request is there", async (rig) => {
  const hold = await rig.hold();
  await rig.ask("pdx");
  await rig.stop();
  await hold.release();
  await rig.admitAs("holdfast/earlier");
  assert.equal(rig.planned.phase, "Deferred");
  await rig.start();
  assert.equal(rig.planned.phase, "Pending");
  assert.equal(rig.gate.planned, null);
});

test("a new leader takes back what an earlier one admitted for a request that is gone", async (rig) => {
  await rig.admitAs("holdfast/earlier");
  assert.equal(rig.gate.planned, null);
  assert.deepEqual(rig.planned, {});
});

test(
  "without the controller of the annotation an admission of ours is one of a stranger",
  async (rig) => {
    await rig.ask("pdx");
    assert.deepEqual(rig.planned, {});
    await rig.admitAs("holdfast/earlier");
    await rig.advance(10_100);
    assert.equal(rig.gate.planned, null);
  },
  { withoutAnnotation: true },
);

test(
  "the executor of the demo moves the active site, counts it, and leaves a stable group",
  async (rig) => {
    await rig.ask("pdx");
    for (const phase of ["Validating", "Draining", "WaitingForLag", "Promoting", "Resuming"]) {
      await rig.advance(1_000);
      assert.equal(rig.planned.phase, phase);
    }
    assert.deepEqual([rig.group.status?.activeSite, rig.group.status?.topologyGeneration], [
      "pdx",
      8,
    ]);
    await rig.advance(1_000);
    assert.deepEqual([rig.planned.phase, rig.planned.completionTime], ["Succeeded", at(6)]);
    assert.equal((await rig.service.client().observe()).body.stable, true);
    const success = `bloodraven_planned_failovers_total{target_site="pdx",result="success"}`;
    assert.equal(await rig.service.metric(success), 1);
    assert(rig.reasons.includes("PlannedFailoverCompleted"));
  },
  {
    executor: ({ api }, reports) => new StatusExecutor({ api, reports, stepMs: 1_000 }),
  },
);

test("a phase that may not be written takes the admission back, so that deployments go on", async (rig) => {
  const fault = rig.service.fake.faults.add({
    fault: { type: "status", code: 403 },
    verb: "patch",
    resource: "mysqlfailovergroups/status",
  });
  await rig.ask("pdx");
  assert.equal(fault.hits, 1);
  assert.equal(rig.gate.planned, null);
  assert.equal((await rig.service.client().grant("op-1", "tenant")).status, 201);
  fault.remove();
  await rig.advance(10_000);
  assert.equal(rig.planned.phase, "Pending");
});

test("an admission that could not be taken back either is taken back after 10 s", async (rig) => {
  const { faults } = rig.service.fake;
  const fault = { type: "status", code: 403 } as const;
  const status = faults.add({ fault, verb: "patch", resource: "mysqlfailovergroups/status" });
  const touch = faults.add({ fault, verb: "patch", resource: "mysqlfailovergroups" });
  await rig.ask("pdx");
  assert.equal(rig.gate.planned?.state, "withdrawing");
  touch.remove();
  await rig.advance(60_000);
  status.remove();
  await rig.advance(60_000);
  assert.equal(rig.planned.phase, "Pending");
  assert.equal(rig.gate.planned, null);
});

test("a status that was written in between is decided again, and after three times after a pause", async (rig) => {
  await rig.hold();
  const fault = rig.service.fake.faults.add({
    fault: { type: "status", code: 409 },
    verb: "patch",
    resource: "mysqlfailovergroups/status",
    count: 4,
  });
  await rig.ask("pdx");
  assert.equal(fault.hits, 3);
  assert.deepEqual(rig.planned, {});
  const [line] = rig.logged("deployment lease housekeeping failed");
  assert.equal(line?.error, "ContendedError");
  await rig.advance(10_000);
  assert.equal(rig.planned.phase, "Deferred");
});

test("a hold that nobody can end keeps the run in Deferred, and is looked at every second", async (rig) => {
  await rig.hold("op-1", 5);
  await rig.ask("pdx");
  const fault = rig.service.fake.faults.add({
    fault: { type: "status", code: 500 },
    verb: "update",
    resource: "leases",
  });
  await rig.advance(9_000);
  assert.equal(rig.planned.phase, "Deferred");
  fault.remove();
  await rig.advance(60_000);
  assert.equal(rig.planned.phase, "Pending");
});

test("a group that is gone takes its series with it", async (rig) => {
  await rig.hold();
  await rig.ask("pdx");
  const series =
    `bloodraven_planned_failovers_deferred_total{group="orders",reason="DeploymentHold"}`;
  assert.equal(await rig.service.metric(series), 1);
  const { namespace, name } = rig.group.metadata;
  rig.service.fake.remove(MYSQL_FAILOVER_GROUPS, { namespace, name });
  await rig.settle();
  assert.equal(await rig.service.metric(series), null);
});

test("a gate that cannot be read admits nothing and is told of", async (rig) => {
  await rig.breakGate();
  await rig.ask("pdx");
  assert.deepEqual(rig.planned, {});
  const errors = rig.logged("deployment lease housekeeping failed").map(({ error }) => error);
  assert(errors.includes("GateError"));
});

test(
  "a step of the demo's executor that lost a race is done again, and a phase that it does not know stops it",
  async (rig) => {
    await rig.ask("pdx");
    const where = { verb: "patch", resource: "mysqlfailovergroups/status", count: 1 };
    const fault = { type: "status", code: 409 } as const;
    const handle = rig.service.fake.faults.add({ fault, ...where });
    await rig.advance(1_000);
    assert.deepEqual([handle.hits, rig.planned.phase], [1, "Pending"]);
    await rig.advance(1_000);
    assert.equal(rig.planned.phase, "Validating");
    await rig.operate({
      plannedFailover: { phase: "WaitingForDragonflySync", target: "pdx" },
    });
    await rig.advance(10_000);
    assert.equal(rig.planned.phase, "WaitingForDragonflySync");
  },
  { executor: ({ api }, reports) => new StatusExecutor({ api, reports, stepMs: 1_000 }) },
);
