/**
 * The probes of an application: `/live`, `/ready`, `/startup`, `/health` (kubernetes-plugin 14), and its metrics.
 *
 * - `/live` says whether a restart would help: 200 while the process can answer at all.
 * - `/startup` says whether the start is over: 503 until it is, then 200 for good.
 * - `/ready` says whether this replica may get traffic: started, not stopping, and no indicator of readiness is down.
 * - `/health` says all of that, and asks the indicators that decide about nothing. It is for people and dashboards.
 *
 * @module
 */

import { type Context, Hono } from "hono";
import type { HealthGroup, HealthIndicators, HealthReport, HealthStatus } from "./health.ts";
import type { MetricsSources } from "./host_metrics.ts";

/** How far the life of an application is. */
export type HostPhase = "starting" | "running" | "stopping";

/** Where the probes are. */
export interface ProbePaths {
  readonly live: string;
  readonly ready: string;
  readonly startup: string;
  readonly health: string;
  /** `null` for none. */
  readonly metrics: string | null;
}

/** What {@linkcode createHostProbes} takes. */
export interface HostProbesOptions {
  readonly paths: ProbePaths;
  readonly phase: () => HostPhase;
  /** True once the start is over, also when the end has begun. */
  readonly started: () => boolean;
  readonly indicators: HealthIndicators;
  readonly metrics: MetricsSources;
  /** Shows the details of the indicators. */
  readonly showDetails: boolean;
}

/** Makes the application that answers the probes. It answers 404 to everything else. */
export function createHostProbes(options: HostProbesOptions): Hono {
  const { paths, phase, started, indicators, metrics, showDetails } = options;
  const app = new Hono();

  app.get(paths.live, (c) => answer(c, 200, { status: "UP" }));
  app.get(paths.startup, (c) => started() ? up(c) : waiting(c, "starting"));
  app.get(paths.ready, (c) => decide(c, "readiness"));
  app.get(paths.health, (c) => decide(c, "health"));
  if (paths.metrics !== null) {
    app.get(paths.metrics, async (c) => {
      const headers = { "Content-Type": metrics.contentType, "Cache-Control": "no-store" };
      return c.body(await metrics.render(), 200, headers);
    });
  }
  return app;

  async function decide(c: Context, group: HealthGroup): Promise<Response> {
    const current = phase();
    if (current !== "running") return waiting(c, current);
    const report = await indicators.check(group);
    // Time has passed, and a replica that stops must not be told ready by a check that began before.
    return phase() === "running" ? told(c, report) : waiting(c, phase());
  }

  function told(c: Context, { status, components }: HealthReport): Response {
    const shown = [...components].map(([name, health]) => [name, {
      status: SHOWN[health.status],
      ...(showDetails && health.details !== undefined ? { details: health.details } : {}),
    }]);
    return answer(c, status === "down" ? 503 : 200, {
      status: SHOWN[status],
      ...(shown.length > 0 ? { components: Object.fromEntries(shown) } : {}),
    });
  }
}

const SHOWN: Readonly<Record<HealthStatus, string>> = {
  up: "UP",
  down: "DOWN",
  unknown: "UNKNOWN",
};

function up(c: Context): Response {
  return answer(c, 200, { status: "UP" });
}

function waiting(c: Context, reason: string): Response {
  return answer(c, 503, { status: "DOWN", reason });
}

function answer(c: Context, status: 200 | 503, body: Record<string, unknown>): Response {
  return c.json(body, status, { "Cache-Control": "no-store" });
}
