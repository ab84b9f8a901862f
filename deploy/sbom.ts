/**
 * The list of parts of the product (SBOM), in the form CycloneDX 1.6: each package that has code in the bundle, as deno.lock
 * pins it, and the runtime. The same bundle and lock file give the same bytes: there is no time and no random number in it.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { z } from "zod";

const lockForm = z.looseObject({
  version: z.literal("5"),
  npm: z.record(
    z.string(),
    z.looseObject({
      integrity: z.string().regex(/^sha512-[A-Za-z0-9+/]+=*$/),
      dependencies: z.array(z.string()).default([]),
      optionalDependencies: z.array(z.string()).default([]),
      optionalPeers: z.array(z.string()).default([]),
    }),
  ),
});

const sourceMapForm = z.looseObject({ sources: z.array(z.string()) });

/** A package in one version. */
interface Package {
  readonly name: string;
  readonly version: string;
}

/** What {@linkcode sbomOf} takes. */
export interface SbomOptions {
  /** The name, version and licence of the product. */
  readonly product: { readonly name: string; readonly version: string; readonly license: string };
  /** The commit, in whatever words. It is shown, and makes two builds of one version two. */
  readonly commit: string;
  /** The version of the runtime. */
  readonly runtime: string;
  /** What stands in deno.lock. */
  readonly lock: unknown;
  /** The source maps of the bundle. They tell which packages are really in it. */
  readonly sourceMaps: readonly unknown[];
}

/**
 * Makes the list.
 *
 * @throws {RangeError} A package of the bundle is not in the lock file. @throws {z.ZodError} The lock file or a source map
 * has another form.
 */
export function sbomOf(options: SbomOptions) {
  const { product, commit, runtime, sourceMaps } = options;
  const lock = lockForm.parse(options.lock).npm;
  const packages = packagesIn(sourceMaps.flatMap((map) => sourceMapForm.parse(map).sources));
  const refs = new Set(packages.map(purlOf));
  const self = {
    ref: `${product.name}@${product.version}`,
    runtime: `pkg:github/denoland/deno@v${runtime}`,
  };

  const components = packages.map((part) => {
    const [group, name] = part.name.startsWith("@") ? part.name.split("/") : [undefined, part.name];
    const { integrity } = lockedPart(part, lock);
    return {
      type: "library",
      "bom-ref": purlOf(part),
      ...(group === undefined ? {} : { group }),
      name,
      version: part.version,
      scope: "required",
      hashes: [{ alg: "SHA-512", content: hexOf(integrity) }],
      purl: purlOf(part),
    };
  });
  const dependencies = packages.map((part) => {
    const { dependencies, optionalDependencies, optionalPeers } = lockedPart(part, lock);
    const wanted = [...dependencies, ...optionalDependencies, ...optionalPeers]
      .flatMap((wanted) => resolve(wanted, packages)).filter((ref) => refs.has(ref));
    return { ref: purlOf(part), dependsOn: [...new Set(wanted)].sort() };
  });
  const body = {
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": self.ref,
        name: product.name,
        version: product.version,
        licenses: [{ license: { id: product.license } }],
        properties: [{ name: "holdfast:commit", value: commit }],
      },
    },
    components: [
      {
        type: "platform",
        "bom-ref": self.runtime,
        name: "deno",
        version: runtime,
        scope: "required",
        purl: self.runtime,
      },
      ...components,
    ],
    dependencies: [
      { ref: self.ref, dependsOn: [self.runtime, ...[...refs].sort()] },
      { ref: self.runtime, dependsOn: [] },
      ...dependencies,
    ],
  };
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: serialOf(JSON.stringify(body)),
    ...body,
  };
}

/** The packages that files of a `node_modules` folder belong to, sorted. */
function packagesIn(sources: readonly string[]): Package[] {
  const found = new Map<string, Package>();
  for (const source of sources) {
    const [, folder = "", name = ""] =
      /\/node_modules\/\.deno\/([^/]+)\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(source) ?? [];
    if (name === "") continue;
    // The folder is `name@version`, and behind an underscore the packages that it was installed beside.
    const [version = ""] = folder.slice(name.length + "@".length).split("_");
    found.set(`${name}@${version}`, { name, version });
  }
  return [...found.keys()].sort().flatMap((key) => found.get(key) ?? []);
}

function lockedPart({ name, version }: Package, lock: z.infer<typeof lockForm>["npm"]) {
  const id = `${name}@${version}`;
  const key = Object.keys(lock).find((key) => key === id || key.startsWith(`${id}_`));
  const locked = key === undefined ? undefined : lock[key];
  if (locked === undefined) {
    throw new RangeError(`Cannot name the part '${id}' as deno.lock has no such package`);
  }
  return locked;
}

/** What a lock file calls a dependency: a name, which means the one version that is there, or a name and a version. */
function resolve(wanted: string, packages: readonly Package[]): string[] {
  const [, name = "", version] = /^((?:@[^/]+\/)?[^@]+)(?:@([^_]+))?/.exec(wanted) ?? [];
  return packages.filter((part) =>
    part.name === name && (version === undefined || part.version === version)
  ).map(purlOf);
}

function purlOf({ name, version }: Package): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

function hexOf(integrity: string): string {
  return Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex");
}

/** A name for the list that is the same for the same list, in the form of a UUID of version 8: one of our own making. */
function serialOf(text: string): string {
  const hash = bytesToHex(sha256(new TextEncoder().encode(text)));
  const parts = [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `8${hash.slice(13, 16)}`,
    `8${hash.slice(17, 20)}`,
  ];
  return `urn:uuid:${[...parts, hash.slice(20, 32)].join("-")}`;
}
