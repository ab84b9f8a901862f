import assert from "node:assert/strict";
import fc from "fast-check";
import { AccessControl, AccessDeniedError } from "../../lib/auth/access.ts";
import { authorize } from "../../lib/auth/authorize.ts";
import { MAX_BY_NAME, REMEMBERED_MS } from "../../lib/auth/remembered.ts";
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

function stored({ name, namespace, group, clients, deleting }: Declared): Stored<MysqlDatabase> {
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

  control(): AccessControl {
    return new AccessControl({ databases: this, clock: this.clock });
  }

  list(): Promise<readonly Stored<MysqlDatabase>[]> {
    this.asked.push("list");
    return Promise.resolve(this.databases.map(stored));
  }

  named(names: readonly ObjectName[]): Promise<readonly Stored<MysqlDatabase>[]> {
    this.asked.push(...names.map(({ namespace, name }) => `get ${namespace}/${name}`));
    return Promise.resolve(
      names.flatMap(({ namespace, name }) =>
        this.databases.filter((found) => found.name === name && found.namespace === namespace)
          .map(stored)
      ),
    );
  }

  /** What was asked since the last look. */
  looks(): readonly string[] {
    return this.asked.splice(0);
  }
}

/** The permission of one request; `null` when it is denied. */
async function permission(
  control: AccessControl,
  { caller = CALLER, instance, wanted }: {
    caller?: typeof CALLER;
    instance?: string;
    wanted?: string;
  } = {},
) {
  const access = control.open(caller, "orders", instance, signal);
  try {
    await access.confirm();
    return await access.confirm(wanted);
  } catch (error) {
    if (!(error instanceof AccessDeniedError)) throw error;
    assert.equal(access.granted, null);
    return null;
  }
}

async function seen(...databases: Declared[]) {
  const world = new World();
  world.databases = databases;
  const control = world.control();
  await permission(control);
  assert.deepEqual(world.looks(), ["list"]);
  return { world, control };
}

Deno.test("a caller of one database is asked for by its name within the minute", async () => {
  const { world, control } = await seen(declared("tenant"));
  const instances = ["tenant"];
  assert.deepEqual(await permission(control), { namespace: "database-ns", instances });
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
});

Deno.test("a caller of several is asked for by the name that its request names, and else by the list, as any other one", async () => {
  const { world, control } = await seen(
    declared("zeta"),
    declared("tenant"),
    declared("alien", { clients: [STRANGER] }),
  );
  const instances = ["zeta", "tenant"];
  assert.deepEqual(await permission(control), { namespace: "database-ns", instances });
  assert.deepEqual(world.looks(), ["list"]);
  assert.deepEqual(await permission(control, { instance: "tenant" }), {
    namespace: "database-ns",
    instances: ["tenant"],
  });
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
  assert.ok(await permission(control, { caller: STRANGER }));
  assert.deepEqual(world.looks(), ["list"]);
});

Deno.test("a grant's list serves requests about other databases, and about none", async () => {
  const world = new World();
  world.databases = [declared("tenant"), declared("shop")];
  const control = world.control();
  await permission(control, { instance: "shop" });
  assert.deepEqual(world.looks(), ["list"]);
  assert.deepEqual((await permission(control, { instance: "tenant" }))?.instances, ["tenant"]);
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
  assert.deepEqual((await permission(control))?.instances, ["tenant", "shop"]);
});

Deno.test("the list is asked again a minute after the last list, however often the caller comes", async () => {
  const { world, control } = await seen(declared("tenant"));
  for (let second = 10; second < 60; second += 10) {
    await world.clock.advance(10_000);
    assert.ok(await permission(control));
    assert.deepEqual(world.looks(), ["get database-ns/tenant"], `${second} s`);
  }
  await world.clock.advance(9_999);
  assert.ok(await permission(control));
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
  await world.clock.advance(1);
  const access = control.open(CALLER, "orders", undefined, signal);
  assert.equal(await access.namespace(), "database-ns");
  assert.deepEqual(world.looks(), [], "reads of a caller that came just now begin beside the list");
  await access.confirm();
  assert.deepEqual(world.looks(), ["list"]);
});

Deno.test("nothing is remembered of a caller that stayed away for a minute", async () => {
  const { world, control } = await seen(declared("tenant"));
  await world.clock.advance(REMEMBERED_MS);
  const access = control.open(CALLER, "orders", undefined, signal);
  await access.namespace();
  assert.deepEqual(world.looks(), ["list"]);
});

Deno.test("more databases than are asked by name are listed", async () => {
  const names = Array.from({ length: MAX_BY_NAME }, (_, index) => declared(`d-${index}`));
  const few = await seen(...names);
  assert.equal((await permission(few.control))?.instances.length, MAX_BY_NAME);
  assert.equal(few.world.looks().length, MAX_BY_NAME);
  const many = await seen(...names, declared("one-more"));
  assert.equal((await permission(many.control))?.instances.length, MAX_BY_NAME + 1);
  assert.deepEqual(many.world.looks(), ["list"]);
  await permission(many.control, { instance: "one-more" });
  assert.deepEqual(many.world.looks(), ["get database-ns/one-more"]);
});

