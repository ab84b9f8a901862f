import assert from "node:assert/strict";
import { fromEnvironment } from "../../../handlers/commands/client.ts";
import { callerOf, type RealCaller } from "../../client/real_caller.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { clusterTest } from "../../cluster/cluster_test_support.ts";
import { setStatus } from "../../service/orders.ts";
import { livingOf, RunProcess, untilGone } from "./run_process.ts";

const { signal } = new AbortController();

/** The shortest leases: deadline 8 s after the sending, stop at 4 s, kill at 6 s. */
const QUICK = ["--ttl", "8s", "--wait", "20s"];

const sh = (script: string) => ["--", "sh", "-c", script];

/** Says who it is and works for long. */
const WORK = "echo pid $$; sleep 300";

async function kindsHeld(caller: RealCaller): Promise<string[]> {
  const client = await fromEnvironment(caller.settings);
  return (await client.observe()).leases.map(({ kind }) => kind);
}

/** Takes the lease as another operation, and gives the moment at which it was granted. */
async function nextGrant(caller: RealCaller): Promise<void> {
  const client = await fromEnvironment({ ...caller.settings, instance: "billing" });
  const lease = await client.acquire({ operationId: crypto.randomUUID(), waitSeconds: 30 });
  await lease.release();
}

const test = (name: string, body: (caller: RealCaller, cluster: Cluster) => Promise<void>) =>
  clusterTest(name, async (cluster) => {
    await using caller = await callerOf(cluster, "run");
    await body(caller, cluster);
  });

test("a command runs under both leases with its environment, and its exit code is that of run", async (caller) => {
  const script = `echo "$HOLDFAST_OPERATION_ID|$HOLDFAST_FENCE|$HOLDFAST_TOPOLOGY_GENERATION|` +
    `$HOLDFAST_ACTIVE_SITE|$KEPT"; test -f "$HOLDFAST_PHASE_FILE" || exit 9; ` +
    `echo go; read -r line < "$HOLDFAST_TEST_PIPE"`;
  const pipe = `${caller.folder}/pipe`;
  await new Deno.Command("mkfifo", { args: [pipe] }).output();
  const env = { ...caller.env, KEPT: "yes", HOLDFAST_TEST_PIPE: pipe };
  await using process = new RunProcess(["--operation", "op-1", ...QUICK, ...sh(script)], env);
  await process.said(/^go$/m);
  assert.deepEqual(await kindsHeld(caller), ["migration", "failover-hold"]);
  await Deno.writeTextFile(pipe, "on\n");
  const { code, stdout, stderr } = await process.ended();
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^op-1\|\d+\|7\|iad\|yes$/m);
  assert.match(stderr, /^holdfast: Operation op-1 on group orders, database tenant$/m);
  assert.match(stderr, /^holdfast: Holds the migration lease and a hold: active site iad/m);
  assert.deepEqual(await kindsHeld(caller), []);

  for (
    const [more, ddl, left] of [
      [[], "", []],
      [[], `echo ddl > "$HOLDFAST_PHASE_FILE"; `, ["migration"]],
    ] as const
  ) {
    await using failing = new RunProcess([...QUICK, ...more, ...sh(`${ddl}exit 7`)], caller.env);
    const failed = await failing.ended();
    assert.equal(failed.code, 7, failed.stderr);
    assert.deepEqual(await kindsHeld(caller), left);
  }
});

test("--no-hold takes the migration lease alone, and --release-on-failure releases it after DDL too", async (caller) => {
  const script = `echo ddl > "$HOLDFAST_PHASE_FILE"; echo go; sleep 1; exit 3`;
  const args = [...QUICK, "--no-hold", "--release-on-failure", ...sh(script)];
  await using process = new RunProcess(args, caller.env);
  await process.said(/^go$/m);
  assert.deepEqual(await kindsHeld(caller), ["migration"]);
  assert.equal((await process.ended()).code, 3);
  assert.deepEqual(await kindsHeld(caller), []);
});

test("a supervisor that is killed takes its command and all of its children with it, before the next grant", async (caller) => {
  const script = `echo pid $$; sh -c "sleep 300 & sleep 300" & sleep 300`;
  await using process = new RunProcess([...QUICK, ...sh(script)], caller.env);
  const group = await process.commandPid();
  while ((await livingOf(group)).length < 5) await new Promise((done) => setTimeout(done, 20));
  process.kill("SIGKILL");
  const killedMs = performance.now();
  await process.ended();
  await untilGone(group, 2_000);
  assert.ok(performance.now() - killedMs < 2_000);
  await nextGrant(caller);
});

