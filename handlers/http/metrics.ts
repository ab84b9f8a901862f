/**
 * `/metrics` in the text format of Prometheus (deploy-api 14).
 *
 * @module
 */

import { Hono } from "hono";
import type { Registry } from "prom-client";
import type { Logger } from "../../lib/runtime/log.ts";

/** What {@linkcode createMetricsApp} takes. */
export interface MetricsAppOptions {
  /** What a scrape shows. */
  readonly registry: Pick<Registry, "metrics" | "contentType">;
  readonly logger: Logger;
}

/** Makes the application for the port of the metrics. */
export function createMetricsApp({ registry, logger }: MetricsAppOptions): Hono {
  const app = new Hono();
  app.get("/metrics", async (c) => {
    const text = await registry.metrics();
    return c.body(text, 200, { "Content-Type": registry.contentType, "Cache-Control": "no-store" });
  });
  app.onError((error, c) => {
    logger.error("metrics cannot be collected", { error: error.name });
    return c.text("metrics cannot be collected", 500);
  });
  return app;
}
