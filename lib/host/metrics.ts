/**
 * The metrics of a process: its own figures and those of its HTTP servers. Every room registers what is its own in the
 * same registry.
 *
 * The process figures of prom-client are not used: it reads `/proc`, which Deno closes to a process without all
 * permissions, and then reports 0 (design section 6). A figure that cannot be read is left out here: 0 would be a lie.
 *
 * @module
 */

import process from "node:process";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { CancelTimer, Clock } from "../runtime/clock.ts";

/** What {@linkcode createMetrics} takes. */
export interface MetricsOptions {
  readonly clock: Clock;
  /** @default {runtimeFigures} */
  readonly figures?: ProcessFigures;
  /** Milliseconds between two measurements of the event loop's lag. More than 0. @default {1000} */
  readonly lagIntervalMs?: number;
}

/** What a process can say about itself at this moment. */
export interface ProcessFigures {
  /** Bytes. */
  residentMemory(): number;
  /** Seconds of processor time since the start, its own and the system's on its behalf. */
  cpuSeconds(): number;
  /** Open file descriptors; `undefined` where the process may not count them. */
  openDescriptors(): number | undefined;
}

/** The figures of this process as the runtime gives them. Open descriptors need Linux and all permissions. */
export const runtimeFigures: ProcessFigures = {
  residentMemory: () => Deno.memoryUsage().rss,
  cpuSeconds() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  },
  openDescriptors() {
    try {
      return [...Deno.readDirSync("/proc/self/fd")].length;
    } catch {
      return undefined;
    }
  },
};

/** The metrics of a process. Disposing them stops the measurement of the event loop. */
export interface Metrics extends Disposable {
  /** Everything that a scrape shows. */
  readonly registry: Registry;
}

/** Makes the registry of a process and starts to measure. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  registerProcess(registry, options.clock, options.figures ?? runtimeFigures);
  const stopLag = measureLag(registry, options.clock, options.lagIntervalMs ?? 1_000);
  return {
    registry,
    [Symbol.dispose]: stopLag,
  };
}

function registerProcess(registry: Registry, clock: Clock, figures: ProcessFigures): void {
  const registers = [registry];
  new Gauge({
    name: "process_start_time_seconds",
    help: "Start of the process, in seconds since 1970.",
    registers,
  }).set(clock.wall() / 1000);
  new Gauge({
    name: "process_resident_memory_bytes",
    help: "Resident memory in bytes.",
    registers,
    collect() {
      this.set(figures.residentMemory());
    },
  });
  new Counter({
    name: "process_cpu_seconds_total",
    help: "Processor time of the process and of the system on its behalf, in seconds.",
    registers,
    collect() {
      this.reset();
      this.inc(figures.cpuSeconds());
    },
  });
  new Gauge({
    name: "process_open_fds",
    help: "Open file descriptors.",
    registers,
    collect() {
      const count = figures.openDescriptors();
      if (count === undefined) this.remove();
      else this.set(count);
    },
  });
}

/** How late a timer fires says how long the event loop was busy with something else. */
function measureLag(registry: Registry, clock: Clock, intervalMs: number): () => void {
  const lag = new Histogram({
    name: "holdfast_event_loop_lag_seconds",
    help: "By how much a timer of the event loop fired late, in seconds.",
    buckets: [.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5],
    registers: [registry],
  });
  let cancel: CancelTimer;
  function measure() {
    const dueAt = clock.monotonic() + intervalMs;
    cancel = clock.timer(intervalMs, () => {
      lag.observe(Math.max(0, clock.monotonic() - dueAt) / 1000);
      measure();
    });
  }
  measure();
  return () => cancel();
}

/** One answered request. */
export interface HttpObservation {
  /** Which server answered: `deploy` or `aux` (deploy-api 10). */
  readonly server: "deploy" | "aux";
  /** The handler's name, of a fixed list: never anything that a client sent. */
  readonly handler: string;
  /** The request's method as sent; any but the seven common ones is counted as `OTHER`. */
  readonly method: string;
  /** The status of the answer, 100 to 599; counted by its class. */
  readonly status: number;
  /** From the arrival of the request to its answer. */
  readonly seconds: number;
}

const COMMON_METHODS: readonly string[] = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
];

/** The two metrics of every HTTP server (deploy-api 10). */
export class HttpMetrics {
  readonly #requests: Counter<"server" | "handler" | "method" | "status">;
  readonly #duration: Histogram<"server" | "handler" | "method">;

  /** @param registry Gets both metrics. */
  constructor(registry: Registry) {
    const registers = [registry];
    this.#requests = new Counter({
      name: "bloodraven_http_requests_total",
      help: "Answered HTTP requests.",
      labelNames: ["server", "handler", "method", "status"],
      registers,
    });
    this.#duration = new Histogram({
      name: "bloodraven_http_request_duration_seconds",
      help: "Time from the arrival of an HTTP request to its answer, in seconds.",
      labelNames: ["server", "handler", "method"],
      buckets: [.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10],
      registers,
    });
  }

  /** Counts one answer and its duration. */
  observe(observation: HttpObservation): void {
    const { server, handler, status, seconds } = observation;
    const method = COMMON_METHODS.includes(observation.method) ? observation.method : "OTHER";
    this.#requests.inc({ server, handler, method, status: `${Math.floor(status / 100)}xx` });
    this.#duration.observe({ server, handler, method }, seconds);
  }
}
