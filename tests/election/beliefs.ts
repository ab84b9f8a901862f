/**
 * What several processes believed, on one time line.
 *
 * The processes run on one machine, so their clocks agree. Each reads its clock before and after it asks itself whether
 * it leads. From the first answer "yes" of a term counts the time after, from the last one the time before: what lies
 * between the two was believed for certain, and a process that is stopped in the middle of a question proves nothing.
 *
 * @module
 */

/** One question "do I lead?" of one process, in milliseconds since 1970. */
export interface Sample {
  readonly beforeMs: number;
  readonly afterMs: number;
  /** The token of the term that it believes in; `null` when it does not lead. */
  readonly token: string | null;
}

/** A time in which one process believed in one term. */
export interface Reign {
  readonly process: string;
  readonly token: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The samples of each process, in order. */
export type Samples = ReadonlyMap<string, readonly Sample[]>;

/** Writes a sample as a line. */
export function formatSample({ beforeMs, afterMs, token }: Sample): string {
  return `${beforeMs} ${afterMs} ${token ?? "-"}`;
}

/**
 * Reads the line of a sample.
 *
 * @throws {Error} The line is none.
 */
export function parseSample(line: string): Sample {
  const match = /^([\d.]+) ([\d.]+) (\d+|-)$/.exec(line);
  if (match === null) throw new Error(`Cannot read the sample as it is none: ${line}`);
  const [, before, after, token = "-"] = match;
  return {
    beforeMs: Number(before),
    afterMs: Number(after),
    token: token === "-" ? null : token,
  };
}

/** The times in which somebody believed, by their beginnings. */
export function reignsOf(samples: Samples): Reign[] {
  const reigns = new Map<string, Reign>();
  for (const [process, asked] of samples) {
    for (const { token, beforeMs, afterMs } of asked) {
      if (token === null) continue;
      const key = `${process} ${token}`;
      const fromMs = reigns.get(key)?.fromMs ?? afterMs;
      reigns.set(key, { process, token, fromMs, toMs: Math.max(fromMs, beforeMs) });
    }
  }
  return [...reigns.values()].sort((a, b) => a.fromMs - b.fromMs);
}

/** The pairs of terms that overlap: with a correct election there are none. */
export function overlaps(reigns: readonly Reign[]): [Reign, Reign][] {
  return reigns.flatMap((first, at) =>
    reigns.slice(at + 1).flatMap((second): [Reign, Reign][] =>
      first.fromMs <= second.toMs && second.fromMs <= first.toMs ? [[first, second]] : []
    )
  );
}

/** The longest time without a leader between the first term and the last one, in milliseconds. */
export function longestGapMs(reigns: readonly Reign[]): number {
  let endMs = reigns[0]?.toMs ?? 0;
  let longestMs = 0;
  for (const { fromMs, toMs } of reigns) {
    longestMs = Math.max(longestMs, fromMs - endMs);
    endMs = Math.max(endMs, toMs);
  }
  return longestMs;
}
