/**
 * `deno task compile`: makes the bundle, one program, and the list of its parts, in dist.
 *
 * - `dist/bundle`: the product as a few files, each with its source map. `main.js` is started.
 * - `dist/holdfast`: one program, with its permissions baked in. It needs the run-time part of Deno, which is downloaded.
 *   Where it cannot be, Deno itself stands in for it: the compiler then runs to its end, what it wrote is looked at and
 *   thrown away, and the task says so.
 * - `dist/holdfast.cdx.json`: the list of parts, in the form CycloneDX.
 *
 * Variables: `HOLDFAST_COMMIT` names the commit where there is no clone of git; `TARGETARCH` (`amd64`, `arm64`) asks for a
 * program for another machine, as the build of an image does.
 *
 * @module
 */

import { pathToFileURL } from "node:url";
import manifest from "../deno.json" with { type: "json" };
import { buildSource } from "./build_source.ts";
import { ENTRY, ISOLATED, makeBundle } from "./bundle.ts";
import { deno, ROOT, run, StepError } from "./commands.ts";
import { ENGINE, ENGINE_FLAG } from "./engine_flags.ts";
import { permissionFlags } from "./permission_flags.ts";
import {
  bakedInto,
  computedImports,
  engineFaults,
  graphFaults,
  permissionFaults,
} from "./program_check.ts";
import { sbomOf } from "./sbom.ts";

const BUNDLE = "bundle";
const PROGRAM = "dist/holdfast";
const PARTS = "dist/holdfast.cdx.json";
/** No module is loaded from elsewhere, and none may be. */
const PERMISSIONS = [...permissionFlags(manifest.permissions), "--deny-import"];
/** What Deno calls the machines that an image may be for. */
const TARGETS: Readonly<Record<string, string>> = {
  amd64: "x86_64-unknown-linux-gnu",
  arm64: "aarch64-unknown-linux-gnu",
};

try {
  await compile();
} catch (error) {
  if (!(error instanceof StepError)) throw error;
  print(error.message);
  Deno.exit(1);
}

async function compile(): Promise<void> {
  const target = targetOf(Deno.env.get("TARGETARCH") ?? "");
  const source = await buildSource(ROOT, Deno.env.toObject());
  const build = { version: manifest.version, source };
  const folder = await makeBundle({ root: ROOT, name: BUNDLE, build });
  const entry = `${folder}/${ENTRY}`;
  await checkGraph(folder, entry);
  const started = await deno(
    "start the bundle",
    ["run", ENGINE_FLAG, ...ISOLATED, ...PERMISSIONS, entry, "--version"],
    ROOT,
  );
  print(
    `dist/${BUNDLE}: ${await bundleSize(folder)} MB, starts by itself: ${started.stdout.trim()}`,
  );
  await writeParts(folder, `${source.commit}${source.changed ? ", with changes" : ""}`);
  await makeProgram(entry, started.stdout, target);
}

async function checkGraph(folder: string, entry: string): Promise<void> {
  const { stdout } = await deno("read the bundle", ["info", "--json", ...ISOLATED, entry], ROOT);
  const faults = graphFaults(JSON.parse(stdout), `${pathToFileURL(folder)}/`);
  for (const name of await filesIn(folder, ".js")) {
    const computed = computedImports(await Deno.readTextFile(`${folder}/${name}`));
    faults.push(...computed.map((found) => `${name} loads what is not known before: ${found}`));
  }
  if (faults.length > 0) throw new StepError(`Cannot ship the bundle:\n${faults.join("\n")}`);
}

async function writeParts(folder: string, commit: string): Promise<void> {
  const maps = await filesIn(folder, ".js.map");
  const parts = sbomOf({
    product: { ...manifest, name: "holdfast" },
    commit,
    runtime: Deno.version.deno,
    lock: JSON.parse(await Deno.readTextFile(`${ROOT}deno.lock`)),
    sourceMaps: await Promise.all(
      maps.map(async (name) => JSON.parse(await Deno.readTextFile(`${folder}/${name}`))),
    ),
  });
  await Deno.writeTextFile(`${ROOT}${PARTS}`, `${JSON.stringify(parts, null, 2)}\n`);
  print(`${PARTS}: ${parts.components.length} parts`);
}

/** The machine that the program is for; `undefined` is this one. */
function targetOf(architecture: string): string | undefined {
  const target = TARGETS[architecture];
  if (architecture === "" || target !== undefined) return target;
  throw new StepError(
    `Cannot compile for 'TARGETARCH' as it must be amd64 or arm64: current value is ${architecture}`,
  );
}

async function makeProgram(
  entry: string,
  version: string,
  target: string | undefined,
): Promise<void> {
  const args = [
    "compile",
    ENGINE_FLAG,
    ...ISOLATED,
    ...PERMISSIONS,
    // Its file would lie in the folder for temporary files, where another user can prepare one.
    "--no-code-cache",
    ...(target === undefined ? [] : ["--target", target]),
    "-o",
    PROGRAM,
    entry,
  ];
  const real = await run(Deno.execPath(), args, ROOT);
  if (!real.success) {
    if (!/denort|download/i.test(real.output)) {
      throw new StepError(`Cannot compile: ${real.output}`);
    }
    await deno("compile", args, ROOT, { DENORT_BIN: Deno.execPath() });
  }
  const program = `${ROOT}${PROGRAM}`;
  const bakedIn = bakedInto(await Deno.readFile(program));
  const faults = [...permissionFaults(bakedIn, PERMISSIONS), ...engineFaults(bakedIn, ENGINE)];
  if (bakedIn.entrypoint_key !== ENTRY) faults.push(`it starts '${bakedIn.entrypoint_key}'`);
  if (bakedIn.code_cache_key !== null) faults.push("it keeps a cache of code");
  if (faults.length > 0) {
    await Deno.remove(program);
    throw new StepError(`Cannot ship the program:\n${faults.join("\n")}`);
  }
  if (!real.success) {
    await Deno.remove(program);
    print(
      `${PROGRAM}: not made, as the run-time part of Deno cannot be downloaded here. The compiler ran to its end with a ` +
        `stand-in, and what it baked in was looked at. 'dist/${BUNDLE}/${ENTRY}' can be run with Deno`,
    );
    return;
  }
  if (target === undefined) {
    const { stdout } = await runProgram(program);
    if (stdout !== version) {
      throw new StepError(`Cannot ship the program: its version is ${stdout}`);
    }
  }
  print(`${PROGRAM}: ${((await Deno.stat(program)).size / 1e6).toFixed(1)} MB`);
}

async function runProgram(program: string) {
  const ending = await run(program, ["--version"], ROOT);
  if (!ending.success) throw new StepError(`Cannot start the program: ${ending.output.trim()}`);
  return ending;
}

async function bundleSize(folder: string): Promise<string> {
  const sizes = (await filesIn(folder, ".js")).map(async (name) =>
    (await Deno.stat(`${folder}/${name}`)).size
  );
  return ((await Promise.all(sizes)).reduce((sum, size) => sum + size, 0) / 1e6).toFixed(1);
}

async function filesIn(folder: string, ending: string): Promise<string[]> {
  const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  return names.filter((name) => name.endsWith(ending)).sort();
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
