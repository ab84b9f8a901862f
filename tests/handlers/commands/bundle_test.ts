import assert from "node:assert/strict";
import { z } from "zod";
import manifest from "../../../deno.json" with { type: "json" };
import { kubeconfig } from "../../../handlers/commands/demo/folder.ts";
import { systemClock, systemEntropy } from "../../../handlers/commands/system.ts";
import { createAuthority, FakeCluster } from "../../../lib/testing/mod.ts";
import { pathOf, ROOT } from "../../checks/shell.ts";
import { ISOLATED, layBundle, PERMISSIONS } from "../../deploy/bundles.ts";
import { DemoProcess } from "./demo/demo_process.ts";

const Outcome = z.strictObject({
  spawn: z.string(),
  write: z.string(),
  sys: z.string(),
  ffi: z.string(),
  demoIsLoaded: z.boolean(),
});

/** Lays the bundle into a folder where nothing else is. */
async function withBundle(test: (folder: string, bundle: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "bundle-test-" });
  try {
    await test(folder, await layBundle(folder));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Reads a stream until a line matches, and goes on reading so that the writer never waits. */
class Output {
  readonly ended: Promise<void>;
  #text = "";
  #onText = () => {};
  #open = true;

  constructor(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.ended = this.#read(stream);
  }

  get text(): string {
    return this.#text;
  }

  /** The first text that matches. @throws The stream ended without it. */
  async find(pattern: RegExp): Promise<string> {
    for (;;) {
      const found = pattern.exec(this.#text)?.[0];
      if (found !== undefined) return found;
      if (!this.#open) throw new Error(`Cannot find ${pattern}: ${this.#text}`);
      await new Promise<void>((resolve) => this.#onText = resolve);
    }
  }

  async #read(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      this.#text += text;
      this.#onText();
    }
    this.#open = false;
    this.#onText();
  }
}

/** Starts a program with the attempts before it, lets it attempt once it says that it is ready, and ends it. */
async function attemptsOf(
  args: readonly string[],
  folder: string,
  ready: RegExp,
  env: Readonly<Record<string, string>> = {},
) {
  const preload = `${folder}/attempts.ts`;
  await Deno.copyFile(new URL("bundle/attempts.ts", import.meta.url), preload);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-q", "--no-prompt", `--preload=${preload}`, ...args],
    cwd: folder,
    // The bundle is no file of the project: it must not write into the data of what is covered.
    clearEnv: true,
    env: { HOME: folder, PATH: Deno.env.get("PATH") ?? "", NO_COLOR: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const stdout = new Output(child.stdout);
  const stderr = new Output(child.stderr);
  try {
    await stdout.find(ready);
    child.kill("SIGUSR1");
    const outcome = Outcome.parse(JSON.parse(await stderr.find(/^\{.*\}$/m)));
    child.kill("SIGTERM");
    const { code } = await child.status;
    const written = await Deno.stat(`${folder}/written`).then(() => true, () => false);
    return { ...outcome, written, code };
  } catch (error) {
    child.kill("SIGKILL");
    throw new Error(`The program said\n${stdout.text}\n${stderr.text}`, { cause: error });
  } finally {
    await child.status;
    await Promise.all([stdout.ended, stderr.ended]);
  }
}

/** What `serve` needs: a cluster that answers, a certificate, and free ports. */
async function withCluster(
  folder: string,
  test: (env: Readonly<Record<string, string>>) => Promise<void>,
): Promise<void> {
  await using fake = new FakeCluster({ clock: systemClock, entropy: systemEntropy });
  const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
  const { certPem: cert, keyPem: key } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
  const { url: server } = await fake.listen({ cert, key });
  const { caPem } = authority;
  const token = fake.adminToken;
  const texts = {
    kubeconfig: kubeconfig({ server, caPem, token, namespace: "default" }),
    "tls.crt": cert,
    "tls.key": key,
  };
  for (const [name, text] of Object.entries(texts)) {
    await Deno.writeTextFile(`${folder}/${name}`, text);
  }
  await test({
    KUBECONFIG: `${folder}/kubeconfig`,
    HOLDFAST__LISTEN__TLS: "127.0.0.1:0",
    HOLDFAST__LISTEN__METRICS: "127.0.0.1:0",
    HOLDFAST__LISTEN__PROBES: "127.0.0.1:0",
    HOLDFAST__LISTEN__AUXILIARY: "127.0.0.1:0",
    HOLDFAST__TLS__CERT_FILE: `${folder}/tls.crt`,
    HOLDFAST__TLS__KEY_FILE: `${folder}/tls.key`,
    HOLDFAST__DEPLOY_API__ENABLED: "true",
    HOLDFAST__HOST__PRESTOP_GRACE_SECS: "0",
  });
}

const NOTHING = { spawn: "NotCapable", write: "NotCapable", sys: "NotCapable", ffi: "NotCapable" };

Deno.test("serve as the bundle, with every permission at its start, can neither spawn nor write while it serves", async () => {
  await withBundle(async (folder, bundle) => {
    await withCluster(folder, async (env) => {
      const args = [...ISOLATED, "-A", bundle, "serve"];
      const outcome = await attemptsOf(args, folder, /"serving"/, env);
      assert.deepEqual(outcome, { ...NOTHING, written: false, demoIsLoaded: false, code: 0 });
    });
  });
});

Deno.test("serve as its task can neither spawn nor write while it serves", async () => {
  const folder = await Deno.makeTempDir({ prefix: "serve-test-" });
  try {
    await withCluster(folder, async (env) => {
      const [, , ...flags] = manifest.tasks.serve.command.split(" ");
      const program = flags.map((word) => word === "main.ts" ? pathOf(new URL(word, ROOT)) : word);
      const config = `--config=${pathOf(new URL("deno.json", ROOT))}`;
      const args = [config, ...program.filter((word) => word !== "-q" && word !== "--no-prompt")];
      const outcome = await attemptsOf(args, folder, /"serving"/, env);
      assert.deepEqual(outcome, { ...NOTHING, written: false, demoIsLoaded: false, code: 0 });
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("the attempts succeed in a program that gives nothing back", async () => {
  const folder = await Deno.makeTempDir({ prefix: "attempts-test-" });
  try {
    const program = `${folder}/idle.ts`;
    await Deno.writeTextFile(
      program,
      `Deno.addSignalListener("SIGTERM", () => Deno.exit(0)); setInterval(() => {}, 1000); console.log("idle");`,
    );
    const { spawn, write, sys, ffi, written } = await attemptsOf(["-A", program], folder, /idle/);
    assert.deepEqual([spawn, write, sys, written], ["done", "done", "done", true]);
    assert.notEqual(ffi, "NotCapable");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("the demo plays from the bundle alone, with the permissions of the compiled program", async () => {
  await withBundle(async (_folder, bundle) => {
    const program = ["run", "-q", ...ISOLATED, ...PERMISSIONS, bundle];
    const { code, lines, errors, left } = await DemoProcess.run(["--once"], { program });
    assert.deepEqual({ code, errors, left }, { code: 0, errors: "", left: [] });
    assert.match(lines.at(-1) ?? "", /^The story is over/);
  });
});
