import assert from "node:assert/strict";
import fc from "fast-check";
import {
  hostIsolatedTasks,
  type IsolatedTaskRun,
  LeadershipLostError,
  LeaderTaskError,
  runLeaderTasks,
  staticLeadership,
  type Term,
} from "../../lib/election/mod.ts";
import { isolatedWorkerName } from "../../lib/election/isolated_protocol.ts";
import { pingLimitMs } from "../../lib/election/isolated_task.ts";
import { type Clock, sleep } from "../../lib/runtime/clock.ts";
import { TestClock } from "../../lib/testing/mod.ts";
import { shiftedClock, WorkerPair, type WorkerPairOptions } from "./worker_pair.ts";
import { type Candidate, inWorld, LEASE, TIMING, type World } from "./world.ts";

const never = new AbortController().signal;

/** A candidate with one isolated task. */
class Isolated {
  readonly candidate: Candidate;
  readonly workers: WorkerPair[] = [];
  readonly errors: LeaderTaskError[] = [];
  readonly exits: number[] = [];
  readonly done: Promise<void>;

  constructor(
    world: World,
    run: IsolatedTaskRun,
    more: { input?: unknown; clock?: Clock; closed?: WorkerPairOptions["closed"] } = {},
  ) {
    this.candidate = world.candidate("a");
    const { input, closed } = more;
    // The clock of a worker begins at another moment than that of its program.
    const clock = more.clock ?? shiftedClock(world.clock, -7_000.25);
    this.done = runLeaderTasks({
      candidate: this.candidate.elector,
      tasks: [{
        name: "count",
        isolated: true,
        input,
        worker: (name) => {
          const pair = new WorkerPair({
            name,
            clock,
            tasks: { count: run },
            ...(closed === undefined ? {} : { closed }),
          });
          this.workers.push(pair);
          return pair;
        },
      }],
      timing: TIMING,
      clock: world.clock,
      logger: this.candidate.log,
      onTaskError: (error) => this.errors.push(error),
      exit: (code) => this.exits.push(code),
    });
    this.candidate.elector.start();
  }

  get worker(): WorkerPair {
    const worker = this.workers.at(-1);
    if (worker === undefined) throw new Error("Cannot show the worker: there was none");
    return worker;
  }

  lines(level: "warn" | "error"): string[] {
    return this.candidate.log.at(level).map((line) => line.message);
  }

  async stop(): Promise<void> {
    await this.candidate.stop();
    await this.done;
  }
}

/** A task that waits for the end of its term, and shows its terms. */
function patient(terms: Term[], events: string[] = []): IsolatedTaskRun {
  return async (term) => {
    terms.push(term);
    await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
    const { reason } = term.signal;
    events.push(reason instanceof LeadershipLostError ? reason.reason : "no reason");
  };
}

function only<T>(items: readonly T[]): T {
  assert.equal(items.length, 1);
  const [item] = items;
  assert.ok(item !== undefined);
  return item;
}

