import type { MiddlewareHandler } from "hono";
import { bearerToken } from "../../../lib/auth/bearer.ts";
import type { TokenReviewer } from "../../../lib/auth/token_review.ts";
import { simpleError } from "../answers.ts";
import type { DeployEnv } from "../deploy_env.ts";

/**
 * Finds out who calls: deploy-api 3. A token that is refused is 401; a review that could not be made is thrown, and the
 * answer is 503 (difference 1).
 */
export function authenticate(
  reviewer: Pick<TokenReviewer, "review">,
): MiddlewareHandler<DeployEnv> {
  return async function authenticate(c, next) {
    const token = bearerToken(c.req.header("Authorization"));
    const caller = token === null ? null : await reviewer.review(token, c.var.signal);
    if (caller === null) return simpleError("unauthorized");
    c.set("caller", caller);
    return await next();
  };
}
