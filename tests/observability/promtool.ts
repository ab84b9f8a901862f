/**
 * `promtool`, the tool of Prometheus that checks rules: that of the machine, or the one that `.ci/run` unpacked.
 *
 * @module
 */

import { cacheOfTests } from "../cluster/binaries.ts";
import { print } from "../checks/shell.ts";

/** The program, or `null` where there is none: then one line says so. */
export async function findPromtool(): Promise<string | null> {
  const unpacked = `${cacheOfTests(Deno.env.toObject())}/prometheus/usr/bin/promtool`;
  for (const program of ["promtool", unpacked]) {
    try {
      const { success } = await new Deno.Command(program, { args: ["--version"] }).output();
      if (success) return program;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  print(
    "The alert rules are not played: there is no promtool. Debian has it in the package prometheus",
  );
  return null;
}
