/**
 * Runs `holdfast doctor` in this process, from its command line on.
 *
 * @module
 */

import { Command } from "commander";
import { addDoctorCommand } from "../../handlers/commands/doctor/arguments.ts";
import { doctor } from "../../handlers/commands/doctor.ts";
import { type System, systemClock } from "../../handlers/commands/system.ts";
import type { Diagnosis, Finding } from "../../lib/doctor/finding.ts";
import { fakeSystem } from "../handlers/commands/fake_system.ts";
import { found } from "./facts.ts";

/** What a run of the command left. */
export interface Examination {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The findings of `--json`. */
  readonly findings: readonly Finding[];
  /** What one check found. */
  find(check: string): Finding;
}

/** A machine with real files, whose timers run out four times as fast where `hurry` is given. */
export function machine(
  env: Readonly<Record<string, string>>,
  { hurry = false }: { readonly hurry?: boolean } = {},
) {
  const system = fakeSystem({ env });
  return Object.assign(system, {
    readTextFile: (path: string) => Deno.readTextFileSync(path),
    clock: hurry
      ? {
        ...systemClock,
        timer: (ms: number, callback: () => void) => systemClock.timer(ms / 4, callback),
      }
      : systemClock,
  });
}

/** Runs the command. */
export async function examine(
  args: readonly string[],
  system: System & { readonly written: { readonly stdout: string; readonly stderr: string } },
): Promise<Examination> {
  let code = 0;
  const program = new Command("holdfast").exitOverride();
  addDoctorCommand(program, system, async (options) => {
    code = await doctor(options);
  });
  await program.parseAsync(["doctor", ...args], { from: "user" });
  const { stdout, stderr } = system.written;
  const findings = stdout.startsWith("{") ? readDiagnosis(stdout).findings : [];
  return { code, stdout, stderr, findings, find: (check) => found(findings, check) };
}

function readDiagnosis(text: string): Diagnosis {
  const read: Diagnosis = JSON.parse(text);
  return read;
}
