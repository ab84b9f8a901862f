/**
 * Bundles for tests: made once for a state of the source, as the task `compile` makes them, and laid where nothing else is.
 *
 * @module
 */

import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { ENTRY, ISOLATED, makeBundle } from "../../deploy/bundle.ts";
import { ROOT, run } from "../../deploy/commands.ts";
import { permissionFlags } from "../../deploy/permission_flags.ts";
import type { SourceTexts } from "../checks/syntax.ts";
import manifest from "../../deno.json" with { type: "json" };
import { readShared } from "../checks/text.ts";

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

/** How long a bundle of an earlier state of the source is kept: longer than a run of the tests. */
const KEPT_MS = 3_600_000;

let made: Promise<Files> | undefined;

/**
 * The bundle of this repository. Making it takes some seconds, so the files of tests share it: it is kept in `dist` under a
 * name that tells of every byte it was made from.
 */
export function bundleFiles(): Promise<Files> {
  return made ??= keptBundle();
}

async function keptBundle(): Promise<Files> {
  const sources = [...await readShared()].filter(([path]) => PRODUCT.test(path)).sort();
  const key = bytesToHex(
    sha256(new TextEncoder().encode(JSON.stringify([Deno.version, BUILD, sources]))),
  );
  const kept = `${ROOT}dist/kept-${key.slice(0, 24)}`;
  try {
    return await readFiles(kept);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  await forgetOldBundles();
  const name = `test-${crypto.randomUUID()}`;
  const folder = await makeBundle({ root: ROOT, name, build: BUILD });
  const files = await readFiles(folder);
  // Whole or not at all. Where another process was quicker, its bundle has the same bytes.
  await Deno.rename(folder, kept).catch(() => Deno.remove(folder, { recursive: true }));
  return files;
}

async function forgetOldBundles(): Promise<void> {
  const names = await Array.fromAsync(Deno.readDir(`${ROOT}dist`), ({ name }) => name)
    .catch(() => []);
  for (const name of names.filter((name) => name.startsWith("kept-"))) {
    const folder = `${ROOT}dist/${name}`;
    const madeAt = (await Deno.stat(folder)).mtime?.getTime() ?? 0;
    if (Date.now() - madeAt > KEPT_MS) await Deno.remove(folder, { recursive: true });
  }
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
