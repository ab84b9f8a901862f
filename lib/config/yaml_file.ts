/**
 * Reads `holdfast.yaml` and its siblings: sections and keys as in the schema, nothing else.
 *
 * @module
 */
import { LineCounter, parseDocument } from "yaml";
import { joinLayers, knownKeys, type Layer } from "./env.ts";
import { type ConfigProblem, describeType, reasonOf, wrongValue } from "./errors.ts";
import { joinPath, type KeyTable, type RawValue } from "./keys.ts";

/** The section of `holdfast.yaml` that holds one section for each profile. */
const PROFILE_SECTION = "profile";

/** What a file holds, before its keys are looked at. */
interface YamlText {
  readonly content: Readonly<Record<string, unknown>>;
  readonly problems: readonly ConfigProblem[];
}

function isSection(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isRawValue(value: unknown): value is RawValue {
  return Array.isArray(value)
    ? value.every((item) => typeof item === "string")
    : ["boolean", "number", "string"].includes(typeof value);
}

function parseYaml(source: string, text: string): YamlText {
  const fail = (message: string) => ({ content: {}, problems: [{ source, message }] });
  const lineCounter = new LineCounter();
  // Plain errors, not pretty ones: those quote the lines around the mistake, and a line may hold a secret.
  const document = parseDocument(text, { prettyErrors: false, lineCounter });
  const [error] = document.errors;
  if (error !== undefined) {
    const { line, col } = lineCounter.linePos(error.pos[0]);
    return fail(
      `Cannot read ${source} as line ${line}, column ${col} is not valid YAML (${error.code})`,
    );
  }
  let content: unknown;
  try {
    content = document.toJS() ?? {};
  } catch (error) {
    return fail(`Cannot read ${source} as its aliases cannot be resolved: ${reasonOf(error)}`);
  }
  return isSection(content)
    ? { content, problems: [] }
    : fail(`Cannot read ${source} as it must hold sections: it holds ${describeType(content)}`);
}

function readSection(table: KeyTable, source: string, section: string, content: unknown): Layer {
  // `tls:` with all its keys commented out is an empty section.
  if (content === null) return { settings: [], problems: [] };
  if (!isSection(content)) {
    const message =
      `Cannot use '${section}' from ${source} as it must be a section: current value is ${
        describeType(content)
      }`;
    return { settings: [], problems: [{ source, key: section, message }] };
  }
  return joinLayers(
    Object.entries(content).map(([name, value]) => {
      const key = joinPath(section, name);
      if (table.sections.has(key)) return readSection(table, source, key, value);
      const description = table.keys.get(key);
      if (description === undefined) {
        const message = `Cannot use ${source} as there is no key '${key}': ${
          knownKeys(table, section)
        }`;
        return { settings: [], problems: [{ source, key, message }] };
      }
      return isRawValue(value) && description.accepts(value)
        ? { settings: [{ key, value, source }], problems: [] }
        : { settings: [], problems: [wrongValue(source, key, description, value)] };
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
  const { content: { [PROFILE_SECTION]: profiles, ...content }, problems } = parseYaml(
    source,
    text,
  );
  const base = readSection(table, source, "", content);
  if (profiles !== undefined && profiles !== null && !isSection(profiles)) {
    const message =
      `Cannot use '${PROFILE_SECTION}' from ${source} as it must hold one section for ${"each profile"}: current value is ${
        describeType(profiles)
      }`;
    return joinLayers([base, {
      settings: [],
      problems: [{ source, key: PROFILE_SECTION, message }],
    }]);
  }
  const sections = profiles ?? {};
  const read = (name: string) =>
    readSection(table, `${source} (profile ${name})`, "", sections[name] ?? null);
  const others = Object.keys(sections).filter((name) => !selected.includes(name)).map(read);
  return joinLayers([
    { settings: [], problems },
    base,
    ...selected.map(read),
    ...others.map((layer) => ({ ...layer, settings: [] })),
  ]);
}

/** Reads the file of one profile, which has no sections for profiles in it. */
export function readProfileFile(table: KeyTable, source: string, text: string): Layer {
  const { content, problems } = parseYaml(source, text);
  return joinLayers([{ settings: [], problems }, readSection(table, source, "", content)]);
}
