import assert from "node:assert/strict";
import { fromEnvironment } from "../../../handlers/commands/client.ts";
import type { EffectiveSettings } from "../../../lib/client/settings.ts";
import { callerOf, environmentOf, type RealCaller } from "../../client/real_caller.ts";
import { clusterTest } from "../../cluster/cluster_test_support.ts";
import { setStatus } from "../../service/orders.ts";
import { livingOf, RunProcess, untilGone } from "./run_process.ts";

const { signal } = new AbortController();

/** The shortest leases: deadline 8 s after the sending, stop at 4 s, kill at 6 s. */
const QUICK = ["--ttl", "8s", "--wait", "20s"];

const sh = (script: string) => ["--", "sh", "-c", script];

/** A group of its own at a service that all tests of this file share. */
interface Scene {
  readonly caller: RealCaller;
  readonly settings: EffectiveSettings;
  readonly env: Readonly<Record<string, string>>;
}

async function kindsHeld({ settings }: Scene): Promise<string[]> {
  const client = await fromEnvironment(settings);
  return (await client.observe()).leases.map(({ kind }) => kind);
}

async function writeStatus(
  { caller, settings }: Scene,
  status: Readonly<Record<string, unknown>>,
): Promise<void> {
  const name = { namespace: caller.namespace, name: settings.group };
  await setStatus(caller.cluster.adminApi, name, status, signal);
}

const tests: [name: string, body: (scene: Scene) => Promise<void>][] = [];

const test = (...one: typeof tests[number]) => void tests.push(one);

test("a command runs under both leases with its environment, and its exit code is that of run", async (scene) => {
  const script = `echo "$HOLDFAST_OPERATION_ID|$HOLDFAST_FENCE|$HOLDFAST_TOPOLOGY_GENERATION|` +
    `$HOLDFAST_ACTIVE_SITE|$KEPT"; test -f "$HOLDFAST_PHASE_FILE" || exit 9; ` +
    `echo go; read -r line < "$HOLDFAST_TEST_PIPE"`;
  const pipe = `${scene.caller.folder}/pipe`;
  await new Deno.Command("mkfifo", { args: [pipe] }).output();
  const env = { ...scene.env, KEPT: "yes", HOLDFAST_TEST_PIPE: pipe };
  await using process = new RunProcess(["--operation", "op-1", ...QUICK, ...sh(script)], env);
  await process.said(/^go$/m);
  assert.deepEqual(await kindsHeld(scene), ["migration", "failover-hold"]);
  await Deno.writeTextFile(pipe, "on\n");
  const { code, stdout, stderr } = await process.ended();
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^op-1\|\d+\|7\|iad\|yes$/m);
  assert.match(stderr, /^holdfast: Operation op-1 on group run-\d+, database tenant-run-\d+$/m);
  assert.match(stderr, /^holdfast: Holds the migration lease and a hold: active site iad/m);
  assert.deepEqual(await kindsHeld(scene), []);

  for (
    const [more, ddl, left] of [
      [[], "", []],
      [[], `echo ddl > "$HOLDFAST_PHASE_FILE"; `, ["migration"]],
    ] as const
  ) {
    await using failing = new RunProcess([...QUICK, ...more, ...sh(`${ddl}exit 7`)], scene.env);
    const failed = await failing.ended();
    assert.equal(failed.code, 7, failed.stderr);
    assert.deepEqual(await kindsHeld(scene), left);
  }
});

test("--no-hold takes the migration lease alone, and --release-on-failure releases it after DDL too", async (scene) => {
  const script = `echo ddl > "$HOLDFAST_PHASE_FILE"; echo go; sleep 1; exit 3`;
  const args = [...QUICK, "--no-hold", "--release-on-failure", ...sh(script)];
  await using process = new RunProcess(args, scene.env);
  await process.said(/^go$/m);
  assert.deepEqual(await kindsHeld(scene), ["migration"]);
  assert.equal((await process.ended()).code, 3);
  assert.deepEqual(await kindsHeld(scene), []);
});

test("a command that ignores SIGTERM is killed in time when the service is away", async (scene) => {
  const deaf = `trap '' TERM; echo pid $$; while :; do sleep 1; done`;
  await using process = new RunProcess([...QUICK, ...sh(deaf)], scene.env);
  const group = await process.commandPid();
  scene.caller.service.kill("SIGSTOP");
  const stoppedMs = performance.now();
  const { code, stderr } = await process.ended();
  scene.caller.service.kill("SIGCONT");
  assert.equal(code, 115, stderr);
  assert.deepEqual(await livingOf(group), []);
  assert.match(stderr, /its deadline is near and no renewal succeeded\. The command got SIGTERM/);
  // Both leases were renewed before; the kill comes a margin before the deadline. The rest is the release that was tried.
  assert.ok(performance.now() - stoppedMs < 14_000);
});

