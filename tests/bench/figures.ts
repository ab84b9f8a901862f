/**
 * Figures of a benchmark: samples, their quantiles, and the lines that show them beside their goals.
 *
 * @module
 */

/** The value below which a share of the samples lies. @param share 0 to 1. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1));
  return sorted[at] ?? NaN;
}

/** Milliseconds of one piece of work. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** One figure and the goal that it has to reach. */
export interface Figure {
  readonly what: string;
  readonly value: number;
  readonly unit: "ms" | "x" | "MB" | "" | "/s";
  /** The goal, as the design sets it. Left out for a figure that is only shown. */
  readonly goal?: { readonly atMost: number } | { readonly atLeast: number };
}

/** True when a figure reaches its goal. */
export function reaches({ value, goal }: Figure): boolean {
  if (goal === undefined) return true;
  return "atMost" in goal ? value <= goal.atMost : value >= goal.atLeast;
}

/** A figure as a line. */
export function line(figure: Figure): string {
  const { what, value, unit, goal } = figure;
  const shown = `${value.toFixed(value >= 100 ? 0 : 2)} ${unit}`.trim();
  const wish = goal === undefined
    ? ""
    : "atMost" in goal
    ? `goal: at most ${goal.atMost}`
    : `goal: at least ${goal.atLeast}`;
  const verdict = goal === undefined ? "" : reaches(figure) ? "reached" : "MISSED";
  return [what.padEnd(64), shown.padStart(12), wish.padEnd(22), verdict].join("  ").trimEnd();
}
