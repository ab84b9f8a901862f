/**
 * The plugin while it runs, and how it ends: kubernetes-plugin 1.
 *
 * @module
 */

import type { KubeConfig } from "@kubernetes/client-node";
import type { Leadership } from "../election/mod.ts";
import type { Health } from "../host/health.ts";
import type { KubeApi } from "../kube/api.ts";
import { type Clock, startDeadline } from "../runtime/clock.ts";
import type { ClusterMode, OpenCluster } from "./cluster.ts";
import type { ConfigMapStore } from "./config_maps.ts";
import { type ApiHealth, pluginHealth, type PluginState } from "./health.ts";
import type { Leading } from "./leading.ts";
import type { PluginMetrics } from "./metrics.ts";
import type { PodEvents } from "./pod_events.ts";
import type { PodInfo } from "./pod_info.ts";

/** Milliseconds for taking the leader's label off at the end: as long as for the last Event. */
const LAST_LABEL_MS = 2_000;

/** What a handler finds in `c.var.kubernetes`. */
export interface KubernetesContext {
  readonly mode: ClusterMode;
  /** The namespace of the Lease and the ConfigMaps; `null` when detached or disabled. */
  readonly namespace: string | null;
  readonly podInfo: PodInfo;
  /** `null` when detached or disabled. */
  readonly api: KubeApi | null;
  /** `null` when this replica takes no part in an election. */
  readonly leadership: Leadership | null;
  /** `null` when no ConfigMap is followed. */
  readonly configMaps: ConfigMapStore | null;
  /**
   * client-node's configuration of the same cluster. The first call loads that package.
   *
   * @throws {NoKubeConfigError} There is no cluster, or the program brought its own client.
   */
  kubeConfig(): Promise<KubeConfig>;
}

/** What a {@linkcode KubernetesRuntime} is made of. */
export interface RuntimeParts {
  readonly cluster: OpenCluster;
  readonly namespace: string | null;
  readonly podInfo: PodInfo;
  readonly metrics: PluginMetrics;
  readonly events: PodEvents | null;
  readonly configMaps: ConfigMapStore | null;
  readonly leading: Leading | null;
  /** Settles when the election has ended and the leader's label is off. */
  readonly labelling: Promise<void> | null;
  readonly health: ApiHealth | null;
  readonly clock: Clock;
  /** Ends what works in the background. */
  readonly end: AbortController;
  /** Settles when all of that has ended. */
  readonly background: Promise<unknown>;
}

/** The plugin while it runs. `startKubernetes` makes it. */
export class KubernetesRuntime implements KubernetesContext, Disposable {
  readonly #parts: RuntimeParts;
  #shutdown: Promise<void> | null = null;

  constructor(parts: RuntimeParts) {
    this.#parts = parts;
  }

  get mode(): ClusterMode {
    return this.#parts.cluster.mode;
  }

  get namespace(): string | null {
    return this.#parts.namespace;
  }

  get podInfo(): PodInfo {
    return this.#parts.podInfo;
  }

  get api(): KubeApi | null {
    return this.#parts.cluster.api;
  }

  get leadership(): Leadership | null {
    return this.#parts.leading?.leadership ?? null;
  }

  get configMaps(): ConfigMapStore | null {
    return this.#parts.configMaps;
  }

  /** What the plugin counts. */
  get metrics(): PluginMetrics {
    return this.#parts.metrics;
  }

  kubeConfig(): Promise<KubeConfig> {
    return this.#parts.cluster.kubeConfig();
  }

  /** How the plugin is. Who asks waits for one call to the API server at most, and mostly for none. */
  async health(): Promise<Health> {
    return pluginHealth(this.#state(), await this.#parts.health?.error() ?? null);
  }

  /**
   * Gives up the lead and leaves the rest running: for a program that still serves for a while.
   *
   * @param budget When it aborts, leader tasks that still run are left alone, and the Lease is not freed.
   */
  async stopLeading(budget: AbortSignal): Promise<void> {
    await this.#parts.leading?.stop(budget);
  }

  /**
   * Ends in order: leader tasks, the Lease, the last Event, the watches. The Lease is freed before the Event, so that the
   * hand-over does not wait for it. A second call finds nothing more to do. It goes on when nobody waits for it.
   *
   * @param budget When it aborts, leader tasks that still run are left alone, and the Lease is not freed.
   */
  shutdown(budget: AbortSignal): Promise<void> {
    return this.#shutdown ??= this.#stop(budget);
  }

  /**
   * Ends like a crash: watches stop, tasks are told to, and the Lease is *not* freed, since they may still be at work: it
   * runs out by itself. JavaScript does not notice when a value is dropped, so this is to be called.
   */
  abort(): void {
    const { leading, events, end, cluster } = this.#parts;
    this.#shutdown ??= Promise.resolve();
    leading?.abort();
    events?.abort();
    end.abort();
    cluster[Symbol.dispose]();
  }

  /** The same as {@linkcode KubernetesRuntime.abort}. */
  [Symbol.dispose](): void {
    this.abort();
  }

  async #stop(budget: AbortSignal): Promise<void> {
    const { events, end, background, cluster } = this.#parts;
    await this.stopLeading(budget);
    await Promise.all([events?.stopping(), this.#labelOff()]);
    end.abort();
    await background;
    cluster[Symbol.dispose]();
  }

  async #labelOff(): Promise<void> {
    const { labelling, clock } = this.#parts;
    if (labelling === null) return;
    using limit = startDeadline(clock, LAST_LABEL_MS);
    const over = new Promise<void>((resolve) => {
      limit.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([labelling, over]);
  }

  #state(): PluginState {
    const { mode, namespace, leadership, configMaps } = this;
    return {
      mode,
      namespace,
      leader: leadership && {
        lease: leadership.leaseName,
        leading: leadership.isLeader(),
        draining: leadership.state.draining,
      },
      configMaps: configMaps && new Map(configMaps.names.map((name) => [
        name,
        !configMaps.isSynced(name)
          ? "waiting"
          : configMaps.get(name) === undefined
          ? "missing"
          : "present",
      ])),
    };
  }
}
