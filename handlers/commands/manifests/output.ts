/**
 * Writes manifests to files: all of them, or none.
 *
 * They are written beside their place first and then moved there, so that nobody ever applies half of them.
 *
 * @module
 */

import { basename, dirname, join, resolve } from "node:path";
import { CommandFault, FAILED } from "../faults.ts";

/** The first line of the kustomization of a folder that was written here: only such a folder is replaced. */
const MARK = "# Written by `holdfast manifests service`. The whole folder is replaced.\n";

/** The file by which a folder is known, and applied. */
const KUSTOMIZATION = "kustomization.yaml";

/**
 * Writes a file. What was there is replaced.
 *
 * @throws {CommandFault} It cannot be written. What was there is still there.
 */
export async function writeFile(path: string, text: string): Promise<void> {
  const target = resolve(path);
  await saying(`write ${path}`, async () => {
    const draft = await Deno.makeTempFile({ dir: dirname(target), prefix: draftPrefix(target) });
    try {
      await Deno.writeTextFile(draft, text);
      await Deno.chmod(draft, 0o644);
      await Deno.rename(draft, target);
    } catch (error) {
      await Deno.remove(draft);
      throw error;
    }
  });
}

/**
 * Writes a folder of files with a kustomization of them all. A folder that was written here before is replaced as a whole.
 *
 * @param files Names and texts, in the order in which they are applied.
 * @throws {CommandFault} It cannot be written, or holds something else. What was there is still there.
 */
export async function writeFolder(path: string, files: ReadonlyMap<string, string>): Promise<void> {
  const target = resolve(path);
  await saying(`write the folder ${path}`, async () => {
    const before = await looksAt(path);
    const draft = await Deno.makeTempDir({ dir: dirname(target), prefix: draftPrefix(target) });
    try {
      for (const [name, text] of files) await Deno.writeTextFile(join(draft, name), text);
      await Deno.writeTextFile(join(draft, KUSTOMIZATION), kustomization([...files.keys()]));
      await Deno.chmod(draft, 0o755);
      await exchange(draft, target, before);
    } catch (error) {
      await Deno.remove(draft, { recursive: true }).catch(() => {});
      throw error;
    }
  });
}

function kustomization(names: readonly string[]): string {
  return [
    `${MARK}apiVersion: kustomize.config.k8s.io/v1beta1`,
    "kind: Kustomization",
    "resources:",
    ...names.map((name) => `  - ${name}`),
    "",
  ].join("\n");
}

/** A folder cannot be renamed over another one that has something in it, so that one steps aside first. */
async function exchange(draft: string, target: string, before: "nothing" | "ours"): Promise<void> {
  if (before === "nothing") return await Deno.rename(draft, target);
  const aside = `${draft}.old`;
  await Deno.rename(target, aside);
  try {
    await Deno.rename(draft, target);
  } catch (error) {
    await Deno.rename(aside, target);
    throw error;
  }
  await Deno.remove(aside, { recursive: true });
}

/** What is at the place of a folder. @throws {CommandFault} Something that was not written here. */
async function looksAt(path: string): Promise<"nothing" | "ours"> {
  try {
    const entries = await Array.fromAsync(Deno.readDir(path));
    if (entries.length === 0) return "ours";
    const text = await Deno.readTextFile(join(path, KUSTOMIZATION)).catch(() => "");
    if (text.startsWith(MARK)) return "ours";
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "nothing";
    throw error;
  }
  throw new CommandFault(
    `Cannot replace the folder ${path} as it holds files that were not written here: name another one, or empty it`,
    FAILED,
  );
}

function draftPrefix(target: string): string {
  return `.${basename(target)}.`;
}

async function saying(what: string, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (error instanceof CommandFault) throw error;
    if (!(error instanceof Error)) throw error;
    throw new CommandFault(
      `Cannot ${what} (${error.name}): name a place whose folder is there and can be written`,
      FAILED,
      { cause: error },
    );
  }
}
