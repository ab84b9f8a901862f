import assert from "node:assert/strict";
import fc from "fast-check";
import { AccessControl, AccessDeniedError } from "../../lib/auth/access.ts";
import { authorize } from "../../lib/auth/authorize.ts";
import { LIST_AGAIN_MS, LIST_MS, REMEMBERED_MS } from "../../lib/auth/remembered.ts";
import { MYSQL_DATABASES, type MysqlDatabase } from "../../lib/group/types.ts";
import type { ObjectName, Stored } from "../../lib/kube/api.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";

const CALLER = { namespace: "app-ns", serviceAccount: "deployer" };
const STRANGER = { ...CALLER, serviceAccount: "stranger" };
const { signal } = new AbortController();

interface Declared {
  readonly name: string;
  readonly namespace: string;
  readonly group: string;
  readonly clients: readonly { readonly namespace: string; readonly serviceAccount: string }[];
  readonly deleting: boolean;
}

function declared(name: string, more: Partial<Declared> = {}): Declared {
  const usual = { namespace: "database-ns", group: "orders", clients: [CALLER], deleting: false };
  return { name, ...usual, ...more };
}

const parsed = new WeakMap<Declared, Stored<MysqlDatabase>>();

/** A database as it is read; each is parsed once. */
function stored(declared: Declared): Stored<MysqlDatabase> {
  const database = parsed.get(declared) ?? parse(declared);
  parsed.set(declared, database);
  return database;
}

function parse({ name, namespace, group, clients, deleting }: Declared): Stored<MysqlDatabase> {
  const metadata = { name, namespace, uid: "uid", resourceVersion: "1" };
  const { spec } = MYSQL_DATABASES.parse({
    metadata,
    spec: { groupRef: { name: group }, deploymentClients: clients },
  });
  return {
    spec,
    metadata: { ...metadata, ...(deleting && { deletionTimestamp: "2026-01-01T00:00:00Z" }) },
  };
}

/** A cluster of databases that a test changes, and what was asked of it. */
class World {
  readonly clock = new TestClock();
  readonly asked: string[] = [];
  databases: readonly Declared[] = [];
  /** What the API server has in its cache, where that is behind. */
  cached: readonly Declared[] | null = null;
  /** False where the role does not allow to read by name. */
  mayName = true;

  control(): AccessControl {
    return new AccessControl({ databases: this, clock: this.clock });
  }

  list(): Promise<readonly Stored<MysqlDatabase>[]> {
    this.asked.push("list");
    return Promise.resolve(this.databases.map(stored));
  }

  listCached(
    _group: string,
    _signal: AbortSignal,
  ): Promise<readonly Stored<MysqlDatabase>[] | null> {
    if (!this.mayName) return Promise.resolve(null);
    this.asked.push("cache");
    return Promise.resolve((this.cached ?? this.databases).map(stored));
  }

  named({ namespace, name }: ObjectName): Promise<Stored<MysqlDatabase> | null> {
    this.asked.push(`get ${namespace}/${name}`);
    const found = this.databases.find((one) => one.name === name && one.namespace === namespace);
    return Promise.resolve(found === undefined ? null : stored(found));
  }

  /** What was asked since the last look. */
  looks(): readonly string[] {
    return this.asked.splice(0);
  }
}

/** The permission of one request; `null` when it is denied. */
async function permission(
  control: AccessControl,
  { caller = CALLER, instance, operationId, wanted }: {
    caller?: typeof CALLER;
    instance?: string;
    operationId?: string;
    wanted?: string;
  } = {},
) {
  const access = control.open({ caller, group: "orders", instance, operationId }, signal);
  try {
    await access.confirm();
    return await access.confirm(wanted);
  } catch (error) {
    if (!(error instanceof AccessDeniedError)) throw error;
    assert.equal(access.granted, null);
    return null;
  }
}

/** What was begun and not waited for has gone on as far as it can. */
function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

