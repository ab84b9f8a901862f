/**
 * What answers on the TLS listener: the deployment API when it is on, and 404 for the rest (deploy-api 1.1).
 *
 * @module
 */

import type { InFlight } from "../../lib/host/in_flight.ts";
import type { FetchHandler } from "../../lib/host/listener.ts";
import { rawTarget } from "../../lib/host/raw_target.ts";
import { simpleError } from "./answers.ts";
import { isDeployTarget } from "./deploy_path.ts";

/** What the listener serves. */
export interface TlsAppParts {
  /** Answers the requests of the API. `null` when it is off. */
  readonly deploy: FetchHandler | null;
  /** Counts the requests of the API, so that a stop can wait for them. */
  readonly inFlight: InFlight;
}

/** Chooses by the raw request target, before anything normalizes it. */
export function createTlsApp({ deploy, inFlight }: TlsAppParts): FetchHandler {
  return (request, env) => {
    if (deploy === null || !isDeployTarget(rawTarget(env, request).target)) {
      return simpleError("not_found");
    }
    return inFlight.track(() => deploy(request, env));
  };
}
