import assert from "node:assert/strict";
import { z } from "zod";
import type { WatchEvent } from "../../lib/kube/api.ts";
import { CONFIG_MAPS, type ConfigMap } from "../../lib/kube/resources.ts";
import { ConfigMapDecodeError, ConfigMapStore, type Schema } from "../../lib/plugin/config_maps.ts";
import { watchConfigMaps } from "../../lib/plugin/config_map_watch.ts";
import { PluginMetrics } from "../../lib/plugin/metrics.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";
import { MemoryLog } from "../election/world.ts";
import { inWorld, never, type World } from "./world.ts";

const SETTINGS = { name: "settings", namespace: "default" };

function put(world: World, data: Record<string, string> | undefined, name = "settings"): void {
  world.fake.seed(CONFIG_MAPS, { metadata: { ...SETTINGS, name }, data });
}

Deno.test("values are read as texts, as JSON, and validated", async () => {
  const store = new ConfigMapStore(["b", "a"]);
  assert.deepEqual(store.names, ["a", "b"]);
  store.apply("a", { color: "red", "limits.json": '{"perMinute":5}', bad: "{secret" });
  assert.deepEqual(store.get("a")?.color, "red");
  assert.equal(store.value("a", "color"), "red");
  assert.equal(store.value("a", "toString"), undefined);
  assert.deepEqual(store.json("a", "limits.json"), { perMinute: 5 });
  assert.equal(store.json("a", "missing"), undefined);

  const Limits = z.object({ perMinute: z.number() });
  assert.deepEqual(await store.read("a", "limits.json", Limits), { perMinute: 5 });
  assert.equal(await store.read("a", "missing", Limits), undefined);
  const Settings = z.object({ color: z.enum(["red", "blue"]) });
  assert.deepEqual(await store.readAll("a", Settings), { color: "red" });
  assert.equal(await store.readAll("b", Settings), undefined);
});

Deno.test("a value that is no JSON fails its reader with name and key, and the message does not quote it", () => {
  const store = new ConfigMapStore(["a"]);
  store.apply("a", { bad: "{secret" });
  assert.throws(() => store.json("a", "bad"), (error) => {
    assert.ok(error instanceof ConfigMapDecodeError);
    assert.equal(
      error.message,
      'Cannot read the key "bad" of the ConfigMap a: its value must be JSON',
    );
    assert.deepEqual([error.configMap, error.key, error.reasons.length], ["a", "bad", 1]);
    return true;
  });
});

Deno.test("a value that the validator refuses fails its reader with the paths", async () => {
  const store = new ConfigMapStore(["a"]);
  store.apply("a", { x: '{"deep":{"n":"text"}}', color: "green" });
  const Wanted = z.object({ deep: z.object({ n: z.number() }), more: z.string() });
  await assert.rejects(store.read("a", "x", Wanted), {
    message:
      'Cannot read the key "x" of the ConfigMap a: its value has another form at deep.n, more',
  });
  await assert.rejects(store.readAll("a", z.object({ color: z.literal("red") })), {
    message: "Cannot read the ConfigMap a: its value has another form at color",
    key: null,
  });
});

Deno.test("any Standard Schema validator will do: one that is asynchronous, and one with keyed paths", async () => {
  const store = new ConfigMapStore(["a"]);
  store.apply("a", { n: "5" });
  const even: Schema<number> = {
    "~standard": {
      version: 1,
      async validate(value) {
        await Promise.resolve();
        return typeof value === "number" && value % 2 === 0
          ? { value }
          : { issues: [{ message: "odd", path: [{ key: "n" }] }, { message: "really" }] };
      },
    },
  };
  await assert.rejects(store.read("a", "n", even), (error) => {
    assert.ok(error instanceof ConfigMapDecodeError);
    assert.match(error.message, /another form at n, the top level$/);
    assert.deepEqual(error.reasons, ["odd", "really"]);
    return true;
  });
  store.apply("a", { n: "6" });
  assert.equal(await store.read("a", "n", even), 6);
});

