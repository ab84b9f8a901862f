import assert from "node:assert/strict";
import { createLifecycle } from "../../lib/host/lifecycle.ts";
import { sleep } from "../../lib/runtime/clock.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";
import { recordingLogger } from "./support.ts";

/** A lifecycle on a test clock, and the means to send it signals. */
function start(budgetMs?: number) {
  const clock = new TestClock();
  const logger = recordingLogger();
  let handler: ((signal: string) => void) | undefined;
  const lifecycle = createLifecycle({
    clock,
    logger,
    budgetMs,
    onSignal(given) {
      handler = given;
      return () => handler = undefined;
    },
  });
  return {
    clock,
    lifecycle,
    logger,
    signal: (name: string) => handler?.(name),
    listens: () => handler !== undefined,
  };
}

Deno.test("on a signal the hooks run last in, first out, one after the other, and the exit code is 0", async () => {
  const { clock, lifecycle, signal, logger, listens } = start();
  const events: string[] = [];
  for (const name of ["first", "second", "third"]) {
    lifecycle.onShutdown(name, async ({ signal }) => {
      events.push(`${name} stops`);
      await sleep(clock, 1_000, signal);
      events.push(`${name} stopped`);
    });
  }
  signal("SIGTERM");
  await clock.advance(3_000);
  assert.equal(await lifecycle.done, 0);
  assert.deepEqual(events, [
    "third stops",
    "third stopped",
    "second stops",
    "second stopped",
    "first stops",
    "first stopped",
  ]);
  assert.deepEqual(logger.lines.map((line) => line.message), [
    "shutdown started",
    "shutdown complete",
  ]);
  assert.equal(logger.lines[0]?.fields.reason, "SIGTERM");
  assert.equal(clock.pendingTimers, 0);
  assert.equal(listens(), false);
});

Deno.test("everything learns that the process stops before the first hook runs", async () => {
  const { lifecycle } = start();
  let stoppingInHook = false;
  lifecycle.onShutdown("hook", () => {
    stoppingInHook = lifecycle.stopping.aborted;
  });
  assert.equal(lifecycle.stopping.aborted, false);
  const done = lifecycle.stop("the test is over");
  assert.equal(lifecycle.stopping.aborted, true);
  assert.equal(await done, 0);
  assert.equal(stoppingInHook, true);
});

Deno.test("a hook that overruns the budget ends the process with 1, and the log names it and what was skipped", async () => {
  const { clock, lifecycle, logger } = start(5_000);
  lifecycle.onShutdown("never reached", () => assert.fail("it ran"));
  lifecycle.onShutdown("not reached", () => assert.fail("it ran"));
  let sawDeadline = false;
  lifecycle.onShutdown("hangs", ({ signal }) => {
    signal.addEventListener("abort", () => sawDeadline = true);
    return new Promise(() => {});
  });
  lifecycle.onShutdown("slow", ({ signal }) => sleep(clock, 4_000, signal));
  const done = lifecycle.stop("test");
  await clock.advance(4_999);
  assert.equal(logger.lines.length, 1);
  await clock.advance(1);
  assert.equal(await done, 1);
  assert.equal(sawDeadline, true);
  assert.deepEqual(logger.lines[1], {
    level: "error",
    message: "shutdown overran its budget",
    fields: { hook: "hangs", skipped: ["not reached", "never reached"] },
  });
});

Deno.test("the default budget is 30 s", async () => {
  const { clock, lifecycle } = start();
  let code: number | undefined;
  lifecycle.onShutdown("hangs", () => new Promise(() => {}));
  const done = lifecycle.stop("test").then((given) => code = given);
  await clock.advance(29_999);
  assert.equal(code, undefined);
  await clock.advance(1);
  await done;
  assert.equal(code, 1);
});

Deno.test("a second signal ends the process with 1 at once", async () => {
  const { lifecycle, signal, logger, listens, clock } = start();
  const held = Promise.withResolvers<void>();
  lifecycle.onShutdown("hangs", () => held.promise);
  signal("SIGTERM");
  signal("SIGINT");
  assert.equal(await lifecycle.done, 1);
  assert.equal(logger.lines.at(-1)?.message, "shutdown abandoned");
  assert.equal(listens(), false);
  held.resolve();
  await clock.advance(0);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a hook that throws is logged by its class, and the others still run", async () => {
  const { lifecycle, logger } = start();
  let ran = false;
  lifecycle.onShutdown("other", () => void (ran = true));
  lifecycle.onShutdown("rejects", () => Promise.reject(new TypeError("secret")));
  lifecycle.onShutdown("throws", () => {
    throw Object.assign(Object.create(null), { text: "secret" });
  });
  assert.equal(await lifecycle.stop("test"), 0);
  assert.equal(ran, true);
  assert.deepEqual(logger.lines.slice(1, 3).map((line) => line.fields), [
    { hook: "throws", error: "unknown" },
    { hook: "rejects", error: "TypeError" },
  ]);
  assert(!JSON.stringify(logger.lines).includes("secret"));
});

Deno.test("stop may be called again, and after a signal, and changes nothing", async () => {
  const { lifecycle, signal, logger } = start();
  signal("SIGTERM");
  assert.equal(await lifecycle.stop("again"), 0);
  assert.equal(await lifecycle.stop("and again"), 0);
  assert.equal(logger.lines.filter((line) => line.message === "shutdown started").length, 1);
});

Deno.test("stages come one after the other, and the order of registration counts within a stage alone", async () => {
  const { lifecycle } = start();
  const events: string[] = [];
  const register = (name: string, stage?: "early" | "traffic" | "late") =>
    lifecycle.onShutdown(name, () => void events.push(name), stage);
  register("listener", "traffic");
  register("database");
  register("lead", "early");
  register("grace", "traffic");
  register("cache", "late");
  assert.equal(await lifecycle.stop("test"), 0);
  assert.deepEqual(events, ["lead", "grace", "listener", "cache", "database"]);
});

Deno.test("a process that ends for a fault exits with 1 although its end was in order", async () => {
  const { lifecycle, logger } = start();
  assert.equal(await lifecycle.stop("a worker failed", 1), 1);
  assert.equal(logger.lines.at(-1)?.message, "shutdown complete");
});
