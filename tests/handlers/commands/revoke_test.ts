import assert from "node:assert/strict";
import type { RevokeOptions } from "../../../handlers/commands/options.ts";
import { type Asker, revoke } from "../../../handlers/commands/revoke.ts";
import { MYSQL_FAILOVER_GROUPS, REVOKE_ANNOTATION } from "../../../lib/group/types.ts";
import { LEASES } from "../../../lib/kube/resources.ts";
import { DEPLOYMENT_LEASE_ANNOTATION, holdName } from "../../../lib/records/names.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../../lib/testing/mod.ts";
import { Rig } from "../../controllers/rig.ts";
import { NAMESPACE, seedCluster } from "../../service/in_process.ts";
import { BROKEN_RECORD, CommandRig } from "./command_rig.ts";

const { signal } = new AbortController();
const NAME = { namespace: NAMESPACE, name: "orders" };

function revocation(
  system: RevokeOptions["system"],
  change: Partial<RevokeOptions> = {},
): RevokeOptions {
  return {
    group: "orders",
    namespace: undefined,
    operation: undefined,
    reason: undefined,
    yes: true,
    timeoutMs: 30_000,
    system,
    ...change,
  };
}

const nobody: Asker = { canAsk: false, ask: () => assert.fail("asked where nobody can answer") };

/** Answers one question after the other. */
function answers(...given: (() => boolean)[]): Asker & { readonly questions: string[] } {
  const questions: string[] = [];
  return {
    canAsk: true,
    questions,
    ask(question) {
      questions.push(question);
      const answer = given.shift();
      assert.ok(answer, `not expected: ${question}`);
      return answer();
    },
  };
}

async function run(
  place: CommandRig,
  change: Partial<RevokeOptions> = {},
  asker: Asker = nobody,
  system = place.administrator(),
) {
  const code = await place.whileTimePasses(revoke(revocation(system, change), asker));
  assert.equal(system.handlers, 0, "a handler of signals is left behind");
  return { code, ...system.written };
}

/** A place with a migration and a hold of `op-1`. Somebody leads unless it is said otherwise. */
async function open({ leads = true } = {}): Promise<CommandRig> {
  const place = await CommandRig.open();
  if (leads) await place.rig.start();
  const client = place.rig.service.client();
  assert.equal((await client.grant("op-1", "tenant", { ttlSeconds: 120 })).status, 201);
  const hold = { kind: "failover-hold", ttlSeconds: 120 };
  assert.equal((await client.grant("op-1", "tenant", hold)).status, 201);
  return place;
}

const active = { "migration op-1 slot": "active", "failover-hold op-1": "active" };
const revoked = { "migration op-1 slot": "revoked", "failover-hold op-1": "revoked" };

const isAsked = (place: CommandRig) =>
  place.group.metadata.annotations?.[REVOKE_ANNOTATION] !== undefined;

/** Serves the request as an operator would. */
async function serveRequest(place: CommandRig, revokes = true): Promise<void> {
  const { api, coordinator } = place.rig.service;
  if (revokes) await coordinator.revoke(NAME, { reason: "operator_revoked" }, signal);
  await api.patch(MYSQL_FAILOVER_GROUPS, NAME, {
    type: "merge",
    body: { metadata: { annotations: { [REVOKE_ANNOTATION]: null } } },
  }, { signal });
}

const notes = (place: CommandRig) =>
  place.rig.stored.filter(({ reason }) => reason === "DeploymentRevocationRequested")
    .map(({ note }) => note);

Deno.test("all leases of a group are revoked by the leader, each is told, and the Event says who and why", async () => {
  await using place = await open();
  const { code, stdout, stderr } = await run(place, { reason: "stuck since noon" });
  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(place.states(), revoked);
  assert.equal(isAsked(place), false);
  const lines = stdout.trimEnd().split("\n");
  assert.equal(lines[0], "group database-ns/orders: active site iad, generation 7, stable");
  assert.equal(lines[1], "All leases of the group will be revoked:");
  assert.match(
    lines[2] ?? "",
    /^lease database-ns\/orders: migration of operation op-1 for tenant by app-ns\/deployer/,
  );
  assert.deepEqual(lines.slice(4), [
    "Asked for. Waiting until the service or the operator has done it",
    "revoked: migration of operation op-1 for tenant",
    "revoked: failover-hold of operation op-1 for tenant",
    "Done: 2 leases revoked. The group is open for new operations",
  ]);
  assert.deepEqual(notes(place), [
    "test (so called by the kubeconfig) asked to revoke all leases: stuck since noon",
  ]);
});

