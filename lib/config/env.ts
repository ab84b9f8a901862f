/**
 * Reads configuration keys from environment variables (kubernetes-plugin 2, env overlay): the parts of a key are joined
 * by two underscores, and the type of the key says how its text is read.
 *
 * @module
 */
import { type ConfigProblem, problemOf, unknownKey, wrongValue } from "./errors.ts";
import type { Key, KeyTable, RawValue } from "./keys.ts";

/** One key as one layer sets it. */
export interface Setting {
  /** The key, with dots between its parts. */
  readonly key: string;
  /** The value as the layer gives it. The key takes it. */
  readonly value: RawValue;
  /** The file, environment variable or option that gives it. */
  readonly source: string;
}

/** What one layer gives. */
export interface Layer {
  /** The keys that it sets, later ones above earlier ones. */
  readonly settings: readonly Setting[];
  /** What is wrong with it. */
  readonly problems: readonly ConfigProblem[];
}

const TRUE_WORDS: ReadonlySet<string> = new Set(["true", "1", "yes", "on"]);
const FALSE_WORDS: ReadonlySet<string> = new Set(["false", "0", "no", "off"]);

/**
 * Reads the text of an environment variable, or of an option, as the type of its key wants it.
 *
 * A switch takes true/1/yes/on and false/0/no/off in any case; a number is a whole one of 0 or more; a list is split at
 * commas, trimmed, without its empty items; a text is kept exactly.
 *
 * @returns The value, or `undefined` when the text is none of that type.
 */
export function readText(kind: Key["kind"], text: string): RawValue | undefined {
  const trimmed = text.trim();
  switch (kind) {
    case "boolean": {
      const word = trimmed.toLowerCase();
      if (TRUE_WORDS.has(word)) return true;
      return FALSE_WORDS.has(word) ? false : undefined;
    }
    case "integer":
      return /^\d+$/.test(trimmed) ? Number(trimmed) : undefined;
    case "list":
      return trimmed.split(",").map((item) => item.trim()).filter((item) => item !== "");
    case "text":
      return text;
  }
}

/** Says which keys there are, for whoever wrote one that is not there. */
export function knownKeys(table: KeyTable, section: string): string {
  const names = table.sections.get(section) ?? [];
  const place = section === "" ? "at the top level" : `in '${section}'`;
  return `the keys ${place} are ${names.join(", ")}`;
}

/** The nearest section that holds, or would hold, a key. */
export function sectionOf(table: KeyTable, key: string): string {
  const parts = key.split(".").slice(0, -1);
  while (parts.length > 0 && !table.sections.has(parts.join("."))) parts.pop();
  return parts.join(".");
}

/** Sets one key from text. */
export function settingFromText(table: KeyTable, key: string, text: string, source: string): Layer {
  const description = table.keys.get(key);
  if (description === undefined) {
    if (key === "" || !table.sections.has(key)) {
      return failed(unknownKey(source, key, knownKeys(table, sectionOf(table, key))));
    }
    const reason = `'${key}' is a section, not a key: ${knownKeys(table, key)}`;
    return failed(problemOf(source, `Cannot use ${source} as ${reason}`, key));
  }
  const value = readText(description.kind, text);
  return value !== undefined && description.accepts(value)
    ? { settings: [{ key, value, source }], problems: [] }
    : failed(wrongValue(source, key, description, value ?? text));
}

/** A layer that gives nothing but problems. */
export function failed(...problems: readonly ConfigProblem[]): Layer {
  return { settings: [], problems };
}

/** Puts layers together, the later above the earlier. */
export function joinLayers(layers: readonly Layer[]): Layer {
  return {
    settings: layers.flatMap((layer) => layer.settings),
    problems: layers.flatMap((layer) => layer.problems),
  };
}

/**
 * Reads every variable with a prefix.
 *
 * @param table The keys that there are.
 * @param variables Names and texts. Those without the prefix are ignored.
 * @param prefix Such as `HOLDFAST__`.
 * @param root The section that the prefix stands for; empty for the whole.
 * @param sourceOf What to call a variable in an error and in `holdfast config`.
 */
export function readVariables(
  table: KeyTable,
  variables: ReadonlyMap<string, string>,
  prefix: string,
  root: string,
  sourceOf: (name: string) => string,
): Layer {
  // Sorted, so that the same environment always gives the same errors in the same order.
  const names = [...variables.keys()].filter((name) => name.startsWith(prefix)).sort();
  return joinLayers(names.map((name) => {
    const parts = name.slice(prefix.length).split("__").map((part) => part.toLowerCase());
    const key = (root === "" ? parts : [root, ...parts]).join(".");
    return settingFromText(table, key, variables.get(name) ?? "", sourceOf(name));
  }));
}
