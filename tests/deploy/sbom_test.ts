import assert from "node:assert/strict";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { ROOT } from "../../deploy/commands.ts";
import { sbomOf, type SbomOptions } from "../../deploy/sbom.ts";
import manifest from "../../deno.json" with { type: "json" };
import { BUILD, bundleFiles } from "./bundles.ts";
// The validator of the library finds these by itself where they are installed.
import "ajv-formats";
import "ajv-formats-draft2019";

const decoder = new TextDecoder();
const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);

const product = { name: "holdfast", version: manifest.version, license: manifest.license };
const runtime = "2.9.6";
const { commit } = BUILD.source;
const integrity = (letter: string) => `sha512-${letter.repeat(86)}==`;

const small: SbomOptions = {
  product,
  commit,
  runtime,
  lock: {
    version: "5",
    npm: {
      "@scope/one@1.2.3_two@2.0.0": {
        integrity: integrity("A"),
        dependencies: ["two@2.0.0", "three", "absent"],
      },
      "three@3.0.0": { integrity: integrity("C") },
      "two@1.9.0": { integrity: integrity("D") },
      "two@2.0.0": { integrity: integrity("B") },
    },
  },
  sourceMaps: [
    { sources: ["../../main.ts", "../../node_modules/.deno/three@3.0.0/node_modules/three/x.js"] },
    {
      sources: [
        "../../node_modules/.deno/two@2.0.0/node_modules/two/a.js",
        "../../node_modules/.deno/two@2.0.0/node_modules/two/b.js",
        "../../node_modules/.deno/@scope+one@1.2.3_two@2.0.0/node_modules/@scope/one/index.js",
      ],
    },
  ],
};

async function shippedOptions(): Promise<SbomOptions> {
  const maps = [...await bundleFiles()].filter(([name]) => name.endsWith(".map"));
  return {
    product,
    commit,
    runtime: Deno.version.deno,
    lock: JSON.parse(await Deno.readTextFile(`${ROOT}deno.lock`)),
    sourceMaps: maps.map(([, bytes]) => JSON.parse(decoder.decode(bytes))),
  };
}

Deno.test("the list of the shipped parts is valid, and has each package that code in the bundle is of, as the lock file pins it", async () => {
  const options = await shippedOptions();
  const parts = sbomOf(options);
  assert.equal(await validator.validate(JSON.stringify(parts)), null);

  const purls = parts.components.map(({ purl }) => purl);
  for (const name of ["commander", "hono", "prom-client", "yaml", "zod"] as const) {
    assert.ok(purls.includes(`pkg:npm/${manifest.imports[name].slice("npm:".length)}`), name);
  }
  assert.ok(purls.includes(`pkg:github/denoland/deno@v${Deno.version.deno}`));
  // What only tests and checks use is not shipped.
  for (const name of ["typescript", "eslint", "fast-check", "z3-solver", "%40cyclonedx"]) {
    assert.deepEqual(purls.filter((purl) => purl.startsWith(`pkg:npm/${name}`)), [], name);
  }
  const known = new Set(parts.dependencies.map(({ ref }) => ref));
  assert.equal(known.size, parts.components.length + 1);
  const dangling = parts.dependencies.flatMap(({ dependsOn }) => dependsOn)
    .filter((ref) => !known.has(ref));
  assert.deepEqual(dangling, []);
});

Deno.test("the same parts give the same bytes, and another commit another serial number", async () => {
  const options = await shippedOptions();
  const reversed = { ...options, sourceMaps: options.sourceMaps.toReversed() };
  assert.equal(JSON.stringify(sbomOf(options)), JSON.stringify(sbomOf(reversed)));
  const other = sbomOf({ ...options, commit: "f".repeat(40) });
  assert.notEqual(other.serialNumber, sbomOf(options).serialNumber);
  assert.equal(await validator.validate(JSON.stringify(other)), null);
});

Deno.test("a part has its name, group, version, address and hash, and what it needs of the other parts", async () => {
  const parts = sbomOf(small);
  assert.equal(await validator.validate(JSON.stringify(parts)), null);
  const [one, two, three] = [
    "pkg:npm/%40scope/one@1.2.3",
    "pkg:npm/two@2.0.0",
    "pkg:npm/three@3.0.0",
  ];
  assert.deepEqual(parts.components.map(({ purl }) => purl), [
    "pkg:github/denoland/deno@v2.9.6",
    one,
    three,
    two,
  ]);
  assert.deepEqual(parts.components[1], {
    type: "library",
    "bom-ref": one,
    group: "@scope",
    name: "one",
    version: "1.2.3",
    scope: "required",
    hashes: [{ alg: "SHA-512", content: "0".repeat(128) }],
    purl: one,
  });
  const needs = Object.fromEntries(parts.dependencies.map((entry) => [entry.ref, entry.dependsOn]));
  assert.deepEqual(needs[one], [three, two]);
  assert.deepEqual(needs[two], []);
});

Deno.test("a package that the lock file does not have, and a file of another form, are refused", () => {
  const sourceMaps = [{ sources: ["../../node_modules/.deno/four@4.0.0/node_modules/four/x.js"] }];
  assert.throws(() => sbomOf({ ...small, sourceMaps }), {
    name: "RangeError",
    message: "Cannot name the part 'four@4.0.0' as deno.lock has no such package",
  });
  assert.throws(() => sbomOf({ ...small, lock: { version: "9", npm: {} } }), { name: "ZodError" });
  assert.throws(() => sbomOf({ ...small, sourceMaps: [{}] }), { name: "ZodError" });
});

Deno.test("the validator refuses a planted fault, so that what it lets through means something", async () => {
  const parts = sbomOf(small);
  const planted = [
    { ...parts, serialNumber: "urn:uuid:none" },
    { ...parts, components: [{ name: "without a type" }] },
    { ...parts, invented: true },
  ];
  for (const fault of planted) assert.ok(await validator.validate(JSON.stringify(fault)) !== null);
});
