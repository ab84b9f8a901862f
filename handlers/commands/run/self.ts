/**
 * How this program starts itself again.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import type { CommandLine } from "../../../lib/supervisor/process_group.ts";

/** The hidden command of the guard. */
export const RUN_GUARD = "run-guard";

/**
 * What starts the guard. It needs to start and to kill programs, and to reach the supervisor; nothing else.
 *
 * @param socketPath Where it reaches the supervisor.
 */
export function guardCommand(socketPath: string): CommandLine {
  const path = Deno.execPath();
  if (Deno.build.standalone) return { path, args: [RUN_GUARD, socketPath] };
  const program = fileURLToPath(Deno.mainModule);
  const flags = [
    "-q",
    "--no-prompt",
    "--allow-run",
    "--ignore-env",
    `--allow-net=unix:${socketPath}`,
    `--allow-read=${socketPath}`,
    `--allow-write=${socketPath}`,
  ];
  // The bundle finds nothing but itself, as in the image; the source needs deno.json for its imports.
  const isolated = program.endsWith(".js") ? ["--no-config", "--no-remote", "--no-npm"] : [];
  return { path, args: ["run", ...flags, ...isolated, program, RUN_GUARD, socketPath] };
}
