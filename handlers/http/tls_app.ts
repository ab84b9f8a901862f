/**
 * What answers on the TLS listener: the deployment API when it is on, and 404 for the rest (deploy-api 1.1).
 *
 * @module
 */

import type { Hono } from "hono";
import type { InFlight } from "../../lib/host/in_flight.ts";
import type { FetchHandler } from "../../lib/host/listener.ts";
import { rawTarget } from "../../lib/host/raw_target.ts";
import { simpleError } from "./answers.ts";
import type { DeployEnv } from "./deploy_env.ts";
import { isDeployTarget } from "./deploy_path.ts";

/** What the listener serves. */
export interface TlsAppParts {
  /** `null` when the API is off. */
  readonly deploy: Hono<DeployEnv> | null;
  /** Counts the requests of the API, so that a stop can wait for them. */
  readonly inFlight: InFlight;
}

/** Chooses by the raw request target, before anything normalizes it. */
export function createTlsApp({ deploy, inFlight }: TlsAppParts): FetchHandler {
  return (request, env) => {
    if (deploy === null || !isDeployTarget(rawTarget(env, request).target)) {
      return simpleError("not_found");
    }
    return inFlight.track(() => deploy.fetch(request, env));
  };
}