async function seen(...databases: Declared[]) {
  const world = new World();
  world.databases = databases;
  const control = world.control();
  await permission(control);
  assert.deepEqual(world.looks(), ["cache", `get database-ns/${databases[0]?.name}`]);
  return { world, control };
}

Deno.test("a caller of one database is asked for by its name within the minute", async () => {
  const { world, control } = await seen(declared("tenant"));
  const instances = ["tenant"];
  const sole = "tenant";
  assert.deepEqual(await permission(control), { namespace: "database-ns", instances, sole });
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
});

Deno.test("a caller of several is asked for by the name that its request names, and by any where it is about none", async () => {
  const { world, control } = await seen(
    declared("zeta"),
    declared("tenant"),
    declared("alien", { clients: [STRANGER] }),
  );
  const namespace = "database-ns";
  assert.deepEqual(await permission(control, { instance: "tenant", operationId: "op" }), {
    namespace,
    instances: ["tenant"],
    sole: "tenant",
  });
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
  assert.deepEqual(await permission(control), { namespace, instances: ["zeta"], sole: null });
  assert.deepEqual(world.looks(), ["get database-ns/zeta"]);
  assert.ok(await permission(control, { caller: STRANGER }));
  assert.deepEqual(world.looks(), ["cache", "get database-ns/alien"]);
});

Deno.test("an operation is asked for by the name that it was granted for, and an unknown one by the list", async () => {
  const { world, control } = await seen(declared("zeta"), declared("tenant"));
  const unknown = await permission(control, { operationId: "op-1", wanted: "tenant" });
  assert.deepEqual(unknown?.instances, ["zeta", "tenant"]);
  assert.deepEqual(world.looks(), ["list"], "a look at each would cost more than the list");
  const known = await permission(control, { operationId: "op-1", wanted: "tenant" });
  assert.deepEqual(known?.instances, ["tenant"]);
  assert.equal(known?.sole, null, "the log names no database that the request may not be about");
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
  await permission(control, { instance: "zeta", operationId: "op-2" });
  await permission(control, { operationId: "op-2", wanted: "zeta" });
  assert.deepEqual(world.looks(), ["get database-ns/zeta", "get database-ns/zeta"]);
  // Another record may stand under an id: the list finds whose it is, and is remembered.
  assert.ok(
    (await permission(control, { operationId: "op-2", wanted: "tenant" }))?.instances
      .includes("tenant"),
  );
  assert.deepEqual(world.looks(), ["get database-ns/zeta", "list"]);
  await permission(control, { operationId: "op-2", wanted: "tenant" });
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
});

Deno.test("an operation of one caller tells nothing of the same id of another caller", async () => {
  const both = { clients: [CALLER, STRANGER] };
  const { world, control } = await seen(declared("zeta", both), declared("tenant", both));
  await permission(control, { instance: "tenant", operationId: "op" });
  await permission(control, { caller: STRANGER });
  world.looks();
  await permission(control, { caller: STRANGER, operationId: "op", wanted: "zeta" });
  assert.deepEqual(world.looks(), ["list"]);
});

Deno.test("a grant's list serves requests about other databases, and about none", async () => {
  const world = new World();
  world.databases = [declared("tenant"), declared("shop")];
  const control = world.control();
  await permission(control, { instance: "shop" });
  assert.deepEqual(world.looks(), ["cache", "get database-ns/shop"]);
  assert.deepEqual((await permission(control, { instance: "tenant" }))?.instances, ["tenant"]);
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
  assert.deepEqual((await permission(control))?.instances, ["tenant"]);
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
});

Deno.test("a grant's list that shows a second namespace serves grants alone: what names no database is refused by the list", async () => {
  for (const more of [{}, { operationId: "op", wanted: "tenant" }]) {
    const world = new World();
    world.databases = [declared("tenant"), declared("shop", { namespace: "second" })];
    const control = world.control();
    assert.ok(await permission(control, { instance: "tenant", operationId: "op" }));
    world.looks();
    assert.ok(await permission(control, { instance: "tenant" }));
    assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
    assert.equal(await permission(control, more), null);
    assert.deepEqual(world.looks(), ["list"]);
  }
});

