/**
 * What all races are written with.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Answer, DeploymentClient } from "../service/deployment_client.ts";
import type { Arena } from "./arena.ts";

/** One race. */
export interface Race {
  readonly name: string;
  /** Runs one round with an operation of its own, and says how it ended. */
  readonly round: (arena: Arena, operation: string) => Promise<string>;
}

/** What a request says that is about a hold. */
export const HOLD = { kind: "failover-hold" } as const;
/** The answer of a request that lost three races: several that write one lease without a pause can do that to each other. */
export const LOST_RACES = 503;

/** The token that a grant gave. */
export function tokenOf(answer: Answer): string {
  return String(answer.body.token);
}

/** Insists on one of these statuses. */
export function mustBe(answer: Answer, ...statuses: readonly number[]): Answer {
  assert.ok(statuses.includes(answer.status), `${answer.status} ${answer.text}`);
  return answer;
}

/** Gets a lease that nobody else has, and returns its token. */
export async function granted(client: DeploymentClient, operation: string, options = {}) {
  return tokenOf(mustBe(await client.grant(operation, "tenant", options), 201));
}

/** Statuses and reasons, to be counted. */
export function said(...answers: readonly Answer[]): string {
  return answers.map(({ status, body }) =>
    status < 300 ? String(status) : `${status} ${body.reason ?? body.error ?? ""}`.trim()
  ).join(", ");
}
