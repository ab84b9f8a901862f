import type { IncomingMessage } from "node:http";
import type { MiddlewareHandler } from "hono";
import type { HttpMetrics } from "../../../lib/host/metrics.ts";
import { type ListenerEnv, type RawTarget, rawTarget } from "../../../lib/host/raw_target.ts";
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
  /** As the client sent it. */
  readonly target: RawTarget;
  /** The client's end of the connection; empty where there is no socket. */
  readonly remote: string;
  /** Of the fixed list of deploy-api 10. */
  readonly handler: string;
  readonly status: number;
  readonly durationMs: number;
}

/** Writes one `aux http` line, and counts the request: deploy-api 10 and 11. */
export function logAuxExchange(
  { logger, metrics }: Omit<AuxLogParts, "clock">,
  { target: { method, target }, remote, handler, status, durationMs }: AuxExchange,
): void {
  metrics.observe({ server: "aux", handler, method, status, seconds: durationMs / 1000 });
  // The order of the fields is part of the contract. A query may hold what is nobody's business.
  logger.info("aux http", {
    method,
    path: target.split("?", 1)[0] ?? "",
    handler,
    status,
    duration_ms: Math.trunc(durationMs),
    remote,
  });
}

/** Logs and counts every request that the application answers. */
export function auxLog(parts: AuxLogParts): MiddlewareHandler<AuxEnv> {
  return async function auxLog(c, next) {
    const started = parts.clock.monotonic();
    c.set("handler", "notfound");
    await next();
    logAuxExchange(parts, {
      target: rawTarget(c.env, c.req.raw),
      remote: remoteOf(c.env?.incoming),
      handler: c.var.handler,
      status: c.res.status,
      durationMs: parts.clock.monotonic() - started,
    });
  };
}

/** The client's end of the connection, as Go writes it; empty where there is no socket. */
export function remoteOf(incoming: Pick<IncomingMessage, "socket"> | undefined): string {
  const { remoteAddress, remotePort } = incoming?.socket ?? {};
  if (remoteAddress === undefined) return "";
  const host = remoteAddress.includes(":") ? `[${remoteAddress}]` : remoteAddress;
  return `${host}:${remotePort ?? 0}`;
}
