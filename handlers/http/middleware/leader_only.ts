import type { MiddlewareHandler } from "hono";
import { simpleError } from "../answers.ts";
import type { DeployEnv } from "../deploy_env.ts";

/**
 * Refuses everything while this replica does not lead, before a token is looked at: deploy-api 1.2 step 1.
 *
 * @param leads True while this replica leads and takes new requests.
 */
export function leaderOnly(leads: () => boolean): MiddlewareHandler<DeployEnv> {
  return async function leaderOnly(_c, next) {
    if (!leads()) return simpleError("not_leader");
    return await next();
  };
}
