/**
 * The hidden command of the guard.
 *
 * @module
 */

import { guard } from "../../lib/supervisor/guard_process.ts";
import { signalGroup } from "../../lib/supervisor/process_group.ts";
import { TextLines } from "../../lib/supervisor/text_lines.ts";
import type { RunGuardOptions } from "./run_options.ts";

/** Guards the child of a supervisor until the supervisor is gone, or says that the child is. */
export async function runGuard({ system }: RunGuardOptions): Promise<number> {
  using signals = new DisposableStack();
  // Whoever ends all processes at once, as a service manager does, must not take the guard before the child.
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    signals.defer(system.onSignal(signal, () => {}));
  }
  await guard({
    clock: system.clock,
    orders: Deno.stdin.readable.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLines()),
    tell: (text) => system.stdout.write(text),
    kill: (group) => void signalGroup(group, "SIGKILL"),
  });
  return 0;
}
