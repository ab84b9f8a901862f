/** What a failover does to a run, and a run to a failover: the program and its commands as processes. */

import assert from "node:assert/strict";
import { fromEnvironment } from "../../handlers/commands/client.ts";
import type { EffectiveSettings } from "../../lib/client/settings.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { DEPLOYMENT_LEASE_ANNOTATION, holdName, slotName } from "../../lib/records/names.ts";
import { expiresAtMs, type LeaseRecord, parseRecord } from "../../lib/records/record.ts";
import { callerOf, environmentOf, type RealCaller } from "../client/real_caller.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { member } from "../cluster/raw_client.ts";
import { livingOf, type RunProcess } from "../handlers/commands/run_process.ts";
import { Beats, type BeatsOptions } from "./beats.ts";
import { GroupOperator } from "./group_operator.ts";
import { QUICK } from "./lost_rounds.ts";
import { playSideBySide } from "./side_by_side.ts";
import { guardOf, startWorking, type WorkingRun } from "./working_run.ts";

const OPERATION = "op-1";
const { signal } = new AbortController();

/** A group with its operator, and a run that works in it. */
class Stage implements AsyncDisposable {
  private constructor(
    readonly caller: RealCaller,
    readonly settings: EffectiveSettings,
    readonly operator: GroupOperator,
    readonly working: WorkingRun,
    readonly beats: Beats,
  ) {}

  get run(): RunProcess {
    return this.working.run;
  }

  /** The process group of the command. */
  get processGroup(): number {
    return this.working.group;
  }

  static async open(
    caller: RealCaller,
    group: string,
    { args = QUICK, ...options }: BeatsOptions & { readonly args?: readonly string[] } = {},
  ): Promise<Stage> {
    const settings = await caller.openGroup(group);
    const operator = new GroupOperator(caller.cluster.adminApi, caller.namespace, group);
    const beats = new Beats(`${caller.folder}/beats-${group}`, options);
    const all = ["--operation", OPERATION, ...args];
    const working = await startWorking(all, environmentOf(settings), beats);
    return new Stage(caller, settings, operator, working, beats);
  }

  /** What is stored of a lease of the run. */
  async record(kind: "migration" | "hold"): Promise<LeaseRecord> {
    const { cluster, namespace } = this.caller;
    const { group } = this.settings;
    const name = kind === "migration" ? slotName(group) : holdName(group, OPERATION);
    const { metadata } = await cluster.adminApi.get(LEASES, { namespace, name }, { signal });
    return parseRecord(metadata.annotations?.[DEPLOYMENT_LEASE_ANNOTATION] ?? "");
  }

