/**
 * How the steps of the story check what they get: the answers of deploy-api 2, and the Leases in the cluster.
 *
 * @module
 */

import { z } from "zod";
import type { DatabaseTeam } from "../database_team.ts";
import type { Answer } from "../deployer.ts";
import { Fault } from "./step.ts";

/** What the story reads of a group. */
export const groupAnswer = z.object({
  activeSite: z.string(),
  topologyGeneration: z.number(),
  stable: z.boolean(),
  leases: z.array(z.object({
    kind: z.string(),
    operationId: z.string(),
    instance: z.string(),
    expiresAt: z.string(),
  })),
});

const grantAnswer = z.object({
  operationId: z.string(),
  token: z.string().regex(/^[0-9a-f]{64}$/),
  expiresAt: z.iso.datetime({ offset: true }),
  topologyGeneration: z.number(),
});

/** A refusal since another operation has the lease. */
export const heldAnswer = z.object({
  error: z.literal("held"),
  holder: z.object({ expiresAt: z.string(), instance: z.string(), operationId: z.string() }),
});

/** What a renewal answers. */
export const renewAnswer = z.object({
  expiresAt: z.iso.datetime({ offset: true }),
  topologyGeneration: z.number(),
});

/** A refusal since the group is not stable. */
export const unstableAnswer = z.object({ error: z.literal("unstable"), reason: z.string() });

/** A refusal since the operation was revoked. The generation is the group's own, now. */
export const revokedAnswer = z.object({
  error: z.literal("revoked"),
  reason: z.string(),
  topologyGeneration: z.number(),
});

const errorAnswer = z.object({ error: z.string() });

/** A lease that was granted. */
export interface Grant {
  readonly token: string;
  readonly expiresAt: string;
  readonly generation: number;
  readonly fence: bigint;
}

/** Reads a grant. @throws {Fault} It is not a new lease for this operation. */
export function readGrant(answer: Answer, operationId: string): Grant {
  const grant = read(answer, 201, grantAnswer);
  must(grant.operationId === operationId, "the grant must be for the operation that asked");
  const fence = answer.headers.get("X-Lease-Fence") ?? "";
  must(/^\d+$/.test(fence), "the grant must have a fence, a decimal number");
  const { token, expiresAt, topologyGeneration: generation } = grant;
  return { token, expiresAt, generation, fence: BigInt(fence) };
}

/** Looks into the cluster, and not at what the service answers. @throws {Fault} The Lease is in another state. */
export async function mustBeStored(
  team: DatabaseTeam,
  leaseName: string,
  state: string,
): Promise<void> {
  const stored = await team.leaseState(leaseName);
  must(stored === state, `the Lease in the cluster must say '${state}'`);
}

/**
 * Reads the body of an answer. A body can hold a lease's token: a fault names the status, the error and the members, and
 * never a value.
 *
 * @throws {Fault} The status or the form is another.
 */
export function read<T>(answer: Answer, status: number, schema: z.ZodType<T>): T {
  mustHaveStatus(answer, status);
  const parsed = schema.safeParse(answer.body);
  if (parsed.success) return parsed.data;
  const members = parsed.error.issues.map(({ path }) => path.join(".") || "the body");
  throw new Fault(`the answer ${status} is not as it must be: look at ${members.join(", ")}`);
}

/** Checks the status alone. @throws {Fault} It is another. */
export function mustHaveStatus({ status, body }: Answer, wanted: number): void {
  if (status === wanted) return;
  const error = errorAnswer.safeParse(body);
  const named = error.success ? ` '${error.data.error}'` : "";
  throw new Fault(`the answer must be ${wanted}, and is ${status}${named}`);
}

/** Checks a rule. @throws {Fault} It does not hold. */
export function must(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Fault(`${rule}, and that is not so`);
}

/** The time of day in UTC of an RFC 3339 time. */
export function clockTime(time: string): string {
  return `${new Date(Date.parse(time)).toISOString().slice(11, 19)} UTC`;
}
