/**
 * Two versions of the program as bundles: the present one, and a newer one.
 *
 * @module
 */

import { makeBundle } from "../../deploy/bundle.ts";
import { ROOT } from "../../deploy/commands.ts";
import { readShared } from "../checks/text.ts";
import { BUILD, ENTRY, ISOLATED, layBundle, layTree, PERMISSIONS } from "../deploy/bundles.ts";
import type { Program } from "../service/service_process.ts";
import { newerSource } from "./newer_source.ts";

/** The version that the newer program says it has. */
export const NEWER_VERSION = "999.0.0";

/** Both versions, each as a program that serves. */
export interface Versions extends AsyncDisposable {
  readonly present: Program;
  readonly newer: Program;
}

/** Makes both. It takes some seconds. */
export async function makeVersions(): Promise<Versions> {
  await Deno.mkdir(`${ROOT}dist`, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: `${ROOT}dist`, prefix: "versions-" });
  const remove = () => Deno.remove(folder, { recursive: true });
  try {
    const [present, tree] = [`${folder}/present`, `${folder}/tree/`];
    await Deno.mkdir(present);
    await layTree(newerSource(await readShared()), tree);
    const build = { ...BUILD, version: NEWER_VERSION };
    const [entry, newer] = await Promise.all([
      layBundle(present),
      makeBundle({ root: tree, name: "newer", build }),
    ]);
    return {
      present: programOf(entry, present),
      newer: programOf(`${newer}/${ENTRY}`, newer),
      [Symbol.asyncDispose]: remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

function programOf(entry: string, folder: string): Program {
  const args = ["run", "-q", ...ISOLATED, ...PERMISSIONS, "--no-prompt", entry, "serve"];
  return { command: Deno.execPath(), args, folder };
}
