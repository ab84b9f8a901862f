/**
 * What a supervisor decides: how a child is stopped, and what its exit code says. Pure.
 *
 * @module
 */

import type { LossReason, OwnDeadline } from "../client/rules.ts";

/** The exit codes of `holdfast run` that are not the child's own. */
export const EXIT_CODES = {
  /** Wrong usage, or a setting that cannot be used. */
  usage: 2,
  /** The service cannot be reached. Nothing ran. */
  unreachable: 111,
  /** The service refuses the caller. Nothing ran. */
  notAuthorized: 112,
  /** Another one held the lease until the wait ended. Nothing ran. */
  held: 113,
  /** The group was not stable until the wait ended. Nothing ran. */
  unstable: 114,
  /** Authority was lost, and DDL had not begun. */
  lostBeforeDdl: 115,
  /** Authority was lost after DDL began: verify the schema by hand. */
  lostAfterDdl: 116,
  /** There is no such command. Nothing was acquired. */
  commandNotFound: 127,
} as const;

/** How long a child may take to end after a revocation, in milliseconds: another one may be at work already. */
export const REVOKED_GRACE_MS = 2_000;

/**
 * When a child that was asked to end is killed, on the monotonic clock.
 *
 * @param nowMs When authority was lost.
 */
export function killAtMs(reason: LossReason, deadline: OwnDeadline, nowMs: number): number {
  return reason === "deadline"
    ? deadline.killAtMs
    : Math.min(deadline.killAtMs, nowMs + REVOKED_GRACE_MS);
}

/**
 * A deadline as the guard's own clock shows it.
 *
 * Both clocks go at the same rate and have different zeros. The guard tells its time; by the time that we read ours, a
 * moment has passed. So the guard's deadline is early by that moment, and never late.
 *
 * @param deadlineMs On our clock.
 * @param guardMs What the guard's clock showed when it told.
 * @param heardMs What our clock showed after that.
 */
export function onGuardClock(deadlineMs: number, guardMs: number, heardMs: number): number {
  return deadlineMs - heardMs + guardMs;
}

/** What the child wrote into its phase file. */
export type PhaseText = { readonly type: "read"; readonly text: string } | {
  readonly type: "unreadable";
};

/** True when DDL may have begun. A file that is gone says nothing, so the worse is taken. */
export function ddlMayHaveBegun(phase: PhaseText): boolean {
  return phase.type === "unreadable" || /(^|\s)ddl(\s|$)/.test(phase.text);
}

/** The variables that a child gets. */
export interface ChildContext {
  readonly operationId: string;
  readonly fence: bigint | null;
  readonly topologyGeneration: number;
  readonly activeSite: string;
  readonly phaseFile: string;
}

/** The environment of a child, beside what it inherits. `HOLDFAST_FENCE` is empty when the service gives none. */
export function childEnvironment(context: ChildContext): Record<string, string> {
  return {
    HOLDFAST_OPERATION_ID: context.operationId,
    HOLDFAST_FENCE: context.fence?.toString() ?? "",
    HOLDFAST_TOPOLOGY_GENERATION: String(context.topologyGeneration),
    HOLDFAST_ACTIVE_SITE: context.activeSite,
    HOLDFAST_PHASE_FILE: context.phaseFile,
  };
}
