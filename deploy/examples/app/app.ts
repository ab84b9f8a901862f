/**
 * The example: a Hono application with a singleton leader task, a live ConfigMap, health and metrics.
 *
 * @module
 */

import {
  ConfigMapDecodeError,
  createHost,
  type HostOptions,
  kubernetes,
  type KubernetesEnv,
  type KubernetesOptions,
} from "@holdfast/holdfast";
import { Hono } from "hono";
import { Importer } from "./importer.ts";
import { readSettings } from "./settings.ts";

/** What differs from one replica to the next. */
export interface ExampleOptions extends Pick<HostOptions, "listen" | "logger" | "system"> {
  /** How the plugin finds the cluster. @default {by itself} */
  readonly cluster?: Pick<KubernetesOptions, "api" | "podInfo">;
  /** @default {100} */
  readonly items?: number;
}

/** Makes one replica. Nothing starts. */
export function createExample({ cluster, items = 100, system, ...host }: ExampleOptions) {
  const importer = new Importer({ total: items, clock: system.clock });
  const plugin = kubernetes({ ...cluster, leaderTasks: [importer] });
  const app = createApp(importer);
  const plugins = [plugin, importer.plugin];
  return { importer, host: createHost({ ...host, system, app, plugins, healthDetails: true }) };
}

/** The routes. They are tested with `app.request()` like those of any Hono application. */
export function createApp(importer: Importer): Hono<KubernetesEnv> {
  const app = new Hono<KubernetesEnv>();

  app.get("/", async (c) => {
    const { podInfo, leadership, configMaps, mode } = c.var.kubernetes;
    const { greeting } = await readSettings(configMaps);
    return c.json({
      greeting,
      pod: podInfo.name ?? null,
      mode,
      leads: leadership?.isLeader() ?? false,
      leader: leadership?.holder ?? null,
      progress: importer.progress,
    });
  });

  app.onError((error, c) => {
    if (!(error instanceof ConfigMapDecodeError)) throw error;
    return c.json({ error: error.message }, 500);
  });
  return app;
}
