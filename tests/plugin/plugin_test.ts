import assert from "node:assert/strict";
import { Hono } from "hono";
import { createHost } from "../../lib/host/host.ts";
import type { HostOptions } from "../../lib/host/host_options.ts";
import { kubernetes, type KubernetesEnv, type KubernetesOptions } from "../../lib/plugin/plugin.ts";
import { seededEntropy } from "../../lib/testing/mod.ts";
import { TestSystem } from "../../lib/testing/test_system.ts";
import { MemoryLog } from "../election/world.ts";
import { answerOf, hostConfig } from "../host/host_world.ts";
import { inWorld, LEASE, POD, withElection, type World } from "./world.ts";

/** A host with the plugin, on the cluster of a world. */
function hostIn(
  world: World,
  options: KubernetesOptions = {},
  more: Partial<HostOptions<KubernetesEnv>> = {},
) {
  const system = new TestSystem({ clock: world.clock, entropy: seededEntropy(3) });
  const logger = new MemoryLog();
  const plugin = kubernetes({
    ...options.connector === undefined ? { api: world.client("host") } : {},
    podInfo: POD,
    ...options,
  });
  const host = createHost<KubernetesEnv>({
    system,
    logger,
    config: hostConfig({ prestop_grace_secs: 2 }),
    listen: null,
    healthDetails: true,
    plugins: [plugin],
    ...more,
  });
  return { host, plugin, system, logger };
}

