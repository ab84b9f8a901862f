import assert from "node:assert/strict";
import type { StatusOptions } from "../../../handlers/commands/options.ts";
import { status } from "../../../handlers/commands/status.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../../lib/group/types.ts";
import { LEASES } from "../../../lib/kube/resources.ts";
import { DEPLOYMENT_LEASE_ANNOTATION, slotName } from "../../../lib/records/names.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../../lib/testing/mod.ts";
import { Rig } from "../../controllers/rig.ts";
import { NAMESPACE, seedCluster, seedGroup } from "../../service/in_process.ts";
import { BROKEN_RECORD, CommandRig, type InterruptibleSystem } from "./command_rig.ts";
import { fakeSystem } from "./fake_system.ts";

/** The options of a plain look. */
function look(system: StatusOptions["system"], change: Partial<StatusOptions> = {}): StatusOptions {
  return {
    from: undefined,
    settings: {},
    namespace: undefined,
    all: false,
    watch: false,
    json: false,
    system,
    ...change,
  };
}

/** Runs a look to its end. */
async function run(
  place: CommandRig,
  system: InterruptibleSystem,
  change: Partial<StatusOptions> = {},
) {
  const code = await place.whileTimePasses(status(look(system, change)));
  assert.equal(system.handlers, 0, "a handler of signals is left behind");
  return { code, ...system.written };
}

async function openWithLeases(): Promise<CommandRig> {
  const place = await CommandRig.open();
  await place.rig.start();
  const { service } = place.rig;
  assert.equal((await service.client().grant("op-1", "tenant")).status, 201);
  const hold = await service.client().grant("op-1", "tenant", { kind: "failover-hold" });
  assert.equal(hold.status, 201);
  return place;
}

Deno.test("an administrator sees the groups of all namespaces, and who holds them", async () => {
  await using place = await openWithLeases();
  seedGroup(place.fake, "billing", []);
  const { code, stdout, stderr } = await run(place, place.administrator());
  assert.deepEqual([code, stderr], [0, ""]);
  const lines = stdout.trimEnd().split("\n");
  assert.deepEqual(lines.slice(0, 2), [
    "group database-ns/billing: active site iad, generation 7, stable",
    "group database-ns/orders: active site iad, generation 7, stable",
  ]);
  assert.match(
    lines[2] ?? "",
    /^lease database-ns\/orders: migration of operation op-1 for tenant by app-ns\/deployer, age \ds, 2\ds left, expires /,
  );
  assert.match(lines[3] ?? "", /^lease database-ns\/orders: failover-hold of operation op-1 /);
  assert.equal(lines.length, 4);
});

Deno.test("a terminal gets a table, and JSON has the documented members", async () => {
  await using place = await openWithLeases();
  const table = await run(place, place.administrator({ isTerminal: true }), {
    settings: { group: "orders" },
  });
  assert.match(
    table.stdout,
    /^database-ns\/orders {3}active site iad {3}generation 7 {3}stable\n {2}KIND /,
  );
  const json = await run(place, place.administrator(), { json: true });
  const report = JSON.parse(json.stdout);
  assert.deepEqual(Object.keys(report), ["source", "at", "groups", "problems"]);
  assert.equal(report.groups[0].leases[0].holder.serviceAccount, "deployer");
});

Deno.test("what has ended is shown with --all alone", async () => {
  await using place = await openWithLeases();
  const { coordinator } = place.rig.service;
  const { signal } = new AbortController();
  await coordinator.revoke(
    { namespace: NAMESPACE, name: "orders" },
    { reason: "operator_revoked" },
    signal,
  );
  const plain = await run(place, place.administrator());
  assert.doesNotMatch(plain.stdout, /op-1/);
  const all = await run(place, place.administrator(), { all: true });
  assert.equal(all.stdout.match(/operation op-1 .*revoked: operator_revoked/g)?.length, 2);
});

