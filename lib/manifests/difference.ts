/**
 * What differs between an object in a cluster and what it would be after an apply.
 *
 * @module
 */

/** One member that differs. */
export interface Difference {
  /** The path to it, with dots and with positions in brackets. */
  readonly path: string;
  /** What it is; `undefined` where it is not there. */
  readonly before: unknown;
  /** What it would be; `undefined` where it would be gone. */
  readonly after: unknown;
}

/** What the API server writes by itself, at every write. */
const SERVER_SIDE: ReadonlySet<string> = new Set([
  "metadata.resourceVersion",
  "metadata.generation",
  "metadata.managedFields",
  "status",
]);

/** The members that differ, in the order of the second object. */
export function differences(before: unknown, after: unknown): readonly Difference[] {
  return [...walk("", before, after)];
}

function* walk(path: string, before: unknown, after: unknown): Iterable<Difference> {
  if (SERVER_SIDE.has(path)) return;
  if (isMapping(before) && isMapping(after)) {
    const keys = new Set([...Object.keys(after), ...Object.keys(before)]);
    for (const key of keys) yield* walk(joined(path, key), before[key], after[key]);
  } else if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length);
    for (let at = 0; at < length; at++) yield* walk(`${path}[${at}]`, before[at], after[at]);
  } else if (before !== after) {
    yield { path, before, after };
  }
}

function joined(path: string, key: string): string {
  const name = /^[\w-]+$/.test(key) ? key : JSON.stringify(key);
  return path === "" ? name : `${path}.${name}`;
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
