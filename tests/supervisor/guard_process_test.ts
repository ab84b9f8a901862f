import assert from "node:assert/strict";
import {
  formatLine,
  type GuardOrder,
  type GuardReport,
  parseReport,
} from "../../lib/supervisor/guard_protocol.ts";
import { guard } from "../../lib/supervisor/guard_process.ts";
import { CommandNotFoundError } from "../../lib/supervisor/process_group.ts";
import { TestClock } from "../../lib/testing/mod.ts";

const PID = 4242;
const START: GuardOrder = { type: "start", path: "migrate", args: ["--all"], env: { A: "1" } };

/** A guard with a supervisor and a program that a test plays. */
class Stage {
  readonly clock = new TestClock();
  readonly reports: (GuardReport | null)[] = [];
  readonly killed: number[] = [];
  readonly started: unknown[] = [];
  readonly done: Promise<void>;
  /** Ends the program by itself. */
  readonly endProgram: (code: number) => void;
  readonly #orders = new TransformStream<string, string>();
  readonly #writer = this.#orders.writable.getWriter();

  constructor({ isThere = true } = {}) {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.endProgram = resolve;
    this.done = guard({
      clock: this.clock,
      orders: this.#orders.readable,
      tell: (text) => void this.reports.push(parseReport(text.trimEnd())),
      start: (command, env) => {
        if (!isThere) throw new CommandNotFoundError(command.path);
        this.started.push({ path: command.path, args: command.args, env });
        return { pid: PID, ended: promise };
      },
      kill: (group) => {
        this.killed.push(group);
        resolve(137);
      },
    });
  }

  async order(one: GuardOrder): Promise<void> {
    await this.say(formatLine(one).trimEnd());
  }

  async say(line: string): Promise<void> {
    await this.#writer.write(line);
    await this.clock.advance(0);
  }

  /** The supervisor is gone. */
  async hangUp(): Promise<void> {
    await this.#writer.close();
  }

  /** The connection breaks. */
  async breakOff(): Promise<void> {
    await this.#writer.abort(new Error("reset"));
  }
}

Deno.test("a guard tells its time, starts the program as it was told, and tells its process id and its end", async () => {
  const stage = new Stage();
  assert.deepEqual(stage.reports, [{ type: "ready", nowMs: 0 }]);
  await stage.order({ type: "kill-at", atMs: 10_000 });
  await stage.order(START);
  assert.deepEqual(stage.started, [{ path: "migrate", args: ["--all"], env: { A: "1" } }]);
  stage.endProgram(3);
  await stage.clock.advance(0);
  assert.deepEqual(stage.reports.slice(1), [
    { type: "started", pid: PID },
    { type: "ended", code: 3 },
  ]);
  // Once, for what the program may have left behind in its group.
  assert.deepEqual(stage.killed, [PID]);
  await stage.clock.advance(20_000);
  await stage.order({ type: "kill-at", atMs: 1 });
  await stage.hangUp();
  await stage.done;
  assert.deepEqual(stage.killed, [PID], "The id may be another program's by now");
  assert.equal(stage.clock.pendingTimers, 0);
});

Deno.test("at the deadline the group is killed, at the newest one and at no earlier one", async () => {
  const stage = new Stage();
  await stage.order({ type: "kill-at", atMs: 5_000 });
  await stage.order(START);
  await stage.clock.advance(4_000);
  await stage.order({ type: "kill-at", atMs: 9_000 });
  await stage.clock.advance(4_999);
  assert.deepEqual(stage.killed, []);
  await stage.clock.advance(1);
  assert.equal(stage.killed[0], PID);
  assert.deepEqual(stage.reports.at(-1), { type: "ended", code: 137 });
  await stage.hangUp();
  await stage.done;
});

Deno.test("a deadline that is over kills at once, also when it is told before the start", async () => {
  for (const first of [true, false]) {
    const stage = new Stage();
    await stage.clock.advance(6_000);
    const late: GuardOrder = { type: "kill-at", atMs: 5_999 };
    for (const one of first ? [late, START] : [START, late]) await stage.order(one);
    assert.equal(stage.killed[0], PID);
    await stage.hangUp();
    await stage.done;
  }
});

Deno.test("a supervisor that is gone, whose connection breaks, or who talks nonsense, takes the program with it", async () => {
  const ends: readonly ((stage: Stage) => Promise<void>)[] = [
    (stage) => stage.hangUp(),
    (stage) => stage.breakOff(),
    (stage) => stage.say("nonsense"),
  ];
  for (const end of ends) {
    const stage = new Stage();
    await stage.order({ type: "kill-at", atMs: 60_000 });
    await stage.order(START);
    await end(stage);
    await stage.done;
    assert.equal(stage.killed[0], PID);
    assert.equal(stage.clock.pendingTimers, 0);
  }
});

Deno.test("a program that is not there is told, and nothing is killed", async () => {
  const stage = new Stage({ isThere: false });
  await stage.order({ type: "kill-at", atMs: 0 });
  await stage.order(START);
  assert.deepEqual(stage.reports.at(-1), { type: "not-found" });
  await stage.hangUp();
  await stage.done;
  assert.deepEqual(stage.killed, []);
});

Deno.test("a second start is passed over", async () => {
  const stage = new Stage();
  await stage.order(START);
  await stage.order(START);
  assert.equal(stage.started.length, 1);
  await stage.hangUp();
  await stage.done;
});