Deno.test("a record that cannot be read is told, the rest is shown, and the exit code says so", async () => {
  await using place = await openWithLeases();
  const name = { namespace: NAMESPACE, name: slotName("orders") };
  const { signal } = new AbortController();
  await place.rig.service.api.patch(LEASES, name, {
    type: "merge",
    body: { metadata: { annotations: { [DEPLOYMENT_LEASE_ANNOTATION]: BROKEN_RECORD } } },
  }, { signal });
  seedGroup(place.fake, "billing", []);
  const { code, stdout } = await run(place, place.administrator());
  assert.equal(code, 1);
  assert.match(stdout, /^group database-ns\/billing: .* stable$/m);
  assert.match(
    stdout,
    /^problem database-ns\/orders: Lease .*-migration cannot be used: .* expiresAt$/m,
  );
  assert.match(stdout, /^lease database-ns\/orders: failover-hold of operation op-1 /m);
});

Deno.test("a group that is not there, a cluster that does not answer, and one without the kind are told in one line", async () => {
  await using place = await CommandRig.open();
  const absent = await run(place, place.administrator(), { settings: { group: "nope" } });
  assert.deepEqual([absent.code, absent.stdout], [1, ""]);
  assert.equal(
    absent.stderr,
    "holdfast: Cannot find a MysqlFailoverGroup 'nope' in any namespace: it must exist\n",
  );
  const elsewhere = await run(place, place.administrator(), {
    settings: { group: "orders" },
    namespace: "default",
  });
  assert.match(elsewhere.stderr, /'orders' in namespace default: it must exist\n$/);

  const fault = place.fake.faults.add({ verb: "list", fault: { type: "status", code: 404 } });
  const without = await run(place, place.administrator());
  assert.deepEqual([without.code, without.stderr.split(":")[1]?.trim()], [
    1,
    "Cannot list the groups as this cluster has no kind MysqlFailoverGroup",
  ]);
  fault.remove();

  place.fake.faults.add({ verb: "list", fault: { type: "reset" } });
  const silent = await run(place, place.administrator());
  assert.equal(silent.code, 111);
  assert.match(silent.stderr, /^holdfast: Cannot list [^\n]*\n$/);
});

Deno.test("who may not list all namespaces is told of the verb and of --namespace", async () => {
  const clock = new TestClock();
  const fake = new FakeCluster({ clock, entropy: seededEntropy(1), rbac: true });
  seedCluster(fake);
  await using place = await CommandRig.open(new Rig({ fake, clock }));
  const nobody = place.administrator({}, fake.userToken("nobody"));
  const all = await run(place, nobody);
  assert.equal(all.code, 112);
  assert.match(all.stderr, /add the verb "list" .*, or look at one namespace with --namespace\n$/);
  const one = await run(place, place.administrator({}, fake.userToken("nobody")), {
    namespace: NAMESPACE,
  });
  assert.equal(one.code, 112);
  assert.doesNotMatch(one.stderr, /--namespace/);
});

Deno.test("without a cluster and without a service it is told what would be right", async () => {
  const system = fakeSystem();
  assert.equal(await status(look(system)), 1);
  assert.match(
    system.written.stderr,
    /^holdfast: Cannot find a cluster: .*, or HOLDFAST_URL must be set/,
  );
});

Deno.test("a watch in a pipe tells each change once, and ends with 0 when it is asked to", async () => {
  await using place = await CommandRig.open();
  await place.rig.start();
  const system = place.administrator();
  const watching = status(look(system, { watch: true }));
  await place.until(() => system.written.stdout.includes("group database-ns/orders"));
  const before = system.written.stdout;
  await place.whileTimePasses(new Promise((resolve) => setTimeout(resolve, 100)));
  assert.equal(system.written.stdout, before, "time alone is no news");
  const { token } = (await place.rig.service.client().grant("op-1", "tenant")).body;
  await place.until(() => system.written.stdout.includes("operation op-1"));
  await place.rig.service.client().release("op-1", String(token));
  await place.until(() => system.written.stdout.split("\nat ").length >= 3);
  system.signal("SIGINT");
  assert.equal(await place.whileTimePasses(watching), 0);
  const blocks = system.written.stdout.split("\n\n");
  assert.match(blocks[0] ?? "", /^at 2026-[^\n]+Z\ngroup database-ns\/orders: /);
  assert.doesNotMatch(blocks.at(-1) ?? "", /op-1/);
  assert.deepEqual([system.written.stderr, system.handlers], ["", 0]);
});

