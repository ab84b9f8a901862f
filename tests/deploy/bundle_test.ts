import assert from "node:assert/strict";
import { z } from "zod";
import { makeBundle } from "../../deploy/bundle.ts";
import { ROOT, run, StepError } from "../../deploy/commands.ts";
import manifest from "../../deno.json" with { type: "json" };
import { readShared } from "../checks/text.ts";
import {
  BUILD,
  bundleFiles,
  bundleOf,
  ENTRY,
  ISOLATED,
  layBundle,
  layTree,
  PERMISSIONS,
} from "./bundles.ts";

const sourceMap = z.object({
  sources: z.array(z.string()).min(1),
  sourcesContent: z.array(z.string().nullable()),
});

const decoder = new TextDecoder();

Deno.test("the bundle of the same source has the same bytes, made again and made in another folder", async () => {
  await Deno.mkdir(`${ROOT}dist`, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: `${ROOT}dist`, prefix: "trees-" });
  try {
    const [here, there] = [`${folder}/tree/`, `${folder}/another/and/deeper/`];
    const texts = await readShared();
    await Promise.all([layTree(texts, here), layTree(texts, there)]);
    const [first, elsewhere] = await Promise.all([bundleOf(here), bundleOf(there)]);
    for (const again of [elsewhere, await bundleOf(here)]) {
      assert.deepEqual([...again.keys()], [...first.keys()]);
      const differ = [...first].filter(([name, bytes]) =>
        !bytes.every((byte, at) => again.get(name)?.[at] === byte)
      );
      assert.deepEqual(differ.map(([name]) => name), []);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("each file of the bundle has its source map beside it, with the text of its sources, and names no folder of a machine", async () => {
  const files = await bundleFiles();
  const programs = [...files.keys()].filter((name) => name.endsWith(".js"));
  assert.ok(programs.includes(ENTRY) && programs.length > 5, programs.join(", "));
  const own = new Set<string>();
  for (const name of programs) {
    const text = decoder.decode(files.get(name));
    assert.ok(!text.includes(ROOT), name);
    const map = decoder.decode(files.get(`${name}.map`));
    // A file that only imports others has no source of its own.
    if (text === "" || JSON.parse(map).sources.length === 0) continue;
    const { sources, sourcesContent } = sourceMap.parse(JSON.parse(map));
    assert.equal(sourcesContent.length, sources.length, name);
    assert.deepEqual(sources.filter((source) => source.startsWith("/")), [], name);
    for (const source of sources) own.add(source);
  }
  assert.ok(own.has("../../main.ts") && own.has("../../handlers/commands/serve.ts"));
});

Deno.test("the bundle has nothing of tests, of the checks, or of deno.json in it", async () => {
  const files = await bundleFiles();
  const maps = [...files].filter(([name]) => name.endsWith(".map"));
  const sources = maps.flatMap(([, bytes]) =>
    z.object({ sources: z.array(z.string()) }).parse(JSON.parse(decoder.decode(bytes))).sources
  );
  assert.deepEqual(sources.filter((source) => /^\.\.\/\.\.\/(tests|deno\.json)/.test(source)), []);
  const wrong = [...files].filter(([name, bytes]) =>
    name.endsWith(".js") && decoder.decode(bytes).includes(manifest.tasks.soak.description)
  );
  assert.deepEqual(wrong.map(([name]) => name), []);
});

Deno.test("the bundle tells its version and its commit, and that it was changed when it was", async () => {
  const folder = await Deno.makeTempDir({ prefix: "bundle-version-" });
  try {
    const entry = await layBundle(folder);
    const program = ["run", "-q", ...ISOLATED, ...PERMISSIONS, entry, "--version"];
    const { success, output } = await run(Deno.execPath(), program, folder);
    assert.equal(output, `${manifest.version} (commit ${BUILD.source.commit})\n`);
    assert.ok(success);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a bundle that cannot be made is a failed step that says why, with what the bundler said", async () => {
  const folder = await Deno.makeTempDir({ prefix: "bundle-broken-" });
  try {
    await Deno.writeTextFile(`${folder}/main.ts`, 'import "./absent.ts";');
    await assert.rejects(
      makeBundle({ root: `${folder}/`, name: "broken", build: BUILD }),
      (error) => error instanceof StepError && /^Cannot bundle: .*absent\.ts/s.test(error.message),
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
