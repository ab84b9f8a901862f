/**
 * The life of an application: it starts its parts one after the other, answers requests and probes, and ends in order
 * (kubernetes-plugin 14). It knows nothing of Kubernetes.
 *
 * The end: a signal comes; `/ready` is 503 at once, while requests are still answered; what another replica is to take over
 * is given up; the grace passes, in which others learn of it; WebSockets are closed; the ports are; requests in flight end;
 * the parts stop, what was registered last first; the process exits with 0, or with 1 when that took too long.
 *
 * @module
 */

import { type Env, Hono, type MiddlewareHandler } from "hono";
import type { Config, ProcessRole } from "../config/schema.ts";
import { type Deadline, sleep, startDeadline } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";
import { HealthIndicators } from "./health.ts";
import type { HealthIndicator } from "./health.ts";
import { MetricsSources } from "./host_metrics.ts";
import type { MetricsSource } from "./host_metrics.ts";
import { type HostOptions, pathsOf, readConfigOf } from "./host_options.ts";
import { WebSockets } from "./host_sockets.ts";
import type { Host, HostPlugin, HostSystem, StartHook, Worker } from "./hooks.ts";
import { createLifecycle, type ExitCode, type Lifecycle } from "./lifecycle.ts";
import type { ShutdownHook, ShutdownStage } from "./lifecycle.ts";
import type { FetchHandler, Listener } from "./listener.ts";
import type { ListenAddress } from "../config/listen_address.ts";
import { createLogger } from "./log.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { startPlainListener } from "./plain_listener.ts";
import { createHostProbes, type HostPhase, type ProbePaths } from "./probes.ts";
import { servesRequests, worksInBackground } from "./roles.ts";
import { errorClass } from "../runtime/error_class.ts";

/**
 * Makes a host and installs the plugins. Nothing starts.
 *
 * ```ts
 * import { Hono } from "hono";
 * import { createHost } from "@holdfast/holdfast";
 * import { productionSystem } from "@holdfast/holdfast/system";
 *
 * const app = new Hono().get("/", (c) => c.text("hello"));
 * const host = createHost({ system: productionSystem(), app });
 * async function main() {
 *   Deno.exit(await host.run());
 * }
 * ```
 *
 * @throws {ConfigError} The configuration cannot be used.
 * @throws {RangeError} Two plugins, indicators or sources of metrics have one name, a name is blank, or two pages have one
 * path.
 */
export function createHost<E extends Env = Env>(options: HostOptions<E>): ApplicationHost {
  const host = new ApplicationHost(options, (outer) => {
    if (options.app !== undefined) outer.route("/", options.app);
  });
  try {
    for (const plugin of options.plugins ?? []) host.install(plugin);
  } catch (error) {
    void host.stop("a plugin cannot be installed");
    throw error;
  }
  return host;
}

/** Milliseconds for clients to answer when their WebSocket is closed. */
const WEB_SOCKET_CLOSE_MS = 1_000;

interface NamedListener {
  readonly name: string;
  readonly start: () => Promise<Listener>;
}

/** An application and what it lives on. Made by {@linkcode createHost}. */
export class ApplicationHost implements Host {
  readonly config: Config;
  readonly role: ProcessRole;
  readonly system: HostSystem;
  readonly logger: Logger;
  /** All that a scrape shows: for a port of one's own. */
  readonly metrics: MetricsSources;
  /** The open WebSockets. Add yours, so that they are closed in time. */
  readonly webSockets: WebSockets = new WebSockets();
  readonly #options: Omit<HostOptions, "app">;
  readonly #mountApp: (outer: Hono) => void;
  readonly #paths: ProbePaths;
  readonly #lifecycle: Lifecycle;
  readonly #indicators: HealthIndicators;
  readonly #processMetrics: Metrics;
  readonly #plugins = new Set<string>();
  readonly #startHooks: { readonly name: string; readonly hook: StartHook }[] = [];
  readonly #workers: Worker[] = [];
  readonly #middleware: MiddlewareHandler[] = [];
  readonly #listeners: NamedListener[] = [];
  readonly #bound = new Map<string, Listener>();
  #app: Hono | null = null;
  #starting: Promise<void> | null = null;
  #started = false;

