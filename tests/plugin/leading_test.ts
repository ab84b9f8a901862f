import assert from "node:assert/strict";
import fc from "fast-check";
import { sleep } from "../../lib/runtime/clock.ts";
import type { LeaderTask, Term } from "../../lib/election/mod.ts";
import { taskStopTimeoutMs } from "../../lib/election/policy.ts";
import { NoClusterError } from "../../lib/kube/connect_errors.ts";
import type { KubernetesContext } from "../../lib/plugin/runtime.ts";
import { type App, inWorld, LEASE, never, withElection, type World } from "./world.ts";

const leads = (app: App) => app.runtime.leadership?.isLeader() ?? false;

/** A leader task that notes when it runs, and needs some time to end. */
function work(world: World, name: string, log: string[], endMs = 0): LeaderTask {
  return {
    name: "work",
    async run(term: Term) {
      log.push(`${name} starts`);
      await new Promise<void>((resolve) => {
        term.signal.addEventListener("abort", () => resolve(), { once: true });
      });
      if (endMs > 0) await sleep(world.clock, endMs, never);
      log.push(`${name} ends`);
    },
  };
}

Deno.test("end to end: it leads, runs its task, stops the task before it frees the Lease, and leaves nothing behind", () =>
  inWorld(async (world) => {
    const log: string[] = [];
    const app = await world.start({
      kubernetes: withElection({ identity: "me" }),
      leaderTasks: [work(world, "task", log, 1_000)],
    });
    await world.until(() => log.length === 1);
    assert.equal(world.lease()?.spec?.holderIdentity, "me");
    const stopped = app.runtime.shutdown(never);
    await world.clock.advance(999);
    assert.equal(world.lease()?.spec?.holderIdentity, "me", "kept while the task ends");
    await world.settle(stopped);
    assert.deepEqual(log, ["task starts", "task ends"]);
    assert.equal(world.lease()?.spec?.holderIdentity, undefined);
    assert.deepEqual(await world.reasons(), ["Started", "LeaderElected", "Stopping"]);
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("a task is given what a handler finds, also when the lead begins within the start", () =>
  inWorld(async (world) => {
    const given: KubernetesContext[] = [];
    const leaderTasks = [{
      name: "job",
      run: (_: Term, context: KubernetesContext) => void given.push(context),
    }];
    const elected = await world.start({ kubernetes: withElection(), leaderTasks });
    await world.until(() => given.length === 1);
    const alone = await world.start({
      kubernetes: withElection({ lead_when_detached: true }),
      leaderTasks,
      connector: () => Promise.reject(new NoClusterError("none")),
    });
    assert.equal(given.length, 2);
    assert.deepEqual([given[0] === elected.runtime, given[1] === alone.runtime], [true, true]);
  }));

Deno.test("a task that is to run in a worker gets one, and it is ended with the term", () =>
  inWorld(async (world) => {
    const events: string[] = [];
    const app = await world.start({
      kubernetes: withElection(),
      leaderTasks: [{
        name: "compact",
        isolated: true,
        worker: (name) => {
          events.push(`${name} starts`);
          const terminate = () => void events.push("it ends");
          return { postMessage() {}, terminate, addEventListener() {} };
        },
      }],
    });
    await world.until(() => events.length > 0);
    await world.settle(app.runtime.shutdown(never));
    assert.equal(events.length, 2);
    assert.match(events.join(", "), /compact starts, it ends$/);
  }));

Deno.test("a role that takes no part writes no Lease, has no leadership and runs no task", () =>
  inWorld(async (world) => {
    const log: string[] = [];
    const app = await world.start({
      kubernetes: withElection({ roles: ["worker"] }),
      host: { role: "web" },
      leaderTasks: [work(world, "task", log)],
    });
    await world.clock.advance(60_000);
    assert.equal(app.runtime.leadership, null);
    assert.equal(world.lease(), null);
    assert.deepEqual(log, []);
    assert.deepEqual((await app.runtime.health()).details, {
      mode: "custom",
      namespace: "default",
    });
  }));

Deno.test("an identity that is given is used exactly; else it is the pod's name and eight hexadecimal digits", () =>
  inWorld(async (world) => {
    const identity = async (election: Record<string, unknown>, podName: string | undefined) => {
      const podInfo = { name: podName, labels: {}, inCluster: false };
      const { runtime } = await world.start({ kubernetes: withElection(election), podInfo });
      return runtime.leadership?.identity ?? "";
    };
    assert.equal(await identity({ identity: "Exactly This" }, "web-1"), "Exactly This");
    assert.match(await identity({}, "web-1"), /^web-1-[0-9a-f]{8}$/);
    assert.match(await identity({}, undefined), /^holdfast-[0-9a-f]{8}$/);
    assert.notEqual(await identity({}, "web-1"), await identity({}, "web-1"));
  }));

Deno.test("the lead can be given up alone: the rest still runs, and another replica leads within a second", () =>
  inWorld(async (world) => {
    const a = await world.start({ kubernetes: withElection() });
    await world.until(() => leads(a));
    const b = await world.start({ kubernetes: withElection() });
    await world.clock.advance(5_000);
    await world.settle(a.runtime.stopLeading(never));
    assert.ok(await world.until(() => leads(b)) < 1_000);
    assert.equal((await a.runtime.health()).status, "up");
    await world.settle(a.runtime.shutdown(never));
    assert.equal(leads(b), true);
  }));

Deno.test("a shutdown whose budget ends leaves the stuck task and the Lease alone, and still ends the rest", () =>
  inWorld(async (world) => {
    const stuck: LeaderTask = { name: "stuck", run: () => new Promise(() => {}) };
    const app = await world.start({
      kubernetes: withElection({ identity: "me" }),
      leaderTasks: [stuck],
    });
    await world.until(() => leads(app));
    const budget = new AbortController();
    const stopped = app.runtime.shutdown(budget.signal);
    await world.clock.advance(4_000);
    const warning = app.log.at("warn").at(-1);
    assert.deepEqual(warning?.fields, { task: "stuck", limit_ms: 4_000 });
    await world.clock.advance(6_000);
    budget.abort();
    await world.settle(stopped);
    assert.equal(world.lease()?.spec?.holderIdentity, "me", "it runs out by itself");
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("a second shutdown finds nothing more to do, and one after an abort neither", () =>
  inWorld(async (world) => {
    const app = await world.start({ kubernetes: withElection() });
    await world.until(() => leads(app));
    await world.settle(Promise.all([app.runtime.shutdown(never), app.runtime.shutdown(never)]));
    const calls = world.fake.calls.total;
    await app.runtime.shutdown(never);
    const other = await world.start();
    other.runtime.abort();
    await other.runtime.shutdown(never);
    assert.deepEqual(world.fake.calls.count({ user: app.user, resource: "leases" }) > 0, true);
    assert.equal((await world.reasons()).filter((reason) => reason === "Stopping").length, 1);
    assert.ok(world.fake.calls.total - calls <= 6);
  }));

Deno.test("an aborted runtime does not free the Lease, and no other leads before its task has had time to end", () =>
  inWorld(async (world) => {
    const log: string[] = [];
    const a = await world.start({
      kubernetes: withElection({ identity: "a" }),
      leaderTasks: [work(world, "a", log, 3_000)],
    });
    await world.until(() => leads(a));
    const b = await world.start({
      kubernetes: withElection({ identity: "b" }),
      leaderTasks: [work(world, "b", log)],
    });
    await world.clock.advance(5_000);
    a.runtime[Symbol.dispose]();
    assert.equal(leads(a), false);
    assert.equal(world.lease()?.spec?.holderIdentity, "a");
    await world.until(() => leads(b));
    await world.clock.advance(0);
    assert.deepEqual(log, ["a starts", "a ends", "b starts"]);
  }));

Deno.test("an aborted runtime makes no call any more", () =>
  inWorld(async (world) => {
    const app = await world.start({
      kubernetes: { ...withElection(), config_maps: { watch: ["a"] } },
    });
    await world.until(() => leads(app));
    app.runtime.abort();
    await world.clock.advance(10);
    const calls = world.fake.calls.total;
    await world.clock.advance(120_000);
    assert.equal(world.fake.calls.total, calls);
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("a replica that is cut off ends its task before another leads", () =>
  inWorld(async (world) => {
    const log: string[] = [];
    const a = await world.start({
      kubernetes: withElection({ identity: "a" }),
      leaderTasks: [work(world, "a", log, 3_900)],
    });
    await world.until(() => leads(a));
    const b = await world.start({
      kubernetes: withElection({ identity: "b" }),
      leaderTasks: [work(world, "b", log)],
    });
    await world.clock.advance(1_000);
    world.fake.faults.add({ user: a.user, fault: { type: "reset" } });
    world.fake.faults.add({ user: a.user, fault: { type: "watch-break" } });
    await world.until(() => leads(b));
    await world.clock.advance(0);
    assert.deepEqual(log, ["a starts", "a ends", "b starts"]);
    const lost = (await world.events()).filter(({ reason }) => reason === "LeaderLost");
    assert.deepEqual(lost, [], "the one that could tell of it is cut off");
  }));

Deno.test("a task that wants the process to end with it gets its wish, and one that throws is told to the program", () =>
  inWorld(async (world) => {
    const errors: string[] = [];
    const app = await world.start({
      kubernetes: withElection(),
      leaderTasks: [
        { name: "stuck", onOverrun: "exit", run: () => new Promise(() => {}) },
        { name: "broken", run: () => Promise.reject(new TypeError("secret")) },
      ],
      onTaskError: (error) => errors.push(error.taskName),
    });
    await world.until(() => errors.length > 0);
    assert.deepEqual(errors, ["broken"]);
    assert.equal(leads(app), false);
    assert.equal((await app.runtime.health()).status, "up", "its time to stop is not over");
    await world.until(() => app.system.exits.length > 0);
    assert.deepEqual(app.system.exits, [1]);
  }));

Deno.test("the Lease is kept on a stop when it is not to be released", () =>
  inWorld(async (world) => {
    const app = await world.start({
      kubernetes: withElection({ identity: "me", release_on_shutdown: false }),
    });
    await world.until(() => leads(app));
    await world.settle(app.runtime.shutdown(never));
    assert.equal(world.lease()?.spec?.holderIdentity, "me");
    assert.equal(LEASE, world.lease()?.metadata.name);
  }));

Deno.test("tasks have 4 s to stop at 15 and 10 s, 10 s at 60 and 10, 800 ms at 3 and 2, and always less than the gap", () => {
  assert.equal(taskStopTimeoutMs(15_000, 10_000), 4_000);
  assert.equal(taskStopTimeoutMs(60_000, 10_000), 10_000);
  assert.equal(taskStopTimeoutMs(3_000, 2_000), 800);
  const ms = fc.integer({ min: 1, max: 3_599_999 });
  fc.assert(fc.property(ms, ms, (renewMs, gapMs) => {
    const limitMs = taskStopTimeoutMs(renewMs + gapMs, renewMs);
    assert.ok(limitMs >= 1 && limitMs <= 10_000);
    assert.ok(gapMs < 5 || limitMs < gapMs);
  }));
});
