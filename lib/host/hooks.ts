/**
 * What a host offers to its parts, and what a part is.
 *
 * @module
 */

import type { MiddlewareHandler } from "hono";
import type { Config, ProcessRole } from "../config/schema.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import type { Logger } from "../runtime/log.ts";
import type { HealthIndicator } from "./health.ts";
import type { MetricsSource, MetricsSources } from "./host_metrics.ts";
import type { ShutdownHook, ShutdownStage } from "./lifecycle.ts";
import type { WebSockets } from "./host_sockets.ts";
import type { Listener } from "./listener.ts";

/** The machine, as far as a host and its parts need it. The product's `./system` export has the real one. */
export interface HostSystem {
  readonly clock: Clock;
  readonly entropy: Entropy;
  /** The environment variables, as they were at the start. */
  readonly env: Readonly<Record<string, string>>;
  /** Where the log goes, unless the host is given a logger. */
  readonly stdout: { readonly isTerminal: boolean; write(text: string): void };
  /**
   * The text of a file, or `undefined` where there is none.
   *
   * @throws What the platform says when a file is there and cannot be read.
   */
  readTextFile(path: string): string | undefined;
  /** Ends the process at once. */
  exit(code: number): void;
  /** Calls `handler` each time that `signal` arrives, and gives a function that removes it. */
  onSignal(signal: "SIGINT" | "SIGTERM", handler: () => void): () => void;
}

/**
 * Starts a part. When it throws, nothing further starts, what was started is stopped, and the host's start rejects.
 *
 * @param signal Aborts when the process is asked to stop.
 */
export type StartHook = (signal: AbortSignal) => void | Promise<void>;

/** Work that nobody waits for with a request. */
export interface Worker {
  /** Names the worker in log lines. */
  readonly name: string;
  /**
   * Works until `signal` aborts; to return early is allowed. When it throws, the process stops and exits with 1, since
   * nobody else would see that the work is not done any more.
   */
  run(signal: AbortSignal): Promise<void>;
}

/** What a host offers to a part that is installed. All of it is to be registered before the host starts. */
export interface Host {
  readonly config: Config;
  readonly role: ProcessRole;
  readonly system: HostSystem;
  readonly logger: Logger;
  /** All that a scrape shows: for a port of a part's own. */
  readonly metrics: Pick<MetricsSources, "render" | "contentType">;
  /** Aborts when the end begins. */
  readonly stopping: AbortSignal;
  /**
   * Says why this replica is to get no traffic, for a probe on a port of a part's own: `starting`, `stopping`, or the names
   * of the indicators of readiness that are down. Empty when it is ready.
   */
  notReady(): Promise<string>;
  /** The open WebSockets. A part adds its own, so that they are closed in time. */
  readonly webSockets: Pick<WebSockets, "add">;
  /** Registers what starts a part. These run one after the other, first in, first out; probes are answered meanwhile. */
  onStart(name: string, hook: StartHook): void;
  /** Registers what stops a part. See {@linkcode ShutdownStage} for when. @param stage @default {"late"} */
  onShutdown(name: string, hook: ShutdownHook, stage?: ShutdownStage): void;
  /** Registers a health indicator. @throws {RangeError} Its name is blank or taken. */
  addHealth(indicator: HealthIndicator): void;
  /** Registers metrics. @throws {RangeError} Their name is blank or taken. */
  addMetrics(source: MetricsSource): void;
  /** Registers work for the background. It runs in the roles `combined` and `worker`, once the start is over. */
  addWorker(worker: Worker): void;
  /** Registers a port of a part's own. It is bound first thing, and stops with the traffic. */
  addListener(name: string, start: () => Promise<Listener>): void;
  /** Runs before every handler of the application, but not before the probes. */
  use(middleware: MiddlewareHandler): void;
}

/** A part that one call adds to a host. */
export interface HostPlugin {
  /** Unique in a host, and not blank. */
  readonly name: string;
  /** Registers what the part consists of. It starts nothing. */
  install(host: Host): void;
}
