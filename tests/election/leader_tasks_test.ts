import assert from "node:assert/strict";
import {
  type LeaderTask,
  LeaderTaskError,
  runLeaderTasks,
  staticLeadership,
  type Term,
} from "../../lib/election/mod.ts";
import { sleep } from "../../lib/runtime/clock.ts";
import { type Candidate, inWorld, LEASE, TIMING, type World } from "./world.ts";

interface Run {
  readonly done: Promise<void>;
  readonly errors: LeaderTaskError[];
  readonly exits: number[];
}

/** Runs tasks on a candidate. */
function run(world: World, candidate: Candidate, tasks: readonly LeaderTask[]): Run {
  const errors: LeaderTaskError[] = [];
  const exits: number[] = [];
  const done = runLeaderTasks({
    candidate: candidate.elector,
    tasks,
    timing: TIMING,
    clock: world.clock,
    logger: candidate.log,
    onTaskError: (error) => errors.push(error),
    exit: (code) => exits.push(code),
  });
  return { done, errors, exits };
}

/** A task that runs until it is told to stop, and keeps what happened. */
function patientTask(name: string, events: string[]): LeaderTask {
  return {
    name,
    async run(term: Term) {
      events.push(`${name} starts`);
      await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
      events.push(`${name} ends`);
    },
  };
}

/** A task that does not stop before it is let go. */
function stubbornTask(name: string, events: string[], onOverrun?: "exit"): LeaderTask & {
  letGo(): void;
} {
  const held = Promise.withResolvers<void>();
  return {
    name,
    ...(onOverrun === undefined ? {} : { onOverrun }),
    letGo: held.resolve,
    async run() {
      events.push(`${name} starts`);
      await held.promise;
      events.push(`${name} ends`);
    },
  };
}

Deno.test("all tasks start together with the lead, once per term, and end with it", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const events: string[] = [];
    const { done } = run(world, a, [patientTask("one", events), patientTask("two", events)]);
    await world.clock.advance(0);
    assert.deepEqual(events, []);
    a.elector.start();
    await world.clock.advance(30_000);
    assert.deepEqual(events, ["one starts", "two starts"]);
    await a.stop();
    await done;
    assert.deepEqual(events, ["one starts", "two starts", "one ends", "two ends"]);
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("a task that returns early runs again in the next term, and not before", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    let runs = 0;
    const { done } = run(world, a, [{ name: "short", run: () => void runs++ }]);
    a.elector.start();
    await world.clock.advance(60_000);
    assert.equal(runs, 1);
    world.leases.delete(LEASE);
    await world.clock.advance(0);
    assert.equal(a.terms.length, 2);
    assert.equal(runs, 2);
    await a.stop();
    await done;
  }));

Deno.test("a stop waits for the tasks before it releases the Lease", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const events: string[] = [];
    const slow: LeaderTask = {
      name: "slow",
      async run(term) {
        await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
        assert.equal(term.isValid(), true);
        await sleep(world.clock, 3_000, new AbortController().signal);
        events.push(world.leases.read(LEASE).spec?.holderIdentity ?? "free");
        assert.equal(term.isValid(), true);
      },
    };
    const { done } = run(world, a, [slow]);
    a.elector.start();
    await world.clock.advance(1_000);
    const stopped = a.stop();
    await world.clock.advance(3_000);
    await stopped;
    await done;
    assert.deepEqual(events, ["a"]);
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, undefined);
  }));

Deno.test("a task that does not stop in time is named once, and the next term's tasks wait for it", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const events: string[] = [];
    const stuck = stubbornTask("stuck", events);
    const { done, exits } = run(world, a, [stuck, patientTask("other", events)]);
    a.elector.start();
    await world.clock.advance(0);
    world.leases.delete(LEASE);
    await world.clock.advance(3_999);
    const warnings = () => a.log.at("warn").filter((line) => line.message.includes("task"));
    assert.deepEqual(warnings(), []);
    await world.clock.advance(1);
    assert.deepEqual(warnings().map((line) => line.fields), [{ task: "stuck", limit_ms: 4_000 }]);
    await world.clock.advance(60_000);
    assert.equal(warnings().length, 1);
    assert.deepEqual(events, ["stuck starts", "other starts", "other ends"]);
    assert.equal(a.leads, false);
    assert.deepEqual(exits, []);
    stuck.letGo();
    await world.clock.advance(0);
    assert.equal(a.leads, true);
    assert.deepEqual(events.slice(3), ["stuck ends", "stuck starts", "other starts", "stuck ends"]);
    await a.stop();
    await done;
  }));

Deno.test("a task with onOverrun exit ends the process at the stop deadline, before another can lead", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const stuck = stubbornTask("stuck", [], "exit");
    const { done, exits } = run(world, a, [stuck]);
    a.elector.start();
    await world.clock.advance(0);
    const b = world.started("b");
    a.client.fault = () => ({ type: "hang" });
    a.client.watchMode = "silent";
    await world.until(() => !a.leads);
    await world.clock.advance(3_999);
    assert.deepEqual(exits, []);
    await world.clock.advance(1);
    assert.deepEqual(exits, [1]);
    assert.equal(b.leads, false);
    stuck.letGo();
    await a.crash();
    await done;
  }));

