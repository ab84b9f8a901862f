/**
 * Which commit a build is of.
 *
 * @module
 */

import { z } from "zod";
import type { Build } from "../handlers/commands/build.ts";
import { run, StepError } from "./commands.ts";

/** The variable that names the commit where there is no repository, as in the build of the image. */
export const COMMIT = "HOLDFAST_COMMIT";

/** What the product is made of. Another file that was changed makes no other program. */
const PRODUCT = ["main.ts", "handlers", "lib", "deploy", "deno.json", "deno.lock"];

const commitForm = z.string().regex(/^[0-9a-f]{40}$/);

/**
 * What the source is: from {@linkcode COMMIT}, else from git.
 *
 * @param root The folder of the repository.
 * @param env The environment.
 * @throws {StepError} Nothing tells the commit.
 */
export async function buildSource(
  root: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<NonNullable<Build["source"]>> {
  const named = env[COMMIT] ?? "";
  if (named !== "") {
    if (commitForm.safeParse(named).success) return { commit: named, changed: false };
    throw new StepError(
      `Cannot name the commit as '${COMMIT}' must be 40 hexadecimal digits: current value is ${named}`,
    );
  }
  const head = await run("git", ["rev-parse", "HEAD"], root).catch((error: unknown) => {
    // The builder of an image has no git.
    if (error instanceof StepError) return null;
    throw error;
  });
  const commit = head?.stdout.trim() ?? "";
  if (!head?.success || !commitForm.safeParse(commit).success) {
    throw new StepError(
      `Cannot name the commit: this is no clone of git, and '${COMMIT}' is not set`,
    );
  }
  const status = await run("git", ["status", "--porcelain", "--", ...PRODUCT], root);
  if (!status.success) throw new StepError(`Cannot look for changes: ${status.output.trim()}`);
  return { commit, changed: status.stdout.trim() !== "" };
}