Deno.test("whatever is less than a clear yes of every name is decided by the list", async () => {
  const changes: Readonly<Record<string, readonly Declared[]>> = {
    gone: [declared("shop")],
    "declared no more": [declared("tenant", { clients: [] }), declared("shop")],
    "of another group": [declared("tenant", { group: "other" }), declared("shop")],
    "being deleted": [declared("tenant", { deleting: true }), declared("shop")],
  };
  for (const [what, databases] of Object.entries(changes)) {
    const { world, control } = await seen(declared("tenant"), declared("shop"));
    world.databases = databases;
    const access = control.open(CALLER, "orders", undefined, signal);
    assert.deepEqual((await access.confirm()).instances, ["shop"], what);
    assert.deepEqual(world.looks().at(-1), "list", what);
    await access.confirm("tenant");
    assert.deepEqual(world.looks(), [], "a list of this request is enough");

    world.databases = databases.filter(({ name }) => name !== "shop");
    assert.equal(await permission(control), null, what);
    assert.deepEqual(world.looks(), ["get database-ns/shop", "list"], what);
    assert.equal(await permission(control), null, what);
    assert.deepEqual(world.looks(), ["list"], "a refusal is the end of the memory");
  }
});

Deno.test("an instance that is not among the known ones is looked for in the list, for a grant and for a record", async () => {
  const { world, control } = await seen(declared("tenant"));
  world.databases = [declared("tenant"), declared("shop")];
  const record = control.open(CALLER, "orders", undefined, signal);
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
  world.named = async (names) => {
    await slow.promise;
    return await named(names);
  };
  const waiting = permission(control);
  world.databases = [declared("tenant"), declared("tenant", { namespace: "second" })];
  assert.equal(await permission(control, { instance: "never" }), null);
  slow.resolve();
  assert.ok(await waiting);
  world.looks();
  assert.equal(await permission(control), null);
  assert.deepEqual(world.looks(), ["list"]);
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
    await control.open(caller, "orders", undefined, signal).confirm();
  }
  await permission(control, { caller: callers[0] });
  await permission(control, { caller: callers.at(-1) });
  world.looks();
  await permission(control, { caller: callers[0] });
  assert.deepEqual(world.looks(), ["get database-ns/tenant"]);
  await permission(control, { caller: callers[1] });
  assert.deepEqual(world.looks(), ["list"]);
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
  wanted: fc.option(few(...NAMES), { nil: undefined }),
  afterMs: fc.nat({ max: 40_000 }),
}, { noNullPrototype: true });

Deno.test("while the databases are the same, a permission with a memory is the same as one without", async () => {
  const requests = fc.array(anyRequest, { maxLength: 8 });
  await fc.assert(fc.asyncProperty(anyDatabases, requests, async (databases, all) => {
    const world = new World();
    world.databases = databases;
    const control = world.control();
    for (const { afterMs, ...request } of all) {
      await world.clock.advance(afterMs);
      assert.deepEqual(
        await permission(control, request),
        await permission(world.control(), request),
      );
    }
  }));
});

Deno.test("whatever changes, a memory never grants what the databases do not declare now, and denies only by the list", async () => {
  const step = fc.record({
    databases: fc.option(anyDatabases, { nil: undefined }),
    request: anyRequest,
  }, { noNullPrototype: true });
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 10 }), async (steps) => {
    const world = new World();
    const control = world.control();
    let listedAtMs = -Infinity;
    for (const { databases, request: { afterMs, ...request } } of steps) {
      world.databases = databases ?? world.databases;
      await world.clock.advance(afterMs);
      const now = world.clock.monotonic();
      world.looks();
      const got = await permission(control, request);
      if (world.looks().includes("list")) listedAtMs = now;
      const whole = authorize(world.databases.map(stored), CALLER, "orders", request.instance);
      if (got === null) {
        assert.equal(whole.outcome, "forbidden");
        assert.equal(listedAtMs, now, "a refusal rests on a list of its own");
        continue;
      }
      // Each instance counts by itself, now, in the namespace of the permission.
      const there = world.databases.filter(({ namespace }) => namespace === got.namespace);
      const alone = authorize(there.map(stored), CALLER, "orders", request.instance);
      assert.ok(alone.outcome === "authorized");
      for (const instance of got.instances) assert.ok(alone.instances.includes(instance));
      if (request.wanted !== undefined && alone.instances.includes(request.wanted)) {
        assert.ok(got.instances.includes(request.wanted), "nothing that is declared is missed");
      }
      // Only a second namespace can be unseen, and for a minute at most.
      if (whole.outcome === "forbidden") assert.ok(now - listedAtMs < REMEMBERED_MS);
      if (listedAtMs === now) assert.deepEqual({ outcome: "authorized", ...got }, whole);
    }
  }));
});