Deno.test("a task that throws ends the term, releases the Lease and surfaces the error", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const events: string[] = [];
    const cause = new RangeError("secret text");
    const failing: LeaderTask = {
      name: "failing",
      async run() {
        await sleep(world.clock, 1_000, new AbortController().signal);
        throw cause;
      },
    };
    const { done, errors } = run(world, a, [failing, patientTask("other", events)]);
    a.elector.start();
    await world.clock.advance(0);
    const b = world.started("b");
    await world.clock.advance(1_000);
    assert.deepEqual(events, ["other starts", "other ends"]);
    assert.deepEqual(a.losses, ["resigned"]);
    assert.equal(b.leads, true, "the Lease was free at once");
    assert.equal(errors.length, 1);
    assert.ok(errors[0] instanceof LeaderTaskError);
    assert.equal(errors[0]?.taskName, "failing");
    assert.equal(errors[0]?.cause, cause);
    const [line] = a.log.at("error");
    assert.deepEqual(line?.fields, { task: "failing", error: "RangeError" });
    assert.ok(!JSON.stringify(a.log.lines).includes("secret text"));
    await a.stop();
    await done;
  }));

Deno.test("a task that throws before its first await, or a value that is no error, is treated the same", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const { done, errors } = run(world, a, [{ name: "odd", run: () => Promise.reject("odd") }]);
    a.elector.start();
    await world.clock.advance(1_000);
    assert.deepEqual(a.losses, ["resigned"]);
    assert.equal(errors[0]?.cause, "odd");
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, undefined);
    await a.stop();
    await done;
  }));

Deno.test("a task that throws what the signal aborted with has stopped, and has not failed", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const { done, errors } = run(world, a, [{
      name: "sleeper",
      run: (term) => sleep(world.clock, 1_000_000, term.signal),
    }, {
      name: "fetcher",
      async run(term) {
        await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
        throw new DOMException("aborted", "AbortError");
      },
    }]);
    a.elector.start();
    await world.clock.advance(1_000);
    await a.stop();
    await done;
    assert.deepEqual(errors, []);
    assert.deepEqual(a.losses, ["stopped"]);
  }));

Deno.test("a task that throws an abort of its own, while its term goes on, has failed", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const { done, errors } = run(world, a, [{
      name: "impatient",
      run: () => Promise.reject(new DOMException("aborted", "AbortError")),
    }]);
    a.elector.start();
    await world.clock.advance(1_000);
    assert.equal(errors.length, 1);
    assert.deepEqual(a.losses, ["resigned"]);
    await a.stop();
    await done;
  }));

Deno.test("a task that fails while it stops is told too", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const { done, errors } = run(world, a, [{
      name: "clumsy",
      async run(term) {
        await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
        throw new Error("could not clean up");
      },
    }]);
    a.elector.start();
    await world.clock.advance(1_000);
    await a.stop();
    await done;
    assert.equal(errors.length, 1);
    assert.deepEqual(a.losses, ["stopped"]);
  }));

Deno.test("tasks stop at the deadline although the elector's calls hang for ever", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const events: string[] = [];
    const { done } = run(world, a, [patientTask("one", events)]);
    a.elector.start();
    await world.clock.advance(0);
    a.client.fault = () => ({ type: "hang" });
    await world.clock.advance(9_999);
    assert.deepEqual(events, ["one starts"]);
    await world.clock.advance(1);
    assert.deepEqual(events, ["one starts", "one ends"]);
    await a.crash();
    await done;
  }));

Deno.test("the supervisor ends when the elector dies while it leads", () =>
  inWorld(async (world) => {
    let broken = false;
    const entropy = {
      bytes: (length: number) => new Uint8Array(length),
      uuid: () => "",
      fraction: () => {
        if (broken) throw new TypeError("no more randomness");
        return 0;
      },
    };
    const a = world.candidate("a", { entropy });
    const events: string[] = [];
    const { done } = run(world, a, [patientTask("one", events)]);
    a.elector.start();
    await world.clock.advance(0);
    broken = true;
    await world.clock.advance(3_000);
    await done;
    assert.deepEqual(events, ["one starts", "one ends"]);
  }));

Deno.test("tasks run under a static leadership too, once", () =>
  inWorld(async (world) => {
    const { clock } = world;
    const candidate = staticLeadership({ clock, identity: "dev", leaseName: "app" });
    const log = world.candidate("unused").log;
    let runs = 0;
    const errors: LeaderTaskError[] = [];
    const done = runLeaderTasks({
      candidate,
      tasks: [{
        name: "boom",
        run() {
          runs++;
          throw new Error("boom");
        },
      }],
      timing: TIMING,
      clock,
      logger: log,
      onTaskError: (error) => errors.push(error),
      exit: () => {},
    });
    candidate.start();
    await clock.advance(60_000);
    assert.equal(runs, 1);
    assert.equal(errors.length, 1);
    assert.equal(candidate.leadership.isLeader(), false);
    await candidate.stop(new AbortController().signal);
    await done;
  }));

Deno.test("tasks need names of their own", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const task = (name: string): LeaderTask => ({ name, run: () => {} });
    for (const tasks of [[task("x"), task("x")], [task(" ")]]) {
      await assert.rejects(
        run(world, a, tasks).done,
        (error) => error instanceof RangeError && /must have a name of its own/.test(error.message),
      );
    }
  }));
