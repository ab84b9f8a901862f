/**
 * The first part of the story: two deployments of one group take the migration lease, one after the other.
 *
 * @module
 */

import { slotName } from "../../../../lib/records/names.ts";
import { GROUP } from "../cast.ts";
import {
  clockTime,
  type Grant,
  groupAnswer,
  heldAnswer,
  must,
  mustBeStored,
  mustHaveStatus,
  read,
  readGrant,
  renewAnswer,
} from "./answers.ts";
import {
  type DoStep,
  LONGER_TTL_SECONDS,
  type Outcome,
  type StoryParts,
  TTL_SECONDS,
} from "./step.ts";

const ORDERS_OPERATION = "orders-release-42";
const BILLING_OPERATION = "billing-release-17";

/** The group's one migration Lease. */
const SLOT = slotName(GROUP.name);

/** Plays it: eight steps. At its end nobody holds a lease. */
export async function playTurns(parts: StoryParts, step: DoStep): Promise<void> {
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

async function take({ orders, team }: StoryParts): Promise<Outcome<Grant>> {
  const answer = await orders.take(ORDERS_OPERATION, TTL_SECONDS);
  const grant = readGrant(answer, ORDERS_OPERATION);
  await mustBeStored(team, SLOT, "active");
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
  { orders, team }: StoryParts,
  first: Grant,
): Promise<Outcome<void>> {
  const answer = await orders.release(ORDERS_OPERATION, first.token);
  mustHaveStatus(answer, 204);
  await mustBeStored(team, SLOT, "released");
  return {
    call: `${orders.instance}: DELETE the lease`,
    status: answer.status,
    what: `${orders.instance} gave the lease back, long before it would have run out.`,
    why: "Release at once, also when a migration failed: the next in line does not wait for a TTL.",
    value: undefined,
  };
}

async function takeNext(
  { billing, team }: StoryParts,
  first: Grant,
): Promise<Outcome<Grant>> {
  const answer = await billing.take(BILLING_OPERATION, TTL_SECONDS);
  const grant = readGrant(answer, BILLING_OPERATION);
  must(grant.fence > first.fence, "the fence must be higher than that of the grant before");
  must(grant.token !== first.token, "the token must be a new one");
  await mustBeStored(team, SLOT, "active");
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
  { billing, team }: StoryParts,
  second: Grant,
): Promise<Outcome<void>> {
  const answer = await billing.release(BILLING_OPERATION, second.token);
  mustHaveStatus(answer, 204);
  await mustBeStored(team, SLOT, "released");
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
