/**
 * The hidden command of the guard.
 *
 * @module
 */

import { guard } from "../../../lib/supervisor/guard_process.ts";
import { signalGroup, startGroup } from "../../../lib/supervisor/process_group.ts";
import { TextLines } from "../../../lib/supervisor/text_lines.ts";
import type { RunGuardOptions } from "./options.ts";

/** Starts the program of a supervisor, and guards it until the supervisor is gone. */
export async function runGuard({ system, socketPath }: RunGuardOptions): Promise<number> {
  using signals = new DisposableStack();
  // Whoever ends all processes at once, as a service manager does, must not take the guard before the program.
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    signals.defer(system.onSignal(signal, () => {}));
  }
  const connection = await Deno.connect({ transport: "unix", path: socketPath });
  const encoder = new TextEncoder();
  const writer = connection.writable.getWriter();
  await guard({
    clock: system.clock,
    orders: connection.readable.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLines()),
    // A supervisor that is gone is told nothing: the end of its orders says the same.
    tell: (text) => void writer.write(encoder.encode(text)).catch(() => {}),
    start: startGroup,
    kill: (group) => void signalGroup(group, "SIGKILL"),
  });
  return 0;
}
