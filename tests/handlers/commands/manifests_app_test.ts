import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Command, CommanderError } from "commander";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { manifestsApp } from "../../../handlers/commands/manifests/app.ts";
import { addAppManifests } from "../../../handlers/commands/manifests/app_arguments.ts";
import { type FakeMachine, fakeSystem } from "./fake_system.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/** What the tests look at of a Deployment. */
const Deployment = z.looseObject({
  kind: z.literal("Deployment"),
  metadata: z.looseObject({ name: z.string(), namespace: z.string() }),
  spec: z.looseObject({
    replicas: z.number(),
    template: z.looseObject({
      spec: z.looseObject({
        terminationGracePeriodSeconds: z.number(),
        containers: z.tuple([z.looseObject({
          image: z.string(),
          env: z.array(z.looseObject({ name: z.string(), value: z.string().optional() })),
          lifecycle: z.unknown().optional(),
          securityContext: z.looseObject({ readOnlyRootFilesystem: z.boolean().optional() }),
        })]),
      }),
    }),
  }),
});

/** Runs the sub-command on a machine in memory. */
async function run(args: readonly string[], machine: FakeMachine = {}) {
  const system = fakeSystem(machine);
  let code = 0;
  const program = new Command("manifests").exitOverride().configureOutput({
    writeOut: (text) => system.stdout.write(text),
    writeErr: (text) => system.stderr.write(text),
  });
  addAppManifests(program, system, async (options) => void (code = await manifestsApp(options)));
  try {
    await program.parseAsync(["app", ...args], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    code = error.exitCode === 0 ? 0 : 2;
  }
  return { code, ...system.written };
}

const WEB = ["--name", "web", "--image", "registry.example/web:1"];
const PROD = [...WEB, "--profile", "prod"];

function documentsOf(text: string): { kind: string }[] {
  const shape = z.looseObject({ kind: z.string() });
  return parseAllDocuments(text).map((document) => shape.parse(document.toJS()));
}

function deploymentIn(text: string) {
  const deployment = Deployment.parse(documentsOf(text).find(({ kind }) => kind === "Deployment"));
  const { spec } = deployment.spec.template;
  const [container] = spec.containers;
  const env = new Map(container.env.map(({ name, value }) => [name, value]));
  return { ...deployment, pod: spec, container, env };
}

Deno.test("the manifests are those of the configuration of the profile", async () => {
  const files = {
    "holdfast.yaml":
      "kubernetes: {leader_election: {enabled: true, lease_name: web}}\nhost: {listen: ':3000', shutdown_timeout_secs: 1}",
    "holdfast-prod.yaml": "host: {shutdown_timeout_secs: 45}\nkubernetes: {namespace: shop}",
  };
  const { code, stdout, stderr } = await run(PROD, { files });
  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(documentsOf(stdout).map(({ kind }) => kind), [
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "Deployment",
    "Service",
    "PodDisruptionBudget",
  ]);
  const { metadata, pod, env, container } = deploymentIn(stdout);
  assert.deepEqual([metadata.name, metadata.namespace], ["web", "shop"]);
  assert.equal(pod.terminationGracePeriodSeconds, 5 + 5 + 45 + 10);
  assert.equal(env.get("AUTUMN_ENV"), "prod");
  assert.equal(container.image, "registry.example/web:1");
  // The same again gives the same bytes, and so does the other form of the option.
  assert.equal((await run(PROD, { files })).stdout, stdout);
  assert.equal((await run([...WEB, "--profile=prod"], { files })).stdout, stdout);
});

Deno.test("options win over the configuration, and each has its effect", async () => {
  const files = { "holdfast.yaml": "kubernetes: {namespace: shop}" };
  const { code, stdout } = await run([
    ...[...PROD, "--namespace", "other", "--replicas", "1", "--pre-stop-secs", "0"],
    ...["--buffer-secs", "20", "--env", "ZONE=a=b", "--env", "EMPTY=", "--env", "ZONE=c"],
    ...["--set", "host.prestop_grace_secs=7", "--set", "kubernetes.events=false"],
    "--writable-root",
  ], { files });
  assert.equal(code, 0);
  const kinds = documentsOf(stdout).map(({ kind }) => kind);
  assert.deepEqual(kinds, ["ServiceAccount", "Deployment", "Service"]);
  const { metadata, spec, pod, container, env } = deploymentIn(stdout);
  assert.deepEqual([metadata.namespace, spec.replicas], ["other", 1]);
  assert.equal(pod.terminationGracePeriodSeconds, 7 + 30 + 20);
  assert.equal(container.lifecycle, undefined);
  assert.equal(container.securityContext.readOnlyRootFilesystem, undefined);
  assert.deepEqual([env.get("ZONE"), env.get("EMPTY")], ["c", ""]);
});

Deno.test("--json prints one List with the same objects", async () => {
  const { code, stdout } = await run([...PROD, "--json"]);
  assert.equal(code, 0);
  const list = z.strictObject({
    apiVersion: z.literal("v1"),
    kind: z.literal("List"),
    items: z.array(z.unknown()),
  }).parse(JSON.parse(stdout));
  assert.deepEqual(list.items, documentsOf((await run(PROD)).stdout));
});

Deno.test("wrong usage ends with 2 and names what is wrong; nothing is written", async () => {
  const table: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /required option '--name <name>' not specified/],
    [["--name", "web"], /required option '--image <image>' not specified/],
    [
      WEB,
      /^holdfast: Cannot make the manifests of an application without a profile: give --profile/,
    ],
    [[...WEB, "--profile", ""], /without a profile/],
    [[...WEB, "--profile", "default"], /without a profile/],
    [[...WEB, "--profile"], /argument missing/],
    [[...WEB, "--profile", "a/b"], /Cannot select a profile from --profile as its name must be/],
    [[...PROD, "--replicas", "-1"], /It must be a whole number of 0 or more/],
    [[...PROD, "--replicas", "two"], /It must be a whole number of 0 or more/],
    [
      [...PROD, "--replicas", "3000000000"],
      /'replicas' must be a whole number from 0 to 2147483647/,
    ],
    [[...PROD, "--env", "ZONE"], /It must be NAME=VALUE/],
    [[...PROD, "--env", "POD_IP=secret"], /'env' must be names other than those/],
    [[...PROD, "--set", "x"], /It must be KEY=VALUE/],
    [
      [...PROD, "--name", "Web"],
      /'name' must be a DNS label that begins with a letter: current value is "Web"/,
    ],
    [[...PROD, "--image", " "], /'image' must be a text without blanks around it/],
    [[...PROD, "--namespace", "a.b"], /'namespace' must be a DNS label/],
    [
      [...PROD, "--set", "host.listen=:0"],
      /'port' must be a whole number from 1 to 65535: current value is 0/,
    ],
    [[...PROD, "more"], /too many arguments/],
  ];
  for (const [args, expected] of table) {
    const { code, stdout, stderr } = await run(args);
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    assert.match(stderr, expected);
    assert.ok(!stderr.includes("secret"));
  }
});

