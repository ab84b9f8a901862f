/**
 * An executor for the demo: it moves `status.activeSite` itself, one phase after the other, as an operator would that has
 * no database to look after. It must never run beside a real operator, whose status this is.
 *
 * @module
 */

import { operationPhase } from "../group/phases.ts";
import { statusTime } from "../group/planned_request.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../group/types.ts";
import type { KubeApi, Stored } from "../kube/api.ts";
import { ConflictError } from "../kube/errors.ts";
import type { Turn } from "../lease/turn.ts";
import type { Due } from "./group_controller.ts";
import type { PlannedExecutor } from "./planned.ts";
import type { PlannedReports } from "./planned_reports.ts";

/** The phases of a run, in their order: deploy-api 8.2. */
const NEXT: ReadonlyMap<string, string> = new Map([
  ["Pending", "Validating"],
  ["Validating", "Draining"],
  ["Draining", "WaitingForLag"],
  ["WaitingForLag", "Promoting"],
  ["Promoting", "Resuming"],
  ["Resuming", "Succeeded"],
]);

/** What a {@linkcode StatusExecutor} is made of. */
export interface StatusExecutorParts {
  readonly api: KubeApi;
  readonly reports: PlannedReports;
  /** Milliseconds that each phase lasts, 1 or more. */
  readonly stepMs: number;
}

/** Carries out planned failovers in status alone. */
export class StatusExecutor implements PlannedExecutor {
  readonly name = "status";
  readonly #parts: StatusExecutorParts;
  /** Since when a run has been in its phase, by the group's uid. */
  readonly #since = new Map<string, { readonly phase: string; readonly sinceMs: number }>();

  constructor(parts: StatusExecutorParts) {
    this.#parts = parts;
  }

  async advance(turn: Turn, seen: Stored<MysqlFailoverGroup>): Promise<Due | null> {
    const { uid } = seen.metadata;
    if (operationPhase(seen, "PlannedFailover") !== "admitted") {
      this.#since.delete(uid);
      return null;
    }
    const { topology, clock } = turn.parts;
    const group = await topology.readGroup(turn.namespace, turn.group, turn.options);
    const phase = group.status?.plannedFailover?.phase ?? "";
    const next = NEXT.get(phase);
    if (next === undefined) return null;
    const now = clock.monotonic();
    const since = this.#since.get(uid);
    if (since?.phase !== phase) {
      this.#since.set(uid, { phase, sinceMs: now });
      return { inMs: this.#parts.stepMs };
    }
    const leftMs = since.sinceMs + this.#parts.stepMs - now;
    if (leftMs > 0) return { inMs: leftMs };
    await this.#enter(turn, group, next);
    return { inMs: this.#parts.stepMs };
  }

  async #enter(turn: Turn, group: Stored<MysqlFailoverGroup>, phase: string): Promise<void> {
    const { api, reports } = this.#parts;
    const { namespace, name, uid, resourceVersion } = group.metadata;
    const nowMs = turn.now().latestMs;
    const ends = phase === "Succeeded";
    const completionTime = ends ? { completionTime: statusTime(nowMs) } : {};
    turn.mustLead();
    try {
      await api.patch(MYSQL_FAILOVER_GROUPS, { namespace, name }, {
        type: "merge",
        body: {
          metadata: { uid, resourceVersion },
          status: {
            plannedFailover: { phase, ...completionTime },
            ...(phase === "Resuming" && moved(group)),
          },
        },
      }, { ...turn.options, subresource: "status" });
    } catch (error) {
      // Whoever wrote wakes us again.
      if (error instanceof ConflictError) return;
      throw error;
    }
    if (!ends) return;
    const { target, startTime } = group.status?.plannedFailover ?? {};
    const site = target ?? "";
    const note = `Planned failover to ${site} is complete`;
    reports.event({ namespace: namespace ?? "", name, uid }, "PlannedFailoverCompleted", note);
    reports.ended(site, "success");
    if (startTime) reports.took(site, Math.max(0, nowMs - Date.parse(startTime)) / 1_000);
  }
}

/** The members of status after the move: another active site, another generation, and the roles of the two sites. */
function moved({ status }: MysqlFailoverGroup): Readonly<Record<string, unknown>> {
  const target = status?.plannedFailover?.target ?? "";
  return {
    activeSite: target,
    topologyGeneration: (status?.topologyGeneration ?? 0) + 1,
    sites: (status?.sites ?? []).map((site) =>
      site.name === target
        ? { ...site, state: "writable", replicating: false }
        : { ...site, state: "read-only", replicating: true }
    ),
  };
}