Deno.test("a caller that comes often never waits for a list: it is read again beside a request each half minute", async () => {
  const { world, control } = await seen(declared("tenant"));
  const listCached = world.listCached.bind(world);
  for (let second = 10; second <= 300; second += 10) {
    await world.clock.advance(10_000);
    const slow = Promise.withResolvers<void>();
    world.listCached = async (group, signal) => {
      const databases = await listCached(group, signal);
      await slow.promise;
      return databases;
    };
    const answers = [await permission(control), await permission(control)];
    assert.ok(answers.every((answer) => answer?.instances.includes("tenant")));
    const isDue = second % (LIST_AGAIN_MS / 1_000) === 0;
    const byName = "get database-ns/tenant";
    assert.deepEqual(world.looks(), [byName, ...(isDue ? ["cache"] : []), byName], `${second} s`);
    slow.resolve();
    await settled();
  }
});

Deno.test("the list that nobody waited for decides how the next request is asked", async () => {
  const cases: readonly (readonly [string, Declared, boolean, readonly string[]])[] = [
    ["a second namespace", declared("shop", { namespace: "second" }), false, ["cache", "list"]],
    ["another database", declared("shop"), true, ["get database-ns/shop"]],
  ];
  for (const [what, added, isPermitted, looks] of cases) {
    const { world, control } = await seen(declared("tenant"));
    await world.clock.advance(LIST_AGAIN_MS);
    world.databases = [added, declared("tenant")];
    assert.ok(await permission(control), what);
    await settled();
    world.looks();
    assert.equal(await permission(control) !== null, isPermitted, what);
    assert.deepEqual(world.looks(), looks, what);
  }
});

Deno.test("a list that nobody waited for and that failed is tried again, and one that is too old is waited for", async () => {
  const { world, control } = await seen(declared("tenant"));
  const listCached = world.listCached.bind(world);
  world.listCached = (group, signal) =>
    listCached(group, signal).then(() => Promise.reject(new Error("Planted")));
  await world.clock.advance(LIST_AGAIN_MS);
  for (let times = 0; times < 2; times++) {
    assert.ok(await permission(control));
    await settled();
    assert.deepEqual(world.looks(), ["get database-ns/tenant", "cache"]);
  }
  await world.clock.advance(LIST_MS - LIST_AGAIN_MS);
  await assert.rejects(permission(control), /Planted/);
  world.listCached = listCached;
  assert.ok(await permission(control));
  assert.deepEqual(world.looks(), ["cache", "cache", "get database-ns/tenant"]);
});

Deno.test("a list that nobody waited for ends after ten seconds, and another one is read", async () => {
  const { world, control } = await seen(declared("tenant"));
  const { listCached } = world;
  const signals: AbortSignal[] = [];
  world.listCached = (_group, signal) => {
    signals.push(signal);
    return new Promise((_, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason))
    );
  };
  await world.clock.advance(LIST_AGAIN_MS);
  assert.ok(await permission(control));
  await world.clock.advance(9_999);
  assert.ok(await permission(control));
  assert.deepEqual(signals.map(({ aborted }) => aborted), [false]);
  await world.clock.advance(1);
  await settled();
  assert.deepEqual(signals.map(({ aborted }) => aborted), [true]);
  world.listCached = listCached;
  world.looks();
  assert.ok(await permission(control));
  assert.deepEqual(world.looks(), ["get database-ns/tenant", "cache"]);
});

