/**
 * What the commands of the repository share: where they are, and how they speak.
 *
 * @module
 */

import { fileURLToPath } from "node:url";

/** The root of the repository. */
export const ROOT: URL = new URL("../../", import.meta.url);

/** The path of a file URL, as the file system has it. */
export function pathOf(url: URL): string {
  return fileURLToPath(url);
}

/** Writes a line to standard output at once, also when the process ends right after it. */
export function print(line: string): void {
  const bytes = new TextEncoder().encode(`${line}\n`);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}