Deno.test("names that are not followed are ignored, and never synced", () => {
  const store = new ConfigMapStore(["a"]);
  store.apply("other", { x: "1" });
  assert.equal(store.changes, 0);
  assert.equal(store.get("other"), undefined);
  assert.equal(store.isSynced("other"), false);
  assert.equal(store.isSynced("a"), false);
  store.apply("a", null);
  assert.equal(store.isSynced("a"), true);
  assert.equal(store.get("a"), undefined);
});

Deno.test("the counter grows by one for each event, and a slow reader sees the newest", async () => {
  const store = new ConfigMapStore(["a"]);
  const clock = new TestClock();
  const stop = new AbortController();
  const seen: number[] = [];
  const reading = (async () => {
    for await (const count of store.subscribe(stop.signal)) seen.push(count);
  })();
  await Promise.resolve();
  store.apply("a", {});
  store.apply("a", null);
  await clock.advance(0);
  store.apply("a", {});
  await clock.advance(0);
  stop.abort();
  await reading;
  assert.deepEqual([seen[0], seen.at(-1)], [0, 3]);
  assert.equal(store.changes, 3);
});

/** Follows ConfigMaps in a world. */
function follow(world: World, names: string[]) {
  const store = new ConfigMapStore(names);
  const metrics = new PluginMetrics();
  const logger = new MemoryLog();
  const stop = new AbortController();
  const done = watchConfigMaps({
    api: world.client("follower"),
    namespace: "default",
    store,
    metrics,
    clock: world.clock,
    logger,
    signal: stop.signal,
  });
  const figure = async (name: string, map = "settings") =>
    (await metrics.snapshot()).find((sample) =>
      sample.name === name && sample.labels.config_map === map
    )?.value;
  return { store, logger, figure, end: () => (stop.abort(), done) };
}