test("a supervisor that is stopped past its ttl: the command is gone before the next grant, and the resumed one says lost", async (caller) => {
  await using process = new RunProcess([...QUICK, ...sh(WORK)], caller.env);
  const group = await process.commandPid();
  process.kill("SIGSTOP");
  await nextGrant(caller);
  assert.deepEqual(await livingOf(group), []);
  process.kill("SIGCONT");
  const { code, stderr } = await process.ended();
  assert.equal(code, 115, stderr);
  assert.match(stderr, /Cannot go on under operation/);
});

test("a command that ignores SIGTERM, and one that is stopped, is killed in time when the service is away", async (caller) => {
  const deaf = `trap '' TERM; echo pid $$; while :; do sleep 1; done`;
  await using process = new RunProcess([...QUICK, ...sh(deaf)], caller.env);
  const group = await process.commandPid();
  caller.service.kill("SIGSTOP");
  const stoppedMs = performance.now();
  const { code, stderr } = await process.ended();
  caller.service.kill("SIGCONT");
  assert.equal(code, 115, stderr);
  assert.deepEqual(await livingOf(group), []);
  assert.match(stderr, /its deadline is near and no renewal succeeded\. The command got SIGTERM/);
  // Both leases were renewed before; the kill comes a margin before the deadline. The rest is the release that was tried.
  assert.ok(performance.now() - stoppedMs < 14_000);
});

