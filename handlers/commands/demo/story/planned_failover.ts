/**
 * The second part of the story: a planned failover waits for a deployment that holds it off, goes on when the hold is
 * released, and overtakes the deployment that has not come to its end by then.
 *
 * @module
 */

import {
  type MysqlFailoverGroup,
  PLANNED_FAILOVER_ANNOTATION,
} from "../../../../lib/group/types.ts";
import { holdName, slotName } from "../../../../lib/records/names.ts";
import { GROUP, STANDBY_SITE } from "../cast.ts";
import type { Answer } from "../deployer.ts";
import {
  clockTime,
  type Grant,
  groupAnswer,
  must,
  mustBeStored,
  mustHaveStatus,
  read,
  readGrant,
  renewAnswer,
  revokedAnswer,
  unstableAnswer,
} from "./answers.ts";
import {
  type DoStep,
  LONGER_TTL_SECONDS,
  type Outcome,
  type StoryParts,
  TTL_SECONDS,
} from "./step.ts";

/** The deployment that is at work when the failover is asked for. */
const OLD_OPERATION = "orders-release-43";
/** The deployment that begins after it. */
const NEW_OPERATION = "billing-release-18";

/** The group's one migration Lease. */
const SLOT = slotName(GROUP.name);
const HOLD = holdName(GROUP.name, OLD_OPERATION);

/** Plays it: twelve steps. At its end the other site is active, and nobody holds a lease. */
export async function playPlannedFailover(parts: StoryParts, step: DoStep): Promise<void> {
  const old = await step("A longer migration takes the lease", () => take(parts));
  const hold = await step("Hold planned failovers off", () => takeHold(parts));
  const retryAfter = await step("Somebody asks for a planned failover", () => ask(parts, hold));
  await step("Renew the hold: the failover waits on", () => renewHold(parts, hold, retryAfter));
  await step("No other deployment may begin now", () => refuse(parts));
  await step("Release the hold: the failover may go on", () => releaseHold(parts, hold));
  const generation = await step("The primary moves", () => move(parts, old));
  await step("The deployment that still runs finds out", () => findOut(parts, old, generation));
  await step("To try again does not help it", () => tryAgain(parts, generation));
  const next = await step(
    "A new deployment works on the new primary",
    () => takeNext(parts, old, generation),
  );
  await step(
    "A late call of the old deployment changes nothing",
    () => stayOut(parts, old, generation),
  );
  await step("Release: the group is free", () => releaseNext(parts, next));
}

async function take({ orders, team }: StoryParts): Promise<Outcome<Grant>> {
  const answer = await orders.take(OLD_OPERATION, LONGER_TTL_SECONDS);
  const grant = readGrant(answer, OLD_OPERATION);
  await mustBeStored(team, SLOT, "active");
  return {
    call: `${orders.instance}: POST a lease, kind migration, for ${LONGER_TTL_SECONDS} s`,
    status: answer.status,
    what: `${orders.instance} may migrate until ${
      clockTime(grant.expiresAt)
    }, at generation ${grant.generation}, with fence ${grant.fence}.`,
    why:
      "This lease keeps other deployments out. It does not keep the primary where it is: no failover waits for it.",
    value: grant,
  };
}

async function takeHold({ orders, team }: StoryParts): Promise<Outcome<Grant>> {
  const answer = await orders.take(OLD_OPERATION, TTL_SECONDS, "failover-hold");
  const hold = readGrant(answer, OLD_OPERATION);
  await mustBeStored(team, HOLD, "active");
  return {
    call: `${orders.instance}: POST a lease, kind failover-hold, for ${TTL_SECONDS} s`,
    status: answer.status,
    what: `No planned failover begins before ${
      clockTime(hold.expiresAt)
    }, unless the hold is released earlier.`,
    why:
      "A primary that moves in the middle of an ALTER TABLE can cost hours of work. Only who has the migration lease gets a hold. An emergency failover never waits for one.",
    value: hold,
  };
}

async function ask({ orders, team }: StoryParts, hold: Grant): Promise<Outcome<string>> {
  await team.askForFailover(STANDBY_SITE);
  const run = runOf(await team.watchGroup((group) => runOf(group).phase === "Deferred"));
  must(run.phase === "Deferred", "the planned failover must wait: status must say 'Deferred'");
  must(run.reason === "DeploymentHold", "the reason must be 'DeploymentHold'");
  must(run.target === STANDBY_SITE, "the target must be the site that was asked for");
  must(
    run.message.includes(OLD_OPERATION) && run.message.includes(orders.instance),
    "the message must name the operation and the database that hold it",
  );
  must(
    Date.parse(run.retryAfter) === wholeSeconds(hold.expiresAt),
    "retryAfter must be the expiry of the hold",
  );
  return {
    call: `the database team: kubectl annotate, planned-failover=${STANDBY_SITE}`,
    status: run.phase,
    what: `It waits. Status says ${run.reason}: "${run.message}".`,
    why:
      "Whoever plans maintenance sees whom it waits for and until when, and can talk to them. To take the annotation off again cancels it.",
    value: run.retryAfter,
  };
}

