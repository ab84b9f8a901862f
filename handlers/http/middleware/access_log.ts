import type { MiddlewareHandler } from "hono";
import type { HttpMetrics } from "../../../lib/host/metrics.ts";
import { rawTarget } from "../../../lib/host/raw_target.ts";
import type { Clock } from "../../../lib/runtime/clock.ts";
import type { Logger } from "../../../lib/runtime/log.ts";
import type { DeployEnv } from "../deploy_env.ts";

/** What the access log is made of. */
export interface AccessLogParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: HttpMetrics;
}

/** Writes exactly one `deploy api` line per request, and counts it once: deploy-api 10 and 11. */
export function accessLog(
  { clock, logger, metrics }: AccessLogParts,
): MiddlewareHandler<DeployEnv> {
  return async function accessLog(c, next) {
    const started = clock.monotonic();
    const entry = c.var.entry;
    await next();
    const durationMs = clock.monotonic() - started;
    const { status } = c.res;
    const { method } = rawTarget(c.env, c.req.raw);
    metrics.observe({
      server: "deploy",
      handler: entry.handler,
      method,
      status,
      seconds: durationMs / 1000,
    });
    // The order of the fields is part of the contract.
    logger.info("deploy api", {
      handler: entry.handler,
      group: entry.group,
      instance: entry.instance,
      namespace: entry.namespace,
      operationId: entry.operationId,
      status,
      duration_ms: Math.trunc(durationMs),
    });
  };
}
