/**
 * What a host is made of, and what follows from it.
 *
 * @module
 */

import type { Env, Hono, NotFoundHandler } from "hono";
import { libraryPurpose, loadConfig } from "../config/layers.ts";
import type { Config } from "../config/schema.ts";
import type { Logger } from "../runtime/log.ts";
import type { HostPlugin, HostSystem } from "./hooks.ts";
import type { ListenAddress } from "../config/listen_address.ts";
import type { ListenerLimits, ListenerOptions } from "./listener.ts";
import type { ProbePaths } from "./probes.ts";

/** What `createHost` takes. */
export interface HostOptions<E extends Env = Env> {
  /** The machine. */
  readonly system: HostSystem;
  /** The application. Without one, and in the role `worker`, only probes are answered. */
  readonly app?: Hono<E>;
  /** What is installed, in this order. */
  readonly plugins?: readonly HostPlugin[];
  /** The configuration. @default {what its files and variables say: docs/configuration.md} */
  readonly config?: Config;
  /** The profile whose configuration is read. `AUTUMN_ENV` and `AUTUMN_PROFILE` win. @default {none} */
  readonly profile?: string;
  /** @default {a logger to `system.stdout`, as `config.log` says} */
  readonly logger?: Logger;
  /** Answers what the application has no route for. A handler of the application's own for that is not asked. */
  readonly notFound?: NotFoundHandler;
  /** Where the host listens; `null` for nowhere, when plugins bring all ports. @default {config.host.listen} */
  readonly listen?: ListenAddress | null;
  /** Stand in for single limits of the listener, for example for answers that stream for long. */
  readonly limits?: Partial<ListenerLimits>;
  /** Takes requests to switch to WebSocket. Add each socket to the host's `webSockets`. */
  readonly onUpgrade?: ListenerOptions["onUpgrade"];
  /** The path of the page of all indicators. @default {"/health"} */
  readonly healthPath?: string;
  /** The path of the metrics; `null` for none. @default {"/metrics"} */
  readonly metricsPath?: string | null;
  /** Shows the details of the indicators. The page is on the application's own port. @default {false} */
  readonly healthDetails?: boolean;
}

/**
 * Reads the configuration from the files and variables of the machine.
 *
 * @throws {ConfigError} It cannot be used.
 */
export function readConfigOf({ system, profile }: Omit<HostOptions, "app">): Config {
  return loadConfig({
    env: system.env,
    readTextFile: (path) => system.readTextFile(path),
    profile,
    // As the program itself does: people read text, machines JSON.
    purpose: system.stdout.isTerminal
      ? { ...libraryPurpose, defaults: { "log.format": "text" } }
      : libraryPurpose,
  }).config;
}

/**
 * Where the probes and the metrics are.
 *
 * @throws {RangeError} Two of them have one path.
 */
export function pathsOf({ host }: Config, options: Omit<HostOptions, "app">): ProbePaths {
  const { healthPath = "/health", metricsPath = "/metrics" } = options;
  const paths = {
    live: host.live_path,
    ready: host.ready_path,
    startup: host.startup_path,
    health: healthPath,
    metrics: metricsPath,
  };
  const all = Object.values(paths).filter((path) => path !== null);
  const twice = all.find((path, index) => all.indexOf(path) !== index);
  if (twice === undefined) return paths;
  throw new RangeError(
    `Cannot serve probes and metrics as each must have a path of its own: ${twice} is there twice`,
  );
}