Deno.test("a list that nobody waited for undoes nothing that a later list brought", async () => {
  for (const later of ["a refusal", "a permission"]) {
    const { world, control } = await seen(declared("tenant"));
    const { listCached } = world;
    const slow = Promise.withResolvers<void>();
    const before = world.databases.map(stored);
    await world.clock.advance(LIST_AGAIN_MS);
    world.listCached = () => slow.promise.then(() => before);
    assert.ok(await permission(control));
    world.listCached = listCached;
    await world.clock.advance(1);
    const isRefusal = later === "a refusal";
    world.databases = isRefusal ? [] : [declared("shop")];
    assert.equal(await permission(control) === null, isRefusal);
    slow.resolve();
    await settled();
    world.looks();
    await permission(control);
    const looks = isRefusal ? ["cache", "list"] : ["get database-ns/shop"];
    assert.deepEqual(world.looks(), looks, later);
  }
});

Deno.test("a caller of the last minute has a list, and its reads begin beside the permission", async () => {
  const { world, control } = await seen(declared("tenant"));
  await world.clock.advance(LIST_AGAIN_MS - 1);
  assert.ok(await permission(control));
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
  await world.clock.advance(REMEMBERED_MS - 1);
  const access = control.open({ caller: CALLER, group: "orders" }, signal);
  assert.equal(await access.namespace(), "database-ns");
  assert.deepEqual(world.looks(), []);
  await access.confirm();
  assert.deepEqual(world.looks(), ["get database-ns/tenant", "cache"]);
});

Deno.test("a cache that is behind grants nothing: what it names is looked at, and the list has the last word", async () => {
  const behind: readonly (readonly [string, Declared[], Declared[], readonly string[]])[] = [
    ["of what is gone", [declared("tenant")], [], []],
    ["of what is new", [], [declared("tenant")], ["tenant"]],
    [
      "of what moved",
      [declared("tenant")],
      [declared("tenant", { namespace: "second" })],
      ["tenant"],
    ],
    ["of clients", [declared("tenant")], [declared("tenant", { clients: [] })], []],
    [
      "of a second namespace that is gone",
      [declared("tenant"), declared("shop", { namespace: "second" })],
      [declared("tenant")],
      ["tenant"],
    ],
  ];
  for (const [what, cached, databases, instances] of behind) {
    const world = new World();
    world.cached = cached;
    world.databases = databases;
    assert.deepEqual((await permission(world.control()))?.instances ?? [], instances, what);
    assert.equal(world.looks().at(-1), "list", what);
  }
});

Deno.test("where nothing can be read by name, the cache is of no use and every request is decided by the list", async () => {
  const world = new World();
  world.mayName = false;
  world.databases = [declared("tenant")];
  assert.ok(await permission(world.control()));
  assert.deepEqual(world.looks(), ["list"]);
});

Deno.test("no read of a group begins early for a caller that stayed away for a minute", async () => {
  const { world, control } = await seen(declared("tenant"));
  await world.clock.advance(REMEMBERED_MS);
  const access = control.open({ caller: CALLER, group: "orders" }, signal);
  await access.namespace();
  assert.deepEqual(world.looks(), ["get database-ns/tenant", "cache"]);
  await world.clock.advance(LIST_MS);
  await control.open({ caller: CALLER, group: "orders" }, signal).namespace();
  assert.deepEqual(world.looks(), ["cache", "get database-ns/tenant"]);
});

Deno.test("whatever is less than a clear yes is decided by the list", async () => {
  const changes: Readonly<Record<string, readonly Declared[]>> = {
    gone: [declared("shop")],
    "declared no more": [declared("tenant", { clients: [] }), declared("shop")],
    "of another group": [declared("tenant", { group: "other" }), declared("shop")],
    "being deleted": [declared("tenant", { deleting: true }), declared("shop")],
  };
  for (const [what, databases] of Object.entries(changes)) {
    const { world, control } = await seen(declared("tenant"), declared("shop"));
    world.databases = databases;
    const access = control.open({ caller: CALLER, group: "orders" }, signal);
    assert.deepEqual((await access.confirm()).instances, ["shop"], what);
    assert.deepEqual(world.looks().at(-1), "list", what);
    await access.confirm("tenant");
    assert.deepEqual(world.looks(), [], "a list of this request is enough");

    world.databases = databases.filter(({ name }) => name !== "shop");
    assert.equal(await permission(control), null, what);
    assert.deepEqual(world.looks(), ["get database-ns/shop", "list"], what);
    assert.equal(await permission(control), null, what);
    assert.deepEqual(world.looks(), ["cache", "list"], "a refusal is the end of the memory");
  }
});