Deno.test("the help tells the options and the exit codes, and each of its examples works", async () => {
  const { code, stdout } = await run(["--help"]);
  assert.equal(code, 0);
  for (const option of ["--name", "--image", "--profile", "--env", "--set", "--json"]) {
    assert.ok(stdout.includes(option), option);
  }
  assert.match(stdout, /Exit codes: 0 written, 1 .*, 2 wrong usage, or no profile/);
  const examples = [...stdout.matchAll(/^ {2}holdfast manifests app (.*)$/gm)];
  assert.equal(examples.length, 3);
  for (const [line, args = ""] of examples) {
    const example = await run(args.split(" "));
    assert.deepEqual([example.code, example.stderr], [0, ""], line);
  }
});

Deno.test("a configuration that cannot be used ends with 1, all that is wrong told; nothing is written", async () => {
  const files = {
    "holdfast.yaml": "kubernetes: {leader_election: {enabled: true}, nothing: 1}\nhost: {role: x}",
  };
  const { code, stdout, stderr } = await run(PROD, { files });
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /^holdfast: .*there is no key 'kubernetes\.nothing'/m);
  assert.match(stderr, /^holdfast: Cannot use 'host\.role' from holdfast\.yaml/m);
});

Deno.test("the environment selects the profile before the option does, as it does in the pod, and says so", async () => {
  const files = { "holdfast-dev.yaml": "host: {shutdown_timeout_secs: 1}" };
  const { code, stdout, stderr } = await run(PROD, { files, env: { AUTUMN_ENV: "dev" } });
  assert.equal(code, 0);
  assert.equal(
    stderr,
    "holdfast: warning: the manifests are for the profile dev of AUTUMN_ENV, and not for --profile prod\n",
  );
  const { pod, env } = deploymentIn(stdout);
  assert.deepEqual([env.get("AUTUMN_ENV"), pod.terminationGracePeriodSeconds], ["dev", 21]);
  // Without the option it is enough.
  const alone = await run(WEB, { files, env: { AUTUMN_PROFILE: "dev" } });
  assert.deepEqual([alone.code, alone.stderr, alone.stdout], [0, "", stdout]);
});

