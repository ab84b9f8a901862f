import assert from "node:assert/strict";
import type { DeployOptions } from "../../lib/client/client.ts";
import { AuthorityLostError } from "../../lib/client/errors.ts";
import { type ChildGuard, GuardError } from "../../lib/supervisor/guard.ts";
import type { GroupSignal } from "../../lib/supervisor/process_group.ts";
import type { PhaseText } from "../../lib/supervisor/rules.ts";
import { ChildFailedError, supervise } from "../../lib/supervisor/supervise.ts";
import { Rig } from "../client/rig.ts";

const PID = 4242;

/** A supervisor whose guard and program a test plays. */
class Stage implements Disposable {
  readonly rig = new Rig();
  readonly program = Promise.withResolvers<number>();
  readonly events: string[] = [];
  readonly killAt: number[] = [];
  phase: PhaseText = { type: "read", text: "" };
  /** A guard that is frozen tells nobody of the program's end. */
  guardIsFrozen = false;
  env: Readonly<Record<string, string>> = {};
  pass: (signal: GroupSignal) => void = () => {};

  readonly guard: ChildGuard = {
    killAt: (deadlineMs) => void this.killAt.push(deadlineMs),
    start: (_command, env) => {
      assert.ok(this.killAt.length > 0, "The deadline comes before the start");
      this.env = env;
      this.note("start");
      return Promise.resolve({ pid: PID, ended: this.program.promise });
    },
  };

  note(what: string): void {
    this.events.push(`${what} ${this.rig.clock.monotonic()}`);
  }

  run(options: Partial<DeployOptions> = {}): Promise<void> {
    const onDeadline = (deadline: { killAtMs: number }) => this.guard.killAt(deadline.killAtMs);
    const all = { operationId: "op-1", onDeadline, ...options };
    return this.rig.client().deploy(all, async (authority) =>
      await supervise(authority, {
        clock: this.rig.clock,
        guard: this.guard,
        command: { path: "migrate", args: [] },
        phaseFile: { path: "/phase", read: () => this.phase },
        signal: (group, signal) => {
          assert.equal(group, PID);
          this.note(signal);
          if (signal === "SIGKILL" && !this.guardIsFrozen) this.program.resolve(137);
          return true;
        },
        onStarted: ({ pass }) => void (this.pass = pass),
        onStopping: (why, killInMs) => this.note(`${why.reason} ${killInMs}`),
        onGuardLost: () => this.note("guard lost"),
      }));
  }

  /** The kinds of leases that are still held. */
  async held(): Promise<string[]> {
    const { body } = await this.rig.service.client().observe();
    const leases: readonly { kind: string }[] = Array.isArray(body.leases) ? body.leases : [];
    return leases.map(({ kind }) => kind);
  }

  [Symbol.dispose](): void {
    this.rig[Symbol.dispose]();
  }
}

Deno.test("the guard is told each new deadline while the program runs", async () => {
  using stage = new Stage();
  const running = stage.run();
  await stage.rig.pass(21_000);
  assert.deepEqual([stage.killAt[0], stage.killAt.at(-1)], [25_000, 45_000]);
  assert.equal(stage.env.HOLDFAST_OPERATION_ID, "op-1");
  assert.equal(stage.env.HOLDFAST_PHASE_FILE, "/phase");
  stage.program.resolve(0);
  await stage.rig.until(running);
  assert.deepEqual(stage.events, ["start 0"]);
  assert.deepEqual(await stage.held(), []);
});

Deno.test("a service that goes away: SIGTERM two margins before the deadline, SIGKILL one, and the loss is the outcome", async () => {
  using stage = new Stage();
  const running = stage.run();
  await stage.rig.pass(500);
  stage.rig.forecast = () => "refused";
  const error = await stage.rig.until(running.catch((one) => one));
  assert.ok(error instanceof AuthorityLostError);
  assert.deepEqual([error.reason, error.phase], ["deadline", "before-ddl"]);
  assert.deepEqual(stage.events, [
    "start 0",
    "SIGTERM 20000",
    "deadline 5000 20000",
    "SIGKILL 25000",
  ]);
  assert.equal(stage.killAt.at(-1), 25_000);
});

Deno.test("a revocation leaves 2 s, for the guard too, and no renewal of the other lease gives more", async () => {
  using stage = new Stage();
  const running = stage.run();
  await stage.rig.pass(500);
  stage.rig.forecast = ({ method, path }) =>
    method === "PUT" && path.includes("/migration/")
      ? Response.json({ error: "revoked", reason: "operator_revoked" }, { status: 409 })
      : "fine";
  const error = await stage.rig.until(running.catch((one) => one));
  assert.ok(error instanceof AuthorityLostError);
  assert.equal(error.reason, "operator_revoked");
  assert.deepEqual(stage.events.slice(1), [
    "SIGTERM 10000",
    "operator_revoked 2000 10000",
    "SIGKILL 12000",
  ]);
  assert.equal(stage.killAt.at(-1), 12_000);
});

