import type { FetchHandler } from "../../../lib/host/listener.ts";
import { rawTarget } from "../../../lib/host/raw_target.ts";
import type { AccessLogParts } from "./access_log.ts";

/**
 * Writes exactly one `aux http` line per request, and counts it once: deploy-api 10 and 11.
 *
 * @param handler The handler's name in log and metrics, of the contract's fixed list.
 */
export function auxAccessLog(
  { clock, logger, metrics }: AccessLogParts,
  handler: string,
  answer: FetchHandler,
): FetchHandler {
  return async function auxAccessLog(request, env) {
    const started = clock.monotonic();
    const response = await answer(request, env);
    const durationMs = clock.monotonic() - started;
    const { method, target } = rawTarget(env, request);
    const { status } = response;
    metrics.observe({ server: "aux", handler, method, status, seconds: durationMs / 1000 });
    const socket = env?.incoming?.socket;
    // The order of the fields is part of the contract. The query is left out: it says nothing here.
    logger.info("aux http", {
      method,
      path: target.replace(/\?.*$/s, ""),
      handler,
      status,
      duration_ms: Math.trunc(durationMs),
      remote: socket?.remoteAddress === undefined
        ? ""
        : `${socket.remoteAddress}:${socket.remotePort}`,
    });
    return response;
  };
}
