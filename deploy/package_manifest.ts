/**
 * The manifest of the npm package, from deno.json.
 *
 * @module
 */

import { z } from "zod";

/** What is read of deno.json. */
const denoManifest = z.object({
  name: z.string(),
  version: z.string(),
  license: z.string(),
  exports: z.record(z.string(), z.string().regex(/^\.\/.*\.tsx?$/)),
  imports: z.record(z.string(), z.string()),
});

/** The first version of Node that the package is for. */
const NODE = ">=20";

/** What only some ways to a cluster need, and what costs much: whoever wants it installs it beside the package. */
const OPTIONAL: ReadonlySet<string> = new Set(["@kubernetes/client-node"]);

/** The exported files, as paths from the root of the repository. */
export function entriesOf(manifest: unknown): string[] {
  return Object.values(denoManifest.parse(manifest).exports).map((path) => path.slice("./".length));
}

/**
 * The manifest: the name, the version and the exports of deno.json, and the packages in the versions that the tests ran
 * with, or newer ones that promise the same.
 *
 * @param manifest What stands in deno.json.
 * @param packages The packages that the modules import.
 * @throws {RangeError} A package has no version in deno.json. @throws {z.ZodError} deno.json has another form.
 */
export function packageManifest(manifest: unknown, packages: readonly string[]) {
  const { name, version, license, exports, imports } = denoManifest.parse(manifest);
  const range = (wanted: string) => `^${versionOf(wanted, imports)}`;
  const needed = packages.filter((wanted) => !OPTIONAL.has(wanted));
  const optional = packages.filter((wanted) => OPTIONAL.has(wanted));
  return {
    name,
    version,
    description:
      "Coordination on Kubernetes: leader election, a client of the API, and tests for both",
    license,
    type: "module",
    engines: { node: NODE },
    exports: Object.fromEntries(
      Object.entries(exports).map(([door, path]) => [door, {
        types: path.replace(/\.tsx?$/, ".d.ts"),
        default: path.replace(/\.tsx?$/, ".js"),
      }]),
    ),
    files: ["lib", "handlers", "LICENSE", "README.md"],
    dependencies: Object.fromEntries(needed.map((wanted) => [wanted, range(wanted)])),
    peerDependencies: Object.fromEntries(optional.map((wanted) => [wanted, range(wanted)])),
    peerDependenciesMeta: Object.fromEntries(
      optional.map((wanted) => [wanted, { optional: true }]),
    ),
  };
}

function versionOf(wanted: string, imports: Readonly<Record<string, string>>): string {
  const version = /^npm:(?:@[^/]+\/)?[^@]+@(\d+\.\d+\.\d+)$/.exec(imports[wanted] ?? "")?.[1];
  if (version === undefined) {
    throw new RangeError(
      `Cannot name the version of '${wanted}' as 'imports' of deno.json must pin it: current value is ${
        imports[wanted] ?? "absent"
      }`,
    );
  }
  return version;
}
