import type { IncomingMessage } from "node:http";
import type { MiddlewareHandler } from "hono";
import type { HttpMetrics } from "../../../lib/host/metrics.ts";
import { type ListenerEnv, rawTarget } from "../../../lib/host/raw_target.ts";
import type { Clock } from "../../../lib/runtime/clock.ts";
import type { Logger } from "../../../lib/runtime/log.ts";

/** What hono hands to a handler of the auxiliary endpoints. */
export interface AuxEnv {
  Bindings: ListenerEnv;
  Variables: {
    /** The handler's name in the log and the metrics: deploy-api 10. A handler sets it. @default {"notfound"} */
    handler: string;
  };
}

/** What an auxiliary log is made of. */
export interface AuxLogParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: HttpMetrics;
}

/** What was answered, and to whom. */
export interface AuxExchange {
  readonly request: Request;
  readonly env: ListenerEnv | undefined;
  readonly handler: string;
  readonly status: number;
  readonly durationMs: number;
}

/** Writes one `aux http` line, and counts the request: deploy-api 10 and 11. */
export function logAuxExchange(
  { logger, metrics }: Omit<AuxLogParts, "clock">,
  { request, env, handler, status, durationMs }: AuxExchange,
): void {
  const { method, target } = rawTarget(env, request);
  metrics.observe({ server: "aux", handler, method, status, seconds: durationMs / 1000 });
  // The order of the fields is part of the contract. A query may hold what is nobody's business.
  logger.info("aux http", {
    method,
    path: target.split("?", 1)[0] ?? "",
    handler,
    status,
    duration_ms: Math.trunc(durationMs),
    remote: remoteOf(env?.incoming),
  });
}

/** Logs and counts every request that the application answers. */
export function auxLog(parts: AuxLogParts): MiddlewareHandler<AuxEnv> {
  return async function auxLog(c, next) {
    const started = parts.clock.monotonic();
    c.set("handler", "notfound");
    await next();
    logAuxExchange(parts, {
      request: c.req.raw,
      env: c.env,
      handler: c.var.handler,
      status: c.res.status,
      durationMs: parts.clock.monotonic() - started,
    });
  };
}

/** The client's end of the connection, as Go writes it. */
function remoteOf(incoming: Pick<IncomingMessage, "socket"> | undefined): string {
  const { remoteAddress, remotePort } = incoming?.socket ?? {};
  if (remoteAddress === undefined) return "";
  const host = remoteAddress.includes(":") ? `[${remoteAddress}]` : remoteAddress;
  return `${host}:${remotePort ?? 0}`;
}