Deno.test("an instance that is not among the known ones is looked for in the list, for a grant and for a record", async () => {
  const { world, control } = await seen(declared("tenant"));
  world.databases = [declared("tenant"), declared("shop")];
  const record = control.open({ caller: CALLER, group: "orders" }, signal);
  assert.deepEqual((await record.confirm()).instances, ["tenant"]);
  assert.deepEqual((await record.confirm("tenant")).instances, ["tenant"]);
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
  assert.deepEqual((await record.confirm("shop")).instances, ["tenant", "shop"]);
  await record.confirm("never");
  assert.deepEqual(world.looks(), ["list"], "one list for each request");

  const other = await seen(declared("tenant"));
  assert.equal(await permission(other.control, { instance: "shop" }), null);
  assert.deepEqual(other.world.looks(), ["list"]);
});

Deno.test("a list of another request that denied meanwhile is not undone by a yes by name", async () => {
  const { world, control } = await seen(declared("tenant"));
  const slow = Promise.withResolvers<void>();
  const named = world.named.bind(world);
  world.named = async (name) => {
    await slow.promise;
    return await named(name);
  };
  const waiting = permission(control);
  world.databases = [declared("tenant"), declared("tenant", { namespace: "second" })];
  assert.equal(await permission(control, { instance: "never" }), null);
  slow.resolve();
  assert.ok(await waiting);
  world.looks();
  assert.equal(await permission(control), null);
  assert.deepEqual(world.looks(), ["cache", "list"]);
});

Deno.test("of too many callers the one that was authorized longest ago is forgotten", async () => {
  const world = new World();
  const callers = Array.from({ length: 4097 }, (_, index) => ({
    ...CALLER,
    serviceAccount: `d-${index}`,
  }));
  world.databases = [declared("tenant", { clients: callers })];
  const control = world.control();
  for (const caller of callers.slice(0, -1)) {
    await control.open({ caller, group: "orders" }, signal).confirm();
  }
  await permission(control, { caller: callers[0] });
  await permission(control, { caller: callers.at(-1) });
  world.looks();
  await permission(control, { caller: callers[0] });
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
  await permission(control, { caller: callers[1] });
  assert.deepEqual(world.looks(), ["cache", "get database-ns/tenant"]);
});

const few = (...names: string[]) => fc.constantFrom(...names);
const NAMES = ["tenant", "shop", "stock", "fleet", "depot"] as const;
const anyDatabase: fc.Arbitrary<Declared> = fc.record({
  name: few(...NAMES),
  namespace: fc.oneof(
    { weight: 4, arbitrary: fc.constant("database-ns") },
    { weight: 1, arbitrary: fc.constant("second") },
  ),
  group: fc.oneof(
    { weight: 4, arbitrary: fc.constant("orders") },
    { weight: 1, arbitrary: fc.constant("other") },
  ),
  clients: fc.subarray([CALLER, STRANGER]),
  deleting: fc.boolean(),
}, { noNullPrototype: true });
const anyDatabases = fc.uniqueArray(anyDatabase, {
  maxLength: 6,
  selector: ({ namespace, name }) => `${namespace}/${name}`,
});
const anyRequest = fc.record({
  instance: fc.option(few(...NAMES), { nil: undefined }),
  operationId: fc.option(few("op-1", "op-2"), { nil: undefined }),
  wanted: fc.option(few(...NAMES), { nil: undefined }),
  afterMs: fc.nat({ max: 40_000 }),
}, { noNullPrototype: true });

