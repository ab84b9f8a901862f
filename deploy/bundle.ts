/**
 * The bundle: the whole product as a few files that need nothing else. What only some commands need is in files of its own,
 * which are read when such a command is called: the service neither keeps nor parses what it never runs.
 *
 * The same source gives the same bytes, wherever it lies.
 *
 * @module
 */

import type { Build } from "../handlers/commands/build.ts";
import { deno } from "./commands.ts";
import manifest from "../deno.json" with { type: "json" };

/** The file of a bundle that is started. */
export const ENTRY = "main.js";

/** What lets a program find nothing but its own files, as in the image. */
export const ISOLATED: readonly string[] = ["--no-config", "--no-remote", "--no-npm"];

/** What {@linkcode makeBundle} takes. */
export interface BundleOptions {
  /** The folder of the repository, with a slash at its end. */
  readonly root: string;
  /** The folder of the bundle: a folder in `dist`, since the source maps name the sources from there. It is made anew. */
  readonly name: string;
  /** What the program says of itself. */
  readonly build: Build;
}

/**
 * Makes a bundle, each file with its source map beside it.
 *
 * @returns The folder. @throws {StepError} The bundler failed, or the lock file is not up to date.
 */
export async function makeBundle({ root, name, build }: BundleOptions): Promise<string> {
  const folder = `${root}dist/${name}`;
  await Deno.remove(folder, { recursive: true }).catch((error: unknown) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  const generated = `${folder}/generated`;
  await Deno.mkdir(generated, { recursive: true });
  await Deno.writeTextFile(`${generated}/build.ts`, buildModule(build));
  const importMap = `${generated}/import_map.json`;
  await Deno.writeTextFile(importMap, JSON.stringify(importMapOf(manifest.imports)));
  // The bundler gives names by the path from where it runs. From here each path is the same for every name of the folder.
  await deno("bundle", [
    "bundle",
    "--frozen",
    "--platform=deno",
    "--minify",
    "--code-splitting",
    "--sourcemap=external",
    `--import-map=${importMap}`,
    "--outdir=.",
    "../../main.ts",
  ], folder);
  await Deno.remove(generated, { recursive: true });
  return folder;
}

function buildModule(build: Build): string {
  return `export const build = ${JSON.stringify(build)};\n`;
}

/** The packages as in deno.json, and the generated module in the place of the one of the source tree. */
function importMapOf(imports: Readonly<Record<string, string>>) {
  return { imports: { ...imports, "../../../handlers/commands/build.ts": "./build.ts" } };
}
