/**
 * `deno task versions [VERSION…]`: holds the service to the oldest and the newest API server of Kubernetes 1.32 to 1.37 that
 * can be built from source here.
 *
 * Of each runs what docs/kubernetes-versions.md says. Versions may be named instead: `v1.34.2`, or `1.34` for its newest
 * patch. A build takes minutes, once for each version. Every version that was tried and cannot be built is named.
 *
 * @module
 */

import { closingLine } from "../checks/junit.ts";
import { print } from "../checks/shell.ts";
import { BinariesError } from "../cluster/binaries.ts";
import { chosenFrom, minorsWithout } from "./choice.ts";
import { Servers } from "./servers.ts";
import { filesOf, runAgainst, SUITES } from "./suites.ts";

/** An API server that was built. */
interface Built {
  readonly version: string;
  readonly folder: string;
}

const servers = new Servers(Deno.env.toObject(), print);
let held = true;
try {
  await main();
} catch (error) {
  if (!(error instanceof BinariesError) && !(error instanceof RangeError)) throw error;
  print(error.message);
  held = false;
}
Deno.exit(held ? 0 : 1);

async function main(): Promise<void> {
  const candidates = await servers.candidates();
  print(`Go finds ${candidates.join(", ") || "no version of Kubernetes 1.32 to 1.37"}`);
  for (const minor of minorsWithout(candidates)) {
    print(`1.${minor}: cannot be built, Go finds none`);
  }
  const tested = Deno.args.length > 0
    ? await buildAll(chosenFrom(candidates, Deno.args))
    : await oldestAndNewest(candidates);
  if (tested.length === 0) {
    throw new BinariesError("Cannot test any version as none can be built");
  }
  const files = await filesOf(SUITES);
  for (const { version, folder } of tested) {
    print(`\nKubernetes ${version}`);
    for (const [{ name }, paths] of files) {
      const { counts, failed, output } = await runAgainst(folder, paths);
      print(`  ${name}: ${closingLine(counts)}`);
      for (const test of failed) print(`    failed: ${test}`);
      if (output !== "") print(output);
      held &&= counts.failed === 0;
    }
  }
}

async function buildAll(versions: readonly string[]): Promise<Built[]> {
  const built: Built[] = [];
  for (const version of versions) {
    const one = await tryToBuild(version);
    if (one === null) held = false;
    else built.push(one);
  }
  return built;
}

/** From each end inwards until one can be built. */
async function oldestAndNewest(candidates: readonly string[]): Promise<Built[]> {
  const oldest = await firstBuilt(candidates);
  const newest = await firstBuilt(candidates.toReversed());
  if (oldest === null || newest === null) return [];
  return oldest.version === newest.version ? [oldest] : [oldest, newest];
}

async function firstBuilt(versions: readonly string[]): Promise<Built | null> {
  for (const version of versions) {
    const built = await tryToBuild(version);
    if (built !== null) return built;
  }
  return null;
}

async function tryToBuild(version: string): Promise<Built | null> {
  try {
    return { version, folder: await servers.folderOf(version) };
  } catch (error) {
    if (!(error instanceof BinariesError) && !(error instanceof RangeError)) throw error;
    print(`${version}: cannot be built. ${error.message}`);
    return null;
  }
}
