/**
 * Puts the configuration together from its layers, and remembers where each value came from (design 7).
 *
 * From low to high: the defaults; `holdfast.yaml`; its section for the profile; `holdfast-PROFILE.yaml`; `.env` files; the
 * variables of the reference programs; `HOLDFAST__…` variables; command-line options. A section is merged key by key, a
 * value replaces the one below it. A value that is wrong is told even where a higher layer would hide it.
 *
 * Nothing here touches the machine: the environment and the reader of files are given.
 *
 * @module
 */
import { readCompatibilityVariables } from "./compatibility.ts";
import { type Layer, readVariables, type Setting, settingFromText } from "./env.ts";
import { ConfigError, type ConfigProblem, problemOf } from "./errors.ts";
import { type FileInput, readFiles } from "./files.ts";
import type { RawValue } from "./keys.ts";
import { type BrokenRule, demoRules, libraryRules, type Rule, serviceRules } from "./rules.ts";
import { type Config, configKeys, configSchema, type Defaults, serviceDefaults } from "./schema.ts";

/** The prefix of the variables that set any key. */
export const HOLDFAST_PREFIX = "HOLDFAST__";

/** The source of a value that no layer sets. */
const DEFAULT_SOURCE = "default";

/** One key that an option of the command line sets. */
export interface OptionSetting {
  /** The option as the user knows it, such as `--leader-elect`. */
  readonly option: string;
  /** The key, with dots between its parts. */
  readonly key: string;
  /** The value, read like that of an environment variable. */
  readonly text: string;
}

/** Who reads the configuration: what it assumes, and what it keeps to. */
export interface Purpose {
  /** Defaults that differ from the schema's. */
  readonly defaults: Defaults;
  /** Rules between keys. */
  readonly rules: readonly Rule[];
}

/** For an application that uses the library. */
export const libraryPurpose: Purpose = { defaults: {}, rules: libraryRules };

/** For `holdfast serve`. */
export const servicePurpose: Purpose = { defaults: serviceDefaults, rules: serviceRules };

/** As {@linkcode servicePurpose}, for the demo's own cluster: its executor may move status. */
export const demoPurpose: Purpose = { defaults: serviceDefaults, rules: demoRules };

/** What the configuration is read from. */
export interface ConfigInput extends FileInput {
  /** Keys that the command line sets, later ones above earlier ones. @default {[]} */
  readonly options?: readonly OptionSetting[];
  /** Who reads it. @default {libraryPurpose} */
  readonly purpose?: Purpose;
}

/** One key of the effective configuration. */
export interface ConfigEntry {
  /** The key, with dots between its parts. */
  readonly key: string;
  /** The value as its layer gives it. */
  readonly value: RawValue;
  /** The layer: `default`, a file, a variable, or an option. */
  readonly source: string;
  /** True for a value that must not be shown. */
  readonly secret: boolean;
}

/** The effective configuration and what is wrong with it. */
export interface ConfigReading {
  /** The configuration of all values that are right by themselves. Use it only when there is no problem. */
  readonly config: Config;
  /** Every key, in the order of the schema. */
  readonly entries: readonly ConfigEntry[];
  /** What is wrong, in an order that is always the same. */
  readonly problems: readonly ConfigProblem[];
}

/**
 * Reads the configuration and tells what is wrong with it, without an error.
 *
 * For `holdfast config`, which shows what it can. Everything else calls {@linkcode loadConfig}.
 */
export function readConfig(input: ConfigInput): ConfigReading {
  const { purpose = libraryPurpose } = input;
  const settings = new Map<string, Setting>();
  const problems: ConfigProblem[] = [];
  const add = (layer: Layer) => {
    for (const setting of layer.settings) settings.set(setting.key, setting);
    problems.push(...layer.problems);
  };
  for (const [key, value] of Object.entries(purpose.defaults)) {
    settings.set(key, { key, value, source: DEFAULT_SOURCE });
  }
  const listen = () =>
    String(settings.get(LISTEN_KEY)?.value ?? configKeys.keys.get(LISTEN_KEY)?.fallback);

  const files = readFiles(configKeys, input);
  files.layers.forEach(add);
  addVariables(files.dotenv.values, (name) => `${name} in ${files.dotenv.sources.get(name)}`);
  const environment = new Map(Object.entries(input.env));
  addVariables(environment, (name) => name);
  for (const { option, key, text } of input.options ?? []) {
    add(settingFromText(configKeys, key, text, option));
  }

  function addVariables(
    variables: ReadonlyMap<string, string>,
    sourceOf: (name: string) => string,
  ) {
    add(readCompatibilityVariables(configKeys, variables, sourceOf, listen()));
    add(readVariables(configKeys, variables, HOLDFAST_PREFIX, "", sourceOf));
  }

  const config = configSchema.parse(nest(settings));
  // A value that was refused leaves its default behind, and a rule that looks at it would tell of a mistake nobody made.
  if (problems.length === 0) {
    const broken = purpose.rules.flatMap((rule) => rule(config));
    problems.push(...broken.map((rule) => tell(rule, settings)));
  }
  return { config, entries: entriesOf(settings), problems };
}

/** A configuration that may be used. */
export interface LoadedConfig {
  /** The configuration. */
  readonly config: Config;
  /** Where each value came from, by dotted key. */
  readonly sources: ReadonlyMap<string, string>;
}

/**
 * Reads the configuration.
 *
 * @throws {ConfigError} Something is wrong with it. All that is wrong is told at once.
 */
export function loadConfig(input: ConfigInput): LoadedConfig {
  const { config, entries, problems } = readConfig(input);
  if (problems.length > 0) throw new ConfigError(problems);
  return { config, sources: new Map(entries.map(({ key, source }) => [key, source])) };
}

const LISTEN_KEY = "host.listen";

/** Turns dotted keys into the sections that the schema reads. */
function nest(settings: ReadonlyMap<string, Setting>): unknown {
  const root: Record<string, unknown> = {};
  const sections = new Map<string, Record<string, unknown>>([["", root]]);
  const sectionAt = (path: string): Record<string, unknown> => {
    const known = sections.get(path);
    if (known !== undefined) return known;
    const [parent, name] = splitKey(path);
    const section: Record<string, unknown> = {};
    sectionAt(parent)[name] = section;
    sections.set(path, section);
    return section;
  };
  for (const { key, value } of settings.values()) {
    const [section, name] = splitKey(key);
    sectionAt(section)[name] = value;
  }
  return root;
}

function splitKey(key: string): [section: string, name: string] {
  const dot = key.lastIndexOf(".");
  return dot < 0 ? ["", key] : [key.slice(0, dot), key.slice(dot + 1)];
}

function entriesOf(settings: ReadonlyMap<string, Setting>): readonly ConfigEntry[] {
  return [...configKeys.keys].map(([key, { fallback, secret = false }]) => {
    const { value, source } = settings.get(key) ?? { value: fallback, source: DEFAULT_SOURCE };
    return { key, value, source, secret };
  });
}

function tell(
  { keys, message }: BrokenRule,
  settings: ReadonlyMap<string, Setting>,
): ConfigProblem {
  const origins = keys.map((key) => ({ key, source: settings.get(key)?.source ?? DEFAULT_SOURCE }));
  const told = origins.filter(({ source }) => source !== DEFAULT_SOURCE)
    .map(({ key, source }) => `'${key}' is from ${source}`);
  const whole = told.length === 0 ? message : `${message} (${told.join("; ")})`;
  return problemOf(origins[0]?.source ?? DEFAULT_SOURCE, whole, keys[0]);
}