async function renewHold(
  { orders, team }: StoryParts,
  hold: Grant,
  retryAfter: string,
): Promise<Outcome<void>> {
  const answer = await orders.renew(
    OLD_OPERATION,
    hold.token,
    LONGER_TTL_SECONDS,
    "failover-hold",
  );
  const { expiresAt } = read(answer, 200, renewAnswer);
  must(Date.parse(expiresAt) > Date.parse(hold.expiresAt), "the new expiry must be later");
  const run = runOf(
    await team.watchGroup((group) => runOf(group).retryAfter !== retryAfter),
  );
  must(run.phase === "Deferred", "the planned failover must still wait");
  must(
    Date.parse(run.retryAfter) === wholeSeconds(expiresAt),
    "retryAfter must move on to the new expiry of the hold",
  );
  return {
    call: `${orders.instance}: PUT the hold, for ${LONGER_TTL_SECONDS} s more`,
    status: answer.status,
    what: `The failover is still Deferred, and retryAfter in status moved on from ${
      clockTime(retryAfter)
    } to ${clockTime(run.retryAfter)}.`,
    why:
      "A deployment that works renews its hold. One that died does not: its hold runs out, and the failover goes on without anybody's help.",
    value: undefined,
  };
}

async function refuse({ billing }: StoryParts): Promise<Outcome<void>> {
  const answer = await billing.take(NEW_OPERATION, TTL_SECONDS);
  const { reason } = read(answer, 423, unstableAnswer);
  must(reason === "PlannedFailover", "the reason must be 'PlannedFailover'");
  const retryAfter = answer.headers.get("Retry-After") ?? "";
  must(/^[1-9]\d*$/.test(retryAfter), "Retry-After must be there, in seconds");
  return {
    call: `${billing.instance}: POST a lease, kind migration`,
    status: answer.status,
    what: `Refused: the group is not stable, reason ${reason}. Retry-After says ${retryAfter} s.`,
    why:
      "A failover that waits comes before deployments that have not begun: otherwise one after the other would put it off. Who has a lease can renew it and finish.",
    value: undefined,
  };
}

async function releaseHold({ orders, team }: StoryParts, hold: Grant): Promise<Outcome<void>> {
  const answer = await orders.release(OLD_OPERATION, hold.token, "failover-hold");
  mustHaveStatus(answer, 204);
  await mustBeStored(team, HOLD, "released");
  return {
    call: `${orders.instance}: DELETE the hold`,
    status: answer.status,
    what: `${orders.instance} gave the hold back, and keeps its migration lease.`,
    why:
      "Hold planned failovers off only while one would hurt. What is left to do must bear that the primary moves.",
    value: undefined,
  };
}

async function move({ team }: StoryParts, old: Grant): Promise<Outcome<number>> {
  const group = await team.watchGroup((seen) =>
    ["Succeeded", "Failed"].includes(runOf(seen).phase)
  );
  const run = runOf(group);
  must(run.phase === "Succeeded", "the planned failover must go on to 'Succeeded'");
  const { activeSite, topologyGeneration: generation = 0 } = group.status ?? {};
  must(activeSite === STANDBY_SITE, "the site that was asked for must be active");
  must(generation !== null && generation > old.generation, "the generation must be a new one");
  must(
    group.metadata.annotations?.[PLANNED_FAILOVER_ANNOTATION] === undefined,
    "the annotation must be gone",
  );
  return {
    call: "the database team: kubectl get mysqlfailovergroup --watch",
    status: run.phase,
    what:
      `The primary moved from ${run.sourcePrimary} to ${activeSite}, at topology generation ${generation}. The annotation is gone.`,
    why:
      "Each move has a generation of its own. Here the service wrote the status by itself; in your cluster your operator does the work, from the phase Pending on.",
    value: generation,
  };
}

