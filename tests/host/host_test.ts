import assert from "node:assert/strict";
import { type Env, Hono } from "hono";
import { Counter, Registry } from "prom-client";
import type { Health } from "../../lib/host/health.ts";
import type { HostPlugin } from "../../lib/host/hooks.ts";
import { createHost } from "../../lib/host/host.ts";
import type { HostOptions } from "../../lib/host/host_options.ts";
import { ListenError } from "../../lib/host/listener.ts";
import { startPlainListener } from "../../lib/host/plain_listener.ts";
import { sleep } from "../../lib/runtime/clock.ts";
import { TestSystem } from "../../lib/testing/test_system.ts";
import { answerOf, hostConfig, machine } from "./host_world.ts";
import { answerOk, connectPlain, eventually, realClock, recordingLogger } from "./support.ts";

/** A host without a port, on a test clock. */
function quietHost<E extends Env>(
  options: Partial<HostOptions<E>> = {},
  host: Record<string, unknown> = {},
) {
  const { clock, system } = machine();
  const logger = recordingLogger();
  const made = createHost<E>({
    system,
    logger,
    config: hostConfig(host),
    listen: null,
    ...options,
  });
  return { clock, system, logger, host: made };
}

const hello = new Hono().get("/", (c) => c.text("hello"));

Deno.test("live is 200 from the first moment, startup and ready are 503 until the start hooks have run", async () => {
  const { host, clock } = quietHost({ app: hello });
  const held = Promise.withResolvers<void>();
  host.onStart("slow", () => held.promise);
  const starting = host.start();
  assert.deepEqual(await answerOf(host.request("/live")), [200, { status: "UP" }]);
  for (const path of ["/startup", "/ready", "/health"]) {
    assert.deepEqual(await answerOf(host.request(path)), [503, {
      status: "DOWN",
      reason: "starting",
    }]);
  }
  const early = await host.request("/");
  assert.equal(early.status, 503);
  assert.equal(early.headers.get("Retry-After"), "1");
  assert.deepEqual(await early.json(), { error: "starting" });

  held.resolve();
  await starting;
  for (const path of ["/live", "/startup", "/ready", "/health"]) {
    assert.deepEqual(await answerOf(host.request(path)), [200, { status: "UP" }], path);
  }
  assert.deepEqual(await answerOf(host.request("/")), [200, "hello"]);
  const done = host.stop("test");
  await clock.advance(5_000);
  assert.equal(await done, 0);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("on a signal ready is 503 at once, requests are served for the grace, and the exit code is 0", async () => {
  const { host, system, clock } = quietHost({ app: hello });
  const events: string[] = [];
  host.onShutdown("database", () => void events.push("database"));
  host.onShutdown("lead", () => void events.push("lead"), "early");
  const running = host.run();
  await clock.advance(0);
  system.signal("SIGTERM");
  assert.equal(host.stopping.aborted, true);
  assert.deepEqual(await answerOf(host.request("/ready")), [503, {
    status: "DOWN",
    reason: "stopping",
  }]);
  assert.deepEqual(await answerOf(host.request("/health")), [503, {
    status: "DOWN",
    reason: "stopping",
  }]);
  assert.equal((await host.request("/live")).status, 200);
  assert.equal((await host.request("/startup")).status, 200);
  await clock.advance(4_999);
  assert.deepEqual(events, ["lead"]);
  assert.deepEqual(await answerOf(host.request("/")), [200, "hello"]);
  await clock.advance(1);
  assert.equal(await running, 0);
  assert.deepEqual(events, ["lead", "database"]);
});

Deno.test("hooks share the grace and the shutdown timeout: an overrun exits with 1", async () => {
  const { host, clock } = quietHost({}, { prestop_grace_secs: 2, shutdown_timeout_secs: 3 });
  host.onShutdown("stuck", () => new Promise(() => {}));
  await host.start();
  let code: number | undefined;
  const done = host.stop("test").then((given) => code = given);
  await clock.advance(4_999);
  assert.equal(code, undefined);
  await clock.advance(1);
  await done;
  assert.equal(code, 1);
});

Deno.test("a check that began before the signal does not tell ready", async () => {
  const { host, clock } = quietHost();
  const asked = Promise.withResolvers<Health>();
  host.addHealth({ name: "a", group: "readiness", check: () => asked.promise });
  await host.start();
  const answer = answerOf(host.request("/ready"));
  const problem = host.notReady();
  const done = host.stop("test");
  asked.resolve({ status: "up" });
  assert.equal(await problem, "stopping");
  assert.deepEqual(await answer, [503, { status: "DOWN", reason: "stopping" }]);
  await clock.advance(5_000);
  await done;
});

Deno.test("what is down in the group readiness takes the replica out, what is down in health does not", async () => {
  const { host, clock } = quietHost();
  let own: Health = { status: "up" };
  host.addHealth({ name: "own", group: "readiness", check: () => own });
  assert.equal(await host.notReady(), "starting");
  host.addHealth({
    name: "shared",
    group: "health",
    check: () => ({ status: "down", details: { error: "timeout" } }),
  });
  await host.start();
  assert.deepEqual(await answerOf(host.request("/ready")), [200, {
    status: "UP",
    components: { own: { status: "UP" } },
  }]);
  assert.deepEqual(await answerOf(host.request("/health")), [503, {
    status: "DOWN",
    components: { own: { status: "UP" }, shared: { status: "DOWN" } },
  }]);
  assert.equal(await host.notReady(), "");
  own = { status: "unknown" };
  assert.equal((await host.request("/ready")).status, 200);
  assert.equal(await host.notReady(), "");
  own = { status: "down" };
  assert.equal((await host.request("/ready")).status, 503);
  assert.equal(await host.notReady(), "own");
  const done = host.stop("test");
  assert.equal(await host.notReady(), "stopping");
  await clock.advance(5_000);
  await done;
});

Deno.test("details are shown only where they are asked for", async () => {
  const { host, clock } = quietHost({ healthDetails: true, healthPath: "/status" });
  host.addHealth({
    name: "a",
    group: "health",
    check: () => ({ status: "up", details: { mode: "x" } }),
  });
  host.addHealth({ name: "b", group: "health", check: () => ({ status: "up" }) });
  await host.start();
  assert.deepEqual(await answerOf(host.request("/status")), [200, {
    status: "UP",
    components: { a: { status: "UP", details: { mode: "x" } }, b: { status: "UP" } },
  }]);
  assert.equal((await host.request("/health")).status, 404);
  const done = host.stop("test");
  await clock.advance(5_000);
  await done;
});

Deno.test("probes have the paths of the configuration, and no answer of a probe is stored", async () => {
  const paths = { live_path: "/l", ready_path: "/r", startup_path: "/s" };
  const { host, clock } = quietHost({}, paths);
  await host.start();
  for (const path of ["/l", "/r", "/s"]) {
    const response = await host.request(path);
    assert.equal(response.status, 200, path);
    assert.equal(response.headers.get("Cache-Control"), "no-store");
    await response.body?.cancel();
  }
  assert.equal((await host.request("/live")).status, 404);
  const done = host.stop("test");
  await clock.advance(5_000);
  await done;
});

Deno.test("two pages of one path are refused", () => {
  const message =
    "Cannot serve probes and metrics as each must have a path of its own: /ready is there twice";
  assert.throws(() => quietHost({ healthPath: "/ready" }), { name: "RangeError", message });
  assert.throws(() => quietHost({}, { live_path: "/x", startup_path: "/x" }), RangeError);
});

Deno.test("a worker answers probes alone, and a web process runs no workers", async () => {
  for (
    const [role, status, works] of [
      ["combined", 200, true],
      ["web", 200, false],
      ["worker", 404, true],
    ] as const
  ) {
    const { host, clock } = quietHost({ app: hello }, { role });
    let worked = false;
    let stopped = false;
    host.addWorker({
      name: "jobs",
      async run(signal) {
        worked = true;
        await sleep(clock, 1_000_000, signal).catch(() => stopped = true);
      },
    });
    await host.start();
    assert.equal((await host.request("/")).status, status, role);
    assert.equal((await host.request("/ready")).status, 200, role);
    const done = host.stop("test");
    await clock.advance(5_000);
    assert.equal(await done, 0);
    assert.deepEqual([worked, stopped], [works, works], role);
    assert.equal(clock.pendingTimers, 0);
  }
});

Deno.test("a worker that throws ends the process with 1, and is named", async () => {
  const { host, clock, logger } = quietHost();
  host.addWorker({ name: "jobs", run: () => Promise.reject(new TypeError("secret")) });
  const running = host.run();
  await clock.advance(5_000);
  assert.equal(await running, 1);
  const line = logger.lines.find(({ level }) => level === "error");
  assert.deepEqual(line?.fields, { worker: "jobs", error: "TypeError" });
});

Deno.test("a worker that throws while the process stops changes nothing, and one that hangs is not waited for beyond the budget", async () => {
  const { host, clock } = quietHost({}, { prestop_grace_secs: 0, shutdown_timeout_secs: 2 });
  host.addWorker({
    name: "late",
    run: (signal) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("x")))),
  });
  host.addWorker({ name: "hangs", run: () => new Promise(() => {}) });
  await host.start();
  const done = host.stop("test");
  await clock.advance(2_000);
  assert.equal(await done, 1);
});

