/**
 * Durations as people write them: `10s`, `1m30s`, `24h`, `250ms`, `0s` (the form of Go's `time.ParseDuration`).
 *
 * @module
 */

/** Nanoseconds in one of each unit. Counted in whole nanoseconds, since 4.35 × 100 is not 435 in floating point. */
const UNIT_NS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  "µs": 1_000n, // U+00B5, micro sign
  "μs": 1_000n, // U+03BC, Greek mu: people type either
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

const NS_PER_MS = 1_000_000n;
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/gy;

/** Digits that a number in a duration may have: enough for every safe number of nanoseconds, and cheap to read. */
const MOST_CHARACTERS = 64;

/**
 * Reads a duration.
 *
 * ```ts
 * parseDuration("1m30s"); // 90000
 * parseDuration("10"); // undefined: a unit is missing
 * ```
 *
 * @param text One or more numbers, each with a unit (`ns`, `us`, `ms`, `s`, `m`, `h`), or `0`. No sign and no space.
 * @returns Whole milliseconds, 0 or more; `undefined` when the text is no duration, is not a whole number of
 * milliseconds, or is above the safe integers.
 */
export function parseDuration(text: string): number | undefined {
  if (text === "0") return 0;
  if (text === "" || text.length > MOST_CHARACTERS) return undefined;
  let total = 0n;
  let end = 0;
  for (const match of text.matchAll(PART)) {
    const [part, number = "", unit = ""] = match;
    const [whole = "", fraction = ""] = number.split(".");
    const unitNs = UNIT_NS[unit] ?? 0n;
    const scale = 10n ** BigInt(fraction.length);
    const scaled = BigInt(fraction) * unitNs;
    if (scaled % scale !== 0n) return undefined;
    total += BigInt(whole) * unitNs + scaled / scale;
    end = match.index + part.length;
  }
  if (end !== text.length || total % NS_PER_MS !== 0n) return undefined;
  const milliseconds = Number(total / NS_PER_MS);
  return Number.isSafeInteger(milliseconds) ? milliseconds : undefined;
}

/**
 * Writes a duration in its shortest exact form: `24h`, `1m30s`, `250ms`, `0s`.
 *
 * @param milliseconds A whole number, 0 or more.
 */
export function formatDuration(milliseconds: number): string {
  const units: readonly (readonly [string, number])[] = [
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1_000],
    ["ms", 1],
  ];
  let rest = milliseconds;
  let text = "";
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text === "" ? "0s" : text;
}