async function findOut(
  { orders, team }: StoryParts,
  old: Grant,
  generation: number,
): Promise<Outcome<void>> {
  const answer = await orders.renew(OLD_OPERATION, old.token, LONGER_TTL_SECONDS);
  const reason = readOvertaken(answer, generation);
  await mustBeStored(team, SLOT, "revoked");
  return {
    call: `${orders.instance}: PUT the lease`,
    status: answer.status,
    what:
      `Revoked: ${reason}, the generation is ${generation} now and was ${old.generation}. The Lease in the cluster says so too.`,
    why:
      "Its connection goes to a server that only reads by now. It has to stop, and this answer comes with its next renewal, long before its time is over.",
    value: undefined,
  };
}

async function tryAgain(
  { orders }: StoryParts,
  generation: number,
): Promise<Outcome<void>> {
  const answer = await orders.take(OLD_OPERATION, TTL_SECONDS);
  const reason = readOvertaken(answer, generation);
  return {
    call: `${orders.instance}: POST a lease, kind migration, for the same operation`,
    status: answer.status,
    what: `Refused: ${OLD_OPERATION} was revoked, ${reason}, although the mutex is free.`,
    why:
      "A pipeline that only tries again must not go on in the middle of a migration, on another primary. Look at what was done, then deploy with a new operationId.",
    value: undefined,
  };
}

async function takeNext(
  { billing, team }: StoryParts,
  old: Grant,
  generation: number,
): Promise<Outcome<Grant>> {
  const answer = await billing.take(NEW_OPERATION, TTL_SECONDS);
  const grant = readGrant(answer, NEW_OPERATION);
  must(grant.generation === generation, "the grant must carry the new generation");
  must(grant.fence > old.fence, "the fence must be higher than that of the grant before");
  await mustBeStored(team, SLOT, "active");
  return {
    call: `${billing.instance}: POST a lease, kind migration`,
    status: answer.status,
    what: `Granted until ${
      clockTime(grant.expiresAt)
    }, at generation ${grant.generation}, with fence ${grant.fence}.`,
    why:
      "What keeps the greatest generation and fence that it has seen can refuse a late writer of the old deployment, which comes with lower ones.",
    value: grant,
  };
}

async function stayOut(
  { orders, billing }: StoryParts,
  old: Grant,
  generation: number,
): Promise<Outcome<void>> {
  const answer = await orders.renew(OLD_OPERATION, old.token, LONGER_TTL_SECONDS);
  const reason = readOvertaken(answer, generation);
  const { leases: [lease, ...others] } = read(await billing.look(), 200, groupAnswer);
  must(
    lease?.operationId === NEW_OPERATION && others.length === 0,
    "the lease of the new deployment must be the only one",
  );
  return {
    call: `${orders.instance}: PUT the lease, with its old token`,
    status: answer.status,
    what:
      `Still revoked, ${reason}: its token is worth nothing. The lease of ${billing.instance} is as it was.`,
    why:
      "A process that was frozen wakes up late and acts as if nothing had happened. It is told as well, for the record of its end is kept beside the new lease.",
    value: undefined,
  };
}

async function releaseNext({ billing, team }: StoryParts, next: Grant): Promise<Outcome<void>> {
  const answer = await billing.release(NEW_OPERATION, next.token);
  mustHaveStatus(answer, 204);
  await mustBeStored(team, SLOT, "released");
  const group = read(await billing.look(), 200, groupAnswer);
  must(group.stable && group.leases.length === 0, "the group must be stable, without a lease");
  return {
    call: `${billing.instance}: DELETE the lease`,
    status: answer.status,
    what:
      `The group is stable, with ${group.activeSite} as its active site, and nobody holds a lease.`,
    why:
      "Everybody knew whom they waited for, and who was overtaken was told. There was no lock to clean up.",
    value: undefined,
  };
}

/** Reads why an operation was revoked: it must be that the primary moved. */
function readOvertaken(answer: Answer, generation: number): string {
  const { reason, topologyGeneration } = read(answer, 409, revokedAnswer);
  must(reason === "topology_changed", "the reason must be 'topology_changed'");
  must(topologyGeneration === generation, "the generation must be the new one");
  return reason;
}

/** What a group's status says of its planned failover. */
function runOf({ status }: MysqlFailoverGroup) {
  const { phase, reason, message, target, sourcePrimary, retryAfter } = status?.plannedFailover ??
    {};
  return {
    phase: phase ?? "",
    reason: reason ?? "",
    message: message ?? "",
    target: target ?? "",
    sourcePrimary: sourcePrimary ?? "",
    retryAfter: retryAfter ?? "",
  };
}

/** An RFC 3339 time without its fraction, as status shows times. Milliseconds since 1970. */
function wholeSeconds(time: string): number {
  return Math.floor(Date.parse(time) / 1000) * 1000;
}
