/**
 * A report as a person reads it on a terminal: a table for each group, at most 100 columns wide. Pure.
 *
 * What does not fit is cut, with an ellipsis; a pipe and `--json` have all of it.
 *
 * @module
 */

import type { GroupStatus, LeaseStatus, StatusReport } from "./report.ts";
import { gateStates, groupState, leaseAge, leaseHolder, leaseState } from "./words.ts";
import { operationState, placeOf, shown } from "./words.ts";

/** The most columns. */
export const WIDTH = 100;

const INDENT = "  ";
const GAP = "  ";

/** A column: how narrow it may become; `null` for one that is never cut. */
interface Column {
  readonly title: string;
  readonly cell: (lease: LeaseStatus) => string;
  readonly least: number | null;
}

const columns: readonly Column[] = [
  { title: "KIND", cell: ({ kind }) => kind, least: null },
  { title: "OPERATION", cell: ({ operationId }) => shown(operationId), least: 36 },
  { title: "INSTANCE", cell: ({ instance }) => shown(instance), least: 8 },
  { title: "WHO", cell: leaseHolder, least: 10 },
  { title: "AGE", cell: leaseAge, least: null },
  { title: "STATE", cell: leaseState, least: 10 },
];

/** The text of a screen. */
export function renderTable({ source, groups, problems }: StatusReport): string {
  const blocks = groups.map((group) => groupLines(group, source));
  const rest = problems.flatMap((problem) => wrap(`! ${shown(problem)}`, ""));
  const all = rest.length > 0 ? [...blocks, rest] : blocks;
  if (all.length === 0) return "There is no group.\n";
  return `${all.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function groupLines(group: GroupStatus, source: StatusReport["source"]): readonly string[] {
  const { activeSite, topologyGeneration, leases, problems } = group;
  const site = activeSite === "" ? "no active site" : `active site ${shown(activeSite)}`;
  const where = topologyGeneration === null ? [] : [`${site}`, `generation ${topologyGeneration}`];
  return [
    ...wrap([placeOf(group), ...where, groupState(group)].join("   "), ""),
    ...(leases.length > 0
      ? leaseTable(leases, source)
      : group.readable
      ? [`${INDENT}No lease is held.`]
      : []),
    ...group.operations.flatMap(operationState).flatMap((text) => wrap(text, INDENT)),
    ...gateStates(group).flatMap((text) => wrap(`Gate: ${text}`, INDENT)),
    ...problems.flatMap((problem) => wrap(`! ${shown(problem)}`, INDENT)),
  ];
}

/** The leases as a table. @param source The API shows neither who holds a lease nor since when. */
export function leaseTable(
  leases: readonly LeaseStatus[],
  source: StatusReport["source"],
): readonly string[] {
  const used = columns.filter(({ title }) =>
    source === "cluster" || (title !== "WHO" && title !== "AGE")
  );
  const rows = leases.map((lease) => used.map(({ cell }) => cell(lease)));
  const natural = used.map(({ title }, at) =>
    Math.max(title.length, ...rows.map((row) => lengthOf(row[at] ?? "")))
  );
  const room = WIDTH - INDENT.length - GAP.length * (used.length - 1);
  const widths = fit(natural, used.map(({ least }) => least), room);
  return [used.map(({ title }) => title), ...rows].map((row) =>
    INDENT + row.map((cell, at) => padded(cell, widths[at] ?? 0)).join(GAP).trimEnd()
  );
}

/**
 * Makes columns as narrow as the room wants it, the widest first.
 *
 * @param widths What each would like to have.
 * @param least What each must have; `null` for all that it would like to have.
 */
export function fit(
  widths: readonly number[],
  least: readonly (number | null)[],
  room: number,
): readonly number[] {
  const fitted = [...widths];
  for (let over = fitted.reduce((sum, width) => sum + width, 0) - room; over > 0; over--) {
    const spare = fitted.map((width, at) => {
      const most = least[at] ?? null;
      return most === null || width <= most ? -1 : width;
    });
    const widest = spare.indexOf(Math.max(...spare));
    const width = fitted[widest];
    if (width === undefined || spare[widest] === -1) return fitted;
    fitted[widest] = width - 1;
  }
  return fitted;
}

/** A text in lines of at most {@linkcode WIDTH}; those behind the first are set in. A long word is broken. */
export function wrap(text: string, indent: string): readonly string[] {
  const lines: string[] = [];
  let line = indent;
  let empty = true;
  for (const word of text.split(/(?<=\S)(?= )/)) {
    let rest = empty ? word.trimStart() : word;
    if (!empty && lengthOf(line) + lengthOf(rest) > WIDTH) {
      lines.push(line);
      line = `${indent}${INDENT}`;
      rest = word.trimStart();
    }
    while (lengthOf(line) + lengthOf(rest) > WIDTH) {
      const fits = [...rest].slice(0, WIDTH - lengthOf(line)).join("");
      lines.push(line + fits);
      rest = rest.slice(fits.length);
      line = `${indent}${INDENT}`;
    }
    line += rest;
    empty = false;
  }
  return [...lines, line];
}

function padded(text: string, width: number): string {
  const length = lengthOf(text);
  if (length <= width) return text + " ".repeat(width - length);
  return `${[...text].slice(0, width - 1).join("")}…`;
}

/** In characters, not in the parts that a string is stored in. */
function lengthOf(text: string): number {
  return [...text].length;
}
