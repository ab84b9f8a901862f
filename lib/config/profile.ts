/**
 * Which profile a process runs under, and whether it reads `.env` files (kubernetes-plugin 2).
 *
 * @module
 */
import { type ConfigProblem, problemOf } from "./errors.ts";

/** Variables that select the profile, the first that is set wins. They have no effect inside a `.env` file. */
export const PROFILE_VARIABLES = ["AUTUMN_ENV", "AUTUMN_PROFILE"] as const;

/** The variable that switches `.env` files on or off in every profile. */
export const DOTENV_VARIABLE = "AUTUMN_DOTENV";

/** Two spellings of one profile, the long one first. */
const ALIASES: readonly (readonly [string, string])[] = [
  ["production", "prod"],
  ["development", "dev"],
];

/** A selected profile. */
export interface Profile {
  /** The spelling that the user chose. */
  readonly name: string;
  /** All spellings, from low to high in the configuration file: the long alias, then the short one. */
  readonly sections: readonly string[];
  /** All spellings, in the order in which a file is looked for: the user's first. */
  readonly fileNames: readonly string[];
}

/** The outcome of a choice, or what is wrong with it. */
export type Choice<Value> =
  | { readonly value: Value; readonly problem?: undefined }
  | { readonly problem: ConfigProblem };

/** A profile's name becomes a part of a file's name, so it may hold nothing that leaves the folder. */
const PROFILE_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;

/**
 * Selects the profile: `AUTUMN_ENV`, else `AUTUMN_PROFILE`, else the option. An empty text selects nothing, and
 * `default` means none.
 *
 * @param env The environment of the process.
 * @param option The value of `--profile`.
 */
export function selectProfile(
  env: Readonly<Record<string, string>>,
  option: string | undefined,
): Choice<Profile | undefined> {
  const candidates = [
    ...PROFILE_VARIABLES.map((name) => ({ source: name as string, name: env[name] ?? "" })),
    { source: "--profile", name: option ?? "" },
  ];
  const chosen = candidates.find(({ name }) => name !== "");
  if (chosen === undefined || chosen.name === "default") return { value: undefined };
  const { source, name } = chosen;
  if (!PROFILE_NAME.test(name)) {
    const rule = "its name must be of letters, digits, '_', '-' and '.'";
    return { problem: problemOf(source, `Cannot select a profile from ${source} as ${rule}`) };
  }
  const aliases = ALIASES.find((spellings) => spellings.includes(name)) ?? [name];
  return {
    value: {
      name,
      sections: aliases,
      fileNames: [name, ...aliases.filter((spelling) => spelling !== name)],
    },
  };
}

/**
 * Says whether `.env` files are read: in development and test only, unless `AUTUMN_DOTENV` says otherwise.
 *
 * @param env The environment of the process.
 * @param profile The profile that was selected.
 */
export function readsDotenv(
  env: Readonly<Record<string, string>>,
  profile: Profile | undefined,
): Choice<boolean> {
  const text = env[DOTENV_VARIABLE] ?? "";
  switch (text.trim().toLowerCase()) {
    case "1":
    case "true":
      return { value: true };
    case "0":
    case "false":
      return { value: false };
    case "":
      return {
        value: profile?.sections.some((name) => name === "dev" || name === "test") ?? false,
      };
  }
  const message = `Cannot use ${DOTENV_VARIABLE} as it must be one of 1, true, 0, false`;
  return { problem: problemOf(DOTENV_VARIABLE, message) };
}
