import type { MiddlewareHandler } from "hono";
import { type Clock, startDeadline } from "../../../lib/runtime/clock.ts";
import type { DeployEnv } from "../deploy_env.ts";

/** The client closed its connection before it had its answer. */
export class ClientGoneError extends Error {
  override readonly name = "ClientGoneError";
  constructor() {
    super("Cannot answer as the client is gone");
  }
}

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
    // The listener's own reason is a text. What is thrown must be an error, or hono hands it to nobody.
    const gone = new AbortController();
    const client = c.req.raw.signal;
    const leave = () => gone.abort(new ClientGoneError());
    if (client.aborted) leave();
    client.addEventListener("abort", leave, { once: true });
    using limit = startDeadline(clock, limitMs, gone.signal);
    c.set("signal", limit.signal);
    await next();
    client.removeEventListener("abort", leave);
  };
}