Deno.test("a watch on a terminal draws the screen anew, so that the time that is left runs", async () => {
  await using place = await openWithLeases();
  const system = place.administrator({ isTerminal: true });
  const watching = status(look(system, { watch: true, settings: { group: "orders" } }));
  await place.until(() => new Set(system.written.stdout.match(/\d+s left/g)).size >= 3);
  system.signal("SIGTERM");
  assert.equal(await place.whileTimePasses(watching), 0);
  assert.equal(system.written.stdout.split("\x1b[2J").length, 2, "the screen is cleared once");
  assert.match(system.written.stdout, /Ctrl\+C ends it/);
});

Deno.test("a watch as JSON prints one line for each change", async () => {
  await using place = await openWithLeases();
  const system = place.administrator();
  const watching = status(look(system, { watch: true, json: true }));
  await place.until(() => system.written.stdout !== "");
  await place.rig.service.client().grant("op-1", "tenant", { kind: "migration", ttlSeconds: 90 });
  await place.until(() => system.written.stdout.split("\n").length >= 3);
  system.signal("SIGINT");
  await place.whileTimePasses(watching);
  const reports = system.written.stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.ok(reports.every(({ source }) => source === "cluster"));
});

Deno.test("a watch that fails says that what it shows may be old, and goes on", async () => {
  await using place = await openWithLeases();
  const system = place.administrator();
  const watching = status(look(system, { watch: true }));
  await place.until(() => system.written.stdout !== "");
  const broken = place.fake.faults.add({ resource: "leases", fault: { type: "watch-break" } });
  const refused = place.fake.faults.add({
    resource: "leases",
    verb: "watch",
    fault: { type: "status", code: 503 },
  });
  await place.until(() =>
    system.written.stdout.includes("problem: The watch of leases fails (unavailable)")
  );
  broken.remove();
  refused.remove();
  await place.rig.service.client().grant("op-1", "tenant", { kind: "migration", ttlSeconds: 90 });
  await place.until(() => !(system.written.stdout.split("\n\n").at(-1) ?? "").includes("problem"));
  system.signal("SIGINT");
  assert.equal(await place.whileTimePasses(watching), 0);
});

Deno.test("a quiet watch asks for the time before what it knows of it is too old", async () => {
  await using place = await openWithLeases();
  const system = place.administrator();
  const watching = status(look(system, { watch: true }));
  await place.until(() => system.written.stdout !== "");
  await place.rig.stop();
  const asked = () => place.fake.calls.count({ resource: "/version" });
  const before = asked();
  await place.whileTimePasses(new Promise((resolve) => setTimeout(resolve, 50)), 5_000);
  await place.until(() => asked() > before);
  system.signal("SIGINT");
  assert.equal(await place.whileTimePasses(watching), 0);
});

Deno.test("a caller sees its group through the API, without who holds it", async () => {
  await using place = await openWithLeases();
  const { code, stdout, stderr } = await run(place, place.caller());
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(
    stdout,
    /^group database-ns\/orders: active site iad, generation 7, stable\nlease database-ns\/orders: migration of operation op-1 for tenant, /,
  );
  const json = JSON.parse((await run(place, place.caller(), { json: true })).stdout);
  assert.deepEqual([json.source, json.groups[0].leases[0].holder], ["api", null]);
});

Deno.test("the API's refusals have the exit codes of holdfast run", async () => {
  await using place = await CommandRig.open();
  const stranger = await run(place, place.caller({}, "stranger"));
  assert.equal(stranger.code, 112);
  assert.match(
    stranger.stderr,
    /^holdfast: Cannot look at group 'orders' as the service account is not allowed to: [^\n]*\n$/,
  );
  const tokenless = await run(place, place.caller({ env: { HOLDFAST_TOKEN_FILE: "/gone" } }));
  assert.equal(tokenless.code, 112);
  const plain = await run(place, place.caller({ env: { HOLDFAST_URL: "http://127.0.0.1:1" } }));
  assert.deepEqual([plain.code, /https/.test(plain.stderr)], [2, true]);
  const groupless = await run(place, place.caller({ env: { HOLDFAST_GROUP: "" } }));
  assert.deepEqual([groupless.code, /HOLDFAST_GROUP/.test(groupless.stderr)], [2, true]);
  const capitals = await run(place, place.caller(), { settings: { group: "Orders" } });
  assert.deepEqual([capitals.code, /current value is 'Orders'/.test(capitals.stderr)], [2, true]);
  place.rig.service.leads = false;
  const down = await run(place, place.caller());
  assert.deepEqual([down.code, down.stdout], [111, ""]);
});

