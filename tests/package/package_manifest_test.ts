import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { entriesOf, packageManifest } from "../../deploy/package_manifest.ts";
import { packageName } from "../../deploy/package_modules.ts";

const small = {
  name: "@a/b",
  version: "1.2.3",
  license: "Apache-2.0",
  exports: { ".": "./lib/mod.ts", "./view": "./lib/view.tsx" },
  imports: {
    "zod": "npm:zod@4.6.7",
    "@noble/hashes": "npm:@noble/hashes@2.4.0",
    "@kubernetes/client-node": "npm:@kubernetes/client-node@2.0.1",
    "loose": "npm:loose",
  },
};

Deno.test("each export has its module and its declarations", () => {
  assert.deepEqual(packageManifest(small, []).exports, {
    ".": { types: "./lib/mod.d.ts", default: "./lib/mod.js" },
    "./view": { types: "./lib/view.d.ts", default: "./lib/view.js" },
  });
  assert.deepEqual(entriesOf(small), ["lib/mod.ts", "lib/view.tsx"]);
  assert.deepEqual(
    Object.keys(packageManifest(manifest, []).exports),
    Object.keys(manifest.exports),
  );
});

Deno.test("a package comes in the version of deno.json or a later one that promises the same", () => {
  const made = packageManifest(small, ["@noble/hashes", "zod", "@kubernetes/client-node"]);
  assert.deepEqual(made.dependencies, { "@noble/hashes": "^2.4.0", "zod": "^4.6.7" });
  assert.deepEqual(made.peerDependencies, { "@kubernetes/client-node": "^2.0.1" });
  assert.deepEqual(made.peerDependenciesMeta, { "@kubernetes/client-node": { optional: true } });
});

Deno.test("a package without a pinned version, and exports of another form, are refused", () => {
  for (const [name, shown] of [["absent", "absent"], ["loose", "npm:loose"]] as const) {
    assert.throws(
      () => packageManifest(small, [name]),
      (error) => error instanceof RangeError && error.message.endsWith(`current value is ${shown}`),
    );
  }
  assert.throws(() => packageManifest({ ...small, exports: { ".": "lib/mod.js" } }, []));
});

Deno.test("an import names a package, a module of Node, or a file of ours", () => {
  for (
    const [specifier, name] of [
      ["zod", "zod"],
      ["zod/mini", "zod"],
      ["@noble/hashes/sha2.js", "@noble/hashes"],
      ["@hono/node-server", "@hono/node-server"],
      ["node:fs/promises", null],
      ["./mod.ts", null],
      ["../mod.ts", null],
    ] as const
  ) assert.equal(packageName(specifier), name);
});
