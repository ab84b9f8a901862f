import assert from "node:assert/strict";
import type { ListOptions, ObjectName } from "../../lib/kube/api.ts";
import {
  DecodeError,
  ForbiddenError,
  InvalidError,
  NotFoundError,
  UnavailableError,
} from "../../lib/kube/errors.ts";
import { DatabaseReader } from "../../lib/auth/databases.ts";
import type { LogFields, Logger } from "../../lib/runtime/log.ts";
import { silentLogger } from "../../lib/runtime/log.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";
import { scriptedApi } from "./scripted_api.ts";

const CALL = { verb: "list", resource: "mysqldatabases.shipstream.io", target: "/" };
const database = (name: string, group = "orders") => ({
  metadata: { name, namespace: "database" },
  spec: { groupRef: { name: group } },
});

const named = (name: string) => ({ namespace: "database", name });

function start(
  answer: (options: ListOptions) => readonly unknown[],
  get: (name: ObjectName) => unknown = () => assert.fail("nothing is read by name"),
) {
  const clock = new TestClock();
  const asked: (string | undefined)[] = [];
  const askedByName: ObjectName[] = [];
  const warnings: (readonly [string, LogFields | undefined])[] = [];
  const log: Logger = {
    ...silentLogger,
    warn: (message, fields) => warnings.push([message, fields]),
  };
  const api = scriptedApi({
    list(options) {
      asked.push(options.fieldSelector);
      assert.equal(options.namespace, undefined);
      return Promise.resolve(answer(options));
    },
    get(name) {
      askedByName.push(name);
      return Promise.try(get, name);
    },
  });
  const reader = new DatabaseReader({ api, clock, log });
  const { signal } = new AbortController();
  return {
    clock,
    asked,
    askedByName,
    warnings,
    list: (group = "orders") => reader.list(group, signal),
    named: async (name: string) => (await reader.named(named(name), signal))?.metadata.name ?? null,
  };
}

const unsupported = (options: ListOptions) => {
  if (options.fieldSelector !== undefined) throw new InvalidError(CALL, [], { status: 400 });
  return [database("tenant"), database("alien", "other")];
};

Deno.test("difference 11: the server is asked for the databases of the group alone", async () => {
  const { asked, list } = start(() => [database("tenant")]);
  assert.deepEqual((await list()).map((found) => found.metadata.name), ["tenant"]);
  await list("billing");
  assert.deepEqual(asked, ["spec.groupRef.name=orders", "spec.groupRef.name=billing"]);
});

Deno.test("difference 11: a server that cannot select is asked for all, and again for some each minute", async () => {
  const { clock, asked, warnings, list } = start(unsupported);
  assert.deepEqual((await list()).map((found) => found.metadata.name), ["tenant", "alien"]);
  assert.deepEqual(asked, ["spec.groupRef.name=orders", undefined]);
  await clock.advance(59_999);
  await list();
  assert.deepEqual(asked.slice(2), [undefined]);
  await clock.advance(1);
  await list();
  assert.deepEqual(asked.slice(3), ["spec.groupRef.name=orders", undefined]);
  assert.equal(warnings.length, 2);
});

Deno.test("difference 11: once the CRD declares the field, it is used again", async () => {
  let declared = false;
  const { clock, asked, list } = start((options) =>
    declared ? [database("tenant")] : unsupported(options)
  );
  await list();
  declared = true;
  await clock.advance(60_000);
  await list();
  await list();
  assert.deepEqual(asked.slice(2), ["spec.groupRef.name=orders", "spec.groupRef.name=orders"]);
});

Deno.test("any other failure is the caller's, and the whole list is not read for it", async () => {
  for (
    const error of [
      new InvalidError(CALL, [], { status: 422 }),
      new UnavailableError(CALL, { status: 429 }),
      new Error("fault"),
    ]
  ) {
    const { asked, list } = start(() => {
      throw error;
    });
    await assert.rejects(list(), error);
    assert.deepEqual(asked, ["spec.groupRef.name=orders"]);
  }
});

Deno.test("a database that cannot be read is left out and named in the log, once a minute", async () => {
  const { clock, warnings, list } = start(() => [
    database("tenant"),
    { metadata: { name: "bad" }, spec: { groupRef: "orders" } },
  ]);
  for (let request = 0; request < 5; request++) {
    assert.deepEqual((await list()).map((found) => found.metadata.name), ["tenant"]);
  }
  assert.deepEqual(warnings, [["databases authorize nobody: they cannot be read", {
    count: 1,
    databases: ["ns/bad-1: spec.groupRef"],
  }]]);
  await clock.advance(60_000);
  await list();
  assert.equal(warnings.length, 2);
});

Deno.test("a database is read by name, and one that is gone or unreadable is none", async () => {
  const { askedByName, asked, warnings, named: read } = start(() => [], ({ name }) => {
    if (name === "gone") throw new NotFoundError(CALL);
    if (name === "bad") throw new DecodeError(CALL, ["spec"]);
    return database(name);
  });
  const names = ["zeta", "gone", "tenant", "bad"];
  const found: (string | null)[] = [];
  for (const name of names) found.push(await read(name));
  assert.deepEqual(found, ["zeta", null, "tenant", null]);
  assert.deepEqual(askedByName, names.map(named));
  assert.deepEqual([asked, warnings], [[], []]);
});

Deno.test("a role without get finds nothing by name, asks again after a minute, and says so in the log", async () => {
  let allowed = false;
  const { clock, askedByName, warnings, named: read } = start(() => [], ({ name }) => {
    if (!allowed) throw new ForbiddenError({ ...CALL, verb: "get" });
    return database(name);
  });
  assert.equal(await read("tenant"), null);
  assert.deepEqual(warnings, [[
    "databases are listed for each request: the role does not allow to get them",
    { verb: "get", resource: CALL.resource },
  ]]);
  allowed = true;
  await clock.advance(59_999);
  assert.equal(await read("tenant"), null);
  assert.equal(askedByName.length, 1);
  await clock.advance(1);
  assert.equal(await read("tenant"), "tenant");
  assert.equal(warnings.length, 1);
});

Deno.test("a database that cannot be read by name for another reason is the caller's failure", async () => {
  const error = new UnavailableError(CALL, { status: 503 });
  const { named: read } = start(() => [], () => {
    throw error;
  });
  await assert.rejects(read("tenant"), error);
});
