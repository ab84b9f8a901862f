/**
 * What the demo's story is made of: steps that are done on the running service, checked, and told.
 *
 * @module
 */

import type { DatabaseTeam } from "../database_team.ts";
import type { Deployer } from "../deployer.ts";

/** What a step tells its reader. */
export interface ToldStep {
  /** From 1. */
  readonly number: number;
  readonly title: string;
  /** Who calls what. */
  readonly call: string;
  /** The HTTP status of the answer. For what the database team does: the phase that the group's status came to. */
  readonly status: number | string;
  /** What happened. */
  readonly what: string;
  /** Why it matters to somebody who runs databases. */
  readonly why: string;
}

/** What the story needs. */
export interface StoryParts {
  readonly orders: Deployer;
  readonly billing: Deployer;
  readonly team: DatabaseTeam;
  /** Told before the first step of a part. */
  readonly begin: (title: string) => void;
  /** Told after each step that went well. The next one waits for it. */
  readonly tell: (step: ToldStep) => void | Promise<void>;
}

/** The time to live that a deployment wishes for, in seconds. */
export const TTL_SECONDS = 30;
/** The one that it wishes for when its migration takes longer, in seconds. */
export const LONGER_TTL_SECONDS = 120;

/** How many steps the story has. */
export const STEPS = 20;

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
export class Fault extends Error {
  override readonly name = "Fault";
}

/** What a step comes to: what it tells, and what later steps need of it. */
export type Outcome<T> = Omit<ToldStep, "number" | "title"> & { readonly value: T };

/** Does one step and tells it. @throws {StoryError} It did not go as it must. */
export type DoStep = <T>(title: string, play: () => Promise<Outcome<T>>) => Promise<T>;

/** Numbers the steps from 1. */
export function stepsOf({ tell }: StoryParts): DoStep {
  let number = 0;
  return async (title, play) => {
    number++;
    try {
      const { value, ...told } = await play();
      await tell({ number, title, ...told });
      return value;
    } catch (error) {
      throw error instanceof Fault ? new StoryError(number, title, error.message) : error;
    }
  };
}
