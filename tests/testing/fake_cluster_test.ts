import assert from "node:assert/strict";
import fc from "fast-check";
import { CONFIG_MAPS, kubeObject, LEASES, resource } from "../../lib/kube/resources.ts";
import { ApiError } from "../../lib/testing/api_server/api_error.ts";
import { Store } from "../../lib/testing/api_server/store.ts";
import { mergePatch } from "../../lib/testing/api_server/patch.ts";
import { type Json, parseJson } from "../../lib/testing/api_server/json.ts";
import { seededEntropy } from "../../lib/testing/entropy.ts";
import { ask, lease, LEASES_PATH, newFake, widget, WIDGET_CRD } from "./helpers.ts";

const WIDGETS = resource({
  group: "example.io",
  version: "v1",
  plural: "widgets",
  kind: "Widget",
  namespaced: true,
}, kubeObject);

Deno.test("a seed is there under a new version, in a namespace that it makes", () => {
  const { fake } = newFake();
  const metadata = { namespace: "app", name: "m" };
  const one = fake.seed(CONFIG_MAPS, { metadata, data: { a: "1" } });
  const two = fake.seed(CONFIG_MAPS, { metadata, data: { a: "1" } });
  assert.equal(two.metadata.uid, one.metadata.uid);
  assert.equal(two.metadata.resourceVersion, String(fake.revision));
  assert.notEqual(two.metadata.resourceVersion, one.metadata.resourceVersion);
  assert.deepEqual(fake.read(CONFIG_MAPS, metadata)?.data, { a: "1" });
  assert.equal(fake.calls.total, 0);
});

Deno.test("a seed keeps status, uid, times and generation that it brings", () => {
  const { fake } = newFake();
  fake.apply(WIDGET_CRD);
  const object = widget("w", {}, { uid: "u", creationTimestamp: "2020-01-01T00:00:00Z" }, {
    status: { site: "iad" },
  });
  const stored: Record<string, unknown> = { ...fake.seed(WIDGETS, object) };
  assert.deepEqual(stored.status, { site: "iad" });
  assert.equal(fake.read(WIDGETS, { name: "w" })?.metadata.uid, "u");
  assert.equal(fake.read(WIDGETS, { name: "w" })?.metadata.generation, 1);
  fake.apply(widget("w", { n: 2 }));
  assert.equal(fake.read(WIDGETS, { name: "w" })?.metadata.generation, 2);
  fake.apply(widget("w", { n: 2 }, { generation: 9 }));
  assert.equal(fake.read(WIDGETS, { name: "w" })?.metadata.generation, 9);
  assert.equal(
    fake.read(WIDGETS, { name: "w" })?.metadata.creationTimestamp,
    "2020-01-01T00:00:00Z",
  );
});

Deno.test("a seed that breaks the rules of its kind is refused", () => {
  const { fake } = newFake();
  const bad = { metadata: { name: "a" }, spec: { leaseDurationSeconds: 0 } };
  assert.throws(() => fake.seed(LEASES, bad), ApiError);
});

Deno.test("a kind that is not served is told with what to do about it", () => {
  const { fake } = newFake();
  assert.throws(() => fake.seed(WIDGETS, widget("w")), /"widgets.v1.example.io"; apply its CRD/);
  assert.throws(() => fake.apply(widget("w")), /"example.io\/v1 Widget"; apply its CRD first/);
  assert.throws(() => fake.apply(undefined), TypeError);
  assert.throws(() => fake.apply("x"), TypeError);
});

Deno.test("objects can be read and removed past the API", () => {
  const { fake } = newFake();
  fake.apply(lease("a"));
  fake.apply(lease("b", { namespace: "other" }));
  assert.equal(fake.readAll(LEASES).length, 2);
  assert.equal(fake.readAll(LEASES, "other").length, 1);
  assert.equal(fake.remove(LEASES, { name: "a" }), true);
  assert.equal(fake.remove(LEASES, { name: "a" }), false);
  assert.equal(fake.read(LEASES, { name: "a" }), null);
});

