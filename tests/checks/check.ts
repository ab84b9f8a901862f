/**
 * `deno task check`: everything that can be said about the code without running the product.
 *
 * All stages run, also after one that failed, so that one look shows all that is wrong.
 *
 * @module
 */

import { exampleErrors } from "./doc_examples.ts";
import { closingLine } from "./junit.ts";
import { print, ROOT } from "./shell.ts";

/** A stage answers whether it passed, and prints what is wrong. */
const STAGES: Readonly<Record<string, () => Promise<boolean>>> = {
  "format": () => deno("fmt", "--check"),
  "lint": () => deno("lint"),
  "types": () => deno("check", "--quiet", "."),
  "examples": async () => {
    const errors = await exampleErrors();
    for (const error of errors) print(`${error}\n`);
    return errors.length === 0;
  },
  "rules of the house": () =>
    deno("test", "--allow-all", "--sanitize-ops", "--sanitize-resources", "tests/checks"),
};

async function deno(...args: readonly string[]): Promise<boolean> {
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: ROOT,
    stdin: "null",
  }).spawn().status;
  return success;
}

let passed = 0;
let failed = 0;
for (const [name, stage] of Object.entries(STAGES)) {
  const startedMs = performance.now();
  const success = await stage();
  success ? passed++ : failed++;
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  print(`check: ${name}: ${success ? "passed" : "FAILED"} (${seconds} s)`);
}
print(closingLine({ passed, failed, skipped: 0 }));
Deno.exit(failed === 0 ? 0 : 1);
