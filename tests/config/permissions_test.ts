import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import manifest from "../../deno.json" with { type: "json" };
import { environmentNames } from "../../lib/config/env_names.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PROBE = fileURLToPath(new URL("permission_probe.ts", import.meta.url));

const Outcome = z.strictObject({
  spawn: z.string(),
  write: z.string(),
  sys: z.string(),
  ffi: z.string(),
  listen: z.string(),
  read: z.string(),
  environment: z.record(z.string(), z.string()),
  unlisted: z.string(),
});

/** The flags of a task of deno.json: what is between `deno run` and the program. */
function flagsOf(task: string): readonly string[] {
  const match = /^deno run (.*) main\.ts \w+$/.exec(task);
  assert(match?.[1], task);
  return match[1].split(" ");
}

async function probe(flags: readonly string[], command: string, env: Record<string, string> = {}) {
  const folder = await Deno.makeTempDir();
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...flags, PROBE, command, `${folder}/file`],
    cwd: ROOT,
    env: {
      SECRET_OF_ANOTHER: "hunter2",
      POD_NAME: "pod-1",
      HOLDFAST__A: "1",
      HOME: folder,
      ...env,
    },
    stdout: "piped",
    stderr: "piped",
  }).output();
  const written = await Deno.readTextFile(`${folder}/file`).catch(() => undefined);
  await Deno.remove(folder, { recursive: true });
  const errors = new TextDecoder().decode(stderr);
  assert(success, errors);
  return { ...Outcome.parse(JSON.parse(new TextDecoder().decode(stdout))), written, errors };
}

Deno.test("the permission sets of deno.json grant exactly the documented variables, and no more than the command needs", () => {
  const env = { allow: environmentNames.map(({ name }) => name), ignore: true };
  assert.deepEqual(manifest.permissions, {
    serve: { net: true, read: true, env },
    demo: { net: true, read: true, write: true, env },
    run: { net: true, read: true, write: true, run: true, env },
  });
});

/** The texts of all programs under a folder. */
async function* programsOf(folder: string): AsyncIterable<string> {
  for await (const entry of Deno.readDir(folder)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) yield* programsOf(path);
    else if (/\.tsx?$/.test(entry.name)) yield await Deno.readTextFile(path);
  }
}

Deno.test("every variable that the program names when it reads the environment is documented", async () => {
  const documented = (name: string) =>
    environmentNames.some((entry) =>
      entry.name.endsWith("*") ? name.startsWith(entry.name.slice(0, -1)) : name === entry.name
    );
  const found = new Set<string>();
  for (const folder of ["lib", "handlers"]) {
    for await (const text of programsOf(`${ROOT}/${folder}`)) {
      const reads = text.matchAll(
        /(?<=\w\.|[^.\w])env(?:\.get)?(?:\("|\["|\.)([A-Z][A-Z0-9_]+|[a-z]+_proxy)\b/g,
      );
      for (const [, name = ""] of reads) found.add(name);
    }
  }
  assert(found.has("KUBERNETES_SERVICE_HOST") && found.has("no_proxy"), "The search finds nothing");
  assert.deepEqual([...found].filter((name) => !documented(name)), []);
});

Deno.test("the tasks serve and demo start with their named set, and never ask", () => {
  assert.deepEqual(flagsOf(manifest.tasks.serve.command), ["-q", "-P=serve", "--no-prompt"]);
  assert.deepEqual(flagsOf(manifest.tasks.demo.command), ["-q", "-P=demo", "--no-prompt"]);
});

Deno.test("the task serve can neither spawn nor write, and sees its own variables alone", async () => {
  const outcome = await probe(flagsOf(manifest.tasks.serve.command), "as-started");
  assert.equal(outcome.spawn, "NotCapable");
  assert.equal(outcome.write, "NotCapable");
  assert.equal(outcome.written, undefined);
  assert.equal(outcome.sys, "NotCapable");
  assert.equal(outcome.ffi, "NotCapable");
  assert.equal(outcome.listen, "done");
  assert.equal(outcome.read, "done");
  assert.equal(outcome.unlisted, "not seen");
  assert.equal(outcome.environment.POD_NAME, "pod-1");
  assert.equal(outcome.environment.HOLDFAST__A, "1");
  assert.equal(outcome.errors, "");
});

Deno.test("the task demo writes its files and cannot spawn", async () => {
  const outcome = await probe(flagsOf(manifest.tasks.demo.command), "as-started");
  assert.equal(outcome.spawn, "NotCapable");
  assert.equal(outcome.written, "written");
  assert.equal(outcome.unlisted, "not seen");
});

const EVERYTHING = ["--no-prompt", "-A"];

Deno.test("serve that was started with every permission gives back those to spawn, to write and to ask the system", async () => {
  const outcome = await probe(EVERYTHING, "serve");
  assert.equal(outcome.spawn, "NotCapable");
  assert.equal(outcome.write, "NotCapable");
  assert.equal(outcome.written, undefined);
  assert.equal(outcome.sys, "NotCapable");
  assert.equal(outcome.ffi, "NotCapable");
  assert.equal(outcome.listen, "done");
  assert.equal(outcome.read, "done");
});

Deno.test("a command that only prints gives back the network too", async () => {
  const outcome = await probe(EVERYTHING, "config");
  assert.equal(outcome.spawn, "NotCapable");
  assert.equal(outcome.write, "NotCapable");
  assert.equal(outcome.listen, "NotCapable");
});

Deno.test("serve whose kubeconfig signs in by a program keeps the permission to run it, and says so", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(
      `${folder}/config`,
      "current-context: c\ncontexts: [{name: c, context: {user: u, cluster: k}}]\n" +
        "users: [{name: u, user: {exec: {command: aws}}}]\n",
    );
    const outcome = await probe(EVERYTHING, "serve", { KUBECONFIG: `${folder}/config` });
    assert.equal(outcome.spawn, "done");
    assert.equal(outcome.write, "NotCapable");
    assert.match(outcome.errors, /keeps the permission to run programs/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