Deno.test("a group that nobody holds is left alone", async () => {
  await using place = await CommandRig.open();
  const { code, stdout } = await run(place);
  assert.equal(code, 0);
  assert.match(stdout, /There is nothing to revoke/);
  assert.deepEqual([isAsked(place), notes(place)], [false, []]);
});

Deno.test("a pipe needs --yes: it shows the list and changes nothing", async () => {
  await using place = await open();
  const { code, stdout, stderr } = await run(place, { yes: false });
  assert.equal(code, 1);
  assert.match(stdout, /operation op-1/);
  assert.equal(
    stderr,
    "holdfast: Cannot revoke without a yes as nobody can be asked here: look at the list and give --yes\n",
  );
  assert.deepEqual([place.states(), isAsked(place), notes(place)], [active, false, []]);
});

Deno.test("a person is asked, and a no changes nothing", async () => {
  await using place = await open();
  const asker = answers(() => false);
  const { code, stderr } = await run(
    place,
    { yes: false },
    asker,
    place.administrator({ isTerminal: true }),
  );
  assert.deepEqual([code, stderr], [1, "holdfast: Nothing was revoked\n"]);
  assert.deepEqual(asker.questions, ["Revoke 2 leases?"]);
  assert.deepEqual([place.states(), isAsked(place)], [active, false]);
});

Deno.test("who gets a lease while the question stands is shown, and asked for too", async () => {
  await using place = await open();
  const late = () => {
    place.seedLease({
      kind: "failover-hold",
      operationId: "op-2",
      expiresAt: "2026-01-01T00:10:00Z",
    });
    return true;
  };
  const asker = answers(late, () => true);
  const { code, stdout } = await run(place, { yes: false }, asker);
  assert.equal(code, 0);
  assert.deepEqual(asker.questions, ["Revoke 2 leases?", "Revoke 1 lease?"]);
  assert.match(
    stdout,
    /^Granted since the list was shown:\nlease .*failover-hold of operation op-2 /m,
  );
  assert.deepEqual(place.states(), { ...revoked, "failover-hold op-2": "revoked" });
});

Deno.test("a no to a lease that came later leaves all of them alone", async () => {
  await using place = await open();
  const late = () => {
    place.seedLease({
      kind: "failover-hold",
      operationId: "op-2",
      expiresAt: "2026-01-01T00:10:00Z",
    });
    return true;
  };
  const { code } = await run(place, { yes: false }, answers(late, () => false));
  assert.deepEqual([code, isAsked(place)], [1, false]);
  assert.deepEqual(place.states(), { ...active, "failover-hold op-2": "active" });
});

Deno.test("what was granted in the last moment and revoked with the rest is told as that", async () => {
  await using place = await open({ leads: false });
  const system = place.administrator();
  const done = revoke(revocation(system), nobody);
  await place.until(() => isAsked(place));
  place.seedLease({
    kind: "failover-hold",
    operationId: "op-2",
    state: "revoked",
    reason: "operator_revoked",
    createdAt: "2026-01-01T00:00:09Z",
  });
  await serveRequest(place);
  assert.equal(await place.whileTimePasses(done), 0);
  assert.match(
    system.written.stdout,
    /^revoked: failover-hold of operation op-2 for orders-app, which was granted after the list was shown$/m,
  );
});

Deno.test("a request that nobody serves stays, and the user learns what to check", async () => {
  await using place = await open({ leads: false });
  const { code, stdout, stderr } = await run(place, { timeoutMs: 20_000 });
  assert.equal(code, 3);
  assert.match(stdout, /^Nobody has begun for 5 s; waiting on$/m);
  assert.match(stderr, /^holdfast: The revocation is not done yet, and the wait lasted 20 s\. /);
  assert.match(stderr, /'holdfast serve' runs, leads .* deploy_api\.enabled/);
  assert.match(
    stderr,
    /kubectl annotate mysqlfailovergroup orders -n database-ns bloodraven\S+-$/m,
  );
  assert.deepEqual([isAsked(place), notes(place).length], [true, 1]);
  assert.deepEqual(place.states(), active);
});

