/**
 * Bundles for tests: made once in a process, as the task `compile` makes them, and laid where nothing else is.
 *
 * @module
 */

import { ENTRY, ISOLATED, makeBundle } from "../../deploy/bundle.ts";
import { ROOT, run } from "../../deploy/commands.ts";
import { permissionFlags } from "../../deploy/permission_flags.ts";
import type { SourceTexts } from "../checks/syntax.ts";
import manifest from "../../deno.json" with { type: "json" };

export { ENTRY, ISOLATED };

/** What the bundles of tests say of themselves. */
export const BUILD = {
  version: manifest.version,
  source: { commit: "0123456789abcdef0123456789abcdef01234567", changed: false },
};

/** What the compiled program is granted. */
export const PERMISSIONS = permissionFlags(manifest.permissions);

/** Files of a folder by name. */
export type Files = ReadonlyMap<string, Uint8Array<ArrayBuffer>>;

/** The files of a folder that has no folders. */
export async function readFiles(folder: string): Promise<Files> {
  const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  const read = names.sort().map(async (name) =>
    [name, await Deno.readFile(`${folder}/${name}`)] as const
  );
  return new Map(await Promise.all(read));
}

/** Makes a bundle of a repository, and reads it. */
export async function bundleOf(root: string): Promise<Files> {
  const name = `test-${crypto.randomUUID()}`;
  try {
    return await readFiles(await makeBundle({ root, name, build: BUILD }));
  } finally {
    await Deno.remove(`${root}dist/${name}`, { recursive: true });
  }
}

/** What a program is made of. */
const PRODUCT = /^(main\.ts|deno\.(json|lock)|(lib|handlers|deploy)\/.*)$/;

/** Lays texts and the packages into a folder. The packages are linked, since they are large. */
export async function layTree(texts: SourceTexts, folder: string): Promise<void> {
  for (const [path, text] of texts) {
    if (!PRODUCT.test(path)) continue;
    const target = `${folder}${path}`;
    await Deno.mkdir(target.slice(0, target.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(target, text);
  }
  const linked = await run("cp", ["-al", "node_modules", folder], ROOT);
  if (!linked.success) throw new Error(`Cannot link the packages: ${linked.output}`);
}

let made: Promise<Files> | undefined;

/** The bundle of this repository. The first call takes some seconds. */
export function bundleFiles(): Promise<Files> {
  return made ??= bundleOf(ROOT);
}

/**
 * Lays the program into a folder, without its source maps, as the compiler takes it.
 *
 * @returns The path of the file that is started.
 */
export async function layBundle(folder: string): Promise<string> {
  for (const [name, bytes] of await bundleFiles()) {
    if (name.endsWith(".js")) await Deno.writeFile(`${folder}/${name}`, bytes);
  }
  return `${folder}/${ENTRY}`;
}
