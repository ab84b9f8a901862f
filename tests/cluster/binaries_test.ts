import assert from "node:assert/strict";
import {
  BinariesError,
  ensureBinaries,
  type Environment,
  kubernetesVersion,
  linkerFlags,
} from "./binaries.ts";

/** A folder of the test's own, with a `go` that writes down how it was called and builds a file, or fails. */
async function withToolchain(
  goScript: string | null,
  body: (folder: string, environment: Environment) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${folder}/bin`);
    for (const tool of ["sh", "sleep", "touch"]) {
      await Deno.symlink(`/bin/${tool}`, `${folder}/bin/${tool}`);
    }
    if (goScript !== null) {
      await Deno.writeTextFile(`${folder}/bin/go`, `#!/bin/sh\n${goScript}\n`, { mode: 0o755 });
    }
    await body(folder, { PATH: `${folder}/bin`, HOME: folder, FOLDER: folder });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const BUILDS = `
[ "$1" = version ] && exit 0
echo "$CGO_ENABLED $*" >>"$FOLDER/calls"
sleep 0.2
while [ "$1" != -o ]; do shift; done
echo built >"$2"`;

async function buildCalls(folder: string): Promise<string[]> {
  return (await Deno.readTextFile(`${folder}/calls`)).trimEnd().split("\n");
}

function cacheOf(folder: string, version: string): string {
  return `${folder}/.cache/holdfast/kube-${version}`;
}

Deno.test("what is missing is built once, statically, and then found in the cache", async () => {
  await withToolchain(BUILDS, async (folder, environment) => {
    const lines: string[] = [];
    const options = { environment, onProgress: (line: string) => lines.push(line) };
    const first = await ensureBinaries(options);
    const second = await ensureBinaries(options);
    assert(first !== null && second !== null);
    const path = `${cacheOf(folder, first.version)}/etcd`;
    assert.equal(first.path("etcd"), path);
    assert.equal(second.path("etcd"), path);
    assert.equal(await Deno.readTextFile(path), "built\n");
    const calls = await buildCalls(folder);
    assert.equal(calls.length, 2);
    assert.match(
      calls[1] ?? "",
      /^0 build -trimpath -ldflags .* k8s.io\/kubernetes\/cmd\/kube-api/,
    );
    assert(lines.some((line) => line.startsWith("Building kube-apiserver")));
    const names = [];
    for await (const entry of Deno.readDir(cacheOf(folder, first.version))) names.push(entry.name);
    assert.deepEqual(names.sort(), [".lock", "etcd", "kube-apiserver"]);
  });
});

Deno.test("two that need the same program at once build it once", async () => {
  await withToolchain(BUILDS, async (folder, environment) => {
    const script = `import { ensureBinaries } from ${
      JSON.stringify(import.meta.resolve("./binaries.ts"))
    };
      await ensureBinaries({ programs: ["kubectl"] });`;
    const build = () =>
      new Deno.Command(Deno.execPath(), {
        args: ["eval", "--no-check", script],
        clearEnv: true,
        env: { ...environment },
        stderr: "piped",
      }).output();
    const outcomes = await Promise.all([build(), build()]);
    assert.deepEqual(outcomes.map(({ code }) => code), [0, 0]);
    assert.equal((await buildCalls(folder)).length, 1);
  });
});

Deno.test("only what was asked for is built and given", async () => {
  await withToolchain(BUILDS, async (folder, environment) => {
    const programs = await ensureBinaries({
      environment,
      programs: ["kubectl"],
      onProgress: () => {},
    });
    assert.equal((await buildCalls(folder)).length, 1);
    assert.throws(() => programs?.path("etcd"), /name it in 'programs'/);
  });
});

Deno.test("a build that fails leaves nothing behind and says what Go said", async () => {
  const fails = '[ "$1" = version ] && exit 0; echo "no such module" >&2; exit 1';
  await withToolchain(fails, async (folder, environment) => {
    const attempt = ensureBinaries({ environment, onProgress: () => {} });
    await assert.rejects(attempt, (error) => {
      assert(error instanceof BinariesError);
      assert.match(error.message, /Cannot build etcd with Go: no such module/);
      return true;
    });
    const version = kubernetesVersion(await Deno.readTextFile(new URL("go.mod", import.meta.url)));
    const names = [];
    for await (const entry of Deno.readDir(cacheOf(folder, version))) names.push(entry.name);
    assert.deepEqual(names, [".lock"]);
  });
});

Deno.test("without Go and without a cache there is nothing, or an error where it is required", async () => {
  await withToolchain(null, async (_folder, environment) => {
    assert.equal(await ensureBinaries({ environment }), null);
    await assert.rejects(
      ensureBinaries({ environment: { ...environment, HOLDFAST_CLUSTER_TESTS: "required" } }),
      /install Go or set KUBEBUILDER_ASSETS/,
    );
  });
});

Deno.test("KUBEBUILDER_ASSETS comes before the cache, and must hold all that is wanted", async () => {
  await withToolchain(BUILDS, async (folder, environment) => {
    const assets = `${folder}/assets`;
    await Deno.mkdir(assets);
    await Deno.writeTextFile(`${assets}/etcd`, "");
    const withAssets = { ...environment, KUBEBUILDER_ASSETS: assets };
    await assert.rejects(
      ensureBinaries({ environment: withAssets }),
      /the folder lacks kube-apiserver: current value is/,
    );
    await Deno.writeTextFile(`${assets}/kube-apiserver`, "");
    const programs = await ensureBinaries({ environment: withAssets });
    assert.equal(programs?.path("kube-apiserver"), `${assets}/kube-apiserver`);
  });
});

Deno.test("XDG_CACHE_HOME says where the cache is", async () => {
  await withToolchain(BUILDS, async (folder, environment) => {
    const programs = await ensureBinaries({
      environment: { ...environment, XDG_CACHE_HOME: `${folder}/xdg` },
      programs: ["etcd"],
      onProgress: () => {},
    });
    assert.match(programs?.path("etcd") ?? "", /\/xdg\/holdfast\/kube-v[\d.]+\/etcd$/);
    await assert.rejects(
      ensureBinaries({ environment: { PATH: environment.PATH ?? "" } }),
      /set XDG_CACHE_HOME or HOME/,
    );
  });
});

Deno.test("the version is the one that go.mod requires", () => {
  assert.equal(kubernetesVersion("require (\n\tk8s.io/kubernetes v1.36.3\n)\n"), "v1.36.3");
  assert.equal(kubernetesVersion("require k8s.io/kubernetes v1.40.0-rc.1\n"), "v1.40.0-rc.1");
  assert.throws(() => kubernetesVersion("module x\n"), BinariesError);
  assert.match(linkerFlags("v1.36.3"), /gitVersion=v1\.36\.3 .*gitMajor=1 .*gitMinor=36$/);
});
