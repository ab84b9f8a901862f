/** `holdfast manifests service` without a cluster: what is written, where, and what is refused. */

import assert from "node:assert/strict";
import { Command, CommanderError } from "commander";
import { parseAllDocuments } from "yaml";
import { addManifestsCommand } from "../../../handlers/commands/manifests.ts";
import type { ServiceManifestsOptions } from "../../../handlers/commands/manifests/arguments.ts";
import { writeFile, writeFolder } from "../../../handlers/commands/manifests/output.ts";
import { manifestsService } from "../../../handlers/commands/manifests/service.ts";
import { serviceValuesJsonSchema } from "../../../lib/manifests/service/values.ts";
import { renderSchema, renderValues, writeManifests } from "../../../deploy/manifests.ts";
import { type FakeMachine, fakeSystem } from "./fake_system.ts";

/** Runs the command line with the real sub-command. */
async function run(args: readonly string[], machine: FakeMachine = {}) {
  const system = fakeSystem(machine);
  const program = new Command("holdfast").exitOverride().configureOutput({
    writeOut: (text) => system.stdout.write(text),
    writeErr: (text) => system.stderr.write(text),
  });
  let code = -1;
  const manifestsApp = () => Promise.reject(new Error("Another command was called"));
  const commands = { manifestsService, manifestsApp };
  addManifestsCommand(program, system, commands, (exitCode) => void (code = exitCode));
  try {
    await program.parseAsync(["manifests", "service", ...args], { from: "user" });
  } catch (error) {
    assert.ok(error instanceof CommanderError && error.exitCode !== 0);
    code = 2;
  }
  return { code, ...system.written };
}

