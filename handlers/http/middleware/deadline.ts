import type { MiddlewareHandler } from "hono";
import { type Clock, startDeadline } from "../../../lib/runtime/clock.ts";
import type { DeployEnv } from "../deploy_env.ts";

/**
 * Gives the request a signal that aborts when its time is over, or when the client is gone: deploy-api 1.2 step 2.
 *
 * The signal goes down to every call of the API server. To race the handler against a timer would leave it running, and
 * it might take the lock after the answer.
 *
 * @param limitMs Milliseconds for the whole request.
 */
export function deadline(clock: Clock, limitMs: number): MiddlewareHandler<DeployEnv> {
  return async function deadline(c, next) {
    using limit = startDeadline(clock, limitMs, c.req.raw.signal);
    c.set("signal", limit.signal);
    await next();
  };
}
