/**
 * `deno task compile`: makes one file, and one program, of the product.
 *
 * The bundle comes first: `deno compile` of the whole graph of dependencies overflows the compiler's stack. The bundle must
 * start by itself, without packages and without configuration, as in the image.
 *
 * The program needs the run-time part of Deno, which is downloaded. Where it cannot be, Deno itself stands in for it: the
 * program is then compiled to the end, thrown away, and the task says so.
 *
 * @module
 */

import manifest from "../deno.json" with { type: "json" };
import { permissionFlags } from "./permission_flags.ts";

const ROOT = new URL("../", import.meta.url);
const BUNDLE = "dist/holdfast.js";
const PROGRAM = "dist/holdfast";
const ISOLATED = ["--no-config", "--no-remote", "--no-npm"];
const PERMISSIONS = permissionFlags(manifest.permissions);

class StepError extends Error {}

try {
  await compile();
} catch (error) {
  if (!(error instanceof StepError)) throw error;
  print(error.message);
  Deno.exit(1);
}

async function compile(): Promise<void> {
  await step("bundle", ["bundle", "--platform", "deno", "--minify", "main.ts", "-o", BUNDLE]);
  await step("start the bundle", ["run", ...ISOLATED, ...PERMISSIONS, BUNDLE, "--help"]);
  print(`${BUNDLE}: ${await megabytes(BUNDLE)} MB, starts by itself`);

  const args = ["compile", ...ISOLATED, ...PERMISSIONS, "-o", PROGRAM, BUNDLE];
  const real = await deno(args, {});
  if (real.success) {
    print(`${PROGRAM}: ${await megabytes(PROGRAM)} MB`);
    return;
  }
  if (!/denort|download/i.test(real.output)) throw new StepError(complaint("compile", real.output));
  await step("compile", args, { DENORT_BIN: Deno.execPath() });
  await Deno.remove(new URL(PROGRAM, ROOT));
  print(
    `${PROGRAM}: not made, as the run-time part of Deno cannot be downloaded here. ` +
      `The compiler ran to its end with a stand-in; '${BUNDLE}' can be run with Deno`,
  );
}

async function step(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { success, output } = await deno(args, env);
  if (!success) throw new StepError(complaint(name, output));
}

async function deno(args: readonly string[], env: Readonly<Record<string, string>>) {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: ROOT,
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { success, output: decoder.decode(stdout) + decoder.decode(stderr) };
}

function complaint(step: string, output: string): string {
  return `Cannot ${step}: ${output.trim()}`;
}

async function megabytes(path: string): Promise<string> {
  return ((await Deno.stat(new URL(path, ROOT))).size / 1e6).toFixed(1);
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
