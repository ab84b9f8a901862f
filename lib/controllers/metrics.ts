/**
 * The figures of what runs on the leader.
 *
 * @module
 */

import { Counter, Gauge, type Registry } from "prom-client";
import type { EventFigures } from "./events.ts";

/** Registers `kubernetes_events_published_total` and `kubernetes_events_failed_total`: kubernetes-plugin 12. */
export function eventFigures(registry: Registry): EventFigures {
  const registers = [registry];
  const published = new Counter({
    name: "kubernetes_events_published_total",
    help: "Kubernetes Events that were written",
    registers,
  });
  const failed = new Counter({
    name: "kubernetes_events_failed_total",
    help: "Kubernetes Events that could not be written",
    registers,
  });
  return { published: () => published.inc(), failed: () => failed.inc() };
}

/** Counts what the loop over all groups does. */
export class ControllerMetrics {
  readonly #groups: Gauge;
  readonly #failures: Counter<"controller">;
  readonly #undecodable: Counter<"resource">;
  readonly #restarts: Counter<"resource" | "reason">;

  /** @param registry Where the figures are registered; a second instance needs another one. */
  constructor(registry: Registry) {
    const registers = [registry];
    this.#groups = new Gauge({
      name: "holdfast_groups",
      help: "Groups that the leader looks after, 0 on a follower",
      registers,
    });
    this.#failures = new Counter({
      name: "holdfast_housekeeping_failures_total",
      help: "Looks at a group that failed and are made again",
      labelNames: ["controller"],
      registers,
    });
    this.#undecodable = new Counter({
      name: "holdfast_undecodable_objects_total",
      help: "Objects that a watch told of and that do not have their form",
      labelNames: ["resource"],
      registers,
    });
    this.#restarts = new Counter({
      name: "holdfast_watch_restarts_total",
      help: "Watches that were started anew from a list",
      labelNames: ["resource", "reason"],
      registers,
    });
  }

  /** Shows how many groups there are. */
  groups(count: number): void {
    this.#groups.set(count);
  }

  /** Counts a controller that threw. */
  failed(controller: string): void {
    this.#failures.inc({ controller });
  }

  /** Counts an object that cannot be read. */
  undecodable(resource: string): void {
    this.#undecodable.inc({ resource });
  }

  /** Counts a watch that listed anew. */
  restarted(resource: string, reason: string): void {
    this.#restarts.inc({ resource, reason });
  }
}
