/**
 * The bound on coverage: reads an lcov report and judges it.
 *
 * @module
 */

/** What was covered of a file. */
export interface FileCoverage {
  /** The path from the root of the repository. */
  readonly file: string;
  readonly lines: Share;
  readonly branches: Share;
}

/** How many there are, and how many of them ran. */
export interface Share {
  readonly found: number;
  readonly hit: number;
}

/** The verdict on a run. */
export interface CoverageVerdict {
  readonly lines: Share;
  readonly branches: Share;
  /** What is wrong, one line each; empty when the bound is kept. */
  readonly faults: readonly string[];
}

/**
 * Reads an lcov report.
 *
 * Lines and branches are counted here and not taken from the totals of the report. A file that stands in it twice is
 * merged: what ran in either did run.
 *
 * @param root The folder that the paths are made relative to, with a slash at its end.
 * @throws {Error} A record is not as lcov has it.
 */
export function parseLcov(report: string, root: string): FileCoverage[] {
  const files = new Map<string, { lines: Map<string, boolean>; branches: Map<string, boolean> }>();
  let current: { lines: Map<string, boolean>; branches: Map<string, boolean> } | undefined;
  for (const line of report.split("\n")) {
    const [kind = "", value = ""] = split(line, ":");
    if (kind === "SF") {
      const file = value.startsWith(root) ? value.slice(root.length) : value;
      current = files.get(file) ?? { lines: new Map(), branches: new Map() };
      files.set(file, current);
    } else if (kind === "DA" || kind === "BRDA") {
      const members = value.split(",");
      const key = kind === "DA" ? members[0] : members.slice(0, 3).join(",");
      const count = members[kind === "DA" ? 1 : 3];
      if (current === undefined || key === undefined || !/^(\d+|-)$/.test(count ?? "")) {
        throw new Error(`Cannot read the coverage report: unexpected line '${line}'`);
      }
      const seen = kind === "DA" ? current.lines : current.branches;
      seen.set(key, (seen.get(key) ?? false) || !(count === "0" || count === "-"));
    }
  }
  return [...files].map(([file, { lines, branches }]) => ({
    file,
    lines: shareOf(lines),
    branches: shareOf(branches),
  }));
}

/**
 * Judges what was covered.
 *
 * @param wanted The files that must have been loaded: those that have something to run.
 * @param bound The least share of lines, and of branches, in percent.
 */
export function judgeCoverage(
  files: readonly FileCoverage[],
  wanted: readonly string[],
  bound: number,
): CoverageVerdict {
  const covered = new Set(files.map(({ file }) => file));
  const lines = sum(files.map((file) => file.lines));
  const branches = sum(files.map((file) => file.branches));
  const faults = wanted.filter((file) => !covered.has(file)).map((file) =>
    `Cannot pass as no test loads ${file}`
  );
  if (lines.found === 0) faults.push("Cannot pass as there is no line to judge");
  for (const [name, share] of [["lines", lines], ["branches", branches]] as const) {
    if (percent(share) < bound) {
      faults.push(
        `Cannot pass as ${name} must be covered to ${bound} %: current value is ${shown(share)}`,
      );
    }
  }
  return { lines, branches, faults };
}

/** The worst files first, as lines of a table, with their total at the end. */
export function coverageTable(files: readonly FileCoverage[], rows: number): string[] {
  const worst = [...files].sort((a, b) => missing(b) - missing(a)).slice(0, rows);
  const width = Math.max(...worst.map(({ file }) => file.length), 10);
  const row = (name: string, lines: string, branches: string) =>
    `${name.padEnd(width)}  ${lines.padStart(18)}  ${branches.padStart(18)}`;
  return [
    row("worst files", "lines", "branches"),
    ...worst.map(({ file, lines, branches }) => row(file, shown(lines), shown(branches))),
    row(
      `all ${files.length} files`,
      shown(sum(files.map((file) => file.lines))),
      shown(sum(files.map((file) => file.branches))),
    ),
  ];
}

/** A share in percent; nothing to run is all run. */
export function percent({ found, hit }: Share): number {
  return found === 0 ? 100 : hit / found * 100;
}

function shown(share: Share): string {
  // Rounded down, so that 89.96 is never shown as the 90 that it is not.
  return `${(Math.floor(percent(share) * 10) / 10).toFixed(1)} % (${share.hit}/${share.found})`;
}

function missing({ lines, branches }: FileCoverage): number {
  return lines.found - lines.hit + branches.found - branches.hit;
}

function sum(shares: readonly Share[]): Share {
  return shares.reduce((a, b) => ({ found: a.found + b.found, hit: a.hit + b.hit }), {
    found: 0,
    hit: 0,
  });
}

function shareOf(seen: ReadonlyMap<string, boolean>): Share {
  return { found: seen.size, hit: [...seen.values()].filter(Boolean).length };
}

function split(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/**
 * The file of data that a process could not write to its end since it was killed meanwhile; `null` when it is another fault.
 *
 * @param complaint What Deno says when it cannot read the data.
 */
export function halfWritten(complaint: string): string | null {
  return /Failed reading '([^']+\.json)'[^]*EOF while parsing/.exec(complaint)?.[1] ?? null;
}
