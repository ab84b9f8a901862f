/**
 * What an apply changes in a cluster: the patch that stands for it, and what differs between an object and its outcome.
 *
 * @module
 */

import { isMapping, type Mapping } from "./mapping.ts";

/** Where `kubectl apply` notes what it wrote, as JSON. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * The merge patch that does to a stored object what `kubectl apply` would do: it writes what is wanted, and removes what
 * the last apply wrote and is wanted no more. What others wrote stays. Without a note of a last apply nothing is removed.
 *
 * @param annotations The annotations of the stored object.
 * @param wanted The object as it is applied.
 */
export function applyPatch(
  annotations: Readonly<Record<string, string>> | undefined,
  wanted: Mapping,
): Mapping {
  return withRemovals(lastApplied(annotations?.[LAST_APPLIED]), wanted);
}

function lastApplied(note: string | undefined): unknown {
  try {
    return note === undefined ? undefined : JSON.parse(note);
  } catch {
    // Somebody else's annotation. Nobody knows then what was applied.
    return undefined;
  }
}

function withRemovals(last: unknown, wanted: Mapping): Mapping {
  const before = isMapping(last) ? last : {};
  const removed = Object.keys(before).filter((key) => !Object.hasOwn(wanted, key));
  return Object.fromEntries([
    ...Object.entries(wanted).map(([key, value]) => [
      key,
      isMapping(value) ? withRemovals(before[key], value) : value,
    ]),
    ...removed.map((key) => [key, null]),
  ]);
}

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
