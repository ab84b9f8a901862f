/**
 * The demo's story: two deployments that want to migrate a database of one group, step by step. Each step is done on the
 * running service, and checked.
 *
 * @module
 */

import { z } from "zod";
import { DEPLOYMENT_STATE_LABEL } from "../../../lib/lease/names.ts";
import type { Answer, Deployer } from "./deployer.ts";

/** What a step tells its reader. */
export interface ToldStep {
  /** From 1. */
  readonly number: number;
  readonly title: string;
  /** Who calls what. */
  readonly call: string;
  readonly status: number;
  /** What happened. */
  readonly what: string;
  /** Why it matters to somebody who runs databases. */
  readonly why: string;
}

/** What the story needs. */
export interface StoryParts {
  readonly orders: Deployer;
  readonly billing: Deployer;
  /** The labels of the group's migration Lease, as `kubectl` would show them. */
  readonly leaseLabels: () => Promise<Readonly<Record<string, string>>>;
  /** Told after each step that went well. */
  readonly tell: (step: ToldStep) => void;
}

/** How many steps the story has. */
export const STEPS = 8;

/** A step did not go as it must. */
export class StoryError extends Error {
  override readonly name = "StoryError";
  /** From 1. */
  readonly step: number;

  constructor(step: number, title: string, fault: string) {
    super(`Cannot go on after step ${step} of ${STEPS} ("${title}") as ${fault}`);
    this.step = step;
  }
}

/** What a step found wrong. */
class Fault extends Error {
  override readonly name = "Fault";
}

const ORDERS_OPERATION = "orders-release-42";
const BILLING_OPERATION = "billing-release-17";
const TTL_SECONDS = 30;
const LONGER_TTL_SECONDS = 120;

