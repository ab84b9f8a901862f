import assert from "node:assert/strict";
import { type Commands, runCommandLine } from "../../../handlers/commands/cli.ts";
import {
  type DemoOptions,
  RefusalError,
  type RevokeOptions,
  type ServeOptions,
  type StatusOptions,
} from "../../../handlers/commands/options.ts";
import manifest from "../../../deno.json" with { type: "json" };
import { type FakeMachine, fakeSystem } from "./fake_system.ts";

/** Runs a command line with commands that only note what they were given. */
async function run(
  args: readonly string[],
  machine: FakeMachine = {},
  fakes: Partial<Commands> = {},
) {
  const system = fakeSystem(machine);
  const served: ServeOptions[] = [];
  const demos: DemoOptions[] = [];
  const looks: StatusOptions[] = [];
  const revocations: RevokeOptions[] = [];
  const code = await runCommandLine(args, system, {
    serve: (options) => {
      served.push(options);
      return Promise.resolve(0);
    },
    demo: (options) => {
      demos.push(options);
      return Promise.resolve(0);
    },
    status: (options) => {
      looks.push(options);
      return Promise.resolve(0);
    },
    revoke: (options) => {
      revocations.push(options);
      return Promise.resolve(0);
    },
    doctor: () => Promise.resolve(0),
    run: () => Promise.resolve(0),
    runGuard: () => Promise.resolve(0),
    manifestsApp: () => Promise.resolve(0),
    manifestsService: () => Promise.resolve(0),
    ...fakes,
  });
  return { code, ...system.written, served, demos, looks, revocations, system };
}

Deno.test("--version prints the version of deno.json, and that it is no build", async () => {
  for (const option of ["--version", "-V"]) {
    const { code, stdout, stderr } = await run([option]);
    assert.deepEqual({ code, stdout, stderr }, {
      code: 0,
      stdout: `${manifest.version} (from the source tree)\n`,
      stderr: "",
    });
  }
});

Deno.test("--help says what it is, what there is, and where to start", async () => {
  const { code, stdout, stderr } = await run(["--help"]);
  assert.equal(code, 0);
  assert.equal(stderr, "");
  for (const word of ["serve", "demo", "run", "config", "Start here", "planned failover"]) {
    assert(stdout.includes(word), word);
  }
});

Deno.test("each command's help has its options, and an example that works", async () => {
  for (const command of ["serve", "demo", "config", "status", "revoke", "doctor"]) {
    const { code, stdout } = await run([command, "--help"]);
    assert.equal(code, 0);
    const examples = stdout.split("\n").filter((line) => line.startsWith(`  holdfast ${command}`));
    assert(examples.length >= 2, command);
    for (const example of examples) {
      const words = example.match(/"[^"]*"|\S+/g) ?? [];
      const result = await run(words.slice(1).map((word) => word.replaceAll('"', "")));
      assert.equal(result.code, 0, `${example}: ${result.stderr}`);
    }
    assert.equal((await run(["help", command])).stdout, stdout);
  }
});

Deno.test("no command at all shows the help as an error", async () => {
  const { code, stdout, stderr } = await run([]);
  assert.equal(code, 2);
  assert.equal(stdout, "");
  assert.match(stderr, /^Usage: holdfast/);
});

Deno.test("what is not understood is told with a hint, exit code 2", async () => {
  const table: readonly (readonly [readonly string[], RegExp])[] = [
    [
      ["conifg"],
      /^error: unknown command 'conifg'\n\(Did you mean config\?\)\nRun 'holdfast --help'/,
    ],
    [["--port"], /^error: unknown option '--port'\nRun 'holdfast --help'/],
    [
      ["serve", "--profil", "x"],
      /^error: unknown option '--profil'\n\(Did you mean --profile\?\)\n/,
    ],
    [["serve", "now"], /^error: too many arguments for 'serve'/],
    [["serve", "--profile"], /^error: option '--profile <name>' argument missing/],
    [["serve", "--set", "x"], /argument 'x' is invalid\. It must be KEY=VALUE\./],
    [["serve", "--set", "=x"], /argument '=x' is invalid\. It must be KEY=VALUE\./],
    [
      ["demo", "--port", "x"],
      /argument 'x' is invalid\. It must be a whole number from 0 to 65535\./,
    ],
    [["demo", "--port", "65536"], /It must be a whole number from 0 to 65535/],
    [["demo", "--port", "-1"], /It must be a whole number from 0 to 65535/],
    [["help", "nothing"], /Usage: holdfast/],
    [["status", "--from", "nowhere"], /Allowed choices are api, cluster\./],
    [["status", "orders"], /^error: too many arguments for 'status'/],
    [["revoke"], /^error: required option '--group <name>' not specified/],
    [["revoke", "--group", "g", "--timeout", "5"], /It must be a duration from 1s to 1h/],
    [["revoke", "--group", "g", "--timeout", "2h"], /It must be a duration from 1s to 1h/],
    [["revoke", "--group", "g", "--reason", "a\nb"], /It must be one line of 1 to 500 characters/],
    [["revoke", "--group", "g", "--operation", "é".repeat(65)], /It must have 1 to 128 bytes/],
  ];
  for (const [args, expected] of table) {
    const { code, stderr, served, demos } = await run(args);
    assert.match(stderr, expected);
    assert.deepEqual({ code, served, demos }, { code: 2, served: [], demos: [] }, args.join(" "));
  }
});