Deno.test("every answer carries the server's own time", async () => {
  const { fake, clock } = newFake({ serverClockOffsetMs: -2_000 });
  const date = async (path: string) =>
    Date.parse((await ask(fake, "GET", path)).headers.get("date") ?? "");
  assert.equal(await date("/version"), clock.wall() - 2_000);
  assert.equal(await date(`${LEASES_PATH}/none`), clock.wall() - 2_000);
  fake.serverClockOffsetMs = 3_600_000;
  await clock.advance(1_500);
  assert.equal(await date("/nope"), Math.floor((clock.wall() + 3_600_000) / 1000) * 1000);
  const watch = await fake.fetch(`https://fake${LEASES_PATH}?watch=1`);
  assert.equal(Date.parse(watch.headers.get("date") ?? ""), fake.serverNowMs() - 500);
  await watch.body?.cancel();
});

Deno.test("what is read cannot change what is stored", () => {
  const { fake } = newFake();
  const stored = fake.seed(CONFIG_MAPS, { metadata: { name: "m" }, data: { a: "1" } });
  Object.assign(stored.data ?? {}, { a: "2" });
  assert.deepEqual(fake.read(CONFIG_MAPS, { name: "m" })?.data, { a: "1" });
});

Deno.test("seeded entropy repeats itself, and is spread", () => {
  fc.assert(fc.property(fc.integer(), (seed) => {
    const [one, two] = [seededEntropy(seed), seededEntropy(seed)];
    assert.deepEqual(one.bytes(8), two.bytes(8));
    assert.equal(one.uuid(), two.uuid());
    const fraction = one.fraction();
    assert.equal(fraction, two.fraction());
    assert.ok(fraction >= 0 && fraction < 1);
    assert.match(
      one.uuid(),
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  }));
  const entropy = seededEntropy(7);
  const mean = Array.from({ length: 10_000 }, () => entropy.fraction()).reduce((a, b) => a + b) /
    10_000;
  assert.ok(Math.abs(mean - 0.5) < 0.02, String(mean));
  assert.notEqual(seededEntropy(1).uuid(), seededEntropy(2).uuid());
});

Deno.test("a store's list at an earlier version is the list that was there", () => {
  const step = fc.record({
    name: fc.constantFrom("a", "b", "c"),
    isRemoval: fc.boolean(),
    value: fc.integer({ min: 0, max: 3 }),
  });
  fc.assert(fc.property(fc.array(step), (steps) => {
    const store = new Store(1_000);
    const seen = new Map([[store.revision, store.list("k", "")]]);
    for (const { name, isRemoval, value } of steps) {
      if (isRemoval) store.remove("k", name);
      else store.put("k", { metadata: { name }, value });
      seen.set(store.revision, store.list("k", ""));
    }
    for (const [revision, list] of seen) assert.deepEqual(store.listAt("k", "", revision), list);
    assert.equal(store.listAt("k", "", store.revision + 1), null);
  }));
});

Deno.test("the history of a store stays within its limit", () => {
  fc.assert(fc.property(fc.integer({ min: 2, max: 20 }), fc.nat({ max: 60 }), (limit, writes) => {
    const store = new Store(limit);
    for (let value = 0; value < writes; value++) store.put("k", { metadata: { name: "a" }, value });
    const kept = store.changesAfter("k", store.compactedTo) ?? [];
    assert.ok(kept.length <= limit);
    assert.equal(
      store.revision - store.compactedTo,
      store.compactedTo === 0 ? writes + 1 : kept.length,
    );
  }));
});

/** RFC 7386, section 2, in words: null removes, objects merge, all else replaces. */
Deno.test("a merge patch leaves out its nulls, keeps what it does not name, and is the same twice", () => {
  const json = fc.jsonValue().map((value): Json => parseJson(JSON.stringify(value)));
  fc.assert(fc.property(json, json, (target, change) => {
    const once = mergePatch(target, change);
    assert.deepEqual(mergePatch(once, change), once);
  }));
  const examples: [Json, Json, Json][] = [
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [["a", "b"], ["c", "d"], ["c", "d"]],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  for (const [target, change, result] of examples) {
    assert.deepEqual(mergePatch(target, change), result);
  }
});