Deno.test("the example application gets what it needs from its own configuration", async () => {
  const read = (name: string) => Deno.readTextFile(`${ROOT}/deploy/examples/app/${name}`);
  const [, line = ""] = /^ {2}(--name [^|]*)/m.exec(await read("README.md")) ?? [];
  const { code, stdout, stderr } = await run(line.trim().split(" "), {
    files: { "holdfast.yaml": await read("holdfast.yaml") },
  });
  assert.deepEqual([code, stderr], [0, ""]);
  const shape = z.looseObject({
    rules: z.array(z.looseObject({ resourceNames: z.unknown().optional() })),
  });
  const role = shape.parse(documentsOf(stdout).find(({ kind }) => kind === "Role"));
  assert.deepEqual(role.rules.map(({ resourceNames }) => resourceNames), [
    ["example-app"],
    ["example-settings"],
    undefined,
  ]);
  const { pod, env } = deploymentIn(stdout);
  assert.equal(pod.terminationGracePeriodSeconds, 5 + 5 + 30 + 10);
  assert.equal(env.get("AUTUMN_SERVER__PORT"), "3000");
});

/** Runs the program itself, in a folder with these files. */
async function holdfast(
  args: readonly string[],
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
) {
  const folder = await Deno.makeTempDir({ prefix: "holdfast-manifests-" });
  try {
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${folder}/${name}`, text);
    }
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-q", "--no-prompt", `--config=${ROOT}/deno.json`, "-P=serve"],
        ...[`${ROOT}/main.ts`, "manifests", "app", ...args],
      ],
      cwd: folder,
      env,
      stdin: "null",
    }).output();
    const decoder = new TextDecoder();
    return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("load: a manifest folder that does not exist hides no file of the profile, and `.env` is not looked for elsewhere", async () => {
  const files = {
    "holdfast.yaml": "host: {shutdown_timeout_secs: 1}",
    "holdfast-prod.yaml": "host: {shutdown_timeout_secs: 45}",
    ".env": "AUTUMN_KUBERNETES__NAMESPACE=from-dotenv",
  };
  const env = { AUTUMN_MANIFEST_DIR: "/built/in/an/image", AUTUMN_DOTENV: "1" };
  const { code, stdout, stderr } = await holdfast(PROD, files, env);
  assert.deepEqual([code, stderr], [0, ""]);
  const { metadata, pod } = deploymentIn(stdout);
  assert.equal(pod.terminationGracePeriodSeconds, 65);
  assert.equal(metadata.namespace, "default");
});

Deno.test("load: `.env` is read in development, and the environment of the process wins over it", async () => {
  const files = {
    ".env": "AUTUMN_KUBERNETES__NAMESPACE=from-dotenv\nAUTUMN_SERVER__PORT=4000",
  };
  const dev = [...WEB, "--profile", "dev"];
  const { code, stdout } = await holdfast(dev, files, { AUTUMN_SERVER__PORT: "5000" });
  assert.equal(code, 0);
  const { metadata, env } = deploymentIn(stdout);
  assert.equal(metadata.namespace, "from-dotenv");
  assert.equal(env.get("AUTUMN_SERVER__PORT"), "5000");
});

Deno.test("load: without a profile the program ends with 2, and so it does without arguments", async () => {
  const files = { "holdfast.yaml": "kubernetes: {namespace: shop}" };
  const none = await holdfast(WEB, files);
  assert.deepEqual([none.code, none.stdout], [2, ""]);
  assert.match(none.stderr, /without a profile/);
  const usage = await holdfast([], files);
  assert.deepEqual([usage.code, usage.stdout], [2, ""]);
  assert.match(usage.stderr, /required option '--name <name>' not specified/);
});
