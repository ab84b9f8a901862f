import assert from "node:assert/strict";
import type { Program } from "./binaries.ts";
import { startCluster } from "./cluster.ts";

/** Programs that are scripts, in a folder of the test's own. */
async function withPrograms(
  scripts: Readonly<Record<string, string>>,
  body: (binaries: { version: string; path(program: Program): string }) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    for (const [name, script] of Object.entries(scripts)) {
      await Deno.writeTextFile(
        `${folder}/${name}`,
        `#!/bin/sh\necho start >>${folder}/${name}.starts\n${script}\n`,
        { mode: 0o755 },
      );
    }
    await body({ version: "v0.0.0", path: (program) => `${folder}/${program}` });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("an API server that ends at once is told with what it printed", async () => {
  const scripts = {
    "etcd": "exec sleep 1000",
    "kube-apiserver": "echo 'no such flag: --authorization-mode' >&2; exit 1",
  };
  await withPrograms(scripts, async (binaries) => {
    await assert.rejects(
      startCluster({ binaries }),
      /Cannot start kube-apiserver as it ended: no such flag: --authorization-mode/,
    );
  });
});

Deno.test("an etcd that ends at once is told with what it printed", async () => {
  const scripts = { "etcd": "echo 'disk full' >&2; exit 1", "kube-apiserver": "exec sleep 1000" };
  await withPrograms(scripts, async (binaries) => {
    await assert.rejects(startCluster({ binaries }), /Cannot start etcd as it ended: disk full/);
  });
});

Deno.test("a port that somebody took meanwhile leads to other ports, three times at most", async () => {
  const scripts = {
    "etcd": "echo 'listen tcp 127.0.0.1:1: bind: address already in use' >&2; exit 1",
    "kube-apiserver": "exec sleep 1000",
  };
  await withPrograms(scripts, async (binaries) => {
    await assert.rejects(startCluster({ binaries }), { name: "PortTakenError" });
    const starts = await Deno.readTextFile(`${binaries.path("etcd")}.starts`);
    assert.equal(starts, "start\nstart\nstart\n");
  });
});