Deno.test("a lease that cannot be read is told as what may be in the way", async () => {
  await using place = await open();
  const name = { namespace: NAMESPACE, name: holdName("orders", "op-1") };
  await place.rig.service.api.patch(LEASES, name, {
    type: "merge",
    body: { metadata: { annotations: { [DEPLOYMENT_LEASE_ANNOTATION]: BROKEN_RECORD } } },
  }, { signal });
  const { code, stdout, stderr } = await run(place, { timeoutMs: 3_000 });
  assert.equal(code, 3);
  assert.match(stdout, /^revoked: migration of operation op-1/m);
  assert.match(stderr, /^holdfast: warning: Lease .* cannot be used/);
  assert.match(stderr, /^holdfast: This may be in the way: Lease .* cannot be used/m);
});

Deno.test("a group whose only lease cannot be read is not called free", async () => {
  await using place = await CommandRig.open();
  place.seedLease({});
  const { name } = place.fake.readAll(LEASES, NAMESPACE)[0]?.metadata ?? {};
  await place.rig.service.api.patch(LEASES, { namespace: NAMESPACE, name: name ?? "" }, {
    type: "merge",
    body: { metadata: { annotations: { [DEPLOYMENT_LEASE_ANNOTATION]: BROKEN_RECORD } } },
  }, { signal });
  assert.equal((await run(place)).code, 1);
});

Deno.test("a revocation that somebody else asked for is waited for, and not asked for again", async () => {
  await using place = await open({ leads: false });
  const { api } = place.rig.service;
  const annotations = { [REVOKE_ANNOTATION]: "by hand" };
  await api.patch(MYSQL_FAILOVER_GROUPS, NAME, {
    type: "merge",
    body: { metadata: { annotations } },
  }, { signal });
  const system = place.administrator();
  const done = revoke(revocation(system, { yes: false }), nobody);
  await place.until(() => system.written.stdout.includes("Somebody has asked for it already"));
  assert.equal(place.group.metadata.annotations?.[REVOKE_ANNOTATION], "by hand");
  await serveRequest(place);
  assert.equal(await place.whileTimePasses(done), 0);
  assert.match(system.written.stdout, /^revoked: migration of operation op-1 for tenant$/m);
});

Deno.test("a request that comes while the question stands is joined", async () => {
  await using place = await open({ leads: false });
  const elsewhere = () => {
    const group = place.group;
    const annotations = { [REVOKE_ANNOTATION]: "by hand" };
    place.fake.seed(MYSQL_FAILOVER_GROUPS, {
      ...group,
      metadata: { ...group.metadata, annotations },
    });
    return true;
  };
  const system = place.administrator();
  const done = revoke(revocation(system, { yes: false }), answers(elsewhere));
  await place.until(() => system.written.stdout.includes("Asked for"));
  assert.equal(place.group.metadata.annotations?.[REVOKE_ANNOTATION], "by hand");
  await serveRequest(place);
  assert.equal(await place.whileTimePasses(done), 0);
});

Deno.test("a request that somebody removes by hand is no revocation", async () => {
  await using place = await open({ leads: false });
  const system = place.administrator();
  const done = revoke(revocation(system), nobody);
  await place.until(() => isAsked(place));
  await serveRequest(place, false);
  assert.equal(await place.whileTimePasses(done), 1);
  assert.match(
    system.written.stderr,
    /^holdfast: Cannot confirm the revocation: .* 2 leases of the list still stand/m,
  );
  assert.deepEqual(place.states(), active);
});

Deno.test("a lease that ends by itself before it is served is told as that", async () => {
  await using place = await CommandRig.open();
  place.seedLease({ kind: "failover-hold", expiresAt: "2026-01-01T00:10:00Z" });
  const system = place.administrator();
  const done = revoke(revocation(system), nobody);
  await place.until(() => isAsked(place));
  place.seedLease({ kind: "failover-hold", state: "released" });
  await serveRequest(place);
  assert.equal(await place.whileTimePasses(done), 0);
  assert.match(
    system.written.stdout,
    /^ended by itself before: failover-hold of operation op-1\nDone: 0 leases revoked/m,
  );
});

