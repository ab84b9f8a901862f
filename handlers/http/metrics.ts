/**
 * `/metrics` in the text format of Prometheus (deploy-api 14).
 *
 * @module
 */

import { Hono } from "hono";
import type { MetricsSources } from "../../lib/host/host_metrics.ts";
import type { Logger } from "../../lib/runtime/log.ts";

/** What {@linkcode createMetricsApp} takes. */
export interface MetricsAppOptions {
  /** What a scrape shows. */
  readonly metrics: Pick<MetricsSources, "render" | "contentType">;
  readonly logger: Logger;
}

/** Makes the application for the port of the metrics. */
export function createMetricsApp({ metrics, logger }: MetricsAppOptions): Hono {
  const app = new Hono();
  app.get("/metrics", async (c) => {
    const text = await metrics.render();
    return c.body(text, 200, { "Content-Type": metrics.contentType, "Cache-Control": "no-store" });
  });
  app.onError((error, c) => {
    logger.error("metrics cannot be collected", { error: error.name });
    return c.text("metrics cannot be collected", 500);
  });
  return app;
}