Deno.test("a program that ends when it is asked is not killed", async () => {
  using stage = new Stage();
  const running = stage.run();
  await stage.rig.pass(500);
  stage.rig.forecast = () => "refused";
  await stage.rig.pass(19_600);
  stage.program.resolve(0);
  await stage.rig.until(running.catch((one) => one));
  assert.equal(stage.events.some((event) => event.startsWith("SIGKILL")), false);
});

Deno.test("the phase file decides about the words and about the lease", async () => {
  const table = [
    [{ type: "read", text: "" }, []],
    [{ type: "read", text: "ddl\n" }, ["migration"]],
    [{ type: "unreadable" }, ["migration"]],
  ] as const;
  for (const [phase, left] of table) {
    using stage = new Stage();
    const running = stage.run();
    await stage.rig.pass(500);
    stage.phase = phase;
    stage.program.resolve(5);
    const error = await stage.rig.until(running.catch((one) => one));
    assert.ok(error instanceof ChildFailedError);
    assert.equal(error.code, 5);
    assert.deepEqual(await stage.held(), left);
  }
  using stage = new Stage();
  const running = stage.run();
  await stage.rig.pass(500);
  stage.phase = { type: "read", text: "ddl" };
  stage.rig.forecast = () => "refused";
  const error = await stage.rig.until(running.catch((one) => one));
  assert.ok(error instanceof AuthorityLostError);
  assert.equal(error.phase, "after-ddl");
});

Deno.test("signals are passed on to the group", async () => {
  using stage = new Stage();
  const running = stage.run();
  await stage.rig.pass(500);
  stage.pass("SIGINT");
  stage.program.resolve(130);
  await assert.rejects(stage.rig.until(running), { name: "ChildFailedError", code: 130 });
  assert.match(stage.events[1] ?? "", /^SIGINT/);
});

Deno.test("a guard that was killed leaves the program to its supervisor", async () => {
  using stage = new Stage();
  const running = stage.run();
  await stage.rig.pass(500);
  stage.program.reject(new GuardError("killed"));
  await assert.rejects(stage.rig.until(running), { name: "ChildFailedError", code: 137 });
  assert.deepEqual(stage.events.slice(1).map((event) => event.replace(/ \d+$/, "")), [
    "SIGKILL",
    "guard lost",
  ]);
});

Deno.test("a guard that is frozen does not keep a run from its end once the program was killed", async () => {
  using stage = new Stage();
  stage.guardIsFrozen = true;
  const running = stage.run();
  await stage.rig.pass(500);
  stage.rig.forecast = () => "refused";
  const error = await stage.rig.until(running.catch((one) => one));
  assert.ok(error instanceof AuthorityLostError);
  assert.equal(error.reason, "deadline");
  assert.deepEqual(stage.events.slice(-3), ["SIGKILL 25000", "SIGKILL 28000", "guard lost 28000"]);
  assert.equal(stage.rig.clientTimers, 0);
});

Deno.test("authority that is lost while the program starts stops it, and one lost before starts nothing", async () => {
  using stage = new Stage();
  const start = stage.guard.start;
  const slow: ChildGuard = {
    ...stage.guard,
    start: async (command, env) => {
      stage.rig.forecast = ({ method }) =>
        method === "PUT" ? Response.json({ error: "not_found" }, { status: 404 }) : "fine";
      await new Promise<void>((done) => stage.rig.clock.timer(11_000, done));
      return await start(command, env);
    },
  };
  Object.assign(stage, { guard: slow });
  const error = await stage.rig.until(stage.run().catch((one) => one));
  assert.ok(error instanceof AuthorityLostError);
  assert.match(stage.events[1] ?? "", /^SIGTERM 11000/);

  using second = new Stage();
  const lost = second.rig.client().deploy({ operationId: "op-2" }, async (authority) => {
    authority.migration.lose("operator_revoked");
    await supervise(authority, {
      clock: second.rig.clock,
      guard: second.guard,
      command: { path: "migrate", args: [] },
      phaseFile: { path: "/phase", read: () => second.phase },
      signal: () => true,
      onStarted: () => assert.fail("It must not start"),
      onStopping: () => {},
      onGuardLost: () => {},
    });
  });
  await assert.rejects(second.rig.until(lost), AuthorityLostError);
  assert.deepEqual(second.events, []);
});
