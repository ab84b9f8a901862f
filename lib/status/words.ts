/**
 * Values as people read them. Pure functions.
 *
 * @module
 */

import type { GroupStatus, LeaseStatus, OperationStatus } from "./report.ts";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A span of time in at most two units: `24s`, `2m 3s`, `5h 1m`, `3d 4h`. @param seconds Whole, 0 or more. */
export function span(seconds: number): string {
  const units: readonly (readonly [number, string])[] = [[DAY, "d"], [HOUR, "h"], [MINUTE, "m"]];
  const [unit, sign] = units.find(([unit]) => seconds >= unit) ?? [1, "s"];
  const whole = `${Math.floor(seconds / unit)}${sign}`;
  if (unit === 1) return whole;
  const [below, belowSign] = units.find(([smaller]) => smaller < unit) ?? [1, "s"];
  const rest = Math.floor((seconds % unit) / below);
  return rest === 0 ? whole : `${whole} ${rest}${belowSign}`;
}

/**
 * A text in one line that a terminal only shows: what others wrote must not move the cursor of whoever looks at it.
 */
export function shown(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\uFFFD");
}

/** Where a group is; the API does not always tell its namespace. */
export function placeOf({ namespace, name }: Pick<GroupStatus, "name" | "namespace">): string {
  return shown(namespace === "" ? name : `${namespace}/${name}`);
}

/** What a lease is worth: `24s left`, `expired 3s ago`, `released`, `revoked: operator_revoked`. */
export function leaseState({ state, stored, reason, leftSeconds }: LeaseStatus): string {
  const ended = reason === "" ? state : `${state}: ${reason}`;
  if (state === "active") return `${span(Math.max(0, leftSeconds))} left`;
  if (state === "expired" && !stored) return `expired ${span(Math.max(0, -leftSeconds))} ago`;
  return stored ? ended : `${ended}, not stored yet`;
}

/** Who holds a lease; a dash where that is not shown. */
export function leaseHolder({ holder }: Pick<LeaseStatus, "holder">): string {
  return holder === null ? "-" : shown(`${holder.namespace}/${holder.serviceAccount}`);
}

/** How old a lease is; a dash where that is not shown. */
export function leaseAge({ ageSeconds }: LeaseStatus): string {
  return ageSeconds === null ? "-" : span(ageSeconds);
}

/** Whether a group grants leases, and if not, why: `stable`, `not stable: NoPrimary (no site …)`. */
export function groupState(
  { stable, closedReason, why, readable }: Pick<
    GroupStatus,
    "stable" | "closedReason" | "why" | "readable"
  >,
): string {
  if (!readable) return "unreadable";
  if (closedReason === "") return "stable";
  const closed = `${shown(closedReason)} (${shown(why)})`;
  return stable ? `stable, but no lease is granted: ${closed}` : `not stable: ${closed}`;
}

/** How far an operation is, and what it waits for: one text for each thing that it waits for, one at least. */
export function operationState(operation: OperationStatus): readonly string[] {
  const { phase, reason, target, waitsFor } = operation;
  const to = target === "" ? "" : ` to ${shown(target)}`;
  const why = reason === "" ? "" : ` (${shown(reason)})`;
  const head = `${operation.operation}${to}: ${shown(phase)}${why}`;
  if (waitsFor.length === 0) return [head];
  return waitsFor.map((one) => `${head}, waits for ${shown(one)}`);
}

/** What the gate says beside topology, one text each. */
export function gateStates(
  { admission, pendingTopology }: Pick<GroupStatus, "admission" | "pendingTopology">,
): readonly string[] {
  const texts: string[] = [];
  if (admission !== null) {
    const { operation, state, by, since } = admission;
    const what = state === "admitted"
      ? "is admitted and may begin"
      : "was admitted and is being taken back";
    texts.push(shown(`${operation} ${what}, by ${by} since ${since}`));
  }
  if (pendingTopology !== null) {
    const { by, since } = pendingTopology;
    texts.push(shown(`a change of topology is announced, by ${by} since ${since}`));
  }
  return texts;
}