  /**
   * @param options As {@linkcode createHost} takes them.
   * @param mountApp Puts the application's routes behind what the host itself answers.
   */
  constructor(options: Omit<HostOptions, "app">, mountApp: (outer: Hono) => void) {
    const { system } = options;
    const { clock, stdout } = system;
    this.#options = options;
    this.#mountApp = mountApp;
    this.system = system;
    this.config = options.config ?? readConfigOf(options);
    this.role = this.config.host.role;
    this.#paths = pathsOf(this.config, options);
    this.logger = options.logger ??
      createLogger({ write: (line) => stdout.write(line), clock, ...this.config.log });
    const { prestop_grace_secs, shutdown_timeout_secs } = this.config.host;
    this.#lifecycle = createLifecycle({
      clock,
      logger: this.logger,
      onSignal: (handler) => listenForSignals(system, handler),
      budgetMs: (prestop_grace_secs + shutdown_timeout_secs) * 1_000,
    });
    this.#indicators = new HealthIndicators(clock);
    this.metrics = new MetricsSources(this.logger);
    this.#processMetrics = createMetrics({ clock });
    this.onShutdown("process metrics", () => this.#processMetrics[Symbol.dispose]());
    this.addMetrics({ name: "process", registry: this.#processMetrics.registry });
    const { listen = this.config.host.listen } = options;
    if (listen !== null) this.addListener("host", () => this.#listen(listen));
  }

  /** Aborts when the end begins. */
  get stopping(): AbortSignal {
    return this.#lifecycle.stopping;
  }

  /** Settles with the exit code when the end is over; it never rejects. */
  get done(): Promise<ExitCode> {
    return this.#lifecycle.done;
  }

  /** @inheritdoc */
  async notReady(): Promise<string> {
    if (this.#phase() !== "running") return this.#phase();
    const { components } = await this.#indicators.check("readiness");
    // Time has passed, and a replica that stops must not be told ready by a check that began before.
    if (this.#phase() !== "running") return this.#phase();
    return [...components].flatMap(([name, { status }]) => status === "down" ? [name] : [])
      .join(", ");
  }

  /** Answers a request as the listener does: for tests without a socket. */
  readonly fetch: FetchHandler = (request, env) => this.#application().fetch(request, env);

  /** Answers a path, as hono's own `app.request()`: for tests without a socket. */
  request(path: string, init?: RequestInit): Promise<Response> {
    return Promise.resolve(this.#application().request(path, init));
  }

  /** The address that a port is bound to. @param name A listener's name. @default {"host"} */
  address(name = "host"): ListenAddress | undefined {
    return this.#bound.get(name)?.address;
  }

  /**
   * Installs a plugin.
   *
   * @throws {RangeError} Its name is blank, or a plugin of that name is installed.
   * @throws {TypeError} The host has started.
   */
  install(plugin: HostPlugin): void {
    this.#mustNotHaveStarted("install a plugin");
    const { name } = plugin;
    if (name.trim() === "" || this.#plugins.has(name)) {
      throw new RangeError(
        `Cannot install a plugin as 'name' must be its own and not blank: current value is ${
          JSON.stringify(name)
        }`,
      );
    }
    this.#plugins.add(name);
    plugin.install(this);
  }

  onStart(name: string, hook: StartHook): void {
    this.#mustNotHaveStarted("register a start hook");
    this.#startHooks.push({ name, hook });
  }

  onShutdown(name: string, hook: ShutdownHook, stage?: ShutdownStage): void {
    this.#lifecycle.onShutdown(name, hook, stage);
  }

  addHealth(indicator: HealthIndicator): void {
    this.#indicators.add(indicator);
  }

  addMetrics(source: MetricsSource): void {
    this.metrics.add(source);
  }

  addWorker(worker: Worker): void {
    this.#mustNotHaveStarted("add a worker");
    this.#workers.push(worker);
  }

  addListener(name: string, start: () => Promise<Listener>): void {
    this.#mustNotHaveStarted("add a listener");
    this.#listeners.push({ name, start });
  }

  use(middleware: MiddlewareHandler): void {
    if (this.#app !== null) {
      throw new TypeError("Cannot add middleware as requests are answered already: add it before");
    }
    this.#middleware.push(middleware);
  }

  /**
   * Binds the ports, so that probes are answered, and runs the start hooks.
   *
   * @throws What a hook or a port threw. What was started before has stopped by then. A start that a signal ended does
   * not throw.
   */
  start(): Promise<void> {
    return this.#starting ??= this.#start();
  }

  /** Starts, and runs until the end. @returns The exit code. @throws What {@linkcode ApplicationHost.start} throws. */
  async run(): Promise<ExitCode> {
    await this.start();
    return await this.done;
  }

  /** Begins the end, as a signal does. @param reason For the log. @returns The exit code. */
  stop(reason: string): Promise<ExitCode> {
    return this.#lifecycle.stop(reason);
  }

  async #start(): Promise<void> {
    const settled = Promise.withResolvers<void>();
    // A part that is being started cannot be stopped yet. So whoever stops waits for it first.
    this.onShutdown("start", (deadline) => orDeadline(settled.promise, deadline), "early");
    this.onShutdown("ports", (deadline) => this.#closePorts(deadline), "traffic");
    this.onShutdown("web sockets", (deadline) => this.#closeWebSockets(deadline), "traffic");
    this.onShutdown("prestop grace", (deadline) => this.#waitForGrace(deadline), "traffic");
    try {
      await this.#startParts();
      settled.resolve();
    } catch (error) {
      settled.resolve();
      if (this.stopping.aborted) return;
      await this.#lifecycle.stop("the start failed", 1);
      throw error;
    }
  }

  async #startParts(): Promise<void> {
    for (const { name, start } of this.#listeners) this.#bound.set(name, await start());
    for (const { name, hook } of this.#startHooks) {
      if (this.stopping.aborted) return;
      await hook(this.stopping);
      this.logger.debug("started", { part: name });
    }
    if (this.stopping.aborted) return;
    this.#started = true;
    if (worksInBackground(this.role)) this.#startWorkers();
    this.logger.info("ready", { role: this.role });
  }

  #startWorkers(): void {
    const running = this.#workers.map(async (worker) => {
      try {
        await worker.run(this.stopping);
      } catch (error) {
        if (this.stopping.aborted) return;
        this.logger.error("a worker failed", { worker: worker.name, error: errorClass(error) });
        // It is not waited for here: the end waits for the workers.
        void this.#lifecycle.stop("a worker failed", 1);
      }
    });
    const settled = Promise.all(running).then(() => {});
    this.onShutdown("workers", (deadline) => orDeadline(settled, deadline));
  }

  #phase(): HostPhase {
    if (this.stopping.aborted) return "stopping";
    return this.#started ? "running" : "starting";
  }

  #application(): Hono {
    return this.#app ??= this.#build();
  }

  #build(): Hono {
    const { healthDetails = false, notFound } = this.#options;
    const outer = new Hono();
    outer.route(
      "/",
      createHostProbes({
        paths: this.#paths,
        phase: () => this.#phase(),
        started: () => this.#started,
        indicators: this.#indicators,
        metrics: this.metrics,
        showDetails: healthDetails,
      }),
    );
    // The parts that a handler relies on are not there before the start is over.
    outer.use(async (c, next) => {
      if (this.#started) return await next();
      return c.json({ error: "starting" }, 503, { "Retry-After": "1" });
    });
    for (const middleware of this.#middleware) outer.use(middleware);
    if (servesRequests(this.role)) this.#mountApp(outer);
    if (notFound !== undefined) outer.notFound(notFound);
    return outer;
  }

  #listen(address: ListenAddress): Promise<Listener> {
    const { limits, onUpgrade } = this.#options;
    return startPlainListener({
      name: "host",
      address,
      handler: this.fetch,
      clock: this.system.clock,
      logger: this.logger,
      limits,
      onUpgrade,
    });
  }

  /** A replica that was never ready has no traffic that must move. */
  async #waitForGrace({ signal }: Deadline): Promise<void> {
    if (!this.#started) return;
    await sleep(this.system.clock, this.config.host.prestop_grace_secs * 1_000, signal);
  }

  /** A client that does not answer to the close is cut off with its port. */
  async #closeWebSockets({ signal }: Deadline): Promise<void> {
    using limit = startDeadline(this.system.clock, WEB_SOCKET_CLOSE_MS, signal);
    await this.webSockets.close(limit);
  }

  /** Stops accepting, and lets what is in flight end within what is left of the budget. */
  async #closePorts({ at }: Deadline): Promise<void> {
    const leftMs = Math.max(0, at - this.system.clock.monotonic());
    await Promise.all([...this.#bound.values()].map((listener) => listener.stop(leftMs)));
  }

  #mustNotHaveStarted(action: string): void {
    if (this.#starting === null) return;
    throw new TypeError(`Cannot ${action} as the host has started: do it before`);
  }
}

function listenForSignals(system: HostSystem, handler: (signal: string) => void): () => void {
  const stops = (["SIGINT", "SIGTERM"] as const).map((signal) =>
    system.onSignal(signal, () => handler(signal))
  );
  return () => stops.forEach((stop) => stop());
}

/** Waits for work, but no longer than the deadline. */
function orDeadline(work: Promise<void>, { signal }: Deadline): Promise<void> {
  const over = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  return Promise.race([work, over]);
}
