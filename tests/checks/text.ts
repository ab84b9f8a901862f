/**
 * What must stand in no committed file: paths of one machine, hosts of package registries, and comments that switch a
 * check off.
 *
 * @module
 */

import { ROOT } from "./shell.ts";
import type { Offence, SourceTexts } from "./syntax.ts";

/** One thing to look for. The patterns are put together from parts, so that this file does not find itself. */
interface Rule {
  readonly pattern: RegExp;
  readonly files: RegExp;
  readonly wish: string;
}

const EVERY_FILE = /./;
const SOURCE = /\.(tsx?|mjs|js)$/;

/** The hosts of package registries; those of container images are not among them. */
const REGISTRY_HOSTS = [
  ["registry", "npmjs", "org"],
  ["registry", "yarnpkg", "com"],
  ["npm", "jsr", "io"],
  ["jsr", "io"],
  ["deno", "land"],
  ["esm", "sh"],
  ["proxy", "golang", "org"],
  ["sum", "golang", "org"],
  ["pypi", "org"],
  ["crates", "io"],
  ["repo1", "maven", "org"],
  ["deb", "debian", "org"],
].map((labels) => labels.join("\\."));

const MACHINE_FOLDERS = ["root", "work", "home/[a-z]\\w*", "Users/[A-Za-z]\\w*"];

const SWITCHES = [
  ["deno", "lint", "ignore"],
  ["deno", "coverage", "ignore"],
  ["eslint", "disable"],
].map((words) => words.join("-"));

const RULES: readonly Rule[] = [
  {
    pattern: new RegExp(`(?:(?<=file://)|(?<![\\w.$}/~-]))/(${MACHINE_FOLDERS.join("|")})/`),
    files: EVERY_FILE,
    wish: "name a path that every machine has",
  },
  {
    pattern: new RegExp(`(?<![\\w.-])(${REGISTRY_HOSTS.join("|")})(?![\\w-])`, "i"),
    files: EVERY_FILE,
    wish: "name the package, not the host it comes from",
  },
  {
    pattern: new RegExp(`@ts-(${["ignore", "expect-error", "nocheck"].join("|")})`),
    files: SOURCE,
    wish: "make the types right",
  },
  {
    pattern: new RegExp(SWITCHES.join("|")),
    files: SOURCE,
    wish: "do what the check asks for",
  },
];

/** Finds what must not stand in a file that is shared. */
export function textOffences(texts: SourceTexts): Offence[] {
  return [...texts].flatMap(([file, text]) => {
    const rules = RULES.filter((rule) => rule.files.test(file));
    return text.split("\n").flatMap((line, index) =>
      rules.flatMap(({ pattern, wish }) => {
        const found = pattern.exec(line)?.[0];
        if (found === undefined) return [];
        return [{ file, line: index + 1, message: `Cannot keep '${found}': ${wish}` }];
      })
    );
  });
}

/** The paths of all files that git knows, or would know with the next `git add`. */
export async function listShared(): Promise<readonly string[]> {
  const { success, stdout, stderr } = await new Deno.Command("git", {
    args: ["ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    cwd: ROOT,
  }).output();
  if (!success) throw new Error(`Cannot list the files: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout).split("\0").filter(Boolean);
}

/** Reads all of them; those that are not text are left out. */
export async function readShared(): Promise<SourceTexts> {
  const texts = new Map<string, string>();
  for (const path of await listShared()) {
    const bytes = await Deno.readFile(new URL(path, ROOT)).catch((error: unknown) => {
      // Deleted, and git was not told yet.
      if (error instanceof Deno.errors.NotFound) return new Uint8Array();
      throw error;
    });
    if (!bytes.includes(0)) texts.set(path, new TextDecoder().decode(bytes));
  }
  return texts;
}