Deno.test("an isolated task gets its input and the token of its term, and ends with it", () =>
  inWorld(async (world) => {
    const terms: Term[] = [];
    const events: unknown[] = [];
    const ends: string[] = [];
    const isolated = new Isolated(world, async (term, input) => {
      events.push(input);
      await patient(terms, ends)(term, input);
    }, { input: { table: "orders" } });
    await world.clock.advance(30_000);
    assert.deepEqual(events, [{ table: "orders" }]);
    assert.equal(only(terms).token, isolated.candidate.term.token);
    assert.equal(isolated.worker.terminated, false);
    await isolated.stop();
    assert.deepEqual(ends, ["stopped"]);
    assert.equal(isolated.worker.terminated, true);
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, undefined);
    assert.deepEqual(isolated.lines("warn"), []);
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("each term has a worker of its own", () =>
  inWorld(async (world) => {
    const terms: Term[] = [];
    const isolated = new Isolated(world, patient(terms));
    await world.clock.advance(0);
    world.leases.delete(LEASE);
    await world.clock.advance(1_000);
    assert.equal(isolated.workers.length, 2);
    assert.equal(isolated.workers[0]?.terminated, true);
    assert.ok(BigInt(terms[1]?.token ?? 0) > BigInt(terms[0]?.token ?? 0));
    await isolated.stop();
  }));

Deno.test("a worker that reads no messages still sees every renewal, and the end of belief", () =>
  inWorld(async (world) => {
    const terms: Term[] = [];
    const isolated = new Isolated(world, patient(terms));
    await world.clock.advance(0);
    const term = only(terms);
    isolated.worker.toWorker.close();
    await world.clock.advance(60_000);
    assert.equal(term.isValid(), true);
    world.leases.delete(LEASE);
    await world.clock.advance(0);
    assert.equal(term.signal.aborted, false, "the message that tells it is held back");
    assert.equal(term.isValid(), false);
    assert.equal(term.signal.aborted, true, "the one who asks learns it");
    assert.equal(term.isValid(), false);
    isolated.worker.toWorker.open();
    await isolated.stop();
  }));

Deno.test("a worker whose program is starved stops by its own clock at the end of belief", () =>
  inWorld(async (world) => {
    const own = new TestClock();
    const terms: Term[] = [];
    const ends: string[] = [];
    const isolated = new Isolated(world, patient(terms, ends), { clock: own });
    await world.clock.advance(0);
    const term = only(terms);
    await own.advance(9_999);
    assert.equal(term.isValid(), true);
    await own.advance(1);
    assert.deepEqual(ends, ["renew_deadline"]);
    assert.equal(term.isValid(), false);
    // The task is over, and with it the term: nobody would do its work otherwise.
    await world.clock.advance(0);
    assert.deepEqual(isolated.candidate.losses, ["resigned"]);
    await isolated.stop();
  }));

Deno.test("during a stop the worker's belief is renewed until its work has settled", () =>
  inWorld(async (world) => {
    const terms: Term[] = [];
    const seen: boolean[] = [];
    const isolated = new Isolated(world, async (term) => {
      await patient(terms)(term, undefined);
      await sleep(world.clock, 3_500, never);
      seen.push(term.isValid());
    });
    // Just before a renewal is due, so that what was told before the stop does not last.
    await world.clock.advance(1_900);
    const before = only(terms).validUntil ?? 0;
    const stopped = isolated.stop();
    await world.clock.advance(3_400);
    assert.ok((only(terms).validUntil ?? 0) > before);
    await world.clock.advance(100);
    await stopped;
    assert.deepEqual(seen, [true]);
  }));

Deno.test("a machine that stood still ends belief in the worker too, before the program looked", () =>
  inWorld(async (world) => {
    const own = new TestClock();
    const terms: Term[] = [];
    const ends: string[] = [];
    const isolated = new Isolated(world, patient(terms, ends), { clock: own });
    await world.clock.advance(0);
    own.jumpWall(1_000);
    assert.equal(only(terms).isValid(), true);
    own.jumpWall(1);
    assert.equal(only(terms).isValid(), false);
    await world.clock.advance(0);
    assert.deepEqual(ends, ["clock_jump"]);
    await isolated.stop();
  }));

Deno.test("a worker that overruns and answers is terminated, and the next term begins", () =>
  inWorld(async (world) => {
    const terms: Term[] = [];
    const isolated = new Isolated(world, (term) => {
      terms.push(term);
      return new Promise(() => {});
    });
    await world.clock.advance(0);
    world.leases.delete(LEASE);
    await world.clock.advance(3_999);
    assert.equal(isolated.worker.terminated, false);
    await world.clock.advance(1);
    assert.equal(isolated.workers[0]?.terminated, true);
    assert.deepEqual(isolated.lines("warn"), [
      "This replica does not lead any more",
      "A leader task did not stop in time, so its worker is ended",
    ]);
    assert.deepEqual(isolated.exits, []);
    assert.equal(isolated.candidate.leads, true);
    assert.equal(terms.length, 2);
    const stopped = isolated.stop();
    await world.clock.advance(4_000);
    await stopped;
    assert.equal(isolated.workers.length, 2);
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, undefined);
  }));

Deno.test("a worker that does not answer within 100 ms ends the process, before another can lead", () =>
  inWorld(async (world) => {
    const isolated = new Isolated(world, () => new Promise(() => {}));
    await world.clock.advance(0);
    const b = world.started("b");
    isolated.worker.toWorker.close();
    isolated.candidate.client.fault = () => ({ type: "hang" });
    isolated.candidate.client.watchMode = "silent";
    await world.until(() => !isolated.candidate.leads);
    await world.clock.advance(4_099);
    assert.deepEqual(isolated.exits, []);
    await world.clock.advance(1);
    assert.deepEqual(isolated.exits, [1]);
    assert.equal(b.leads, false);
    assert.equal(isolated.worker.terminated, false);
    assert.deepEqual(isolated.lines("error"), [
      "The worker of a leader task does not answer, so the process ends",
    ]);
    isolated.worker.crash();
    await isolated.candidate.crash();
    await isolated.done;
  }));

Deno.test("a task that ends while its worker is pinged has stopped, and nothing is ended by force", () =>
  inWorld(async (world) => {
    const terms: Term[] = [];
    const isolated = new Isolated(world, patient(terms));
    await world.clock.advance(0);
    isolated.worker.toProgram.close();
    world.leases.delete(LEASE);
    await world.clock.advance(4_050);
    isolated.worker.toProgram.open();
    await world.clock.advance(1_000);
    assert.deepEqual(isolated.exits, []);
    await isolated.stop();
  }));

Deno.test("a task whose term ends before its worker is ready never runs", () =>
  inWorld(async (world) => {
    const terms: Term[] = [];
    const isolated = new Isolated(world, patient(terms), { closed: "toProgram" });
    await world.clock.advance(500);
    await isolated.stop();
    assert.equal(isolated.worker.terminated, true);
    isolated.worker.toProgram.open();
    await world.clock.advance(0);
    assert.deepEqual(terms, []);
  }));

Deno.test("a term that another task gave up at once gives its isolated tasks nothing to do", () =>
  inWorld(async (world) => {
    const a = world.candidate("a");
    const terms: Term[] = [];
    const workers: WorkerPair[] = [];
    const done = runLeaderTasks({
      candidate: a.elector,
      tasks: [{ name: "first", run: (term) => term.resign() }, {
        name: "count",
        isolated: true,
        worker: (name) => {
          const pair = new WorkerPair({
            name,
            clock: world.clock,
            tasks: { count: patient(terms) },
          });
          workers.push(pair);
          return pair;
        },
      }],
      timing: TIMING,
      clock: world.clock,
      logger: a.log,
      onTaskError: (error) => assert.fail(error),
      exit: (code) => assert.fail(`exit ${code}`),
    });
    a.elector.start();
    await world.clock.advance(1_000);
    assert.equal(only(workers).terminated, true);
    assert.deepEqual(terms, []);
    assert.equal(world.leases.read(LEASE).spec?.holderIdentity, undefined);
    await a.stop();
    await done;
  }));

Deno.test("an isolated task that throws ends the term, and its error reaches the program", () =>
  inWorld(async (world) => {
    const isolated = new Isolated(world, () => Promise.reject(new RangeError("no such table")));
    await world.clock.advance(0);
    assert.deepEqual(isolated.candidate.losses, ["resigned"]);
    const error = only(isolated.errors);
    assert.ok(error instanceof LeaderTaskError && error.cause instanceof RangeError);
    assert.equal(error.cause.message, "no such table");
    await isolated.stop();
  }));

Deno.test("a thrown value that cannot be cloned is told as such", () =>
  inWorld(async (world) => {
    const isolated = new Isolated(world, () => Promise.reject(() => {}));
    await world.clock.advance(0);
    assert.match(String(only(isolated.errors).cause), /must be cloneable/);
    await isolated.stop();
  }));

Deno.test("a task that throws before its term ends lets its registered work end first", () =>
  inWorld(async (world) => {
    const events: string[] = [];
    const isolated = new Isolated(world, (term) => {
      term.waitUntil((async () => {
        await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
        events.push("work ends");
      })());
      throw new Error("boom");
    });
    await world.clock.advance(0);
    assert.deepEqual(events, ["work ends"]);
    assert.equal(isolated.errors.length, 1);
    await isolated.stop();
  }));

Deno.test("a task that throws what its signal aborted with has stopped", () =>
  inWorld(async (world) => {
    const isolated = new Isolated(
      world,
      (term) => sleep(world.clock, 1_000_000, term.signal),
    );
    await world.clock.advance(1_000);
    await isolated.stop();
    assert.deepEqual(isolated.errors, []);
    assert.deepEqual(isolated.candidate.losses, ["stopped"]);
  }));

Deno.test("registered work keeps the task running, and after its end none can be registered", () =>
  inWorld(async (world) => {
    const terms: Term[] = [];
    const isolated = new Isolated(world, (term) => {
      terms.push(term);
      term.waitUntil(sleep(world.clock, 5_000, never));
    });
    await world.clock.advance(4_999);
    assert.equal(isolated.worker.terminated, false);
    await world.clock.advance(1);
    assert.equal(isolated.worker.terminated, true);
    assert.equal(isolated.candidate.leads, true, "a task that returns early runs in the next term");
    assert.throws(() => only(terms).waitUntil(Promise.resolve()), LeadershipLostError);
    await isolated.stop();
  }));

Deno.test("an isolated task can give up the lead", () =>
  inWorld(async (world) => {
    const terms: Term[] = [];
    const ends: string[] = [];
    const isolated = new Isolated(world, patient(terms, ends));
    await world.clock.advance(0);
    only(terms).resign();
    await world.clock.advance(0);
    assert.deepEqual(ends, ["resigned"]);
    assert.deepEqual(isolated.candidate.losses, ["resigned"]);
    await isolated.stop();
  }));

Deno.test("a worker that crashes ends the term and not the program", () =>
  inWorld(async (world) => {
    const isolated = new Isolated(world, patient([]));
    await world.clock.advance(0);
    assert.equal(isolated.worker.crash("Uncaught Error: out of memory"), true);
    await world.clock.advance(0);
    assert.match(String(only(isolated.errors).cause), /out of memory/);
    assert.deepEqual(isolated.candidate.losses, ["resigned"]);
    await isolated.stop();
  }));

Deno.test("an input that cannot be cloned, and a worker that does not start, are failures of the task", () =>
  inWorld(async (world) => {
    const isolated = new Isolated(world, patient([]), { input: () => {} });
    await world.clock.advance(0);
    assert.equal(only(isolated.errors).taskName, "count");
    await isolated.stop();

    const b = world.candidate("b");
    const errors: LeaderTaskError[] = [];
    const done = runLeaderTasks({
      candidate: b.elector,
      tasks: [{
        name: "x",
        isolated: true,
        worker: () => {
          throw new TypeError("no such file");
        },
      }],
      timing: TIMING,
      clock: world.clock,
      logger: b.log,
      onTaskError: (error) => errors.push(error),
      exit: () => {},
    });
    b.elector.start();
    await world.clock.advance(0);
    assert.ok(only(errors).cause instanceof TypeError);
    await b.stop();
    await done;
  }));

Deno.test("a file that does not have the task says which ones it has", async () => {
  for (const [tasks, has] of [[{}, "none"], [{ other: () => {} }, "other"]] as const) {
    const posted: unknown[] = [];
    const scope = {
      name: isolatedWorkerName("toString"),
      postMessage: (message: unknown) => posted.push(message),
      addEventListener: () => {},
    };
    assert.equal(hostIsolatedTasks({ scope, clock: new TestClock(), tasks }), true);
    assert.match(
      JSON.stringify(posted.map((message) => String(Object(message).error))),
      new RegExp(`'toString' as the worker's file must have it: it has ${has}`),
    );
  }
  await Promise.resolve();
});

Deno.test("the program itself, and a worker of another kind, is no worker for a task", () => {
  const clock = new TestClock();
  const port = { postMessage: () => {}, addEventListener: () => {} };
  for (const scope of [globalThis, {}, { ...port, name: "other" }, { ...port, name: 1 }]) {
    assert.equal(hostIsolatedTasks({ scope, clock, tasks: {} }), false);
  }
});

Deno.test("messages that are none of ours are passed over on both sides", () =>
  inWorld(async (world) => {
    const terms: Term[] = [];
    const isolated = new Isolated(world, patient(terms));
    await world.clock.advance(0);
    for (const odd of [null, 1, "x", {}, { type: "odd" }, { type: "begin" }, { type: "ready" }]) {
      isolated.worker.postMessage(odd);
      isolated.worker.toProgram.post(odd);
    }
    await world.clock.advance(5_000);
    assert.equal(isolated.candidate.leads, true);
    assert.equal(only(terms).isValid(), true);
    await isolated.stop();
  }));

Deno.test("an isolated task under a static leadership has a term without an end", async () => {
  const clock = new TestClock();
  const candidate = staticLeadership({ clock, identity: "dev", leaseName: "app" });
  const terms: Term[] = [];
  const done = runLeaderTasks({
    candidate,
    tasks: [{
      name: "count",
      isolated: true,
      worker: (name) => new WorkerPair({ name, clock, tasks: { count: patient(terms) } }),
    }],
    timing: TIMING,
    clock,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    onTaskError: assert.fail,
    exit: (code) => assert.fail(`exit ${code}`),
  });
  candidate.start();
  await clock.advance(3_600_000);
  assert.equal(only(terms).validUntil, null);
  assert.equal(only(terms).isValid(), true);
  await candidate.stop(never);
  await done;
  assert.equal(only(terms).isValid(), false);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("whatever delays messages, the worker believes no longer than its program", async () => {
  const delay = fc.integer({ min: 0, max: 9_000 });
  await fc.assert(
    fc.asyncProperty(delay, delay, fc.double({ min: -1e6, max: 1e6, noNaN: true }), (
      readyDelayMs,
      beginDelayMs,
      shiftMs,
    ) =>
      inWorld(async (world) => {
        const terms: Term[] = [];
        const isolated = new Isolated(world, patient(terms), {
          clock: shiftedClock(world.clock, shiftMs),
          closed: "toProgram",
        });
        await world.clock.advance(0);
        await world.clock.advance(readyDelayMs);
        isolated.worker.toWorker.close();
        isolated.worker.toProgram.open();
        await world.clock.advance(beginDelayMs);
        isolated.worker.toWorker.open();
        await world.clock.advance(0);
        // No further renewal: what both sides believe now is what they believe to the end.
        isolated.candidate.client.fault = () => ({ type: "hang" });
        isolated.candidate.client.watchMode = "silent";
        for (let ms = 0; ms < 12_000; ms += 250) {
          if (terms[0]?.isValid()) assert.equal(isolated.candidate.term.isValid(), true);
          await world.clock.advance(250);
        }
        assert.equal(terms[0]?.isValid() ?? false, false);
        await isolated.candidate.crash();
        await isolated.done;
      })),
    { numRuns: 25 },
  );
});

Deno.test("a ping never lasts past the moment at which another may lead", () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 1_000_000 }), (gapMs) => {
    const limitMs = pingLimitMs(gapMs);
    assert.ok(limitMs >= 1 && limitMs <= 100 && limitMs <= gapMs);
  }));
  assert.equal(pingLimitMs(1_000), 100);
  assert.equal(pingLimitMs(0), 1);
});