Deno.test("start hooks run one after the other; when one throws, what was started stops, and the start rejects", async () => {
  const { host, clock } = quietHost();
  const events: string[] = [];
  host.onStart("first", () => {
    events.push("first starts");
    host.onShutdown("first", () => void events.push("first stops"));
  });
  host.onStart("second", () => Promise.reject(new RangeError("wrong")));
  host.onStart("third", () => assert.fail("it ran"));
  await assert.rejects(host.run(), { name: "RangeError", message: "wrong" });
  assert.deepEqual(events, ["first starts", "first stops"]);
  assert.equal(await host.done, 1);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a signal during the start ends it: no further hook starts, and hooks of the end wait for the one that is running", async () => {
  const { host, clock, system } = quietHost();
  const events: string[] = [];
  host.onShutdown("part", () => void events.push("part stops"));
  host.onStart("part", async (signal) => {
    await sleep(clock, 1_000, new AbortController().signal);
    events.push(`part started, told to stop: ${signal.aborted}`);
  });
  host.onStart("next", () => assert.fail("it ran"));
  const running = host.run();
  await clock.advance(10);
  system.signal("SIGINT");
  await clock.advance(990);
  // Nobody waits for a grace: this replica was never ready.
  assert.equal(await running, 0);
  assert.deepEqual(events, ["part started, told to stop: true", "part stops"]);
  assert.equal((await host.request("/startup")).status, 503);
});

