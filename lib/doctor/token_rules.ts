/**
 * What is wrong with the token of a deployment client, by what it says of itself. Pure functions.
 *
 * @module
 */

import { shown, span } from "../status/words.ts";
import type { CallerFacts } from "./caller_facts.ts";
import { type Finding, ok, waiting, warning, wrong } from "./finding.ts";

/** Where the kubelet puts the token for the API server. */
const OWN_TOKEN_FILE = /\/kubernetes\.io\/serviceaccount\/token$/;

/** The audiences that API servers have unless they are configured otherwise. */
const API_AUDIENCE = /(^|\/\/)kubernetes\.default(\.svc(\.|$)|$)|^k8s$/;

/** Seconds before its end from which a token is worth a warning: the kubelet replaces one long before. */
const EXPIRY_WARNING_SECONDS = 60;

/**
 * True for a token that may be sent to the service: it says that it is for it, or says nothing of the kind. The API
 * server's own token is kept back, since whoever gets it can act in the cluster with it.
 */
export function maySend({ token, settings }: Pick<CallerFacts, "settings" | "token">): boolean {
  return token.type === "read" && token.claims !== null &&
    (token.claims.aud?.includes(settings.audience) ?? false);
}

/** Whether the token can be read, whom it is for, and until when. */
export function tokenFindings(facts: CallerFacts): readonly Finding[] {
  const { token, settings } = facts;
  const file = `'${shown(settings.tokenFile)}'`;
  const rest = [
    waiting("token-audience", "The audience of the token"),
    waiting("token-expiry", "The end of the token"),
  ];
  const todo = `Mount a projected token for the audience '${
    shown(settings.audience)
  }', and name its file in HOLDFAST_TOKEN_FILE`;
  if (token.type === "unreadable") {
    return [wrong("token", `Cannot read the token in ${file}`, todo), ...rest];
  }
  if (token.type === "unusable" || token.claims === null) {
    const what = token.type === "unusable" ? "no token" : "no service account token (JWT)";
    return [wrong("token", `The file ${file} holds ${what}`, todo), ...rest];
  }
  const whose = token.claims.sub === undefined ? "" : ` of '${shown(token.claims.sub)}'`;
  return [ok("token", `A token${whose}`), audienceFinding(facts), endFinding(facts)];
}

function audienceFinding({ token, settings }: CallerFacts): Finding {
  const check = "token-audience";
  const audiences = token.type === "read" ? token.claims?.aud ?? [] : [];
  const wanted = shown(settings.audience);
  const todo =
    `Mount a projected token for the audience '${wanted}' alone. It was not sent: who gets the API server's own token can use it`;
  const isForApiServer = audiences.some((audience) => API_AUDIENCE.test(audience));
  if (audiences.includes(settings.audience)) {
    if (!isForApiServer) return ok(check, `It is for the audience '${wanted}'`);
    return warning(
      check,
      `It is for the audience '${wanted}', and for the API server too`,
      "Ask for a token of one audience: what the service gets could be used against the API server",
    );
  }
  if (isForApiServer || audiences.length === 0 || OWN_TOKEN_FILE.test(settings.tokenFile)) {
    return wrong(check, "It is the API server's own token", todo);
  }
  const listed = audiences.map((audience) => `'${shown(audience)}'`).join(", ");
  return wrong(
    check,
    `It is for the audience ${listed}, and not for '${wanted}'`,
    `Ask for the audience that 'deploy_api.audience' of the service says. The token was not sent`,
  );
}

function endFinding({ token, nowMs }: CallerFacts): Finding {
  const check = "token-expiry";
  const end = token.type === "read" ? token.claims?.exp : undefined;
  if (end === undefined) {
    return warning(
      check,
      "The token has no end",
      "Use a projected token: the kubelet replaces it, and it ends",
    );
  }
  const left = Math.floor(end - nowMs / 1_000);
  const todo =
    "A projected token is replaced by the kubelet: read the file anew for each request, and mount it without subPath";
  if (left <= 0) return wrong(check, `The token expired ${span(-left)} ago`, todo);
  const says = `The token is valid for ${span(left)} more`;
  return left < EXPIRY_WARNING_SECONDS ? warning(check, says, todo) : ok(check, says);
}
