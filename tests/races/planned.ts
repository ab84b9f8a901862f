/**
 * A hold grant against planned operations: two leaders that serve holds, two operators that want to change the group, and
 * one who takes admissions back at any moment.
 *
 * What must never be is judged over the history of all versions (`planned_judge.ts`). The round makes as many orders of
 * events as it can: operators that are frozen or die between their steps, holds that are given back, operations that end.
 *
 * @module
 */

import { PlannerContendedError } from "../../lib/group/admission_errors.ts";
import type { Admitted, Planner } from "../../lib/group/admission.ts";
import { PLANNED_OPERATIONS, type PlannedOperation } from "../../lib/group/phases.ts";
import { GateContendedError } from "../../lib/group/topology.ts";
import { holdName } from "../../lib/records/names.ts";
import { hashToken } from "../../lib/records/record.ts";
import type { DeploymentClient } from "../service/deployment_client.ts";
import { type Arena, GROUP } from "./arena.ts";
import { ADMISSION_MEMBER } from "./lease_history.ts";
import { granted, HOLD, LOST_RACES, mustBe, type Race, tokenOf } from "./race.ts";

/** No lease of a round runs out while it lasts. */
const TTL = { ttlSeconds: 120 };
/** So often somebody who was refused comes again. */
const TRIES = 3;

const options = { signal: new AbortController().signal };

const PHASES: Readonly<Record<PlannedOperation, Readonly<Record<string, unknown>>>> = {
  PlannedFailover: { plannedFailover: { phase: "Pending" } },
  OrderedUpdate: { updatePhase: "UpdateReplica" },
  RestoreInPlace: { restoreInPlace: { phase: "Fencing" } },
};

/** A deployment that wants a hold, may give it back, and says whether it ever had one. */
async function takeHold(
  arena: Arena,
  client: DeploymentClient,
  operation: string,
): Promise<boolean> {
  for (let tries = 0; tries < TRIES; tries++) {
    // 409: a restore that began has raised the generation. 403: the lease under it went with that.
    const answer = mustBe(
      await client.grant(operation, "tenant", { ...HOLD, ...TTL }),
      200,
      201,
      403,
      409,
      423,
      LOST_RACES,
    );
    if (answer.status < 300) {
      await arena.parts.history.answered(hashToken(tokenOf(answer)));
      if (arena.parts.random() < 0.4) {
        await arena.parts.pause();
        // 403: the other one of the two was given the hold anew.
        mustBe(await client.release(operation, tokenOf(answer), HOLD), 204, 403, LOST_RACES);
      }
      return true;
    }
    await arena.parts.pause();
  }
  return false;
}

/** An operator that wants to change the group, and says whether it began. */
async function operate(
  arena: Arena,
  planner: Planner,
  operation: PlannedOperation,
): Promise<boolean> {
  const group = await arena.group();
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      const result = await planner.admitPlanned(group, operation, options);
      if (result.type === "admitted") return await carryOut(arena, planner, result);
    } catch (error) {
      // It gave up among its steps, as one that dies does: what it left is taken back.
      if (!isContended(error)) throw error;
    }
    await arena.parts.pause();
  }
  return false;
}

async function carryOut(arena: Arena, planner: Planner, admitted: Admitted): Promise<boolean> {
  const { random, pause } = arena.parts;
  const { operation, id } = admitted.admission;
  if (random() < 0.15) return false; // It dies.
  if (random() < 0.5) await pause(); // It is frozen.
  const status = { ...PHASES[operation], [ADMISSION_MEMBER]: id };
  const phase = await planner.writePhase(admitted, () => status, options);
  if (phase.type === "lost") return false;
  if (random() < 0.3) await pause();
  if (random() < 0.9) await planner.clear(phase.group, admitted.admission, options);
  if (random() < 0.4) {
    await pause();
    await arena.endPhases();
  }
  return true;
}

/** Takes back what it finds, whoever admitted it. */
async function withdraw(arena: Arena, planner: Planner): Promise<void> {
  const group = await arena.group();
  for (let tries = 0; tries < TRIES; tries++) {
    const left = await arena.planned();
    try {
      if (left !== null) await planner.withdraw(group, left, options);
    } catch (error) {
      if (!isContended(error)) throw error;
    }
    await arena.parts.pause();
  }
}

/** Gives the next round a gate without an admission, and a group without a phase. */
async function tidyUp(arena: Arena, planner: Planner, operation: string): Promise<void> {
  while (await arena.planned() !== null) await withdraw(arena, planner);
  await arena.endPhases();
  await arena.kubectlDelete(holdName(GROUP, operation));
  await arena.kubectlDelete();
}

function isContended(error: unknown): boolean {
  return error instanceof PlannerContendedError || error instanceof GateContendedError;
}

/** The race of the gate. */
export const holdAgainstPlanned: Race = {
  name: "a hold grant against planned operations and withdrawals: never both",
  async round(arena, operation) {
    const [a, b] = arena.clients;
    const [one, other] = arena.parts.planners;
    const { random } = arena.parts;
    await granted(a, operation, TTL);
    const pick = () =>
      PLANNED_OPERATIONS[Math.floor(random() * PLANNED_OPERATIONS.length)] ?? "PlannedFailover";
    const [first, second, began, begun] = await arena.together(
      () => takeHold(arena, a, operation),
      () => takeHold(arena, b, operation),
      () => operate(arena, one, pick()),
      () => operate(arena, other, pick()),
      () => random() < 0.5 ? withdraw(arena, other) : Promise.resolve(),
    );
    await tidyUp(arena, one, operation);
    const isHeld = first || second;
    const hasBegun = began || begun;
    if (isHeld && hasBegun) return "one after the other";
    if (isHeld) return "a hold";
    return hasBegun ? "a planned operation" : "neither";
  },
};
