/**
 * Follows ConfigMaps, one watch for each name, so that a Role can name them: kubernetes-plugin 10.
 *
 * @module
 */

import type { KubeApi, ObjectList, WatchEvent } from "../kube/api.ts";
import { CONFIG_MAPS, type ConfigMap } from "../kube/resources.ts";
import { type Clock, sleep } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";
import type { ConfigMapStore } from "./config_maps.ts";
import type { PluginMetrics } from "./metrics.ts";
import { errorClass } from "../runtime/error_class.ts";

/** What a watch takes. */
export interface ConfigMapWatchOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly store: ConfigMapStore;
  readonly metrics: Pick<
    PluginMetrics,
    "configMapWatched" | "configMapUpdated" | "configMapFailed"
  >;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends the watches. */
  readonly signal: AbortSignal;
}

/** Milliseconds before a watch that ended by itself is started anew. */
const RESTART_MS = 5_000;

/** Follows every ConfigMap of the store until the signal aborts. It never rejects. */
export async function watchConfigMaps(options: ConfigMapWatchOptions): Promise<void> {
  await Promise.all(options.store.names.map((name) => new ConfigMapWatch(name, options).run()));
}

/** The watch of one ConfigMap. */
class ConfigMapWatch {
  readonly #name: string;
  readonly #options: ConfigMapWatchOptions;
  #failing = false;

  constructor(name: string, options: ConfigMapWatchOptions) {
    this.#name = name;
    this.#options = options;
  }

  async run(): Promise<void> {
    const { clock, metrics, signal } = this.#options;
    metrics.configMapWatched(this.#name);
    while (!signal.aborted) {
      await this.#follow();
      // A watch does not end by itself. Should one do so all the same, its data must not stand still for ever.
      await sleep(clock, RESTART_MS, signal).catch(() => {});
    }
  }

  async #follow(): Promise<void> {
    const { api, namespace, signal } = this.#options;
    const fieldSelector = `metadata.name=${this.#name}`;
    try {
      for await (const event of api.watch(CONFIG_MAPS, { namespace, fieldSelector, signal })) {
        if (signal.aborted) return;
        this.#hear(event);
      }
    } catch (error) {
      this.#failed(errorClass(error));
    }
  }

  #hear(event: WatchEvent<ConfigMap>): void {
    switch (event.type) {
      case "initial":
      case "restarted":
        return this.#hearList(event.list);
      case "added":
      case "modified":
        return this.#apply(event.object.data ?? {});
      case "deleted":
        return this.#apply(null);
      case "undecodable":
        return this.#failed("decode");
      case "failed":
        return this.#failed(event.error.kind);
    }
  }

  /** The list is the whole truth: what is not in it is gone. What cannot be read says nothing, and the last data stay. */
  #hearList({ items, undecodable }: ObjectList<ConfigMap>): void {
    if (undecodable.length > 0) return this.#failed("decode");
    const found = items.find(({ metadata }) => metadata.name === this.#name);
    this.#apply(found === undefined ? null : found.data ?? {});
  }

  #apply(data: Readonly<Record<string, string>> | null): void {
    const { store, metrics, logger } = this.#options;
    store.apply(this.#name, data);
    metrics.configMapUpdated(this.#name);
    if (!this.#failing) return;
    this.#failing = false;
    logger.info("the ConfigMap is followed again", { config_map: this.#name });
  }

  #failed(error: string): void {
    const { metrics, logger } = this.#options;
    metrics.configMapFailed(this.#name);
    const fields = { config_map: this.#name, error };
    if (this.#failing) logger.debug("the ConfigMap still cannot be followed", fields);
    else logger.warn("the ConfigMap cannot be followed; its last data stay in use", fields);
    this.#failing = true;
  }
}