Deno.test("a watch follows what is there, what changes, what goes and what comes, and no other map", () =>
  inWorld(async (world) => {
    put(world, { a: "1" });
    put(world, { x: "1" }, "other");
    const { store, figure, end } = follow(world, ["settings", "absent"]);
    assert.equal(await figure("kubernetes_config_map_updates_total"), 0);
    assert.equal(await figure("kubernetes_config_map_errors_total"), 0);
    await world.until(() => store.isSynced("settings") && store.isSynced("absent"));
    assert.deepEqual(store.get("settings"), { a: "1" });
    assert.equal(store.get("absent"), undefined);
    await world.clock.advance(100);
    put(world, { a: "2" });
    await world.until(() => store.value("settings", "a") === "2");
    put(world, { x: "2" }, "other");
    put(world, undefined);
    await world.until(() => store.value("settings", "a") === undefined);
    assert.deepEqual(store.get("settings"), {});
    world.fake.remove(CONFIG_MAPS, SETTINGS);
    await world.until(() => store.get("settings") === undefined);
    assert.equal(store.isSynced("settings"), true);
    put(world, { a: "3" });
    await world.until(() => store.value("settings", "a") === "3");
    assert.equal(await figure("kubernetes_config_map_updates_total"), 5);
    assert.equal(await figure("kubernetes_config_map_updates_total", "absent"), 1);
    assert.equal(await figure("kubernetes_config_map_errors_total"), 0);
    await end();
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("errors are counted, the last data stay, one warning is written for a run of failures, and the end of it is told", () =>
  inWorld(async (world) => {
    put(world, { a: "1" });
    const { store, figure, logger, end } = follow(world, ["settings"]);
    await world.until(() => store.isSynced("settings"));
    await world.clock.advance(100);
    const refused = ["list", "watch"].map((verb) =>
      world.fake.faults.add({ verb, resource: "configmaps", fault: { type: "status", code: 403 } })
    );
    world.fake.faults.add({ resource: "configmaps", fault: { type: "watch-gone" }, count: 1 });
    await world.clock.advance(10_000);
    put(world, { a: "2" });
    assert.ok((await figure("kubernetes_config_map_errors_total") ?? 0) >= 2);
    assert.deepEqual(store.get("settings"), { a: "1" });
    const warnings = logger.at("warn");
    assert.equal(warnings.length, 1);
    assert.deepEqual(warnings[0]?.fields, { config_map: "settings", error: "forbidden" });
    for (const fault of refused) fault.remove();
    await world.until(() => store.value("settings", "a") === "2");
    assert.equal(logger.at("info").at(-1)?.message, "the ConfigMap is followed again");
    await end();
  }));

Deno.test("a map that is gone after a gap in the watch counts as deleted", () =>
  inWorld(async (world) => {
    put(world, { a: "1" });
    const { store, end } = follow(world, ["settings"]);
    await world.until(() => store.isSynced("settings"));
    await world.clock.advance(100);
    const silence = world.fake.faults.add({ fault: { type: "watch-silence" } });
    world.fake.remove(CONFIG_MAPS, SETTINGS);
    world.fake.compact();
    silence.remove();
    world.fake.faults.add({ fault: { type: "watch-gone" }, count: 1 });
    await world.until(() => store.get("settings") === undefined);
    await end();
  }));

Deno.test("a watch that ends or throws against its promise is started anew after 5 s", () =>
  inWorld(async (world) => {
    put(world, { a: "1" });
    const api = world.client("follower");
    let starts = 0;
    const store = new ConfigMapStore(["settings"]);
    const stop = new AbortController();
    const logger = new MemoryLog();
    const broken = Object.create(api, {
      watch: {
        value: (...args: Parameters<typeof api.watch>) => {
          starts++;
          if (starts === 1) throw new TypeError("broken");
          if (starts === 2) return (async function* () {})();
          return api.watch(...args);
        },
      },
    });
    const done = watchConfigMaps({
      api: broken,
      namespace: "default",
      store,
      metrics: new PluginMetrics(),
      clock: world.clock,
      logger,
      signal: stop.signal,
    });
    await world.clock.advance(4_999);
    assert.equal(starts, 1);
    assert.deepEqual(logger.at("warn")[0]?.fields, { config_map: "settings", error: "TypeError" });
    await world.clock.advance(5_001);
    assert.equal(starts, 3);
    await world.until(() => store.isSynced("settings"));
    stop.abort();
    await done;
  }));

Deno.test("a ConfigMap that cannot be decoded is an error, and its last data stay", () =>
  inWorld(async (world) => {
    const store = new ConfigMapStore(["settings"]);
    const metrics = new PluginMetrics();
    const stop = new AbortController();
    const object = { ...SETTINGS, paths: ["data.a"] };
    const stored = { ...SETTINGS, uid: "u", resourceVersion: "1" };
    const events: WatchEvent<ConfigMap>[] = [
      {
        type: "initial",
        list: {
          items: [{ metadata: stored, data: { a: "1" } }],
          resourceVersion: "1",
          undecodable: [],
        },
      },
      { type: "undecodable", object },
      {
        type: "restarted",
        reason: "gone",
        list: { items: [], resourceVersion: "2", undecodable: [object] },
      },
    ];
    const api = Object.create(world.client("follower"), {
      watch: {
        value: async function* () {
          yield* events;
          stop.abort();
          yield { type: "deleted", object: { metadata: stored } };
        },
      },
    });
    const { clock } = world;
    const { signal } = stop;
    const logger = new MemoryLog();
    await watchConfigMaps({ api, namespace: "default", store, metrics, clock, logger, signal });
    assert.deepEqual(store.get("settings"), { a: "1" });
    const [errors] = (await metrics.snapshot()).filter(({ name }) =>
      name === "kubernetes_config_map_errors_total"
    );
    assert.equal(errors?.value, 2);
    assert.deepEqual(logger.at("warn")[0]?.fields, { config_map: "settings", error: "decode" });
    assert.equal(logger.at("debug").length, 1);
  }));

Deno.test("an application reads its ConfigMaps through the runtime, and sees what changes", () =>
  inWorld(async (world) => {
    put(world, { a: "1" });
    const { runtime } = await world.start({ kubernetes: { config_maps: { watch: ["settings"] } } });
    const { configMaps } = runtime;
    assert.ok(configMaps !== null);
    await world.until(() => configMaps.value("settings", "a") === "1");
    await world.clock.advance(100);
    put(world, { a: "2" });
    await world.until(() => configMaps.value("settings", "a") === "2");
    await world.settle(runtime.shutdown(never));
    put(world, { a: "3" });
    await world.clock.advance(60_000);
    assert.equal(configMaps.value("settings", "a"), "2");
    assert.equal(world.clock.pendingTimers, 0);
  }));