Deno.test("serve is given the configuration, the source of every value, and the machine", async () => {
  const { code, served: [options], system } = await run(
    [
      "serve",
      "--profile",
      "prod",
      "--set",
      "host.prestop_grace_secs=0",
      "--set",
      "tls.cert_file=a=b",
    ],
    {
      env: { HOLDFAST__TLS__KEY_FILE: "key" },
      files: { "holdfast.yaml": "profile: {prod: {log: {level: warn}}}" },
    },
  );
  assert.equal(code, 0);
  assert.equal(options?.system, system);
  assert.equal(options?.config.log.level, "warn");
  assert.equal(options?.config.host.prestop_grace_secs, 0);
  assert.deepEqual(options?.config.tls, { cert_file: "a=b", key_file: "key" });
  assert.equal(options?.config.kubernetes.leader_election.lease_name, "holdfast.shipstream.io");
  const sources = ["log.level", "host.prestop_grace_secs", "tls.key_file", "log.format"]
    .map((key) => options?.sources.get(key));
  assert.deepEqual(sources, [
    "holdfast.yaml (profile prod)",
    "--set host.prestop_grace_secs",
    "HOLDFAST__TLS__KEY_FILE",
    "default",
  ]);
  options?.writeLog("a line\n");
  assert.equal(system.written.stdout, "a line\n");
});

Deno.test("the log is text on a terminal and JSON elsewhere, unless it is set", async () => {
  const format = async (isTerminal: boolean, ...args: string[]) =>
    (await run(["serve", ...args], { isTerminal })).served[0]?.config.log.format;
  assert.equal(await format(true), "text");
  assert.equal(await format(false), "json");
  assert.equal(await format(true, "--set", "log.format=json"), "json");
});

Deno.test("--leader-elect works as in the reference: alone it is on, and it takes a value", async () => {
  const elected = async (...args: string[]) =>
    (await run(["serve", ...args])).served[0]?.config.kubernetes.leader_election.enabled;
  assert.equal(await elected(), true);
  assert.equal(await elected("--leader-elect"), true);
  assert.equal(await elected("--leader-elect=false"), false);
  const { code, stderr } = await run(["serve", "--leader-elect=perhaps"]);
  assert.equal(code, 1);
  assert.equal(
    stderr,
    "holdfast: Cannot use 'kubernetes.leader_election.enabled' from --leader-elect as it must be true or false: current value is a text\n",
  );
});

Deno.test("serve ends with the code that it answers", async () => {
  assert.equal((await run(["serve"], {}, { serve: () => Promise.resolve(7) })).code, 7);
  assert.equal((await run(["demo"], {}, { demo: () => Promise.resolve(1) })).code, 1);
});

Deno.test("the refusals of deploy-api 15.1 end serve with code 1 and one line before it starts anything", async () => {
  const enabled = ["--set", "deploy_api.enabled=true"];
  const certificate = ["--set", "tls.cert_file=a", "--set", "tls.key_file=b"];
  const table: readonly (readonly [readonly string[], RegExp])[] = [
    [enabled, /^holdfast: Cannot serve the deploy API without TLS: /],
    [
      [...enabled, ...certificate, "--leader-elect=false"],
      /^holdfast: Cannot serve the deploy API without leader election: /,
    ],
    [
      ["--set", "tls.cert_file=a"],
      /^holdfast: Cannot serve TLS as 'tls.cert_file' is given and 'tls.key_file' is not: /,
    ],
    [
      [...enabled, "--set", "tls.key_file=a"],
      /^holdfast: Cannot serve TLS as 'tls.key_file' is given and 'tls.cert_file' is not: /,
    ],
  ];
  for (const [args, expected] of table) {
    const { code, stdout, stderr, served } = await run(["serve", ...args]);
    assert.match(stderr, expected);
    assert.equal(stderr.trimEnd().split("\n").length, 1, stderr);
    assert.deepEqual({ code, stdout, served }, { code: 1, stdout: "", served: [] });
  }
});