/** What a list of all databases says; `null` when it gives no permission. */
function wholeList(databases: readonly Declared[], { instance }: { readonly instance?: string }) {
  const verdict = authorize(databases.map(stored), CALLER, "orders", instance);
  return verdict.outcome === "authorized" ? verdict : null;
}

Deno.test("while the databases are the same, a permission with a memory is the same as one without", async () => {
  const requests = fc.array(anyRequest, { maxLength: 8 });
  await fc.assert(fc.asyncProperty(anyDatabases, requests, async (databases, all) => {
    const world = new World();
    world.databases = databases;
    const control = world.control();
    for (const { afterMs, ...request } of all) {
      await world.clock.advance(afterMs);
      const got = await permission(control, request);
      const whole = wholeList(world.databases, request);
      assert.equal(got?.namespace, whole?.namespace);
      const { wanted = request.instance } = request;
      // Those that were not looked at change nothing: the request is not about them.
      assert.ok((got?.instances ?? []).every((instance) => whole?.instances.includes(instance)));
      assert.equal(got?.instances.includes(wanted ?? ""), whole?.instances.includes(wanted ?? ""));
      if (got !== null && got.sole !== null) assert.deepEqual(whole?.instances, [got.sole]);
    }
  }));
});

/** Whether a look by name was enough, so that a list beside it decided nothing. */
function isYesByName(
  databases: readonly Declared[],
  looks: readonly string[],
  { instance, wanted = instance }: { readonly instance?: string; readonly wanted?: string },
): boolean {
  const asked = databases.filter(({ namespace, name }) =>
    looks.includes(`get ${namespace}/${name}`)
  );
  const verdict = authorize(asked.map(stored), CALLER, "orders", instance);
  return verdict.outcome === "authorized" &&
    (wanted === undefined || verdict.instances.includes(wanted));
}

Deno.test("whatever changes, a memory or a cache that is behind never grants what the databases do not declare now, and only the list denies", async () => {
  const step = fc.record({
    databases: fc.option(anyDatabases, { nil: undefined }),
    /** The cache shows what was there before this step. */
    isBehind: fc.boolean(),
    request: anyRequest,
  }, { noNullPrototype: true });
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 10 }), async (steps) => {
    const world = new World();
    const control = world.control();
    const isEverBehind = steps.some(({ isBehind }) => isBehind);
    let listedAtMs = -Infinity;
    for (const { databases, isBehind, request: { afterMs, ...request } } of steps) {
      world.cached = isBehind ? world.databases : null;
      world.databases = databases ?? world.databases;
      await world.clock.advance(afterMs);
      const now = world.clock.monotonic();
      world.looks();
      const got = await permission(control, request);
      const looks = world.looks();
      if (looks.includes("list") || looks.includes("cache")) listedAtMs = now;
      const whole = wholeList(world.databases, request);
      if (got === null) {
        assert.equal(whole, null);
        assert.ok(looks.includes("list"), "a refusal rests on a list of its own");
        continue;
      }
      // Each instance counts by itself, now, in the namespace of the permission.
      const there = world.databases.filter(({ namespace }) => namespace === got.namespace);
      const alone = wholeList(there, request);
      assert.ok(alone);
      for (const instance of got.instances) assert.ok(alone.instances.includes(instance));
      if (request.wanted !== undefined && alone.instances.includes(request.wanted)) {
        assert.ok(got.instances.includes(request.wanted), "nothing that is declared is missed");
      }
      // Only a second namespace can be unseen, and for the time of a list at most.
      if (whole === null && !isEverBehind) assert.ok(now - listedAtMs < LIST_MS);
      if (looks.includes("list") && !isYesByName(world.databases, looks, request)) {
        const { namespace, instances } = got;
        assert.deepEqual({ outcome: "authorized", namespace, instances }, whole);
      }
    }
  }));
});
