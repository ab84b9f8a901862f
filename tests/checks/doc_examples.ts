/**
 * The check that the examples in doc comments and Markdown are correct code, by their types.
 *
 * @module
 */

import { ROOT } from "./shell.ts";

/** Where examples stand. */
const WITH_EXAMPLES = ["lib", "handlers", "README.md", "docs"];

/**
 * What an example may do although our own code may not: leave a name unused. Deno imports all exports of the module into
 * each of its examples, and an example shows a value without going on with it.
 */
const UNUSED: ReadonlySet<string> = new Set(["6133", "6192", "6196", "6198"]);

/** Type checks the examples; answers what is wrong, as the compiler says it. */
export async function exampleErrors(): Promise<string[]> {
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--doc", "--quiet", ...WITH_EXAMPLES],
    cwd: ROOT,
    env: { NO_COLOR: "1" },
  }).output();
  const complaint = new TextDecoder().decode(stderr);
  if (success) return [];
  const errors = diagnosticsIn(complaint);
  // It failed and said nothing of types, for example as a module cannot be found: that is the fault then.
  return errors.length === 0 ? [complaint] : errors.filter((error) => !isUnusedInExample(error));
}

/** Splits what the compiler wrote into its diagnostics. */
export function diagnosticsIn(output: string): string[] {
  return output.split(/^(?=TS\d+ \[ERROR\])/m)
    .filter((part) => part.startsWith("TS"))
    .map((part) => part.replace(/\n\n(Found \d+ errors?\.|error: )[\s\S]*$/, "").trimEnd());
}

function isUnusedInExample(error: string): boolean {
  const code = /^TS(\d+)/.exec(error)?.[1] ?? "";
  return UNUSED.has(code) && /#\d+-\d+\.\w+:\d+:\d+/.test(error);
}
