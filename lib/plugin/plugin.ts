/**
 * The plugin for a host: one call installs the pod's identity, a client of the cluster, leader election, leader tasks, live
 * ConfigMaps, Events, health and metrics.
 *
 * @module
 */

import type { MiddlewareHandler } from "hono";
import { ConfigError, problemOf } from "../config/errors.ts";
import { type Config, configSchema } from "../config/schema.ts";
import type { Host, HostPlugin } from "../host/hooks.ts";
import type { KubeApi } from "../kube/api.ts";
import { startDeadline } from "../runtime/clock.ts";
import type { Connector } from "./cluster.ts";
import { NOT_STARTED } from "./health.ts";
import { PluginMetrics } from "./metrics.ts";
import type { PluginTask } from "./plugin_task.ts";
import type { KubernetesContext, KubernetesRuntime } from "./runtime.ts";
import { type KubernetesParts, startKubernetes } from "./start.ts";
import type { z } from "zod";

/** The section `kubernetes` of the configuration, as a user writes it: docs/configuration.md. */
export type KubernetesConfig = z.input<typeof configSchema>["kubernetes"];

/** What {@linkcode kubernetes} takes. */
export interface KubernetesOptions
  extends Pick<KubernetesParts, "podInfo" | "onTaskError" | "observer" | "tracer"> {
  /** Takes the place of the section `kubernetes` of the host's configuration. */
  readonly config?: KubernetesConfig;
  /** The client; the mode is then `custom`, and nothing is looked for. */
  readonly api?: KubeApi;
  /** Makes the client at the start; the mode is then `custom`. Give this or `api`. */
  readonly connector?: Connector;
  /**
   * Lets the API server's health decide about `/ready`. Beware: an outage of it then takes out every replica at once.
   *
   * @default {false}
   */
  readonly readiness?: boolean;
  /** Work for the leader alone. @default {[]} */
  readonly leaderTasks?: readonly PluginTask[];
  /**
   * When a stop gives up the lead. `after_drain`: when no request is left, as handlers may ask for the lead.
   * `before_grace`: at once, for an application that only its leader can serve: so another one serves during the grace.
   *
   * @default {"after_drain"}
   */
  readonly giveUpLead?: "after_drain" | "before_grace";
  /**
   * Milliseconds for giving up the lead before the grace, above 0. Leader tasks that still run then are left alone, and the
   * Lease is not freed: it runs out by itself.
   *
   * @default {what the stop has left}
   */
  readonly giveUpLeadMs?: number;
}

/** The types of an application's context: `new Hono<KubernetesEnv>()`. */
export interface KubernetesEnv {
  Variables: {
    /** What the plugin offers to a handler. */
    kubernetes: KubernetesContext;
  };
}

/**
 * Makes the plugin.
 *
 * ```ts
 * import { Hono } from "hono";
 * import { createHost, kubernetes, type KubernetesEnv } from "@holdfast/holdfast";
 * import { productionSystem } from "@holdfast/holdfast/system";
 *
 * const app = new Hono<KubernetesEnv>();
 * app.get("/", (c) => c.json({ leads: c.var.kubernetes.leadership?.isLeader() ?? false }));
 *
 * async function main() {
 *   const plugins = [kubernetes()];
 *   Deno.exit(await createHost({ system: productionSystem(), app, plugins }).run());
 * }
 * ```
 *
 * @throws {ConfigError} `config` has an unknown key or a value of the wrong type.
 * @throws {TypeError} Both `api` and `connector` are given.
 * @throws {RangeError} Two leader tasks have one name, or a name is blank.
 */
export function kubernetes(options: KubernetesOptions = {}): KubernetesPlugin {
  return new KubernetesPlugin(options);
}

/** The plugin. Made by {@linkcode kubernetes}. */
export class KubernetesPlugin implements HostPlugin {
  readonly name = "autumn-plugin-kubernetes";
  readonly #options: KubernetesOptions;
  readonly #config: Config["kubernetes"] | null;
  readonly #connector: Connector | undefined;
  readonly #tasks: PluginTask[] = [];
  readonly #metrics = new PluginMetrics();
  #runtime: KubernetesRuntime | null = null;

  constructor(options: KubernetesOptions) {
    const { api, config, connector, leaderTasks = [] } = options;
    if (api !== undefined && connector !== undefined) {
      throw new TypeError("Cannot use both 'api' and 'connector': give one of them");
    }
    this.#options = options;
    this.#config = config === undefined ? null : readOwnConfig(config);
    this.#connector = api === undefined ? connector : () => api;
    for (const task of leaderTasks) this.leaderTask(task);
  }

  /** What the plugin counts: for a part that writes Events of its own. */
  get metrics(): PluginMetrics {
    return this.#metrics;
  }

  /** What runs; `null` before the start. */
  get runtime(): KubernetesRuntime | null {
    return this.#runtime;
  }

  /**
   * Adds work for the leader alone. Call it before the host starts.
   *
   * @throws {RangeError} The name is blank or taken.
   */
  leaderTask(task: PluginTask): this {
    if (task.name.trim() === "" || this.#tasks.some(({ name }) => name === task.name)) {
      throw new RangeError(
        `Cannot add a leader task as 'name' must be its own and not blank: current value is ${
          JSON.stringify(task.name)
        }`,
      );
    }
    this.#tasks.push(task);
    return this;
  }

  install(host: Host): void {
    const { readiness = false, giveUpLead = "after_drain", giveUpLeadMs } = this.#options;
    host.addMetrics({ name: "kubernetes", registry: this.#metrics.registry });
    host.addHealth({
      name: "kubernetes",
      group: readiness ? "readiness" : "health",
      check: () => this.#runtime?.health() ?? NOT_STARTED,
    });
    host.use(this.#middleware());
    host.onStart("kubernetes", async (signal) => {
      this.#runtime = await this.#start(host, signal);
    });
    host.onShutdown("kubernetes", async ({ signal }) => await this.#runtime?.shutdown(signal));
    if (giveUpLead === "after_drain") return;
    host.onShutdown(
      "kubernetes lead",
      async ({ at, signal }) => {
        const { clock } = host.system;
        const leftMs = Math.max(0, at - clock.monotonic());
        using limit = startDeadline(clock, Math.min(giveUpLeadMs ?? leftMs, leftMs), signal);
        await this.#runtime?.stopLeading(limit.signal);
      },
      "early",
    );
  }

  #start(host: Host, signal: AbortSignal): Promise<KubernetesRuntime> {
    const { podInfo, onTaskError, observer, tracer } = this.#options;
    return startKubernetes({
      config: { ...host.config, kubernetes: this.#config ?? host.config.kubernetes },
      system: host.system,
      logger: host.logger,
      signal,
      connector: this.#connector,
      podInfo,
      leaderTasks: this.#tasks,
      onTaskError,
      observer,
      tracer,
      metrics: this.#metrics,
    });
  }

  #middleware(): MiddlewareHandler<KubernetesEnv> {
    return async (c, next) => {
      // The host lets no request through before the start is over.
      if (this.#runtime !== null) c.set("kubernetes", this.#runtime);
      await next();
    };
  }
}

function readOwnConfig(config: KubernetesConfig): Config["kubernetes"] {
  const result = configSchema.safeParse({ kubernetes: config });
  if (result.success) return result.data.kubernetes;
  const source = "the options of the plugin";
  throw new ConfigError(result.error.issues.map(({ path, message }) => {
    const key = path.join(".");
    return problemOf(source, `Cannot use '${key}' from ${source}: ${message}`, key);
  }));
}