async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "holdfast-" });
  try {
    await body(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const namesIn = async (folder: string) =>
  (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();

const VALUES = `auxiliary:
  deployAPI: { enabled: true }
  escrowTLS: { enabled: true, existingSecret: tls }
`;

Deno.test("without options, all defaults go to the standard output as YAML", async () => {
  const { code, stdout, stderr } = await run([]);
  assert.deepEqual([code, stderr], [0, ""]);
  const objects = parseAllDocuments(stdout).map((document) => document.toJS());
  assert.ok(objects.length >= 8);
  assert.ok(objects.every(({ apiVersion, kind }) => apiVersion && kind));
  assert.equal(objects.at(-1).kind, "Deployment");
});

Deno.test("several files of values are merged, the later one wins", async () => {
  const files = {
    "a.yaml": VALUES,
    "b.yaml": "replicaCount: 3\nauxiliary:\n  escrowTLS: { port: 9443 }\n",
  };
  const { code, stdout } = await run(["-f", "a.yaml", "--values", "b.yaml"], { files });
  assert.equal(code, 0);
  assert.match(stdout, /replicas: 3/);
  assert.match(stdout, /value: ":9443"/);
  assert.match(stdout, /secretName: tls/);
});

Deno.test("warnings go to the error output, and the objects are written all the same", async () => {
  const files = { "v.yaml": `${VALUES}replicaCount: 1\n` };
  const { code, stdout, stderr } = await run(["-f", "v.yaml"], { files });
  assert.equal(code, 0);
  assert.match(stderr, /^holdfast: warning: With one replica/);
  assert.match(stdout, /replicas: 1/);
});

Deno.test("--schema prints the JSON schema", async () => {
  const { code, stdout } = await run(["--schema"]);
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(stdout), serviceValuesJsonSchema());
});

Deno.test("what cannot be used ends with 2, says why in lines, and writes nothing", async () => {
  const table: readonly (readonly [text: string | undefined, expected: RegExp])[] = [
    [
      "auxiliary: { deployApi: {} }",
      /^holdfast: Cannot use the values as there is no 'auxiliary.deployApi'/,
    ],
    ["replicaCount: two", /'replicaCount' must be a whole number/],
    ["auxiliary: { deployAPI: { enabled: true } }", /requires auxiliary.escrowTLS.enabled=true/],
    ["a: [", /^holdfast: Cannot read v.yaml as line 1, column \d+ is not valid YAML \(\w+\)/],
    ["a: 1\na: 2", /is not valid YAML \(DUPLICATE_KEY\)/],
    ["a: 1\n---\nb: 2", /is not valid YAML \(MULTIPLE_DOCS\)/],
    ["- a", /they must be a mapping: current value is \["a"\]/],
    ["a: *b", /Cannot read v.yaml as its aliases cannot be resolved/],
    [undefined, /^holdfast: Cannot read v.yaml as it does not exist: name a file of values/],
  ];
  for (const [text, expected] of table) {
    await withFolder(async (folder) => {
      const files: Record<string, string> = text === undefined ? {} : { "v.yaml": text };
      for (
        const output of [[], ["--output-file", `${folder}/a`], ["--output-dir", `${folder}/b`]]
      ) {
        const { code, stdout, stderr } = await run(["-f", "v.yaml", ...output], { files });
        assert.deepEqual([code, stdout], [2, ""], stderr);
        assert.match(stderr, expected);
        assert.ok(stderr.split("\n").slice(0, -1).every((line) => line.startsWith("holdfast: ")));
      }
      assert.deepEqual(await namesIn(folder), []);
    });
  }
});

Deno.test("a file that cannot be read is named, without what the platform said", async () => {
  const system = {
    ...fakeSystem(),
    readTextFile: (): string => {
      throw new Deno.errors.PermissionDenied("a text of the platform");
    },
  };
  const options: ServiceManifestsOptions = {
    valuesFiles: ["v.yaml"],
    outputDir: undefined,
    outputFile: undefined,
    withCrds: false,
    diff: false,
    schema: false,
    system,
  };
  assert.equal(await manifestsService(options), 2);
  assert.match(system.written.stderr, /Cannot read v.yaml \(PermissionDenied\): name a file/);
});

Deno.test("wrong usage ends with 2", async () => {
  for (
    const args of [
      ["--what"],
      ["--output-dir", "a", "--output-file", "b"],
      ["--output-file", "b", "--diff"],
      ["--output-dir", "a", "--schema"],
      ["--values"],
      ["surplus"],
    ]
  ) {
    const { code, stdout } = await run(args);
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
  }
});

Deno.test("what needs the cluster says so where there is none", async () => {
  for (const option of ["--diff", "--with-crds"]) {
    const { code, stdout, stderr } = await run([option], { env: { HOME: "/nowhere" } });
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /^holdfast: Cannot find a cluster|^holdfast: Cannot /);
  }
});

Deno.test("a file is replaced as a whole, and a folder gets one file for each object and a kustomization", async () => {
  await withFolder(async (folder) => {
    const files = {
      "v.yaml": `${VALUES}keyringEscrow: { enabled: true, namespaces: [one, two] }\n`,
    };
    const once = await run(["-f", "v.yaml", "--output-file", `${folder}/all.yaml`], { files });
    assert.deepEqual(once, { code: 0, stdout: "", stderr: "" });
    const { stdout } = await run(["-f", "v.yaml"], { files });
    assert.equal(await Deno.readTextFile(`${folder}/all.yaml`), stdout);

    const target = `${folder}/out`;
    assert.equal((await run(["-f", "v.yaml", "--output-dir", target], { files })).code, 0);
    const names = await namesIn(target);
    assert.ok(names.includes("role-one-holdfast-keyring-escrow.yaml"), names.join(" "));
    assert.ok(names.includes("role-two-holdfast-keyring-escrow.yaml"));
    assert.ok(names.includes("role-holdfast.yaml"));
    const kustomization = await Deno.readTextFile(`${target}/kustomization.yaml`);
    const listed = [...kustomization.matchAll(/^ {2}- (.+)$/gm)].map(([, name = ""]) => name);
    const texts = await Promise.all(listed.map((name) => Deno.readTextFile(`${target}/${name}`)));
    assert.equal(texts.join(""), stdout);
    assert.deepEqual([...listed, "kustomization.yaml"].sort(), names);

    // What is not rendered any more goes, and nothing else is left beside the folder.
    assert.equal((await run(["--output-dir", target])).code, 0);
    assert.ok(!(await namesIn(target)).includes("role-one-holdfast-keyring-escrow.yaml"));
    assert.deepEqual(await namesIn(folder), ["all.yaml", "out"]);
    if (Deno.build.os !== "windows") {
      assert.equal(((await Deno.stat(target)).mode ?? 0) & 0o777, 0o755);
      assert.equal(((await Deno.stat(`${folder}/all.yaml`)).mode ?? 0) & 0o777, 0o644);
    }
  });
});

Deno.test("a folder with files of somebody else is left as it is", async () => {
  await withFolder(async (folder) => {
    const target = `${folder}/out`;
    await Deno.mkdir(target);
    // An empty one may be used.
    assert.equal((await run(["--output-dir", target])).code, 0);
    await Deno.writeTextFile(`${target}/kustomization.yaml`, "kind: Kustomization\n");
    const before = await namesIn(target);
    const { code, stderr } = await run(["--output-dir", target]);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /as it holds files that were not written here: name another one, or empty it/,
    );
    assert.deepEqual(await namesIn(target), before);
    assert.equal(await Deno.readTextFile(`${target}/kustomization.yaml`), "kind: Kustomization\n");
    assert.deepEqual(await namesIn(folder), ["out"]);
  });
});