test(
  "a command that was stopped is killed all the same, and a loss after DDL says so",
  async (scene) => {
    const script = `echo ddl > "$HOLDFAST_PHASE_FILE"; echo pid $$; sleep 300`;
    await using process = new RunProcess([...QUICK, ...sh(script)], scene.env);
    const group = await process.commandPid();
    Deno.kill(group, "SIGSTOP");
    await writeStatus(scene, { activeSite: "pdx", topologyGeneration: 8 });
    const { code, stderr } = await process.ended();
    assert.equal(code, 116, stderr);
    assert.match(stderr, /the group's topology changed.*verify the schema by hand/);
    assert.deepEqual(await livingOf(group), []);
  },
);

test("a revocation stops the command at once", async (scene) => {
  const script = `trap 'echo asked; exit 0' TERM; echo pid $$; while :; do sleep 0.1; done`;
  await using process = new RunProcess([...QUICK, ...sh(script)], scene.env);
  await process.commandPid();
  await writeStatus(scene, { activeSite: "pdx", topologyGeneration: 8 });
  const changedMs = performance.now();
  await process.said(/^asked$/m);
  assert.ok(performance.now() - changedMs < 4_500, "At the next renewal, a third of the ttl later");
  assert.equal((await process.ended()).code, 115);
});

test("signals are passed on, the leases are released after the command ended, and its code is that of run", async (scene) => {
  const traps = "trap 'exit 42' TERM; trap 'exit 43' INT; ";
  // A command that dies of the signal has a shell's code for it.
  for (
    const [sent, handlers, code] of [
      ["SIGTERM", traps, 42],
      ["SIGINT", traps, 43],
      ["SIGTERM", "", 143],
      ["SIGINT", "", 130],
    ] as const
  ) {
    // The signal may come at the very moment at which the command starts: it goes to the command all the same.
    const script = `${handlers}echo pid $$; while :; do sleep 0.1; done`;
    await using process = new RunProcess([...QUICK, ...sh(script)], scene.env);
    await process.commandPid();
    process.kill(sent);
    const end = await process.ended();
    assert.equal(end.code, code, `${sent}: ${end.stderr}`);
    assert.deepEqual(await kindsHeld(scene), []);
  }
});

test("what a command leaves behind in its group ends with it", async (scene) => {
  const script = "echo pid $$; sleep 300 & sleep 300 & exit 0";
  await using process = new RunProcess([...QUICK, ...sh(script)], scene.env);
  const group = await process.commandPid();
  assert.equal((await process.ended()).code, 0);
  await untilGone(group, 1_000);
});

test("a wait that is interrupted ends at once and leaves no lease behind", async (scene) => {
  const client = await fromEnvironment(scene.settings);
  await using _lease = await client.acquire({ operationId: "the-holder" });
  await using interrupted = new RunProcess(["--wait", "1m", ...sh("exit 0")], scene.env);
  await interrupted.said(/Waiting/);
  interrupted.kill("SIGINT");
  const end = await interrupted.ended();
  assert.equal(end.code, 130, end.stderr);
  assert.match(end.stderr, /no lease is left behind/);
  assert.deepEqual(await kindsHeld(scene), ["migration"]);
});

test(
  "a group that is not stable, or lags, ends the wait with 114 and the reason",
  async (scene) => {
    const sites = (lag: number) => [
      { name: "iad", state: "writable", replicating: false },
      { name: "pdx", state: "read-only", replicating: true, secondsBehindSource: lag },
    ];
    await writeStatus(scene, { sites: sites(9) });
    await using lagging = new RunProcess(["--wait", "0s", ...sh("exit 0")], scene.env);
    const lagged = await lagging.ended();
    assert.equal(lagged.code, 114, lagged.stderr);
    assert.match(
      lagged.stderr,
      /ReplicationLag \(a replica is 9 s behind, at most 5 s are allowed\)/,
    );
    await using patient = new RunProcess(
      [...QUICK, "--max-lag", "any", ...sh("exit 0")],
      scene.env,
    );
    assert.equal((await patient.ended()).code, 0);
    await writeStatus(scene, { sites: sites(0), activeSite: "" });
    await using unstable = new RunProcess(["--wait", "0s", ...sh("exit 0")], scene.env);
    const end = await unstable.ended();
    assert.equal(end.code, 114, end.stderr);
    assert.match(end.stderr, /NoPrimary/);
  },
);

test("a guard that is killed ends the command: nobody would watch it", async (scene) => {
  const script = `echo ddl > "$HOLDFAST_PHASE_FILE"; echo pid $$ guard $PPID; sleep 300`;
  await using process = new RunProcess([...QUICK, ...sh(script)], scene.env);
  const [, group, guard] = await process.said(/^pid (\d+) guard (\d+)$/m);
  Deno.kill(Number(guard), "SIGTERM");
  assert.notDeepEqual(await livingOf(Number(group)), []);
  Deno.kill(Number(guard), "SIGKILL");
  const { code, stderr } = await process.ended();
  assert.equal(code, 137, stderr);
  assert.match(stderr, /the guard process was killed/);
  assert.deepEqual(await livingOf(Number(group)), []);
  assert.deepEqual(await kindsHeld(scene), ["migration"]);
});

test("who may not deploy gets 112, and a revoked operation 115", async (scene) => {
  await using stranger = new RunProcess(["--instance", "nobody", ...sh("exit 0")], scene.env);
  const end = await stranger.ended();
  assert.equal(end.code, 112, end.stderr);
  assert.match(end.stderr, /'spec.deploymentClients' of the MysqlDatabase 'nobody'/);

  const client = await fromEnvironment(scene.settings);
  const lease = await client.acquire({ operationId: "gone" });
  await writeStatus(scene, {
    activeSite: "pdx",
    topologyGeneration: 8,
    sites: [
      { name: "pdx", state: "writable", replicating: false },
      { name: "iad", state: "read-only", replicating: true, secondsBehindSource: 0 },
    ],
  });
  await assert.rejects(lease.renewNow(), { reason: "topology_changed" });
  await lease.release();
  await using again = new RunProcess(["--operation", "gone", ...sh("exit 0")], scene.env);
  const refused = await again.ended();
  assert.equal(refused.code, 115, refused.stderr);
  assert.match(
    refused.stderr,
    /was revoked \(topology_changed\) and stays so: use a new operation/,
  );
});

clusterTest("holdfast run, as a process beside a real API server", async (cluster, context) => {
  await using caller = await callerOf(cluster, "run");
  for (const [index, [name, body]] of tests.entries()) {
    const settings = await caller.openGroup(`run-${index}`);
    await context.step(name, () => body({ caller, settings, env: environmentOf(settings) }));
  }
});
