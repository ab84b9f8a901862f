/**
 * Reads the values of the service's manifests from what users write, and tells what is wrong with it.
 *
 * @module
 */

import type { z } from "zod";
import { isMapping, type Mapping } from "../mapping.ts";
import { type ServiceValues, serviceValuesSchema } from "./values.ts";

/** The values cannot be used. All that is wrong is told at once. */
export class ValuesError extends Error {
  override readonly name = "ValuesError";
  /** What is wrong and what would be right, one line each: at least one. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/**
 * Reads values, each from its own. What they mean together is judged where they are rendered.
 *
 * @param layers Mappings as YAML gives them, low to high. A mapping is merged key by key, anything else replaces what is
 * below it, and an empty value (`null`) takes the default again.
 * @throws {ValuesError} A value is unknown, or is not what it must be. The message names its key.
 */
export function readServiceValues(layers: readonly unknown[]): ServiceValues {
  const strange = layers.filter((layer) => layer !== null && !isMapping(layer));
  if (strange.length > 0) {
    throw new ValuesError([
      `Cannot use the values as they must be a mapping: current value is ${shown(strange[0])}`,
    ]);
  }
  const merged = layers.filter(isMapping).reduce(merge, {});
  const { success, data, error } = serviceValuesSchema.safeParse(merged);
  if (success) return data;
  throw new ValuesError(error.issues.flatMap((issue) => problemsOf(issue, merged)));
}

/** `fromEntries` and no assignment: a key may be called `__proto__`. */
function merge(below: Mapping, above: Mapping): Mapping {
  const merged = new Map(Object.entries(below));
  for (const [key, value] of Object.entries(above)) {
    const old = merged.get(key);
    if (value === null) merged.delete(key);
    else if (isMapping(value)) merged.set(key, merge(isMapping(old) ? old : {}, value));
    else merged.set(key, value);
  }
  return Object.fromEntries(merged);
}

function problemsOf(issue: z.core.$ZodIssue, values: unknown): readonly string[] {
  const path = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    const known = knownAt(path);
    return issue.keys.map((key) =>
      `Cannot use the values as there is no '${[...path, key].join(".")}': ${known}`
    );
  }
  const found = path.reduce<unknown>(
    (value, key) => typeof value === "object" && value !== null ? Object(value)[key] : undefined,
    values,
  );
  // The top of a schema has no wish of its own, but is known to be a mapping. A section in it is not.
  const wish = issue.code === "invalid_type" && issue.expected === "object"
    ? "a mapping"
    : issue.message;
  return [
    `Cannot use the values as '${path.join(".")}' must be ${wish}: current value is ${
      shown(found)
    }`,
  ];
}

/** What there is at a place, for who wrote something else. */
function knownAt(path: readonly string[]): string {
  const defaults: unknown = path.reduce<unknown>(
    (value, key) => isMapping(value) ? value[key] : undefined,
    serviceValuesSchema.parse({}),
  );
  const names = isMapping(defaults) ? Object.keys(defaults).sort() : [];
  return `there is ${names.join(", ")}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length <= 80 ? text : `${text.slice(0, 77)}…`;
}