Deno.test("one call installs identity, client, lead, health and metrics, and the application finds them in its context", () =>
  inWorld(async (world) => {
    const app = new Hono<KubernetesEnv>();
    app.get("/", (c) => {
      const { podInfo, api, leadership, configMaps, mode, namespace } = c.var.kubernetes;
      return c.json({
        pod: podInfo.name,
        api: api !== null,
        leads: leadership?.isLeader() ?? null,
        maps: configMaps?.names ?? null,
        mode,
        namespace,
      });
    });
    const config = { ...withElection(), config_maps: { watch: ["settings"] } };
    const { host, plugin } = hostIn(world, { config }, { app });
    assert.equal(plugin.name, "autumn-plugin-kubernetes");
    assert.equal(plugin.runtime, null);
    await world.settle(host.start());
    await world.clock.advance(1_000);
    assert.deepEqual(await answerOf(host.request("/")), [200, {
      pod: "web-1",
      api: true,
      leads: true,
      maps: ["settings"],
      mode: "custom",
      namespace: "default",
    }]);
    assert.deepEqual(await answerOf(host.request("/health")), [200, {
      status: "UP",
      components: {
        kubernetes: {
          status: "UP",
          details: {
            mode: "custom",
            namespace: "default",
            leader: { lease: LEASE, leading: true },
            config_maps: { settings: "missing" },
          },
        },
      },
    }]);
    assert.deepEqual(await answerOf(host.request("/ready")), [200, { status: "UP" }]);
    const metrics = await (await host.request("/metrics")).text();
    assert.match(metrics, new RegExp(`^kubernetes_leader\\{lease="${LEASE}"\\} 1$`, "m"));
    assert.match(metrics, /^kubernetes_api_up 1$/m);
    assert.match(metrics, /^kubernetes_config_map_updates_total\{config_map="settings"\} 1$/m);

    assert.equal(await world.settle(host.stop("test")), 0);
    assert.equal(world.lease()?.spec?.holderIdentity, undefined);
    assert.deepEqual(await world.reasons(), ["Started", "LeaderElected", "Stopping"]);
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("two plugins of its name in one host are refused", () =>
  inWorld(async (world) => {
    const { host } = hostIn(world);
    assert.throws(() => host.install(kubernetes()), /current value is "autumn-plugin-kubernetes"/);
    await world.settle(host.stop("test"));
  }));

Deno.test("as readiness it decides about traffic: 200, 503 while the API server is down, 200", () =>
  inWorld(async (world) => {
    const { host } = hostIn(world, { readiness: true });
    await world.settle(host.start());
    const status = async () => (await host.request("/ready")).status;
    assert.equal(await status(), 200);
    const down = world.fake.faults.add({ resource: "/version", fault: { type: "reset" } });
    await world.clock.advance(8_000);
    assert.equal(await status(), 503);
    down.remove();
    await world.clock.advance(3_000);
    assert.equal(await status(), 200);
    await world.settle(host.stop("test"));
  }));

Deno.test("otherwise an API server that is down shows on the health page alone", () =>
  inWorld(async (world) => {
    const { host } = hostIn(world);
    await world.settle(host.start());
    world.fake.faults.add({ resource: "/version", fault: { type: "status", code: 403 } });
    await world.clock.advance(6_000);
    assert.equal((await host.request("/ready")).status, 200);
    const [status, body] = await answerOf(host.request("/health"));
    assert.equal(status, 503);
    assert.match(JSON.stringify(body), /"error":"forbidden"/);
    await world.settle(host.stop("test"));
  }));

Deno.test("the lead is given up after the last request, or before the grace when that is asked for", () =>
  inWorld(async (world) => {
    for (const giveUpLead of ["after_drain", "before_grace"] as const) {
      const { host, plugin, system } = hostIn(world, { config: withElection(), giveUpLead });
      await world.settle(host.start());
      await world.until(() => plugin.runtime?.leadership?.isLeader() ?? false);
      system.signal("SIGTERM");
      await world.clock.advance(1_000);
      const held = world.lease()?.spec?.holderIdentity !== undefined;
      assert.equal(held, giveUpLead === "after_drain", giveUpLead);
      assert.equal(await world.settle(host.done), 0);
      assert.equal(world.lease()?.spec?.holderIdentity, undefined);
    }
  }));

Deno.test("a lead that is not given up within its time before the grace is left, and the end goes on in order", () =>
  inWorld(async (world) => {
    const { host, plugin, system } = hostIn(world, {
      config: withElection({ identity: "me" }),
      giveUpLead: "before_grace",
      giveUpLeadMs: 3_000,
      leaderTasks: [{ name: "stuck", run: () => new Promise(() => {}) }],
    });
    await world.settle(host.start());
    await world.until(() => plugin.runtime?.leadership?.isLeader() ?? false);
    const graceOver = Promise.withResolvers<void>();
    host.onShutdown("own", () => graceOver.resolve());
    system.signal("SIGTERM");
    // 3 s for the task, then 2 s of grace.
    const took = world.clock.monotonic();
    await world.settle(graceOver.promise);
    assert.equal(Math.round((world.clock.monotonic() - took) / 100), 50);
    assert.equal(await world.settle(host.done), 0);
    assert.equal(world.lease()?.spec?.holderIdentity, "me", "it runs out by itself");
  }));

Deno.test("the plugin's stop comes after that of the application's own parts", () =>
  inWorld(async (world) => {
    const { host, plugin } = hostIn(world, { config: withElection() });
    let ledMeanwhile: boolean | undefined;
    host.onShutdown("own", () => {
      ledMeanwhile = plugin.runtime?.leadership?.isLeader();
    });
    await world.settle(host.start());
    await world.until(() => plugin.runtime?.leadership?.isLeader() ?? false);
    await world.settle(host.stop("test"));
    assert.equal(ledMeanwhile, true);
  }));

Deno.test("an end that the host gives up waiting for goes on by itself: the Lease is left, and the watches stop", () =>
  inWorld(async (world) => {
    const config = { ...withElection({ identity: "me" }), config_maps: { watch: ["a"] } };
    const { host } = hostIn(world, {
      config,
      leaderTasks: [{ name: "stuck", run: () => new Promise(() => {}) }],
    }, { config: hostConfig({ prestop_grace_secs: 0, shutdown_timeout_secs: 3 }) });
    await world.settle(host.start());
    await world.until(() => world.lease() !== null);
    assert.equal(await world.settle(host.stop("test")), 1);
    await world.clock.advance(2_500);
    assert.equal(world.lease()?.spec?.holderIdentity, "me");
    assert.deepEqual(await world.reasons(), ["Started", "LeaderElected", "Stopping"]);
    const calls = world.fake.calls.total;
    await world.clock.advance(60_000);
    assert.equal(world.fake.calls.total, calls);
  }));

Deno.test("a start that fails ends the host, with the plugin's own error", () =>
  inWorld(async (world) => {
    const connector = () => Promise.reject(new TypeError("broken"));
    const { host, plugin } = hostIn(world, { connector });
    await assert.rejects(host.run(), TypeError);
    assert.equal(await host.done, 1);
    assert.equal(plugin.runtime, null);
  }));

Deno.test("without options the section of the host's configuration is used", () =>
  inWorld(async (world) => {
    const config = { ...hostConfig(), kubernetes: { ...hostConfig().kubernetes, enabled: false } };
    const { host, plugin } = hostIn(world, {}, { config });
    await world.settle(host.start());
    assert.equal(plugin.runtime?.mode, "disabled");
    await world.settle(host.stop("test"));
  }));

Deno.test("leader tasks are added by name, each its own", () => {
  const run = () => {};
  const plugin = kubernetes({ leaderTasks: [{ name: "a", run }] }).leaderTask({ name: "b", run });
  for (const name of ["a", "b", " "]) {
    assert.throws(() => plugin.leaderTask({ name, run }), {
      name: "RangeError",
      message:
        `Cannot add a leader task as 'name' must be its own and not blank: current value is "${name}"`,
    });
  }
});

Deno.test("a configuration with an unknown key or a wrong type, and two clients, are refused at once", () =>
  inWorld((world) => {
    const wrong = JSON.parse('{"colour":"red","enabled":"yes","leader_election":{"x":1}}');
    assert.throws(() => kubernetes({ config: wrong }), (error) => {
      assert.ok(error instanceof Error && error.name === "ConfigError");
      assert.match(error.message, /'kubernetes\.enabled' from the options of the plugin/);
      assert.match(error.message, /"colour"/);
      return true;
    });
    const api = world.client("x");
    assert.throws(() => kubernetes({ api, connector: () => api }), TypeError);
    return Promise.resolve();
  }));
