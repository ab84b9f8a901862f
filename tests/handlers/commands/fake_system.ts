/**
 * A machine for the tests of commands: files and environment from memory, output kept.
 *
 * @module
 */
import type { System, TextOutput } from "../../../handlers/commands/system.ts";
import { systemClock, systemEntropy } from "../../../handlers/commands/system.ts";

/** What a test puts into the machine. */
export interface FakeMachine {
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  /** Whether the output goes to a person. @default {false} */
  readonly isTerminal?: boolean;
}

/** A {@linkcode System} that keeps what is written to it. */
export interface FakeSystem extends System {
  /** All that was written. */
  readonly written: { stdout: string; stderr: string };
}

/** Makes a machine. */
export function fakeSystem(
  { env = {}, files = {}, isTerminal = false }: FakeMachine = {},
): FakeSystem {
  const written = { stdout: "", stderr: "" };
  const output = (name: "stdout" | "stderr"): TextOutput => ({
    isTerminal,
    write: (text) => void (written[name] += text),
  });
  return {
    clock: systemClock,
    entropy: systemEntropy,
    env,
    stdout: output("stdout"),
    stderr: output("stderr"),
    readTextFile: (path) => files[path],
    exit: (code) => {
      throw new Error(`A command must not exit by itself: code ${code}`);
    },
    onSignal: () => () => {},
    written,
  };
}