Deno.test("a group that the API closes whole is shown with the reason", async () => {
  await using place = await openWithLeases();
  const { signal } = new AbortController();
  const name = { namespace: NAMESPACE, name: "orders" };
  await place.rig.service.api.patch(MYSQL_FAILOVER_GROUPS, name, {
    type: "merge",
    body: { status: { topologyGeneration: 3 } },
  }, { signal, subresource: "status" });
  const { code, stdout } = await run(place, place.caller());
  assert.equal(code, 1);
  assert.match(stdout, /^group orders: not stable: TopologyPersistencePending/);
});

Deno.test("a watch through the API asks each second, and tells of a service that is gone and comes back", async () => {
  await using place = await CommandRig.open();
  await place.rig.start();
  const system = place.caller();
  const watching = status(look(system, { watch: true }));
  await place.until(() => system.written.stdout.includes("group database-ns/orders"));
  await place.rig.service.client().grant("op-1", "tenant");
  await place.until(() => system.written.stdout.includes("operation op-1"));
  place.rig.service.leads = false;
  await place.until(() => system.written.stdout.includes("problem: Cannot reach the service"));
  assert.match(system.written.stdout.split("\n\n").at(-1) ?? "", /operation op-1/);
  place.rig.service.leads = true;
  await place.until(() => !(system.written.stdout.split("\n\n").at(-1) ?? "").includes("problem"));
  system.signal("SIGINT");
  assert.equal(await place.whileTimePasses(watching), 0);
});

Deno.test("options that do not go together are wrong usage, and name what would be right", async () => {
  await using place = await CommandRig.open();
  const table: readonly (readonly [Partial<StatusOptions>, RegExp])[] = [
    [{ from: "api", namespace: "x" }, /Cannot use --namespace with the API/],
    [{ all: true }, /Cannot show what has ended as the API does not show it/],
    [
      { from: "cluster", settings: { url: "https://x" } },
      /Cannot use --url, --ca-file or --token-file/,
    ],
  ];
  for (const [change, expected] of table) {
    const { code, stdout, stderr } = await run(place, place.caller(), change);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, expected);
  }
});

Deno.test("where the API is known it is asked, unless the cluster is asked for or a namespace is named", async () => {
  await using place = await CommandRig.open();
  const env = { HOLDFAST_URL: place.serviceUrl };
  const source = async (change: Partial<StatusOptions>, machine = {}) => {
    const system = place.administrator({ env, ...machine });
    return JSON.parse((await run(place, system, { json: true, ...change })).stdout || "{}").source;
  };
  assert.equal(await source({ from: "cluster" }), "cluster");
  assert.equal(await source({ namespace: NAMESPACE }), "cluster");
  assert.equal(await source({}, { env: {} }), "cluster");
  const { env: all } = place.caller();
  const given = {
    url: all.HOLDFAST_URL,
    caFile: all.HOLDFAST_CA_FILE,
    tokenFile: all.HOLDFAST_TOKEN_FILE,
    group: "orders",
  };
  const bare = place.caller({
    env: { HOLDFAST_URL: "", HOLDFAST_CA_FILE: "", HOLDFAST_TOKEN_FILE: "", HOLDFAST_GROUP: "" },
  });
  assert.equal(
    JSON.parse((await run(place, bare, { json: true, settings: given })).stdout).source,
    "api",
  );
});

Deno.test("a fault of the program is not dressed up", async () => {
  const fault = new TypeError("a mistake");
  const system = {
    ...fakeSystem({ env: { KUBECONFIG: "/x" } }),
    get clock(): never {
      throw fault;
    },
  };
  await assert.rejects(status(look(system)), fault);
});
