/**
 * Reads `holdfast.yaml` and its siblings: sections and keys as in the schema, nothing else.
 *
 * @module
 */
import { LineCounter, parseDocument } from "yaml";
import { failed, joinLayers, knownKeys, type Layer } from "./env.ts";
import { describeType, problemOf, reasonOf, unknownKey, wrongValue } from "./errors.ts";
import { joinPath, type KeyTable, type RawValue } from "./keys.ts";

/** The section of `holdfast.yaml` that holds one section for each profile. */
const PROFILE_SECTION = "profile";

/** What a file holds, before its keys are looked at. */
interface YamlText {
  /** The top level, empty when the text cannot be read. */
  readonly content: Readonly<Record<string, unknown>>;
  /** What is wrong with the text. */
  readonly outcome: Layer;
}

function isSection(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isRawValue(value: unknown): value is RawValue {
  return Array.isArray(value)
    ? value.every((item) => typeof item === "string")
    : ["boolean", "number", "string"].includes(typeof value);
}

/** A value where a section should be; an empty path means the whole file. */
function notSection(source: string, path: string, value: unknown): Layer {
  const found = describeType(value);
  return failed(
    path === ""
      ? problemOf(
        source,
        `Cannot use ${source} as it must hold sections: current value is ${found}`,
      )
      : problemOf(
        source,
        `Cannot use '${path}' from ${source} as it must be a section: current value is ${found}`,
        path,
      ),
  );
}

function parseYaml(source: string, text: string): YamlText {
  const fail = (reason: string) => ({
    content: {},
    outcome: failed(problemOf(source, `Cannot read ${source} as ${reason}`)),
  });
  const lineCounter = new LineCounter();
  // Plain errors, not pretty ones: those quote the lines around the mistake, and a line may hold a secret.
  const document = parseDocument(text, { prettyErrors: false, lineCounter });
  const [error] = document.errors;
  if (error !== undefined) {
    const { line, col } = lineCounter.linePos(error.pos[0]);
    return fail(`line ${line}, column ${col} is not valid YAML (${error.code})`);
  }
  let content: unknown;
  try {
    content = document.toJS() ?? {};
  } catch (error) {
    return fail(`its aliases cannot be resolved: ${reasonOf(error)}`);
  }
  return isSection(content)
    ? { content, outcome: joinLayers([]) }
    : { content: {}, outcome: notSection(source, "", content) };
}

function readSection(table: KeyTable, source: string, section: string, content: unknown): Layer {
  // `tls:` with all its keys commented out is an empty section.
  if (content === null) return joinLayers([]);
  if (!isSection(content)) return notSection(source, section, content);
  return joinLayers(
    Object.entries(content).map(([name, value]) => {
      const key = joinPath(section, name);
      if (table.sections.has(key)) return readSection(table, source, key, value);
      const description = table.keys.get(key);
      if (description === undefined) {
        return failed(unknownKey(source, key, knownKeys(table, section)));
      }
      return isRawValue(value) && description.accepts(value)
        ? { settings: [{ key, value, source }], problems: [] }
        : failed(wrongValue(source, key, description, value));
    }),
  );
}

/**
 * Reads the main file: its own keys, and above them the sections of the selected profile. The sections of all other
 * profiles are checked too, so that a mistake shows before the profile is used, and have no effect.
 *
 * @param table The keys that there are.
 * @param source What to call the file.
 * @param text The file's text.
 * @param selected The spellings of the selected profile, low to high.
 */
export function readMainFile(
  table: KeyTable,
  source: string,
  text: string,
  selected: readonly string[],
): Layer {
  const yaml = parseYaml(source, text);
  const { [PROFILE_SECTION]: profiles, ...content } = yaml.content;
  const base = joinLayers([yaml.outcome, readSection(table, source, "", content)]);
  if (profiles === undefined || profiles === null) return base;
  if (!isSection(profiles)) {
    return joinLayers([base, notSection(source, PROFILE_SECTION, profiles)]);
  }
  const read = (name: string) =>
    readSection(table, `${source} (profile ${name})`, "", profiles[name]);
  const names = Object.keys(profiles);
  return joinLayers([
    base,
    ...selected.filter((name) => names.includes(name)).map(read),
    ...names.filter((name) => !selected.includes(name)).map((name) =>
      failed(...read(name).problems)
    ),
  ]);
}

/** Reads the file of one profile, which has no sections for profiles in it. */
export function readProfileFile(table: KeyTable, source: string, text: string): Layer {
  const { content, outcome } = parseYaml(source, text);
  return joinLayers([outcome, readSection(table, source, "", content)]);
}
