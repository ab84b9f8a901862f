/**
 * How the world learns of planned failovers: the Events of deploy-api 12 and the figures of deploy-api 10.
 *
 * @module
 */

import { Counter, Histogram, type Registry } from "prom-client";
import { DEPLOYMENT_HOLD } from "../group/planned_request.ts";
import type { GroupIdentity } from "../records/store.ts";
import type { EventReport } from "./events.ts";
import { groupSubject } from "./group_events.ts";

/** How a run ended, as far as this service sees it. */
export type PlannedResult = "success" | "rejected";

/** The reasons of the Events on a group that belong to planned failovers, with their types: deploy-api 12. */
const EVENT_TYPES = {
  PlannedFailoverDeferred: "Normal",
  PlannedFailoverStarted: "Normal",
  PlannedFailoverSkipped: "Normal",
  PlannedFailoverCompleted: "Normal",
  PlannedFailoverRejected: "Warning",
  PlannedFailoverFailed: "Warning",
} as const;

/** The reason of an Event about a planned failover. */
export type PlannedEventReason = keyof typeof EVENT_TYPES;

/** What {@linkcode PlannedReports} is made of. */
export interface PlannedReportsParts {
  readonly registry: Registry;
  readonly events: { report(event: EventReport): void };
}

/** Tells of planned failovers. */
export class PlannedReports {
  readonly #events: PlannedReportsParts["events"];
  readonly #deferred: Counter<"group" | "reason">;
  readonly #runs: Counter<"target_site" | "result">;
  readonly #duration: Histogram<"target_site">;

  constructor({ registry, events }: PlannedReportsParts) {
    const registers = [registry];
    this.#events = events;
    this.#deferred = new Counter({
      name: "bloodraven_planned_failovers_deferred_total",
      help: "First entries of a planned failover into a deferral by a deployment hold",
      labelNames: ["group", "reason"],
      registers,
    });
    this.#runs = new Counter({
      name: "bloodraven_planned_failovers_total",
      help: "Planned failovers by result",
      labelNames: ["target_site", "result"],
      registers,
    });
    this.#duration = new Histogram({
      name: "bloodraven_planned_failover_duration_seconds",
      help: "Time from the start of a planned failover to its success",
      labelNames: ["target_site"],
      buckets: [1, 2, 5, 10, 30, 60, 120, 300],
      registers,
    });
  }

  /** Writes an Event on the group. */
  event(group: GroupIdentity, reason: PlannedEventReason, note: string): void {
    this.#events.report({
      regarding: groupSubject(group),
      type: EVENT_TYPES[reason],
      reason,
      action: "PlannedFailover",
      note,
    });
  }

  /** Counts a first entry into a deferral by a hold; a cooldown is not counted. */
  deferred(group: GroupIdentity, reason: string): void {
    if (reason === DEPLOYMENT_HOLD) this.#deferred.inc({ group: group.name, reason });
  }

  /** Counts a run that ended. */
  ended(target: string, result: PlannedResult): void {
    this.#runs.inc({ target_site: target, result });
  }

  /** Notes how long a run took that succeeded, in seconds. */
  took(target: string, seconds: number): void {
    this.#duration.observe({ target_site: target }, seconds);
  }

  /** Drops the series of a group that is gone. */
  forget({ name }: GroupIdentity): void {
    this.#deferred.remove({ group: name, reason: DEPLOYMENT_HOLD });
  }
}
