/**
 * The figures of the plugin: kubernetes-plugin 12. Those of the election register themselves in the same registry.
 *
 * @module
 */

import { Counter, Gauge, Registry } from "prom-client";
import type { EventFigures } from "../controllers/events.ts";
import { eventFigures } from "../controllers/metrics.ts";
import { callMetrics } from "../kube/metrics.ts";
import type { CallReport } from "../kube/exchange.ts";

/** One number of a snapshot. */
export interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What the plugin counts. Labels come from names of the configuration only. */
export class PluginMetrics {
  /** Everything that the plugin shows of itself. */
  readonly registry = new Registry();
  /** Counts what becomes of Events. */
  readonly events: EventFigures;
  /** Counts the calls to the API server. */
  readonly onCall: (report: CallReport) => void;
  readonly #apiUp: Gauge;
  readonly #updates: Counter<"config_map">;
  readonly #errors: Counter<"config_map">;

  constructor() {
    const registers = [this.registry];
    this.events = eventFigures(this.registry);
    this.#apiUp = new Gauge({
      name: "kubernetes_api_up",
      help: "1 when the last check of the Kubernetes API succeeded, 0 when it failed.",
      registers,
    });
    // Before the first check there is nothing to tell: 0 would raise an alarm at every start.
    this.#apiUp.remove();
    this.#updates = new Counter({
      name: "kubernetes_config_map_updates_total",
      help: "States of a ConfigMap that were taken over.",
      labelNames: ["config_map"],
      registers,
    });
    this.#errors = new Counter({
      name: "kubernetes_config_map_errors_total",
      help: "Failures of the watch of a ConfigMap.",
      labelNames: ["config_map"],
      registers,
    });
    this.onCall = callMetrics(this.registry);
  }

  /** The API server was checked. */
  checked(up: boolean): void {
    this.#apiUp.set(up ? 1 : 0);
  }

  /** The watch of a ConfigMap begins: its figures are there from now on. */
  configMapWatched(name: string): void {
    for (const family of [this.#updates, this.#errors]) family.inc({ config_map: name }, 0);
  }

  /** A state of a ConfigMap was taken over. */
  configMapUpdated(name: string): void {
    this.#updates.inc({ config_map: name });
  }

  /** The watch of a ConfigMap failed. */
  configMapFailed(name: string): void {
    this.#errors.inc({ config_map: name });
  }

  /** All figures at this moment. */
  async snapshot(): Promise<MetricSample[]> {
    const families = await this.registry.getMetricsAsJSON();
    return families.flatMap(({ values, name }) =>
      values.map((sample) => ({
        // A histogram tells several figures under names of their own.
        name: "metricName" in sample ? String(sample.metricName) : name,
        labels: Object.fromEntries(
          Object.entries(sample.labels).map(([label, value]) => [label, String(value)]),
        ),
        value: sample.value,
      }))
    );
  }
}