Deno.test("Ctrl+C ends the wait and leaves the request, and says so", async () => {
  await using place = await open({ leads: false });
  const system = place.administrator();
  const done = revoke(revocation(system), nobody);
  await place.until(() => isAsked(place) && notes(place).length === 1);
  system.signal("SIGINT");
  assert.equal(await place.whileTimePasses(done), 3);
  assert.match(system.written.stderr, /the wait was stopped\. The request stays on the group/);
  assert.equal(isAsked(place), true);
});

Deno.test("Ctrl+C before anything was sent changes nothing", async () => {
  await using place = await open({ leads: false });
  const system = place.administrator();
  const stuck = place.fake.faults.add({ verb: "get", fault: { type: "hang" } });
  const done = revoke(revocation(system), nobody);
  await place.until(() => stuck.hits > 0);
  system.signal("SIGINT");
  assert.equal(await place.whileTimePasses(done, 0), 1);
  assert.match(system.written.stderr, /^holdfast: Stopped: /);
  stuck.remove();
  assert.equal(isAsked(place), false);
});

Deno.test("a group that others write meanwhile is read again", async () => {
  await using place = await open();
  const race = place.fake.faults.add({
    verb: "patch",
    resource: "mysqlfailovergroups",
    count: 1,
    fault: { type: "status", code: 409 },
  });
  assert.equal((await run(place)).code, 0);
  assert.equal(race.hits, 1);
  assert.deepEqual(place.states(), revoked);
});

Deno.test("a group that never stands still is given up", async () => {
  await using place = await open({ leads: false });
  place.fake.faults.add({
    verb: "patch",
    resource: "mysqlfailovergroups",
    fault: { type: "status", code: 409 },
  });
  const { code, stderr } = await run(place);
  assert.deepEqual([code, isAsked(place)], [1, false]);
  assert.match(
    stderr,
    /^holdfast: Cannot ask for the revocation as the group changes all the time/,
  );
});

Deno.test("a group that is made anew while the question stands is not the one that was agreed to", async () => {
  await using place = await open({ leads: false });
  const anew = () => {
    const { metadata: { uid: _uid, resourceVersion: _version, ...metadata }, ...group } =
      place.group;
    place.fake.remove(MYSQL_FAILOVER_GROUPS, NAME);
    place.fake.seed(MYSQL_FAILOVER_GROUPS, { ...group, metadata });
    return true;
  };
  const { code, stderr } = await run(place, { yes: false }, answers(anew));
  assert.deepEqual([code, isAsked(place)], [1, false]);
  assert.match(stderr, /deleted and created again/);
});

Deno.test("a group that goes while it is waited for takes its leases with it", async () => {
  await using place = await open({ leads: false });
  const system = place.administrator();
  const done = revoke(revocation(system), nobody);
  await place.until(() => isAsked(place));
  place.fake.remove(MYSQL_FAILOVER_GROUPS, NAME);
  assert.equal(await place.whileTimePasses(done), 1);
  assert.match(system.written.stderr, /The group is gone/);
});

Deno.test("a cluster that is silent for a while is asked again", async () => {
  await using place = await open({ leads: false });
  const system = place.administrator();
  const done = revoke(revocation(system), nobody);
  await place.until(() => isAsked(place));
  const fault = place.fake.faults.add({
    verb: "list",
    resource: "leases",
    count: 3,
    fault: { type: "status", code: 503 },
  });
  await place.until(() => fault.hits === 3);
  await serveRequest(place);
  assert.equal(await place.whileTimePasses(done), 0);
});

Deno.test("an Event that cannot be written keeps nobody from revoking, and is told", async () => {
  await using place = await open();
  place.fake.faults.add({ resource: "events.events.k8s.io", fault: { type: "status", code: 403 } });
  const { code, stderr } = await run(place);
  assert.equal(code, 0);
  assert.match(stderr, /^holdfast: warning: Cannot record all of it in Events: the verb "create"/);
});

