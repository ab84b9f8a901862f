import assert from "node:assert/strict";
import type { ListOptions } from "../../lib/kube/api.ts";
import { InvalidError, UnavailableError } from "../../lib/kube/errors.ts";
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

function start(answer: (options: ListOptions) => readonly unknown[]) {
  const clock = new TestClock();
  const asked: (string | undefined)[] = [];
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
  });
  const reader = new DatabaseReader({ api, clock, log });
  const { signal } = new AbortController();
  return { clock, asked, warnings, list: (group = "orders") => reader.list(group, signal) };
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