Deno.test("a start hook that throws since it was told to stop is no failure", async () => {
  const { host, clock, system } = quietHost();
  host.onStart("part", (signal) => sleep(clock, 60_000, signal));
  const running = host.run();
  await clock.advance(10);
  system.signal("SIGTERM");
  assert.equal(await running, 0);
});

Deno.test("plugins are installed in order, and two of one name are refused", () => {
  const installed: string[] = [];
  const plugin = (name: string): HostPlugin => ({
    name,
    install: () => void installed.push(name),
  });
  const { host } = quietHost({ plugins: [plugin("a"), plugin("b")] });
  assert.deepEqual(installed, ["a", "b"]);
  for (const name of ["a", " "]) {
    assert.throws(() => host.install(plugin(name)), {
      name: "RangeError",
      message:
        `Cannot install a plugin as 'name' must be its own and not blank: current value is "${name}"`,
    });
  }
  assert.deepEqual(installed, ["a", "b"]);
  assert.throws(() => quietHost({ plugins: [plugin("a"), plugin("a")] }), RangeError);
  return host.stop("test").then(() => {});
});

Deno.test("after the start nothing more is installed, and after the first request no middleware is added", async () => {
  const { host, clock } = quietHost();
  await host.start();
  await host.start();
  const late = [
    () => host.install({ name: "late", install() {} }),
    () => host.onStart("late", () => {}),
    () => host.addWorker({ name: "late", run: () => Promise.resolve() }),
    () => host.addListener("late", () => Promise.reject(new Error())),
  ];
  for (const act of late) assert.throws(act, /as the host has started: do it before/);
  await host.request("/live");
  assert.throws(() => host.use((_, next) => next()), /requests are answered already/);
  const done = host.stop("test");
  await clock.advance(5_000);
  await done;
});

