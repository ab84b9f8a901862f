/**
 * Finds the files of the configuration and reads them (kubernetes-plugin 2, layers and file lookup).
 *
 * @module
 */
import { DotenvError, parseDotenv } from "./dotenv.ts";
import { failed, type Layer } from "./env.ts";
import { type ConfigProblem, problemOf, reasonOf } from "./errors.ts";
import type { KeyTable } from "./keys.ts";
import { DOTENV_VARIABLE, PROFILE_VARIABLES, readsDotenv, selectProfile } from "./profile.ts";
import { readMainFile, readProfileFile } from "./yaml_file.ts";

/** The variable that names the folder of the configuration files; the working directory when it is not set. */
export const FOLDER_VARIABLE = "AUTUMN_MANIFEST_DIR";

/** The main file's name, without its ending; a profile's file has the profile's name after it. */
const FILE_STEM = "holdfast";

/** Variables that choose what is read: in a file that was chosen by them they come too late. */
const SELECTORS: ReadonlySet<string> = new Set([
  ...PROFILE_VARIABLES,
  DOTENV_VARIABLE,
  FOLDER_VARIABLE,
]);

/** What the files are found and read with. */
export interface FileInput {
  /** The environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  /** The text of a file, or `undefined` where there is none. What it throws becomes a problem of the configuration. */
  readonly readTextFile: (path: string) => string | undefined;
  /** The profile that the command line names. @default {undefined} */
  readonly profile?: string | undefined;
}

/** Variables from `.env` files. */
export interface DotenvVariables {
  /** Names and texts. */
  readonly values: ReadonlyMap<string, string>;
  /** Names, and the file that gave each. */
  readonly sources: ReadonlyMap<string, string>;
}

/** What the files hold. */
export interface ConfigFiles {
  /** The YAML files, from low to high. */
  readonly layers: readonly Layer[];
  /** The `.env` files together. */
  readonly dotenv: DotenvVariables;
}

/** A file that was found. */
interface FoundFile {
  readonly path: string;
  readonly text: string;
}

/**
 * Reads `holdfast.yaml`, the file of the selected profile, and the `.env` files.
 *
 * Each YAML file is looked for in the folder, then in the working directory: a folder that was baked into an image must
 * not hide the file that is mounted there. `.env` files are looked for in the folder alone.
 *
 * @param table The keys that there are.
 * @param input Where to look.
 */
export function readFiles(table: KeyTable, input: FileInput): ConfigFiles {
  const problems: ConfigProblem[] = [];
  const folder = (input.env[FOLDER_VARIABLE] ?? "").replace(/(?<=.)\/+$/, "");
  const inFolder = (name: string) => folder === "" ? name : `${folder}/${name}`;
  const withFallback = (name: string) => folder === "" ? [name] : [inFolder(name), name];

  const chosen = selectProfile(input.env, input.profile);
  const profile = chosen.problem === undefined ? chosen.value : undefined;
  if (chosen.problem !== undefined) problems.push(chosen.problem);
  const names = profile?.fileNames ?? [];

  function findFirst(paths: readonly string[]): FoundFile | undefined {
    for (const path of paths) {
      try {
        const text = input.readTextFile(path);
        if (text !== undefined) return { path, text };
      } catch (error) {
        problems.push(problemOf(path, `Cannot read ${path}: ${reasonOf(error)}`));
        return undefined;
      }
    }
    return undefined;
  }

  function readYaml(): Layer[] {
    const main = findFirst(withFallback(`${FILE_STEM}.yaml`));
    const own = findFirst(names.flatMap((name) => withFallback(`${FILE_STEM}-${name}.yaml`)));
    return [
      ...(main === undefined
        ? []
        : [readMainFile(table, main.path, main.text, profile?.sections ?? [])]),
      ...(own === undefined ? [] : [readProfileFile(table, own.path, own.text)]),
    ];
  }

  function readDotenv(): DotenvVariables {
    const values = new Map<string, string>();
    const sources = new Map<string, string>();
    const wanted = readsDotenv(input.env, profile);
    if (wanted.problem !== undefined) problems.push(wanted.problem);
    else if (wanted.value) {
      const endings = [
        [""],
        [".local"],
        names.map((n) => `.${n}`),
        names.map((n) => `.${n}.local`),
      ];
      for (const spellings of endings) {
        const file = findFirst(spellings.map((ending) => inFolder(`.env${ending}`)));
        if (file === undefined) continue;
        for (const [name, value] of parse(file)) {
          if (values.has(name) || SELECTORS.has(name)) continue;
          values.set(name, value);
          sources.set(name, file.path);
        }
      }
    }
    return { values, sources };
  }

  function parse({ path, text }: FoundFile): ReadonlyMap<string, string> {
    try {
      return parseDotenv(path, text);
    } catch (error) {
      if (!(error instanceof DotenvError)) throw error;
      problems.push(problemOf(path, error.message));
      return new Map();
    }
  }

  const layers = readYaml();
  const dotenv = readDotenv();
  return { layers: [failed(...problems), ...layers], dotenv };
}
