/**
 * How the connection to the cluster is: kubernetes-plugin 12.
 *
 * One check serves all who ask within its time of reuse, and a loop keeps it fresh, so that nobody who asks adds a call, and
 * `kubernetes_api_up` is true without anybody asking.
 *
 * @module
 */

import type { Health, HealthDetail } from "../host/health.ts";
import type { KubeApi } from "../kube/api.ts";
import { KubeError } from "../kube/errors.ts";
import { type Clock, sleep } from "../runtime/clock.ts";

/** Milliseconds for a check: below the 2 s that a host gives an indicator. */
const CHECK_LIMIT_MS = 1_500;
/** Milliseconds for which a good result is used again. */
const REUSE_UP_MS = 5_000;
/** Milliseconds for which a bad result is used again. */
const REUSE_DOWN_MS = 1_000;
/** The least pause between two checks of the loop, in milliseconds. */
const SHORTEST_PAUSE_MS = 100;

/** What a check found: the class of the error, or `null`. */
interface Checked {
  readonly error: string | null;
  /** The monotonic instant until which it is used. */
  readonly freshUntilMs: number;
}

/** What {@linkcode ApiHealth} takes. */
export interface ApiHealthOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  /** Is told of each result. */
  readonly onChecked: (up: boolean) => void;
  /** Ends checks that are under way. */
  readonly signal: AbortSignal;
}

/** Asks the API server for its version, seldom enough. */
export class ApiHealth {
  readonly #options: ApiHealthOptions;
  #last: Checked | null = null;
  #checking: Promise<Checked> | null = null;

  constructor(options: ApiHealthOptions) {
    this.#options = options;
  }

  /** The class of the error of the newest check, or `null` when it was good. Who asks waits for one check at most. */
  async error(): Promise<string | null> {
    return (await this.#fresh()).error;
  }

  /** Keeps the result fresh until the signal aborts. It never rejects. */
  async refresh(): Promise<void> {
    const { clock, signal } = this.#options;
    while (!signal.aborted) {
      const { freshUntilMs } = await this.#fresh();
      const pauseMs = Math.max(SHORTEST_PAUSE_MS, freshUntilMs - clock.monotonic());
      await sleep(clock, pauseMs, signal).catch(() => {});
    }
  }

  #fresh(): Promise<Checked> {
    const last = this.#last;
    if (last !== null && this.#options.clock.monotonic() < last.freshUntilMs) {
      return Promise.resolve(last);
    }
    return this.#checking ??= this.#check().finally(() => this.#checking = null);
  }

  async #check(): Promise<Checked> {
    const { api, clock, signal, onChecked } = this.#options;
    let error: string | null = null;
    try {
      await api.version({ signal, timeoutMs: CHECK_LIMIT_MS });
    } catch (thrown) {
      error = thrown instanceof KubeError ? thrown.kind : "unknown";
    }
    // A check that the end cut off says nothing about the API server.
    if (!signal.aborted) onChecked(error === null);
    const reuseMs = error === null ? REUSE_UP_MS : REUSE_DOWN_MS;
    return this.#last = { error, freshUntilMs: clock.monotonic() + reuseMs };
  }
}

/** What is known of the plugin besides the API server. */
export interface PluginState {
  readonly mode: string;
  readonly namespace: string | null;
  readonly leader: {
    readonly lease: string;
    readonly leading: boolean;
    /** Work of an ended term goes on, so this replica cannot lead. */
    readonly draining: boolean;
  } | null;
  /** Each ConfigMap that is followed: `waiting` before it was looked for, then `present` or `missing`. */
  readonly configMaps: ReadonlyMap<string, "missing" | "present" | "waiting"> | null;
}

/**
 * Puts the page together. It has no URL, no token, no version, no name of a holder or a pod, and of an error its class.
 *
 * @param error The class of the error of the last check; `null` when it was good, or when there is no API server.
 */
export function pluginHealth(state: PluginState, error: string | null): Health {
  const { mode, namespace, leader, configMaps } = state;
  // A replica whose old work will not end can never lead again, and only a restart helps.
  const problem = error ?? (leader?.draining ? "unsettled_leader_task" : null);
  const details: Record<string, HealthDetail> = { mode };
  if (namespace !== null) details.namespace = namespace;
  if (leader !== null) details.leader = { lease: leader.lease, leading: leader.leading };
  if (configMaps !== null) details.config_maps = Object.fromEntries(configMaps);
  if (problem !== null) details.error = problem;
  return { status: problem === null ? "up" : "down", details };
}

/** What is said before the start. */
export const NOT_STARTED: Health = { status: "unknown", details: { reason: "not started" } };