Deno.test("a write that fails half-way leaves what was there, and nothing beside it", async () => {
  await withFolder(async (folder) => {
    const target = `${folder}/out`;
    await writeFolder(target, new Map([["a.yaml", "old"]]));
    // The second name is one that no file can have.
    const broken = new Map([["a.yaml", "new"], [`${"x".repeat(300)}.yaml`, "new"]]);
    await assert.rejects(writeFolder(target, broken), /Cannot write the folder .*name a place/);
    assert.equal(await Deno.readTextFile(`${target}/a.yaml`), "old");
    assert.deepEqual(await namesIn(folder), ["out"]);

    // A folder stands where the file should be.
    await Deno.mkdir(`${folder}/all.yaml/inside`, { recursive: true });
    await assert.rejects(writeFile(`${folder}/all.yaml`, "new"), /Cannot write /);
    assert.deepEqual(await namesIn(folder), ["all.yaml", "out"]);
  });
});

Deno.test("a place that is not there is refused", async () => {
  await withFolder(async (folder) => {
    for (const option of ["--output-file", "--output-dir"]) {
      const { code, stderr } = await run([option, `${folder}/missing/there`]);
      assert.equal(code, 1);
      assert.match(stderr, /\(NotFound\): name a place whose folder is there and can be written/);
    }
    await Deno.writeTextFile(`${folder}/file`, "");
    assert.equal((await run(["--output-dir", `${folder}/file`])).code, 1);
    assert.deepEqual(await namesIn(folder), ["file"]);
  });
});

Deno.test("what deploy has of the manifests is what the program writes", async () => {
  const deploy = new URL("../../../deploy/", import.meta.url);
  const read = (path: string) => Deno.readTextFile(new URL(path, deploy));
  assert.equal(await read("values.yaml"), renderValues());
  assert.equal(await read("values.schema.json"), renderSchema());
  await withFolder(async (folder) => {
    await writeManifests(folder);
    const walk = async (at: string): Promise<string[]> => {
      const entries = await Array.fromAsync(Deno.readDir(`${folder}/${at}`));
      const inside = await Promise.all(
        entries.map(({ name, isDirectory }) =>
          isDirectory ? walk(`${at}${name}/`) : [`${at}${name}`]
        ),
      );
      return inside.flat();
    };
    const written = await walk("");
    assert.ok(written.length > 10);
    for (const path of written) {
      assert.equal(await read(path), await Deno.readTextFile(`${folder}/${path}`), path);
    }
    const kept = await namesIn(new URL("manifests/kustomize", deploy).pathname);
    assert.deepEqual(await namesIn(`${folder}/manifests/kustomize`), kept);
  });
});
