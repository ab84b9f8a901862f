import assert from "node:assert/strict";
import { Command, CommanderError } from "commander";
import { createAuthority } from "../../../lib/testing/mod.ts";
import { addRunCommands } from "../../../handlers/commands/run/command_line.ts";
import type { RunOptions } from "../../../handlers/commands/run/options.ts";
import { fakeSystem } from "./fake_system.ts";
import { RunProcess } from "./run_process.ts";

async function parse(args: readonly string[]) {
  const system = fakeSystem();
  const runs: RunOptions[] = [];
  let code = 0;
  const program = new Command("holdfast").exitOverride().configureOutput({
    writeErr: (text) => system.stderr.write(text),
  });
  addRunCommands(program, system, {
    run: (options) => {
      runs.push(options);
      return Promise.resolve(17);
    },
    runGuard: () => Promise.resolve(18),
  }, (one) => void (code = one));
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    // What the whole command line then ends with is held by its own tests.
    assert.ok(error instanceof CommanderError);
    code = 2;
  }
  return { code, run: runs[0], stderr: system.written.stderr };
}

const parseRun = (args: readonly string[]) => parse(["run", ...args]);

Deno.test("the guard is a command that help does not show", async () => {
  assert.equal((await parse(["run-guard", "/a/socket"])).code, 18);
  const program = new Command("holdfast");
  const nothing = () => Promise.resolve(0);
  addRunCommands(program, fakeSystem(), { run: nothing, runGuard: nothing }, () => {});
  assert.match(program.helpInformation(), /\n {2}run \[options\]/);
  assert.doesNotMatch(program.helpInformation(), /guard/);
});

Deno.test("the options of run have defaults, and what is behind -- is the command's", async () => {
  const { code, run } = await parseRun(["--", "flyway", "migrate", "--wait", "x"]);
  assert.equal(code, 17);
  assert.deepEqual(run?.command, ["flyway", "migrate", "--wait", "x"]);
  assert.deepEqual(
    [run?.ttlMs, run?.waitMs, run?.maxLagMs, run?.hold, run?.releaseOnFailure, run?.operationId],
    [30_000, 600_000, 5_000, true, false, undefined],
  );
  const given = await parseRun([
    ...["--url", "https://h", "--ca-file", "c", "--token-file", "t", "--group", "g"],
    ...["--instance", "i", "--operation", "o", "--ttl", "1m", "--wait", "0s", "--max-lag", "any"],
    ...["--no-hold", "--release-on-failure", "--", "true"],
  ]);
  const { system: _system, ...options } = given.run ?? {};
  assert.deepEqual(options, {
    command: ["true"],
    settings: { url: "https://h", caFile: "c", tokenFile: "t", group: "g", instance: "i" },
    operationId: "o",
    ttlMs: 60_000,
    waitMs: 0,
    maxLagMs: null,
    hold: false,
    releaseOnFailure: true,
  });
});

Deno.test("wrong usage of run ends with 2 and one line that says what is wrong", async () => {
  const table: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /missing required argument 'command'/],
    [["--ttl", "30", "--", "true"], /It must be a duration, for example 30s/],
    [["--wait", "-1s", "--", "true"], /It must be a duration/],
    [["--max-lag", "much", "--", "true"], /It must be a duration/],
    [["--nope", "--", "true"], /unknown option '--nope'/],
  ];
  for (const [args, text] of table) {
    const { code, run, stderr } = await parseRun(args);
    assert.deepEqual([code, run], [2, undefined]);
    assert.match(stderr, text);
  }
});

const url = "https://127.0.0.1:1";
const env = {
  HOLDFAST_URL: url,
  HOLDFAST_CA_FILE: "",
  HOLDFAST_TOKEN_FILE: "/none/token",
  HOLDFAST_GROUP: "orders",
  HOLDFAST_INSTANCE: "tenant",
};

async function run(args: readonly string[], more: Readonly<Record<string, string>> = {}) {
  await using process = new RunProcess(args, { ...env, ...more });
  return await process.ended();
}

Deno.test("bad settings end with 2, before anything is started", async () => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/none.crt`, "hello");
  try {
    const table: readonly (readonly [readonly string[], RegExp])[] = [
      [["--ttl", "4s"], /'ttlSeconds' must be a whole number of seconds from 5 to 120/],
      [["--ttl", "121s"], /'ttlSeconds' must be .* current value is 121/],
      [["--ttl", "7s"], /'ttlSeconds' must be so long/],
      [["--group", "Orders"], /'group' must be a DNS-1123 subdomain.*'Orders'/],
      [["--url", "http://holdfast"], /must begin with https/],
      [["--ca-file", `${folder}/none.crt`], /must hold certificates in PEM form/],
      [["--ca-file", `${folder}/missing.crt`], /Cannot read the authority/],
    ];
    for (const [args, text] of table) {
      const { code, stderr } = await run([...args, "--", "true"]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, text);
      assert.equal(stderr.trim().split("\n").length, 1, stderr);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a command that does not exist ends with 127, and nothing was asked of the service", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/plain`, "#!/bin/sh\n", { mode: 0o644 });
    for (const command of ["no-such-command-here", `${folder}/plain`, `${folder}/none`, folder]) {
      const { code, stderr } = await run(["--", command]);
      assert.equal(code, 127, stderr);
      assert.match(stderr, new RegExp(`^holdfast: Cannot run '${command}' as there is no such`));
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a token that cannot be read ends with 112, a service that is away with 111", async () => {
  const none = await run(["--wait", "0s", "--", "true"]);
  assert.equal(none.code, 112, none.stderr);
  assert.match(none.stderr, /token cannot be read.*HOLDFAST_TOKEN_FILE/);

  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/token`, "t\n");
    const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    await Deno.writeTextFile(`${folder}/ca.crt`, authority.caPem);
    const files = { HOLDFAST_TOKEN_FILE: `${folder}/token`, HOLDFAST_CA_FILE: `${folder}/ca.crt` };
    const away = await run(["--wait", "0s", "--", "true"], files);
    assert.equal(away.code, 111, away.stderr);
    assert.match(away.stderr, /Cannot reach the service as the connection failed \(ECONNREFUSED\)/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
