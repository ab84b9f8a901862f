/**
 * What can be wrong with a configuration, and how it is told.
 *
 * @module
 */
import type { KeyDescription } from "./keys.ts";

/** One thing that is wrong. */
export interface ConfigProblem {
  /** The file, environment variable or option that must change. */
  readonly source: string;
  /** The key concerned, with dots between its parts; absent where the whole source is meant. */
  readonly key?: string;
  /** What is wrong and what would be right, in one line. It never holds a value that could be a secret. */
  readonly message: string;
}

/** Replaces line ends and other control characters, which names of files and keys may hold, by spaces. */
export function inOneLine(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ");
}

/** Makes a problem. What it says is always one line. */
export function problemOf(source: string, message: string, key?: string): ConfigProblem {
  return { source, ...(key === undefined ? {} : { key }), message: inOneLine(message) };
}

/** The configuration cannot be used. All its problems are told at once, one a line. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** What is wrong: at least one problem. */
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map((problem) => problem.message).join("\n"));
    this.problems = problems;
  }
}

/** A reason in words, from what was thrown by the platform. For paths of files, which are no secrets. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Names the type of a value, never the value: a user may have put a password in the wrong place. */
export function describeType(value: unknown): string {
  if (value === null) return "empty";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a section";
  return typeof value === "string" ? "a text" : `a ${typeof value}`;
}

/** A value that its key does not take. */
export function wrongValue(
  source: string,
  key: string,
  { expects }: KeyDescription,
  value: unknown,
): ConfigProblem {
  const found = typeof value === "number" ? `the number ${value}` : describeType(value);
  return problemOf(
    source,
    `Cannot use '${key}' from ${source} as it must be ${expects}: current value is ${found}`,
    key,
  );
}

/** A key that does not exist, with the keys that do. */
export function unknownKey(source: string, key: string, known: string): ConfigProblem {
  return problemOf(source, `Cannot use ${source} as there is no key '${key}': ${known}`, key);
}
