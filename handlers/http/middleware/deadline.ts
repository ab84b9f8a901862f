import type { MiddlewareHandler } from "hono";
import { type Clock, type Deadline, startDeadline } from "../../../lib/runtime/clock.ts";
import type { DeployEnv } from "../deploy_env.ts";

/** The client closed its connection before it had its answer. */
export class ClientGoneError extends Error {
  override readonly name = "ClientGoneError";
  constructor() {
    super("Cannot answer as the client is gone");
  }
}

/**
 * Starts the time of a request: its signal aborts when that is over, or when the client is gone. An abort is always told by
 * an error.
 *
 * @param limitMs Milliseconds.
 * @param client The signal of the request. The listener's own reason is a text, and hono hands that to nobody.
 */
export function startRequest(clock: Clock, limitMs: number, client: AbortSignal): Deadline {
  const gone = new AbortController();
  const leave = () => gone.abort(new ClientGoneError());
  if (client.aborted) leave();
  client.addEventListener("abort", leave, { once: true });
  const limit = startDeadline(clock, limitMs, gone.signal);
  return {
    signal: limit.signal,
    at: limit.at,
    get expired() {
      return limit.expired;
    },
    [Symbol.dispose]() {
      limit[Symbol.dispose]();
      client.removeEventListener("abort", leave);
    },
  };
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
    using limit = startRequest(clock, limitMs, c.req.raw.signal);
    c.set("signal", limit.signal);
    await next();
  };
}
