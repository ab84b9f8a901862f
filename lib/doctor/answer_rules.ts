/**
 * What the answer of the service says. Pure functions.
 *
 * @module
 */

import { isDnsSubdomain } from "../auth/dns_names.ts";
import { shown, span } from "../status/words.ts";
import type { CallerFacts } from "./caller_facts.ts";
import { bracketed, type Finding, ok, unseen, waiting, warning, wrong } from "./finding.ts";

/** Milliseconds by which two clocks may differ before it is worth a warning: the bound of the service's own clock. */
export const CLOCK_WARNING_MS: number = 1_000;

/** Milliseconds by which two clocks may differ before the ends of tokens and certificates are judged wrongly. */
export const CLOCK_WRONG_MS: number = 60_000;

/** What the service answers to a look at the group, and what that says of the caller and of the group. */
export function answerFindings(facts: CallerFacts): readonly Finding[] {
  const { look, settings } = facts;
  const all = ["service", "leader", "authorization", "group", "database"] as const;
  const what = {
    service: "The service",
    leader: "The leader",
    authorization: "The authorization",
    group: "The group",
    database: "The database",
  };
  const rest = (from: number) => all.slice(from).map((check) => waiting(check, what[check]));
  if (look.type === "not_tried") return rest(0);
  const { answer } = look;
  const group = `'${shown(settings.group)}'`;
  const serves = ok("service", "The deployment API answers");
  const leads = ok("leader", "A replica leads");
  const allowed = ok("authorization", `The service account may look at group ${group}`);
  switch (answer.type) {
    case "success": {
      const { stable, unstableReason, activeSite } = answer.body;
      return [
        serves,
        leads,
        allowed,
        stable
          ? ok("group", `The group is stable, active site '${shown(activeSite)}'`)
          : unstableFinding(unstableReason),
        databaseFinding(settings.instance),
      ];
    }
    case "unstable":
      return [
        serves,
        leads,
        allowed,
        unstableFinding(answer.reason),
        databaseFinding(settings.instance),
      ];
    case "forbidden":
      return [
        serves,
        leads,
        wrong(
          "authorization",
          `The service account is not allowed to use group ${group} (403)`,
          "'spec.deploymentClients' of a MysqlDatabase must name it, and 'spec.groupRef' of that database the group; in one namespace alone",
        ),
        ...rest(3),
      ];
    case "unauthorized":
      return [
        serves,
        leads,
        wrong(
          "authorization",
          "The service refuses the token (401)",
          `Mount a projected token of this cluster for the audience '${
            shown(settings.audience)
          }', as 'deploy_api.audience' of the service says`,
        ),
        ...rest(3),
      ];
    case "not_found":
      return [
        serves,
        waiting("leader", "Whether a replica leads"),
        wrong(
          "authorization",
          `There is no group ${group}, or no deployment API behind this URL (404)`,
          "Correct the name; give the base URL without /deploy/v1; see that 'deploy_api.enabled' is set",
        ),
        ...rest(3),
      ];
    case "not_leader":
      return [
        serves,
        wrong(
          "leader",
          "No replica leads (503 not_leader)",
          "Wait for an election, at most the lease duration; else look with 'holdfast doctor --from cluster'",
        ),
        ...rest(2),
      ];
    case "unavailable":
      return [
        wrong(
          "service",
          "The service cannot answer now (503 unavailable)",
          "Its log says why: mostly it cannot reach the API server, or an object of the group cannot be read",
        ),
        ...rest(1),
      ];
    case "no_answer": {
      const code = answer.why === "timeout" ? "no answer in time" : answer.code;
      return [
        wrong(
          "service",
          `The service did not answer${bracketed(code)}`,
          "Look at the service's log, and at proxies between",
        ),
        ...rest(1),
      ];
    }
    default:
      return [
        wrong(
          "service",
          `What answers is not the deployment API${
            answer.type === "unexpected" ? ` (status ${answer.status})` : ""
          }`,
          "Correct HOLDFAST_URL; look for a proxy between",
        ),
        ...rest(1),
      ];
  }
}

function unstableFinding(reason: string): Finding {
  return warning(
    "group",
    `The group grants no lease now: ${shown(reason)}`,
    "'holdfast status' says it in plain words; a deployment waits for it with --wait",
  );
}

function databaseFinding(instance: string): Finding {
  const check = "database";
  if (instance === "") {
    return warning(check, "The database is not set", "Set HOLDFAST_INSTANCE, or give --instance");
  }
  if (!isDnsSubdomain(instance)) {
    return wrong(
      check,
      `'${shown(instance)}' cannot be the name of a MysqlDatabase`,
      "Give its name: lower-case letters, digits, hyphens and dots",
    );
  }
  return unseen(
    check,
    `Whether the MysqlDatabase '${instance}' is the one that names this service account shows only a grant, which no check asks for`,
    "Who runs the databases looks at its 'spec.deploymentClients'",
  );
}

/** Whether the clock of this machine agrees with the service's. */
export function clockFinding({ look }: CallerFacts): Finding {
  const check = "clock";
  if (look.type === "not_tried" || look.serverDateMs === null) {
    return waiting(check, "The clock of the service");
  }
  // The header has whole seconds: the service's clock showed a value of that second, somewhere between the two instants.
  const aheadMs = look.sentMs - (look.serverDateMs + 1_000);
  const behindMs = look.serverDateMs - look.receivedMs;
  const offMs = Math.max(aheadMs, behindMs);
  if (offMs <= CLOCK_WARNING_MS) return ok(check, "The clock agrees with the service's");
  const side = aheadMs > behindMs ? "ahead of" : "behind";
  const says = `The clock of this machine is at least ${
    span(Math.floor(offMs / 1_000))
  } ${side} the service's`;
  if (offMs > CLOCK_WRONG_MS) {
    return wrong(check, says, "Set it: the ends of tokens and certificates are judged by it");
  }
  return warning(
    check,
    says,
    "Leases do not depend on it; a script that compares 'expiresAt' with its own clock does",
  );
}