const groupAnswer = z.object({
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

const heldAnswer = z.object({
  error: z.literal("held"),
  holder: z.object({ expiresAt: z.string(), instance: z.string(), operationId: z.string() }),
});

const renewAnswer = z.object({
  expiresAt: z.iso.datetime({ offset: true }),
  topologyGeneration: z.number(),
});

const errorAnswer = z.object({ error: z.string() });

/** A lease that was granted. */
interface Grant {
  readonly token: string;
  readonly expiresAt: string;
  readonly generation: number;
  readonly fence: bigint;
}

/** What a step comes to. */
type Outcome<T> = Omit<ToldStep, "number" | "title"> & { readonly value: T };

/**
 * Plays the story.
 *
 * @throws {StoryError} A step did not go as it must. What it throws besides comes from a call that did not come back.
 */
export async function playStory(parts: StoryParts): Promise<void> {
  let number = 0;
  const step = async <T>(title: string, play: () => Promise<Outcome<T>>): Promise<T> => {
    number++;
    try {
      const { value, ...told } = await play();
      parts.tell({ number, title, ...told });
      return value;
    } catch (error) {
      throw error instanceof Fault ? new StoryError(number, title, error.message) : error;
    }
  };
  await step("Look before you migrate", () => look(parts));
  const first = await step("Take the migration lease", () => take(parts));
  await step("The second deployment has to wait", () => refuse(parts, first));
  const until = await step("Renew while the migration runs", () => renew(parts, first));
  await step("See who holds the lease", () => seeHolder(parts, until));
  await step("Release when the migration is done", () => release(parts, first));
  const second = await step("Now it is the second one's turn", () => takeNext(parts, first));
  await step("Release again: the group is free", () => releaseNext(parts, second));
}

async function look({ orders }: StoryParts): Promise<Outcome<void>> {
  const answer = await orders.look();
  const group = read(answer, 200, groupAnswer);
  must(group.stable, "the group must be stable");
  must(group.leases.length === 0, "no lease must be held yet");
  const { activeSite, topologyGeneration } = group;
  return {
    call: `${orders.instance}: GET the group`,
    status: answer.status,
    what:
      `The group is stable: ${activeSite} is the active site at topology generation ${topologyGeneration}, and nobody holds a lease.`,
    why:
      "A schema change must not start while the primary is about to move. An unstable group answers 423 to a grant, with the reason.",
    value: undefined,
  };
}

async function take({ orders, leaseLabels }: StoryParts): Promise<Outcome<Grant>> {
  const answer = await orders.take(ORDERS_OPERATION, TTL_SECONDS);
  const grant = readGrant(answer, ORDERS_OPERATION);
  await mustBeStored("active", leaseLabels);
  return {
    call: `${orders.instance}: POST a lease, kind migration, for ${TTL_SECONDS} s`,
    status: answer.status,
    what: `${orders.instance} may migrate until ${
      clockTime(grant.expiresAt)
    }, at generation ${grant.generation}, with fence ${grant.fence}.`,
    why:
      "All of it is in one Kubernetes Lease: 'kubectl get lease' shows it, and a restart of this service loses nothing.",
    value: grant,
  };
}

async function refuse({ billing, orders }: StoryParts, first: Grant): Promise<Outcome<void>> {
  const answer = await billing.take(BILLING_OPERATION, TTL_SECONDS);
  const { holder } = read(answer, 409, heldAnswer);
  must(
    holder.instance === orders.instance && holder.operationId === ORDERS_OPERATION &&
      holder.expiresAt === first.expiresAt,
    "the refusal must name the holder, its operation and its expiry",
  );
  const retryAfter = Number(answer.headers.get("Retry-After"));
  must(retryAfter >= 1 && retryAfter <= TTL_SECONDS + 1, "Retry-After must be the holder's time");
  return {
    call: `${billing.instance}: POST a lease, kind migration`,
    status: answer.status,
    what: `Refused: ${holder.instance} holds it for operation ${holder.operationId} until ${
      clockTime(holder.expiresAt)
    }. Retry-After says ${retryAfter} s.`,
    why:
      "The databases of a group share its primary and its replication: two migrations at once would fight. The second pipeline knows whom it waits for, and how long.",
    value: undefined,
  };
}

async function renew({ orders }: StoryParts, first: Grant): Promise<Outcome<string>> {
  const answer = await orders.renew(ORDERS_OPERATION, first.token, LONGER_TTL_SECONDS);
  const { expiresAt, topologyGeneration } = read(answer, 200, renewAnswer);
  must(Date.parse(expiresAt) > Date.parse(first.expiresAt), "the new expiry must be later");
  must(topologyGeneration === first.generation, "the generation must be that of the grant");
  return {
    call: `${orders.instance}: PUT the lease, for ${LONGER_TTL_SECONDS} s more`,
    status: answer.status,
    what: `${orders.instance} may migrate until ${clockTime(expiresAt)}.`,
    why:
      "A deployment that dies stops renewing, and its lease ends by itself: nobody has to clean up. If the primary moved meanwhile, this answer would have been 409: stop.",
    value: expiresAt,
  };
}

async function seeHolder(
  { billing, orders }: StoryParts,
  until: string,
): Promise<Outcome<void>> {
  const answer = await billing.look();
  const [lease, ...others] = read(answer, 200, groupAnswer).leases;
  must(lease !== undefined && others.length === 0, "exactly one lease must be shown");
  must(
    lease.instance === orders.instance && lease.operationId === ORDERS_OPERATION &&
      lease.expiresAt === until,
    "it must be that of the holder, with the renewed expiry",
  );
  return {
    call: `${billing.instance}: GET the group`,
    status: answer.status,
    what: `One lease: ${lease.kind}, ${lease.instance}, operation ${lease.operationId}, until ${
      clockTime(lease.expiresAt)
    }.`,
    why:
      "Whoever may deploy sees who is at work. The lease's secret token is not shown: only its holder can renew or release.",
    value: undefined,
  };
}

async function release(
  { orders, leaseLabels }: StoryParts,
  first: Grant,
): Promise<Outcome<void>> {
  const answer = await orders.release(ORDERS_OPERATION, first.token);
  mustHaveStatus(answer, 204);
  await mustBeStored("released", leaseLabels);
  return {
    call: `${orders.instance}: DELETE the lease`,
    status: answer.status,
    what: `${orders.instance} gave the lease back, long before it would have run out.`,
    why: "Release at once, also when a migration failed: the next in line does not wait for a TTL.",
    value: undefined,
  };
}

async function takeNext(
  { billing, leaseLabels }: StoryParts,
  first: Grant,
): Promise<Outcome<Grant>> {
  const answer = await billing.take(BILLING_OPERATION, TTL_SECONDS);
  const grant = readGrant(answer, BILLING_OPERATION);
  must(grant.fence > first.fence, "the fence must be higher than that of the grant before");
  must(grant.token !== first.token, "the token must be a new one");
  await mustBeStored("active", leaseLabels);
  return {
    call: `${billing.instance}: POST a lease, kind migration`,
    status: answer.status,
    what: `The same request as in step 3 is granted: until ${
      clockTime(grant.expiresAt)
    }, with fence ${grant.fence}.`,
    why:
      `The fence rises with every grant (${first.fence}, then ${grant.fence}): what checks it refuses a late writer of an earlier deployment.`,
    value: grant,
  };
}

async function releaseNext(
  { billing, leaseLabels }: StoryParts,
  second: Grant,
): Promise<Outcome<void>> {
  const answer = await billing.release(BILLING_OPERATION, second.token);
  mustHaveStatus(answer, 204);
  await mustBeStored("released", leaseLabels);
  const group = read(await billing.look(), 200, groupAnswer);
  must(group.leases.length === 0, "no lease must be left");
  return {
    call: `${billing.instance}: DELETE the lease`,
    status: answer.status,
    what: "Nobody holds a lease, and the group is as it was.",
    why: "The Lease object stays and says who had it last: the first question after an incident.",
    value: undefined,
  };
}

function readGrant(answer: Answer, operationId: string): Grant {
  const grant = read(answer, 201, grantAnswer);
  must(grant.operationId === operationId, "the grant must be for the operation that asked");
  const fence = answer.headers.get("X-Lease-Fence") ?? "";
  must(/^\d+$/.test(fence), "the grant must have a fence, a decimal number");
  const { token, expiresAt, topologyGeneration: generation } = grant;
  return { token, expiresAt, generation, fence: BigInt(fence) };
}

async function mustBeStored(
  state: string,
  leaseLabels: StoryParts["leaseLabels"],
): Promise<void> {
  const stored = (await leaseLabels())[DEPLOYMENT_STATE_LABEL];
  must(stored === state, `the Lease in the cluster must say '${state}'`);
}

/** A body can hold a lease's token: a fault names the status, the error and the members, and never a value. */
function read<T>(answer: Answer, status: number, schema: z.ZodType<T>): T {
  mustHaveStatus(answer, status);
  const parsed = schema.safeParse(answer.body);
  if (parsed.success) return parsed.data;
  const members = parsed.error.issues.map(({ path }) => path.join(".") || "the body");
  throw new Fault(`the answer ${status} is not as it must be: look at ${members.join(", ")}`);
}

function mustHaveStatus({ status, body }: Answer, wanted: number): void {
  if (status === wanted) return;
  const error = errorAnswer.safeParse(body);
  const named = error.success ? ` '${error.data.error}'` : "";
  throw new Fault(`the answer must be ${wanted}, and is ${status}${named}`);
}

function must(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Fault(`${rule}, and that is not so`);
}

/** The time of day in UTC of an RFC 3339 time. */
function clockTime(time: string): string {
  return `${new Date(Date.parse(time)).toISOString().slice(11, 19)} UTC`;
}