Deno.test("several problems are told one a line, each with the program's name", async () => {
  const { code, stderr } = await run(["serve", "--set", "x=1", "--set", "log.level=loud"]);
  assert.equal(code, 1);
  assert.deepEqual(stderr.trimEnd().split("\n"), [
    "holdfast: Cannot use --set x as there is no key 'x': the keys at the top level are listen, tls, deploy_api, auxiliary, planned_operations, kubernetes, host, log, tracing",
    "holdfast: Cannot use 'log.level' from --set log.level as it must be one of debug, info, warn, error: current value is a text",
  ]);
});

Deno.test("a command that refuses to start is told in one line, exit code 1", async () => {
  const refuse = () =>
    Promise.reject(new RefusalError("Cannot read tls.crt: it holds no certificate"));
  const { code, stderr } = await run(["serve"], {}, { serve: refuse });
  assert.equal(code, 1);
  assert.equal(stderr, "holdfast: Cannot read tls.crt: it holds no certificate\n");
});

Deno.test("a fault of the program is not dressed up as a refusal", async () => {
  const fault = new TypeError("a mistake");
  await assert.rejects(run(["serve"], {}, { serve: () => Promise.reject(fault) }), fault);
});

Deno.test("demo is given its options, and reads no configuration", async () => {
  const broken = { env: { HOLDFAST__NOTHING: "x" } };
  const { code, demos: [options], system } = await run(
    ["demo", "--env-file", "demo.env", "--once", "--port", "9443", "--pace", "2s"],
    broken,
  );
  assert.equal(code, 0);
  assert.deepEqual(options, {
    envFile: "demo.env",
    once: true,
    port: 9443,
    paceMs: 2_000,
    system,
  });
  const { demos: [plain], system: other } = await run(["demo"]);
  assert.deepEqual(plain, {
    envFile: undefined,
    once: false,
    port: undefined,
    paceMs: 0,
    system: other,
  });
  assert.equal((await run(["demo", "--port", "0"])).demos[0]?.port, 0);
});

Deno.test("status is given where to look and what to show, and reads no configuration", async () => {
  const broken = { env: { HOLDFAST__NOTHING: "x" } };
  const { code, looks: [plain], system } = await run(["status"], broken);
  const nothing = { group: undefined, url: undefined, caFile: undefined, tokenFile: undefined };
  const off = { namespace: undefined, all: false, watch: false, json: false };
  assert.equal(code, 0);
  assert.deepEqual(plain, { from: undefined, settings: nothing, ...off, system });
  const words =
    "status --group g --namespace n --from cluster --url u --ca-file c --token-file t --all --watch --json";
  const { looks: [all], system: other } = await run(words.split(" "));
  assert.deepEqual(all, {
    from: "cluster",
    settings: { group: "g", url: "u", caFile: "c", tokenFile: "t" },
    namespace: "n",
    all: true,
    watch: true,
    json: true,
    system: other,
  });
});

Deno.test("revoke is given what to revoke, why, and how long to wait", async () => {
  const { revocations: [plain], system } = await run(["revoke", "--group", "g"]);
  const defaults = { namespace: undefined, operation: undefined, reason: undefined, yes: false };
  assert.deepEqual(plain, { group: "g", ...defaults, timeoutMs: 30_000, system });
  const words = "revoke --group g --namespace n --operation o --yes --timeout 1m30s --reason";
  const { revocations: [all], system: other } = await run([...words.split(" "), " stuck "]);
  assert.deepEqual(all, {
    group: "g",
    namespace: "n",
    operation: "o",
    reason: "stuck",
    yes: true,
    timeoutMs: 90_000,
    system: other,
  });
});

Deno.test("config shows what is effective, and its reasons to refuse on the error output", async () => {
  const { code, stdout, stderr } = await run(["config", "--set", "tls.cert_file=a"]);
  assert.equal(code, 1);
  assert.match(stdout, /^ {2}cert_file: "a" # --set tls.cert_file$/m);
  assert.match(stderr, /^holdfast: Cannot serve TLS as [^\n]*\n$/);
});

Deno.test("config --json prints one document", async () => {
  const { code, stdout } = await run(["config", "--json", "--profile", "p"], {
    files: { "holdfast-p.yaml": "log: {level: warn}" },
  });
  assert.equal(code, 0);
  const { keys, problems } = JSON.parse(stdout);
  assert.deepEqual(problems, []);
  assert.deepEqual(keys.find(({ key }: { key: string }) => key === "log.level"), {
    key: "log.level",
    value: "warn",
    source: "holdfast-p.yaml",
  });
});

Deno.test("config --reference prints the page of the documentation", async () => {
  const page = await Deno.readTextFile(new URL("../../../docs/configuration.md", import.meta.url));
  const { code, stdout } = await run(["config", "--reference"], {
    env: { HOLDFAST__NOTHING: "x" },
  });
  assert.deepEqual({ code, stdout }, { code: 0, stdout: page });
});
