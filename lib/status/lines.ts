/**
 * A report as plain text, for pipes and logs: one line for each thing, nothing cut, each with its kind and its group first,
 * so that `grep` finds it. Pure.
 *
 * @module
 */

import type { GroupStatus, LeaseStatus, StatusReport } from "./report.ts";
import { gateStates, groupState, leaseAge, leaseHolder, leaseState } from "./words.ts";
import { operationState, placeOf, shown } from "./words.ts";

/** The lines, each with its end. */
export function renderLines({ groups, problems }: StatusReport): string {
  const lines = [
    ...groups.flatMap(groupLines),
    ...problems.map((problem) => `problem: ${shown(problem)}`),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function groupLines(group: GroupStatus): readonly string[] {
  const place = placeOf(group);
  const { activeSite, topologyGeneration, leases, operations, problems } = group;
  const site = activeSite === "" ? "no active site" : `active site ${shown(activeSite)}`;
  const where = topologyGeneration === null ? "" : `${site}, generation ${topologyGeneration}, `;
  return [
    `group ${place}: ${where}${groupState(group)}`,
    ...leases.map((lease) => `lease ${place}: ${leaseLine(lease)}`),
    ...operations.flatMap(operationState).map((text) => `operation ${place}: ${text}`),
    ...gateStates(group).map((text) => `gate ${place}: ${text}`),
    ...problems.map((problem) => `problem ${place}: ${shown(problem)}`),
  ];
}

/** One lease in one line. */
export function leaseLine(lease: LeaseStatus): string {
  const { kind, operationId, instance, holder, ageSeconds, expiresAt } = lease;
  const parts = [
    `${kind} of operation ${shown(operationId)}`,
    `for ${shown(instance)}`,
    ...(holder === null ? [] : [`by ${leaseHolder(lease)}`]),
  ];
  const age = ageSeconds === null ? [] : [`age ${leaseAge(lease)}`];
  return [parts.join(" "), ...age, leaseState(lease), `expires ${expiresAt}`].join(", ");
}