  /** Waits until a lease was renewed once more. */
  async untilRenewed(kind: "migration" | "hold"): Promise<void> {
    const before = expiresAtMs(await this.record(kind));
    const untilMs = Date.now() + 30_000;
    while (expiresAtMs(await this.record(kind)) === before) {
      assert.ok(Date.now() < untilMs, "no renewal came");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Waits for the deferral, and for the end of the hold that it tells of. @returns That end, as it was stored last. */
  async throughDeferral(): Promise<number> {
    const { message, reason, retryAfter } = await this.operator.untilPhase("Deferred");
    assert.equal(reason, "DeploymentHold");
    assert.match(message ?? "", new RegExp(`${OPERATION}.*${this.settings.instance}`));
    assert.match(retryAfter ?? "", /^\d{4}-\d\d-\d\dT/);
    const refused = await this.tryOther();
    assert.match(refused, /PlannedFailover|holds it until/);
    await this.operator.untilPhase("Pending");
    const hold = await this.record("hold");
    assert.equal(hold.state, "expired");
    return expiresAtMs(hold);
  }

  /** The operator carries a planned failover out that was handed over to it, and the next deployment counts under it. */
  async complete(): Promise<void> {
    const generation = await this.operator.moved("pdx", {
      plannedFailover: { phase: "Succeeded" },
    });
    const client = await fromEnvironment(this.settings);
    const lease = await client.acquire({ operationId: "afterwards", waitSeconds: 30 });
    assert.equal(lease.topologyGeneration, generation);
    assert.equal(lease.activeSite, "pdx");
    await lease.release();
  }

  /** Why another deployment is not let in now. */
  async tryOther(): Promise<string> {
    const { group } = this.settings;
    const client = await fromEnvironment({ ...this.settings, instance: `billing-${group}` });
    return await client.acquire({ operationId: "other" }).then(() => "granted", String);
  }

  /** When the command lived last, in milliseconds since 1970. */
  async lastSign(): Promise<number> {
    return Math.max(...(await this.beats.last()).values());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.working[Symbol.asyncDispose]();
  }
}

/** Kills all that was in one pod. */
async function killPod({ run, processGroup }: Stage): Promise<void> {
  const guard = guardOf(processGroup);
  run.kill("SIGKILL");
  Deno.kill(guard, "SIGKILL");
  Deno.kill(-processGroup, "SIGKILL");
  await run.ended();
}

async function holdRunsOut(caller: RealCaller): Promise<void> {
  await using stage = await Stage.open(caller, "runs-out");
  await stage.operator.request("pdx");
  stage.run.kill("SIGSTOP");
  const endMs = await stage.throughDeferral();
  const pendingMs = Date.now();
  assert.ok(pendingMs >= endMs, `it began ${endMs - pendingMs} ms before the hold was over`);
  assert.ok(pendingMs < endMs + 3_000, `it began ${pendingMs - endMs} ms after the hold was over`);
  assert.ok(await stage.lastSign() < endMs);
  assert.deepEqual(await livingOf(stage.processGroup), []);
  await stage.complete();
}

async function ownerDies(caller: RealCaller): Promise<void> {
  await using stage = await Stage.open(caller, "owner-dies");
  await stage.operator.request("pdx");
  await stage.operator.untilPhase("Deferred");
  await killPod(stage);
  const diedMs = Date.now();
  const endMs = await stage.throughDeferral();
  assert.ok(endMs > diedMs, "the hold is durable: it outlives its owner");
  assert.ok(Date.now() < endMs + 3_000);
  await stage.complete();
}

async function plannedWaits(caller: RealCaller): Promise<void> {
  await using stage = await Stage.open(caller, "planned");
  await stage.operator.request("pdx");
  const first = await stage.operator.untilPhase("Deferred");
  await stage.untilRenewed("hold");
  await stage.untilRenewed("hold");
  const later = await stage.operator.untilPhase("Deferred");
  assert.ok(Date.parse(String(later.retryAfter)) > Date.parse(String(first.retryAfter)));
  assert.notDeepEqual(await livingOf(stage.processGroup), []);
  stage.run.kill("SIGTERM");
  const { code, stderr } = await stage.run.ended();
  assert.equal(code, 143, stderr);
  const releasedMs = Date.now();
  await stage.operator.untilPhase("Pending");
  assert.ok(Date.now() - releasedMs < 2_000, "a release is seen at once");
  assert.equal((await stage.record("hold")).state, "released");
  await stage.complete();
}

async function emergency(caller: RealCaller): Promise<void> {
  await using stage = await Stage.open(caller, "emergency", { deaf: true });
  const startMs = performance.now();
  const generation = await stage.operator.moved("pdx");
  assert.ok(performance.now() - startMs < 2_000, "the operator waits for nobody");
  const { code, stderr } = await stage.run.ended();
  assert.equal(code, 115, stderr);
  assert.match(stderr, /the group's topology changed/);
  assert.deepEqual(await livingOf(stage.processGroup), []);
  for (const kind of ["migration", "hold"] as const) {
    const { reason, state } = await stage.record(kind);
    assert.deepEqual([state, reason], ["revoked", "topology_changed"]);
  }
  await untilTold(caller, "emergency", 2);
  const client = await fromEnvironment(stage.settings);
  const lease = await client.acquire({ operationId: "afterwards", waitSeconds: 30 });
  assert.equal(lease.topologyGeneration, generation);
  await lease.release();
}

/** Waits for the Events of a group that tell of revoked leases. */
async function untilTold(caller: RealCaller, group: string, count: number): Promise<void> {
  const path = `/apis/events.k8s.io/v1/namespaces/${caller.namespace}/events`;
  const untilMs = performance.now() + 15_000;
  for (;;) {
    const items = member((await caller.cluster.admin("GET", path)).body, "items");
    const told = (Array.isArray(items) ? items : []).filter((event) =>
      member(event, "reason") === "DeploymentLeaseRevoked" &&
      member(member(event, "regarding"), "name") === group
    );
    if (told.length === count) return;
    assert.ok(performance.now() < untilMs, `${told.length} Events tell of revoked leases`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function liveClient(caller: RealCaller): Promise<void> {
  // It renews each 5 s, and has no hold: a planned failover does not wait for it.
  const args = ["--ttl", "15s", "--wait", "30s", "--no-hold"];
  await using stage = await Stage.open(caller, "live", { args, ddl: true });
  await stage.untilRenewed("migration");
  await stage.operator.request("pdx");
  await stage.operator.untilPhase("Pending");
  await stage.operator.moved("pdx", { plannedFailover: { phase: "Succeeded" } });
  const movedMs = Date.now();
  const { code, stderr } = await stage.run.ended();
  assert.equal(code, 116, stderr);
  assert.match(stderr, /the group's topology changed.*verify the schema by hand/);
  // At its next renewal, and at the latest 2 s after that.
  assert.ok(await stage.lastSign() < movedMs + 5_000 + 2_500);
}

async function pendingTopology(caller: RealCaller): Promise<void> {
  await using stage = await Stage.open(caller, "pending");
  await stage.operator.announce(true);
  const client = await fromEnvironment(stage.settings);
  await assert.rejects(client.observe(), { reason: "TopologyPersistencePending" });
  // Longer than a renewal takes to be due: it is refused, and that alone costs nothing.
  await new Promise((resolve) => setTimeout(resolve, 2_800));
  await stage.operator.announce(false);
  await Promise.all([stage.untilRenewed("migration"), stage.untilRenewed("hold")]);
  assert.notDeepEqual(await livingOf(stage.processGroup), []);

  await stage.operator.announce(true);
  const records = await Promise.all([stage.record("migration"), stage.record("hold")]);
  const lastConfirmedMs = Math.min(...records.map(expiresAtMs));
  const { code, stderr } = await stage.run.ended();
  assert.equal(code, 115, stderr);
  assert.match(stderr, /its deadline is near and no renewal succeeded/);
  const lastSignMs = await stage.lastSign();
  assert.ok(lastSignMs < lastConfirmedMs, `${lastSignMs - lastConfirmedMs} ms too long`);
  // It went on while the last confirmed lease allowed it. SIGTERM comes 4 s before the end of what was asked for, and what
  // was granted is up to 1 s longer.
  assert.ok(lastSignMs > lastConfirmedMs - 6_000, `${lastConfirmedMs - lastSignMs} ms too early`);
  await stage.operator.announce(false);
}

clusterTest(
  "failovers during a run, with the service's own controller for planned ones",
  async (cluster, context) => {
    const env = { HOLDFAST__PLANNED_OPERATIONS__ENABLED: "true" };
    await using caller = await callerOf(cluster, "failover", { env });
    await cluster.grant({
      subject: { namespace: caller.namespace, serviceAccount: "holdfast" },
      rules: [{
        apiGroups: ["shipstream.io"],
        resources: ["mysqlfailovergroups/status"],
        verbs: ["patch"],
      }],
    });
    await playSideBySide(context, [
      [
        "item 67: a hold of a frozen run runs out while a planned failover waits for it, which then completes",
        () => holdRunsOut(caller),
      ],
      [
        "item 68: the pod of a run is killed while a planned failover waits: its durable hold runs out, and it completes",
        () => ownerDies(caller),
      ],
      [
        "a planned failover during a run waits until the run has released its hold, and then goes on",
        () => plannedWaits(caller),
      ],
      [
        "item 69: a loss of the primary passes both leases of a run by, ends its command, revokes both and tells of each",
        () => emergency(caller),
      ],
      [
        "item 70: a run that renews each 5 s learns of a planned change by 409 and stops",
        () => liveClient(caller),
      ],
      [
        "item 70: a run bears 423 TopologyPersistencePending until its last confirmed end comes near, and no longer",
        () => pendingTopology(caller),
      ],
    ]);
  },
);
