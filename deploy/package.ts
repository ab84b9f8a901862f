/**
 * `deno task package`: makes an npm tarball of the library, in dist.
 *
 * The compiler makes the modules, npm packs them. Nothing is sent anywhere. `--out FOLDER` takes another folder.
 *
 * @module
 */

import manifest from "../deno.json" with { type: "json" };
import { ROOT, run, StepError } from "./commands.ts";
import { entriesOf, packageManifest } from "./package_manifest.ts";
import { emitModules } from "./package_modules.ts";

const DOCUMENTS = ["LICENSE", "README.md"];

try {
  print(await makePackage(outFolder(Deno.args)));
} catch (error) {
  if (!(error instanceof StepError)) throw error;
  print(error.message);
  Deno.exit(1);
}

/** Makes the tarball, and answers with its path. */
async function makePackage(out: string): Promise<string> {
  const folder = `${out}/package`;
  await Deno.remove(folder, { recursive: true }).catch((error: unknown) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  await Deno.mkdir(folder, { recursive: true });

  const runtimeTypes = `${out}/deno.d.ts`;
  await Deno.writeTextFile(runtimeTypes, await succeed(Deno.execPath(), ["types"], ROOT));
  const { packages, problems } = emitModules({
    root: ROOT,
    entries: entriesOf(manifest),
    runtimeTypes,
    outDir: folder,
  });
  await Deno.remove(runtimeTypes);
  if (problems.length > 0) {
    throw new StepError(`Cannot make the modules:\n${problems.join("\n")}`);
  }

  const npmManifest = packageManifest(manifest, packages);
  await Deno.writeTextFile(`${folder}/package.json`, `${JSON.stringify(npmManifest, null, 2)}\n`);
  for (const name of DOCUMENTS) await Deno.copyFile(`${ROOT}${name}`, `${folder}/${name}`);
  const packed = await succeed("npm", ["pack", "--silent", "--pack-destination", out], folder);
  return `${out}/${packed.trim()}`;
}

function outFolder(args: readonly string[]): string {
  const [option, folder] = args;
  if (option === undefined) return `${ROOT}dist`;
  if (option === "--out" && folder !== undefined && args.length === 2) return folder;
  throw new StepError("Cannot make the package as the only option is '--out FOLDER'");
}

async function succeed(program: string, args: readonly string[], cwd: string): Promise<string> {
  const { success, stdout, output } = await run(program, args, cwd);
  if (!success) throw new StepError(`Cannot run '${program}': ${output.trim()}`);
  return stdout;
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
