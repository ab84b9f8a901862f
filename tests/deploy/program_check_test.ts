import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { ENTRY } from "../../deploy/bundle.ts";
import { run } from "../../deploy/commands.ts";
import { ENGINE, ENGINE_FLAG } from "../../deploy/engine_flags.ts";
import {
  type BakedIn,
  bakedInto,
  computedImports,
  engineFaults,
  graphFaults,
  permissionFaults,
} from "../../deploy/program_check.ts";
import { bundleFiles, ISOLATED, layBundle, PERMISSIONS } from "./bundles.ts";

async function withFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "program-check-" });
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** What Deno says of the graph of a file. */
async function graphOf(entry: string, folder: string): Promise<unknown> {
  const { success, stdout, output } = await run(
    Deno.execPath(),
    ["info", "--json", ...ISOLATED, entry],
    folder,
  );
  assert.ok(success, output);
  return JSON.parse(stdout);
}

Deno.test("the graph of the bundle is its own files and the runtime, and no import is computed", async () => {
  await withFolder(async (folder) => {
    const graph = await graphOf(await layBundle(folder), folder);
    assert.deepEqual(graphFaults(graph, `${pathToFileURL(folder)}/`), []);
    for (const [name, bytes] of await bundleFiles()) {
      if (!name.endsWith(".js")) continue;
      assert.deepEqual(computedImports(new TextDecoder().decode(bytes)), [], name);
    }
  });
});

Deno.test("planted imports are seen: of a file beside, of a package, of a host, and of what is not there", async () => {
  await withFolder(async (folder) => {
    await Deno.mkdir(`${folder}/bundle`);
    await Deno.writeTextFile(`${folder}/beside.js`, "export {};");
    const entry = `${folder}/bundle/${ENTRY}`;
    const planted = ["../beside.js", "npm:zod@4.6.7", "https://example.com/x.js", "./absent.js"];
    for (const specifier of planted) {
      for (
        const text of [`import ${JSON.stringify(specifier)};`, `await import("${specifier}");`]
      ) {
        await Deno.writeTextFile(entry, text);
        const faults = graphFaults(
          await graphOf(entry, folder),
          `${pathToFileURL(folder)}/bundle/`,
        );
        assert.ok(faults.length > 0, text);
      }
    }
  });
  assert.deepEqual(graphFaults({ modules: [] }, "file:///x/"), ["the graph is empty"]);
});

Deno.test("an import that is computed is seen, and one by name is not", () => {
  assert.deepEqual(
    computedImports('a(await import(b)),import("./c.js"),import(`./${d}.js`),x.import(e)'),
    ["import(b)", "import(`./${d}.js`)"],
  );
});

/** Compiles a small program with Deno in the place of its run-time part, and reads what was baked in. */
async function compiled(flags: readonly string[], folder: string): Promise<BakedIn> {
  await Deno.writeTextFile(`${folder}/${ENTRY}`, 'console.log("} {\\"argv\\":[ is not the end");');
  const program = `${folder}/program`;
  const args = ["compile", "-q", ...ISOLATED, ...flags, "--no-code-cache", "-o", program, ENTRY];
  const { success, output } = await run(Deno.execPath(), args, folder, {
    DENORT_BIN: Deno.execPath(),
  });
  assert.ok(success, output);
  return bakedInto(await Deno.readFile(program));
}

Deno.test("a program has baked in what the named sets grant together, no more and no less, and keeps no cache of code", async () => {
  await withFolder(async (folder) => {
    const flags = [...PERMISSIONS, "--deny-import"];
    const bakedIn = await compiled(flags, folder);
    assert.deepEqual(permissionFaults(bakedIn, flags), []);
    assert.equal(bakedIn.entrypoint_key, ENTRY);
    assert.equal(bakedIn.code_cache_key, null);
    const { allow_ffi, allow_sys, prompt } = bakedIn.permissions;
    assert.deepEqual({ allow_ffi, allow_sys, prompt }, {
      allow_ffi: null,
      allow_sys: null,
      prompt: false,
    });

    const planted: readonly (readonly [string, Partial<BakedIn["permissions"]>])[] = [
      [`'allow_sys' is [] and not null`, { allow_sys: [] }],
      [`'allow_run' is ["sh"] and not []`, { allow_run: ["sh"] }],
      [`'allow_net' is null and not []`, { allow_net: null }],
      ["it asks for more", { prompt: true }],
      [`'deny_import' is null and not []`, { deny_import: null }],
    ];
    for (const [fault, change] of planted) {
      const changed = { ...bakedIn, permissions: { ...bakedIn.permissions, ...change } };
      assert.ok(permissionFaults(changed, flags).includes(fault), fault);
    }
  });
});

Deno.test("a program has baked in what its engine is told, and another wish is seen", async () => {
  await withFolder(async (folder) => {
    const bakedIn = await compiled([ENGINE_FLAG, ...PERMISSIONS], folder);
    assert.deepEqual(engineFaults(bakedIn, ENGINE), []);
    const [first = "", second = ""] = ENGINE;
    for (const v8_flags of [[], [first], [...ENGINE, "--other"], [second, first]]) {
      assert.ok(engineFaults({ ...bakedIn, v8_flags }, ENGINE).length > 0);
    }
    const changed = { ...bakedIn, v8_flags: [first, "--max-semi-space-size=16"] };
    assert.deepEqual(engineFaults(changed, ENGINE), [`its engine lacks '${second}'`]);
  });
});

Deno.test("a program without permissions in it, or with half of them, is no program", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  assert.throws(() => bakedInto(bytes("nothing")), {
    message: "Cannot find the permissions in the program",
  });
  assert.throws(() => bakedInto(bytes('{"argv":[],"x":"}')), {
    message: "Cannot find the end of the permissions in the program",
  });
  assert.throws(() => bakedInto(bytes('{"argv":[]}')), { name: "ZodError" });
});
