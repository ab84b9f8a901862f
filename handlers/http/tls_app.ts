/**
 * What answers on the TLS listener: the deployment API when it is on, the keyring escrow, and 404 for the rest (deploy-api
 * 1.1 and 14).
 *
 * @module
 */

import type { InFlight } from "../../lib/host/in_flight.ts";
import type { FetchHandler } from "../../lib/host/listener.ts";
import { rawTarget } from "../../lib/host/raw_target.ts";
import { simpleError } from "./answers.ts";
import { isDeployTarget } from "./deploy_path.ts";
import { isEscrowTarget } from "./escrow.ts";

/** What the listener serves. */
export interface TlsAppParts {
  /** Answers the requests of the API. `null` when it is off. */
  readonly deploy: FetchHandler | null;
  /** Takes keyrings. A stop of the listener waits for it, and the end of a term does not: it needs no leader. */
  readonly escrow: FetchHandler;
  /** Counts the requests of the API, so that a stop can wait for them. */
  readonly inFlight: InFlight;
}

/** Chooses by the raw request target, before anything normalizes it. */
export function createTlsApp({ deploy, escrow, inFlight }: TlsAppParts): FetchHandler {
  return (request, env) => {
    const { target } = rawTarget(env, request);
    if (isEscrowTarget(target)) return escrow(request, env);
    if (deploy === null || !isDeployTarget(target)) return simpleError("not_found");
    return inFlight.track(() => deploy(request, env));
  };
}