Deno.test("one operation is revoked without anybody who leads, and others keep their leases", async () => {
  await using place = await open({ leads: false });
  place.seedLease({
    kind: "failover-hold",
    operationId: "op-2",
    expiresAt: "2026-01-01T00:10:00Z",
  });
  const { code, stdout, stderr } = await run(place, { operation: "op-1", reason: "hung" });
  assert.deepEqual([code, stderr, isAsked(place)], [0, "", false]);
  assert.deepEqual(place.states(), { ...revoked, "failover-hold op-2": "active" });
  assert.deepEqual(stdout.trimEnd().split("\n").slice(-3), [
    "revoked: migration of operation op-1 for tenant",
    "revoked: failover-hold of operation op-1 for tenant",
    "Done: 2 leases revoked. The operation stays refused for the life of the group",
  ]);
  assert.deepEqual(notes(place), [
    "test (so called by the kubeconfig) asked to revoke operation op-1: hung",
  ]);
  assert.equal(
    place.rig.stored.filter(({ reason }) => reason === "DeploymentLeaseRevoked").length,
    2,
  );
  const again = await place.rig.service.client().grant("op-1", "tenant");
  assert.deepEqual([again.status, again.body.error], [409, "revoked"]);
});

Deno.test("an operation that was revoked before is told so, and nobody is asked", async () => {
  await using place = await open({ leads: false });
  await run(place, { operation: "op-1" });
  const { code, stdout } = await run(place, { operation: "op-1", yes: false });
  assert.equal(code, 0);
  assert.match(stdout, /It was revoked before/);
  assert.equal(notes(place).length, 1);
});

Deno.test("an operation that has ended gets its tombstone, so that it does not come back", async () => {
  await using place = await CommandRig.open();
  const client = place.rig.service.client();
  const { token } = (await client.grant("op-1", "tenant")).body;
  await client.release("op-1", String(token));
  const asker = answers(() => true);
  const { code, stdout } = await run(place, { operation: "op-1", yes: false }, asker);
  assert.equal(code, 0);
  assert.match(stdout, /^The operation has ended; it will be kept from coming back:$/m);
  assert.deepEqual(place.states(), {
    "migration op-1 slot": "released",
    "migration op-1": "revoked",
  });
  assert.equal((await client.grant("op-1", "tenant")).status, 409);
});

Deno.test("a lease that the operation got after the list was shown is revoked, and told as that", async () => {
  await using place = await open({ leads: false });
  const late = () => {
    place.seedLease({
      operationId: "op-1",
      createdAt: "2026-01-01T00:00:09Z",
      expiresAt: "2026-01-01T00:10:00Z",
    });
    return true;
  };
  const { code, stdout } = await run(place, { operation: "op-1", yes: false }, answers(late));
  assert.equal(code, 0);
  assert.match(
    stdout,
    /^revoked: migration of operation op-1 for orders-app, which was granted after the list was shown$/m,
  );
});

Deno.test("an operation, a group or a namespace that is not there is told in one line", async () => {
  await using place = await open({ leads: false });
  const operation = await run(place, { operation: "op-9" });
  assert.deepEqual([operation.code, operation.stderr], [
    1,
    "holdfast: Cannot revoke operation 'op-9': group 'orders' has no record of it\n",
  ]);
  const group = await run(place, { group: "nope" });
  assert.equal(group.code, 1);
  assert.match(
    group.stderr,
    /^holdfast: Cannot read MysqlFailoverGroup database-ns\/nope: it does not exist; .*--namespace\n$/,
  );
  const namespace = await run(place, { namespace: "default" });
  assert.equal(
    namespace.stderr,
    "holdfast: Cannot read MysqlFailoverGroup default/orders: it does not exist\n",
  );
});

Deno.test("who may not, and a cluster that does not answer, have the exit codes of holdfast run", async () => {
  const clock = new TestClock();
  const fake = new FakeCluster({ clock, entropy: seededEntropy(1), rbac: true });
  seedCluster(fake);
  await using place = await CommandRig.open(new Rig({ fake, clock }));
  const forbidden = await run(place, {}, nobody, place.administrator({}, fake.userToken("nobody")));
  assert.deepEqual([forbidden.code, forbidden.stdout], [112, ""]);
  fake.faults.add({ verb: "get", fault: { type: "reset" } });
  assert.equal((await run(place)).code, 111);
});