Deno.test("middleware runs before the application and not before probes, and the host's notFound answers the rest", async () => {
  const app = new Hono<{ Variables: { user: string } }>();
  app.get("/", (c) => c.text(c.var.user));
  app.onError((_, c) => c.text("own error page", 500));
  app.get("/broken", () => {
    throw new Error("x");
  });
  let asked = 0;
  const { host, clock } = quietHost({ app, notFound: (c) => c.text("own 404", 404) });
  host.use(async (c, next) => {
    asked++;
    c.set("user", "me");
    await next();
  });
  await host.start();
  await host.request("/ready");
  assert.equal(asked, 0);
  assert.deepEqual(await answerOf(host.request("/")), [200, "me"]);
  assert.deepEqual(await answerOf(host.request("/broken")), [500, "own error page"]);
  assert.deepEqual(await answerOf(host.request("/nowhere")), [404, "own 404"]);
  assert.equal(asked, 3);
  const done = host.stop("test");
  await clock.advance(5_000);
  await done;
});

Deno.test("a scrape shows every source; one that throws or has a family of another is left out and named", async () => {
  const { host, clock, logger } = quietHost();
  const source = (name: string, metric: string, collect?: () => void) => {
    const registry = new Registry();
    new Counter({ name: metric, help: "x", registers: [registry], collect });
    return { name, registry };
  };
  host.addMetrics(source("good", "good_total"));
  host.addMetrics(source("twice", "good_total"));
  host.addMetrics(source("bad", "bad_total", () => {
    throw new TypeError("secret");
  }));
  host.addMetrics(source("last", "last_total"));
  assert.throws(() => host.addMetrics(source("good", "x_total")), RangeError);
  assert.throws(() => host.addMetrics(source("", "x_total")), RangeError);
  await host.start();
  const response = await host.request("/metrics");
  assert.match(response.headers.get("Content-Type") ?? "", /^text\/plain; version=0\.0\.4/);
  const text = await response.text();
  assert.match(text, /^process_start_time_seconds /m);
  assert.match(text, /^good_total 0$/m);
  assert.match(text, /^last_total 0$/m);
  assert.doesNotMatch(text, /bad_total/);
  assert.equal(text.match(/# TYPE good_total/g)?.length, 1);
  assert.deepEqual(
    logger.lines.filter(({ level }) => level === "error").map(({ fields }) => fields),
    [{ source: "twice", metric: "good_total" }, { source: "bad", error: "TypeError" }],
  );
  const done = host.stop("test");
  await clock.advance(5_000);
  await done;
});

Deno.test("the metrics can be kept off the application's port", async () => {
  const { host, clock } = quietHost({ metricsPath: null });
  await host.start();
  assert.equal((await host.request("/metrics")).status, 404);
  const done = host.stop("test");
  await clock.advance(5_000);
  await done;
});

Deno.test("without a configuration that of the files and variables is used, and a bad one starts nothing", async () => {
  const { clock, system } = machine({ HOLDFAST__HOST__LIVE_PATH: "/alive", AUTUMN_ROLE: "web" });
  system.files.set("holdfast.yaml", "host: { prestop_grace_secs: 0 }\nlog: { level: debug }\n");
  const host = createHost({ system, listen: null });
  host.onStart("nothing", () => {});
  await host.start();
  assert.equal(host.role, "web");
  assert.equal((await host.request("/alive")).status, 200);
  const done = host.stop("test");
  await clock.advance(0);
  assert.equal(await done, 0);
  assert.match(system.written, /"msg":"shutdown complete"/);
  assert.match(system.written, /"part":"nothing"/);
  assert.equal(clock.pendingTimers, 0);

  const onTerminal = createHost({
    system: new TestSystem({ clock, isTerminal: true }),
    listen: null,
  });
  assert.equal(onTerminal.config.log.format, "text");
  void onTerminal.stop("test");
  await clock.advance(0);

  system.files.set("holdfast.yaml", "host: { colour: red }\n");
  assert.throws(() => createHost({ system, listen: null }), { name: "ConfigError" });
});

Deno.test("the profile that the program names selects its configuration", () => {
  const { system } = machine();
  system.files.set("holdfast-prod.yaml", "host: { prestop_grace_secs: 7 }\n");
  const host = createHost({ system, listen: null, profile: "prod" });
  assert.equal(host.config.host.prestop_grace_secs, 7);
  return host.stop("test").then(() => {});
});

Deno.test("over a socket: a request in flight ends, and the port is closed then", async () => {
  const system = new TestSystem({ clock: realClock });
  const logger = recordingLogger();
  const held = Promise.withResolvers<void>();
  const app = new Hono().get("/slow", async (c) => {
    await held.promise;
    return c.text("done");
  });
  const config = hostConfig({ prestop_grace_secs: 0 });
  const host = createHost({ system, logger, app, config });
  await host.start();
  const port = host.address()?.port ?? 0;
  const slow = fetch(`http://127.0.0.1:${port}/slow`);
  await eventually(async () => {
    const response = await fetch(`http://127.0.0.1:${port}/ready`);
    await response.body?.cancel();
    return response.status === 200;
  }, "the port answers");
  system.signal("SIGTERM");
  await eventually(() =>
    fetch(`http://127.0.0.1:${port}/live`).then(
      async (response) => {
        await response.body?.cancel();
        return false;
      },
      () => true,
    ), "it is closed");
  held.resolve();
  assert.equal(await (await slow).text(), "done");
  assert.equal(await host.done, 0);
});

Deno.test("a port that is taken fails the start, and what was bound before is free again", async () => {
  const taken = await startPlainListener({
    name: "other",
    address: { host: "127.0.0.1", port: 0 },
    handler: answerOk,
    clock: realClock,
    logger: recordingLogger(),
  });
  const system = new TestSystem({ clock: realClock });
  const host = createHost({ system, logger: recordingLogger(), config: hostConfig() });
  host.addListener("second", () =>
    startPlainListener({
      name: "second",
      address: taken.address,
      handler: answerOk,
      clock: realClock,
      logger: recordingLogger(),
    }));
  await assert.rejects(host.run(), ListenError);
  const port = host.address()?.port ?? 0;
  assert.equal(host.address("second"), undefined);
  await assert.rejects(fetch(`http://127.0.0.1:${port}/live`));
  await taken.stop(0);
});

Deno.test("over a socket: WebSockets are closed after the grace and before the port, and one that does not answer is cut off", async () => {
  const system = new TestSystem({ clock: realClock });
  const closed: string[] = [];
  const config = hostConfig({ prestop_grace_secs: 0 });
  const host = createHost({
    system,
    logger: recordingLogger(),
    config,
    onUpgrade(incoming, socket) {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
      const answers = incoming.url === "/answers";
      host.webSockets.add({
        close(code, reason) {
          closed.push(`${incoming.url} ${code} ${reason}`);
          if (answers) socket.end();
        },
        addEventListener: (_, listener) => void socket.on("close", listener),
      });
    },
  });
  await host.start();
  const listener = { address: host.address() ?? { port: 0 }, stop: () => Promise.resolve(0) };
  await using answers = await connectPlain(listener);
  await using silent = await connectPlain(listener);
  const upgrade = "HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";
  answers.write(`GET /answers ${upgrade}`);
  silent.write(`GET /silent ${upgrade}`);
  await eventually(() => host.webSockets.count === 2, "both are open");
  assert.equal(await host.stop("test"), 0);
  assert.match(await answers.closed, /^HTTP\/1\.1 101 /);
  await silent.closed;
  assert.deepEqual(closed.sort(), [
    "/answers 1001 the server stops",
    "/silent 1001 the server stops",
  ]);
  await eventually(() => host.webSockets.count === 0, "both are closed");
});

Deno.test("a WebSocket that comes during the end is closed at once", async () => {
  const { host } = quietHost({}, { prestop_grace_secs: 0 });
  await host.stop("test");
  await host.webSockets.close({ signal: new AbortController().signal });
  let code: number | undefined;
  host.webSockets.add({ close: (given) => void (code = given), addEventListener() {} });
  assert.equal(code, 1001);
});
