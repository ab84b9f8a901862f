/**
 * How the tasks of this folder run other programs, and how they end when one fails.
 *
 * @module
 */

import { fileURLToPath } from "node:url";

/** The root of the repository, with a slash at its end. */
export const ROOT: string = fileURLToPath(new URL("../", import.meta.url));

/** A step of a task failed. Its message is all that a person needs. */
export class StepError extends Error {
  override name = "StepError";
}

/** How a program ended. */
export interface Ending {
  readonly success: boolean;
  readonly stdout: string;
  /** Both outputs, in that order: what a person would have seen. */
  readonly output: string;
}

/** Runs a program to its end. @throws {StepError} It is not installed. */
export async function run(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Ending> {
  const command = new Deno.Command(program, {
    args: [...args],
    cwd,
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
  });
  const ending = await outputOf(command, program);
  const decoder = new TextDecoder();
  const stdout = decoder.decode(ending.stdout);
  return { success: ending.success, stdout, output: stdout + decoder.decode(ending.stderr) };
}

async function outputOf(command: Deno.Command, program: string): Promise<Deno.CommandOutput> {
  try {
    return await command.output();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new StepError(`Cannot run '${program}' as it is not installed`);
  }
}

/** Runs Deno itself. @throws {StepError} It failed: with all that it said. */
export async function deno(
  step: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Ending> {
  const ending = await run(Deno.execPath(), args, cwd, env);
  if (!ending.success) throw new StepError(`Cannot ${step}: ${ending.output.trim()}`);
  return ending;
}
