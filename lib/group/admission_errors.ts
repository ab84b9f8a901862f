/**
 * Why a planner came to no result.
 *
 * @module
 */

/** How often a planner does a step again that lost a race: state protocol 2.3. */
export const TRIES = 3;

/** Others wrote in between each time: try again later. */
export class PlannerContendedError extends Error {
  override readonly name = "PlannerContendedError";
  constructor(what: string, group: string) {
    super(`Cannot ${what} group ${group} as others wrote in between: ${TRIES} tries were made`);
  }
}

/** Lease time is not known, or not well enough: nobody admits then (state protocol 2.5). */
export class PlannerTimeError extends Error {
  override readonly name = "PlannerTimeError";
  constructor() {
    super("Cannot admit a planned operation as the API server's time is not known well enough");
  }
}

/** The group was deleted and created again: the caller's copy is of the one that is gone. */
export class PlannerGroupReplacedError extends Error {
  override readonly name = "PlannerGroupReplacedError";
  constructor(group: string) {
    super(`Cannot go on with group ${group} as it was deleted and created again meanwhile`);
  }
}