test(
  "a command that was stopped is killed all the same, and a loss after DDL says so",
  async (caller, cluster) => {
    const script = `echo ddl > "$HOLDFAST_PHASE_FILE"; echo pid $$; sleep 300`;
    await using process = new RunProcess([...QUICK, ...sh(script)], caller.env);
    const group = await process.commandPid();
    Deno.kill(group, "SIGSTOP");
    const name = { namespace: caller.namespace, name: "orders" };
    await setStatus(cluster.adminApi, name, { activeSite: "pdx", topologyGeneration: 8 }, signal);
    const { code, stderr } = await process.ended();
    assert.equal(code, 116, stderr);
    assert.match(stderr, /the group's topology changed.*verify the schema by hand/);
    assert.deepEqual(await livingOf(group), []);
  },
);

test("a revocation stops the command at once", async (caller, cluster) => {
  const script = `trap 'echo asked; exit 0' TERM; echo pid $$; while :; do sleep 0.1; done`;
  await using process = new RunProcess([...QUICK, ...sh(script)], caller.env);
  await process.commandPid();
  const name = { namespace: caller.namespace, name: "orders" };
  await setStatus(cluster.adminApi, name, { activeSite: "pdx", topologyGeneration: 8 }, signal);
  const changedMs = performance.now();
  await process.said(/^asked$/m);
  assert.ok(performance.now() - changedMs < 4_500, "At the next renewal, a third of the ttl later");
  assert.equal((await process.ended()).code, 115);
});

test("signals are passed on, and the leases are released after the command ended", async (caller) => {
  // The signal may come at the very moment at which the command starts: it goes to the command all the same.
  for (const [sent, code] of [["SIGTERM", 42], ["SIGINT", 43]] as const) {
    const script =
      `trap 'exit 42' TERM; trap 'exit 43' INT; echo pid $$; while :; do sleep 0.1; done`;
    await using process = new RunProcess([...QUICK, ...sh(script)], caller.env);
    await process.commandPid();
    process.kill(sent);
    const end = await process.ended();
    assert.equal(end.code, code, end.stderr);
    assert.deepEqual(await kindsHeld(caller), []);
  }
});

test("what a command leaves behind in its group ends with it", async (caller) => {
  const script = "echo pid $$; sleep 300 & sleep 300 & exit 0";
  await using process = new RunProcess([...QUICK, ...sh(script)], caller.env);
  const group = await process.commandPid();
  assert.equal((await process.ended()).code, 0);
  await untilGone(group, 1_000);
});

test("a wait ends in time with 113 and the holder's name; one that is interrupted leaves nothing", async (caller) => {
  const client = await fromEnvironment(caller.settings);
  await using _lease = await client.acquire({ operationId: "the-holder" });
  const startMs = performance.now();
  await using waiting = new RunProcess(["--wait", "3s", "--instance", "billing", ...sh("exit 0")], {
    ...caller.env,
  });
  const { code, stderr } = await waiting.ended();
  assert.equal(code, 113, stderr);
  assert.match(stderr, /Waiting for up to [23]s: .*'the-holder' of 'tenant'/);
  assert.equal(stderr.match(/Waiting/g)?.length, 1, "One line for each change");
  assert.match(
    stderr,
    /holdfast: Cannot take the migration lease .* 'the-holder' of 'tenant'.*\n$/,
  );
  const tookMs = performance.now() - startMs;
  assert.ok(tookMs > 3_000 && tookMs < 10_000, String(tookMs));

  await using interrupted = new RunProcess(["--wait", "1m", ...sh("exit 0")], caller.env);
  await interrupted.said(/Waiting/);
  interrupted.kill("SIGINT");
  const end = await interrupted.ended();
  assert.equal(end.code, 130, end.stderr);
  assert.match(end.stderr, /no lease is left behind/);
});

test(
  "a group that is not stable, or lags, ends the wait with 114 and the reason",
  async (caller, cluster) => {
    const name = { namespace: caller.namespace, name: "orders" };
    const sites = (lag: number) => [
      { name: "iad", state: "writable", replicating: false },
      { name: "pdx", state: "read-only", replicating: true, secondsBehindSource: lag },
    ];
    await setStatus(cluster.adminApi, name, { sites: sites(9) }, signal);
    await using lagging = new RunProcess(["--wait", "0s", ...sh("exit 0")], caller.env);
    const lagged = await lagging.ended();
    assert.equal(lagged.code, 114, lagged.stderr);
    assert.match(
      lagged.stderr,
      /ReplicationLag \(a replica is 9 s behind, at most 5 s are allowed\)/,
    );
    await using patient = new RunProcess(
      [...QUICK, "--max-lag", "any", ...sh("exit 0")],
      caller.env,
    );
    assert.equal((await patient.ended()).code, 0);
    await setStatus(cluster.adminApi, name, { sites: sites(0), activeSite: "" }, signal);
    await using unstable = new RunProcess(["--wait", "0s", ...sh("exit 0")], caller.env);
    const end = await unstable.ended();
    assert.equal(end.code, 114, end.stderr);
    assert.match(end.stderr, /NoPrimary/);
  },
);

test("a guard that is killed ends the command: nobody would watch it", async (caller) => {
  const script = `echo ddl > "$HOLDFAST_PHASE_FILE"; echo pid $$ guard $PPID; sleep 300`;
  await using process = new RunProcess([...QUICK, ...sh(script)], caller.env);
  const [, group, guard] = await process.said(/^pid (\d+) guard (\d+)$/m);
  Deno.kill(Number(guard), "SIGTERM");
  assert.notDeepEqual(await livingOf(Number(group)), []);
  Deno.kill(Number(guard), "SIGKILL");
  const { code, stderr } = await process.ended();
  assert.equal(code, 137, stderr);
  assert.match(stderr, /the guard process was killed/);
  assert.deepEqual(await livingOf(Number(group)), []);
  assert.deepEqual(await kindsHeld(caller), ["migration"]);
});

test("who may not deploy gets 112, and a revoked operation 115", async (caller, cluster) => {
  await using stranger = new RunProcess(["--instance", "nobody", ...sh("exit 0")], caller.env);
  const end = await stranger.ended();
  assert.equal(end.code, 112, end.stderr);
  assert.match(end.stderr, /'spec.deploymentClients' of the MysqlDatabase 'nobody'/);

  const client = await fromEnvironment(caller.settings);
  const lease = await client.acquire({ operationId: "gone" });
  const name = { namespace: caller.namespace, name: "orders" };
  await setStatus(cluster.adminApi, name, {
    activeSite: "pdx",
    topologyGeneration: 8,
    sites: [
      { name: "pdx", state: "writable", replicating: false },
      { name: "iad", state: "read-only", replicating: true, secondsBehindSource: 0 },
    ],
  }, signal);
  await assert.rejects(lease.renewNow(), { reason: "topology_changed" });
  await lease.release();
  await using again = new RunProcess(["--operation", "gone", ...sh("exit 0")], caller.env);
  const refused = await again.ended();
  assert.equal(refused.code, 115, refused.stderr);
  assert.match(
    refused.stderr,
    /was revoked \(topology_changed\) and stays so: use a new operation/,
  );
});
