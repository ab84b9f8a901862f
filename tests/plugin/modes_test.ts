import assert from "node:assert/strict";
import { ClusterConfigError, NoClusterError } from "../../lib/kube/connect_errors.ts";
import { ClusterUnavailableError, NoKubeConfigError } from "../../lib/plugin/errors.ts";
import { startKubernetes } from "../../lib/plugin/start.ts";
import { TestSystem } from "../../lib/testing/test_system.ts";
import { authority } from "../kube/https_support.ts";
import { inWorld, LEASE, never, POD, withElection, type World } from "./world.ts";

const noCluster = () => Promise.reject(new NoClusterError("Cannot find a cluster"));

/** A leader task that tells whether it ran. */
function task(name = "job") {
  const ran: string[] = [];
  return { ran, name, run: () => void ran.push("run") };
}

/** Starts with what is found in the environment, not with a client that is given. */
function startFound(world: World, files: Record<string, string>, env: Record<string, string>) {
  const parts = world.parts({ connector: undefined });
  return startKubernetes({
    ...parts,
    system: new TestSystem({ clock: world.clock, files, env }),
  });
}

Deno.test("a client that is given makes the mode custom, and its maker learns the pod's name", () =>
  inWorld(async (world) => {
    let podName: string | undefined;
    const api = world.client("custom");
    const { runtime } = await world.start({
      connector: (name) => {
        podName = name;
        return Promise.resolve(api);
      },
    });
    assert.equal(podName, "web-1");
    assert.equal(runtime.mode, "custom");
    assert.equal(runtime.api, api);
    await assert.rejects(runtime.kubeConfig(), NoKubeConfigError);
  }));

const KUBECONFIG = JSON.stringify({
  "current-context": "c",
  contexts: [{ name: "c", context: { cluster: "k", user: "u", namespace: "from-context" } }],
  clusters: [{ name: "k", cluster: { server: "https://127.0.0.1:9" } }],
  users: [{ name: "u", user: { token: "t" } }],
});

Deno.test("a kubeconfig is tried first, and gives the namespace; client-node's configuration is of the same cluster", () =>
  inWorld(async (world) => {
    const files = {
      "/kube/config": KUBECONFIG,
      "/var/run/secrets/kubernetes.io/serviceaccount/token": "t",
    };
    const env = { KUBECONFIG: "/missing:/kube/config", KUBERNETES_SERVICE_HOST: "127.0.0.1" };
    const parts = world.parts({ connector: undefined, podInfo: { ...POD, namespace: undefined } });
    const system = new TestSystem({ clock: world.clock, files, env });
    const config = { ...parts.config, kubernetes: { ...parts.config.kubernetes, events: false } };
    using runtime = await startKubernetes({ ...parts, config, system });
    assert.equal(runtime.mode, "kubeconfig");
    assert.equal(runtime.namespace, "from-context");
    const nodeConfig = await runtime.kubeConfig();
    assert.equal(nodeConfig.getCurrentCluster()?.server, "https://127.0.0.1:9");
    assert.equal(nodeConfig.getCurrentUser()?.token, "t");

    system.files.set("/kube/config", "{");
    await assert.rejects(runtime.kubeConfig(), ClusterConfigError);
    system.files.delete("/kube/config");
    await assert.rejects(runtime.kubeConfig(), /none is there any more/);
  }));

Deno.test("in a pod its credentials are used, and a proxy that would be in the way is told of", () =>
  inWorld(async (world) => {
    const { caPem } = await authority();
    const directory = "/var/run/secrets/kubernetes.io/serviceaccount";
    const files = {
      [`${directory}/token`]: "t",
      [`${directory}/ca.crt`]: caPem,
      [`${directory}/namespace`]: "shop",
    };
    const warningsWith = async (more: Record<string, string>) => {
      const env = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: "9", ...more };
      const parts = world.parts({ connector: undefined, podInfo: undefined });
      const config = { ...parts.config, kubernetes: { ...parts.config.kubernetes, events: false } };
      const system = new TestSystem({ clock: world.clock, files, env });
      using runtime = await startKubernetes({ ...parts, config, system });
      assert.deepEqual([runtime.mode, runtime.namespace], ["in_cluster", "shop"]);
      assert.equal((await runtime.kubeConfig()).currentContext, "inClusterContext");
      return parts.log.at("warn").map(({ fields }) => fields);
    };
    assert.deepEqual(await warningsWith({}), []);
    const HTTPS_PROXY = "http://proxy.example";
    assert.deepEqual(await warningsWith({ HTTPS_PROXY }), [{ host: "127.0.0.1" }]);
    assert.deepEqual(await warningsWith({ HTTPS_PROXY, NO_PROXY: "x,127.0.0.1" }), []);
  }));

Deno.test("a KUBECONFIG that names a missing file, and one that cannot be read, are errors and not detached", () =>
  inWorld(async (world) => {
    await assert.rejects(
      startFound(world, {}, { KUBECONFIG: "/missing" }),
      ClusterConfigError,
    );
    await assert.rejects(
      startFound(world, { "/kube/config": "{" }, { KUBECONFIG: "/kube/config" }),
      ClusterConfigError,
    );
    await assert.rejects(
      startFound(world, {}, { KUBERNETES_SERVICE_HOST: "127.0.0.1" }),
      ClusterConfigError,
    );
  }));

Deno.test("no kubeconfig and no pod: detached, with the pod's identity and nothing else", () =>
  inWorld(async (world) => {
    using runtime = await startFound(world, {}, {});
    assert.equal(runtime.mode, "detached");
    assert.deepEqual(
      [runtime.namespace, runtime.api, runtime.leadership, runtime.configMaps],
      [null, null, null, null],
    );
    assert.equal(runtime.podInfo.name, "web-1");
    await assert.rejects(runtime.kubeConfig(), NoKubeConfigError);
  }));

Deno.test("detached: no Event, no store, no leader task, and a warning that names the tasks", () =>
  inWorld(async (world) => {
    const job = task();
    const { runtime, log } = await world.start({
      connector: noCluster,
      leaderTasks: [job],
      kubernetes: { ...withElection(), config_maps: { watch: ["a"] } },
    });
    await world.clock.advance(60_000);
    assert.equal(runtime.mode, "detached");
    assert.equal(runtime.leadership, null);
    assert.equal(runtime.configMaps, null);
    assert.deepEqual(job.ran, []);
    assert.deepEqual(log.at("warn").map(({ fields }) => fields), [{ tasks: ["job"] }]);
    assert.equal(world.fake.calls.total, 0);
    await world.settle(runtime.shutdown(never));
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("detached and allowed to: it leads alone with no deadline, its tasks run, and the stop ends both", () =>
  inWorld(async (world) => {
    const job = task();
    const { runtime, log } = await world.start({
      connector: noCluster,
      leaderTasks: [job],
      kubernetes: withElection({ lead_when_detached: true, identity: "dev" }),
    });
    const { leadership } = runtime;
    assert.equal(leadership?.isLeader(), true);
    assert.deepEqual(
      [leadership?.holder, leadership?.state.validUntil, leadership?.leaseName],
      ["dev", null, LEASE],
    );
    assert.deepEqual(job.ran, ["run"]);
    assert.equal(log.at("warn").length, 1);
    const stopped = runtime.shutdown(never);
    assert.equal(leadership?.isLeader(), false);
    await world.settle(stopped);
  }));

Deno.test("detached and allowed to, in a role that takes no part: it does not lead, and the tasks are named in a warning", () =>
  inWorld(async (world) => {
    const { runtime, log } = await world.start({
      connector: noCluster,
      leaderTasks: [task()],
      kubernetes: withElection({ lead_when_detached: true, roles: ["worker"] }),
      host: { role: "web" },
    });
    assert.equal(runtime.leadership, null);
    assert.deepEqual(log.at("warn").map(({ fields }) => fields), [{ tasks: ["job"] }]);
  }));

Deno.test("disabled: only the pod's identity is left, also with an election and leader tasks", () =>
  inWorld(async (world) => {
    const job = task();
    const connector = () => assert.fail("it was asked");
    for (const election of [{}, withElection({ lead_when_detached: true })]) {
      const { runtime } = await world.start({
        connector,
        leaderTasks: [job],
        kubernetes: { ...election, enabled: false, required: true },
      });
      assert.equal(runtime.mode, "disabled");
      assert.deepEqual([runtime.api, runtime.leadership, runtime.namespace], [null, null, null]);
      assert.equal(runtime.podInfo.name, "web-1");
      assert.deepEqual(await runtime.health(), { status: "up", details: { mode: "disabled" } });
      await world.settle(runtime.shutdown(never));
    }
    assert.deepEqual(job.ran, []);
  }));

Deno.test("required and no cluster: the start fails", () =>
  inWorld(async (world) => {
    const parts = world.parts({ connector: noCluster, kubernetes: { required: true } });
    await assert.rejects(startKubernetes(parts), NoClusterError);
  }));

Deno.test("required and an API server that refuses: the start fails with the class of the error", () =>
  inWorld(async (world) => {
    world.fake.faults.add({ resource: "/version", fault: { type: "status", code: 401 } });
    await assert.rejects(
      startKubernetes(world.parts({ kubernetes: { required: true } })),
      (error) => {
        assert.ok(error instanceof ClusterUnavailableError);
        assert.equal(error.reason, "unauthorized");
        assert.match(error.message, /\(custom\) does not answer \(unauthorized\)/);
        return true;
      },
    );
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("required and an API server that is silent: the start fails after 5 s", () =>
  inWorld(async (world) => {
    world.fake.faults.add({ resource: "/version", fault: { type: "hang" } });
    const failed = assert.rejects(
      startKubernetes(world.parts({ kubernetes: { required: true } })),
      { name: "ClusterUnavailableError", reason: "timeout" },
    );
    await world.clock.advance(4_999);
    assert.equal(world.clock.pendingTimers > 0, true);
    await world.clock.advance(1);
    await failed;
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("a stop during the first call ends the start with its own reason", () =>
  inWorld(async (world) => {
    world.fake.faults.add({ resource: "/version", fault: { type: "hang" } });
    const stop = new AbortController();
    const parts = world.parts({ kubernetes: { required: true }, signal: stop.signal });
    const failed = assert.rejects(startKubernetes(parts), { message: "asked to stop" });
    await world.clock.advance(10);
    stop.abort(new Error("asked to stop"));
    await failed;
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("any other error of the connection fails the start, whatever is required", () =>
  inWorld(async (world) => {
    const connector = () => Promise.reject(new TypeError("broken"));
    for (const required of [false, true]) {
      const parts = world.parts({ connector, kubernetes: { required } });
      await assert.rejects(startKubernetes(parts), TypeError);
    }
  }));

Deno.test("without an API server that answers, one that is not required starts all the same", () =>
  inWorld(async (world) => {
    world.fake.faults.add({ fault: { type: "reset" } });
    const { runtime } = await world.start({ kubernetes: withElection() });
    await world.clock.advance(20_000);
    assert.equal(runtime.leadership?.isLeader(), false);
    assert.equal((await runtime.health()).status, "down");
    await world.settle(runtime.shutdown(never));
  }));

Deno.test("leader tasks without an election are an error that names the key", () =>
  inWorld(async (world) => {
    const parts = world.parts({ leaderTasks: [task()] });
    await assert.rejects(startKubernetes(parts), {
      name: "ConfigError",
      message:
        "Cannot run leader tasks without leader election: set 'kubernetes.leader_election.enabled' to true, current value is false",
    });
  }));

Deno.test("a bad configuration starts nothing, and all that is wrong with it is told", () =>
  inWorld(async (world) => {
    const parts = world.parts({
      kubernetes: { namespace: "My.Shop", ...withElection({ retry_period_secs: 0 }) },
    });
    await assert.rejects(startKubernetes(parts), (error) => {
      assert.ok(error instanceof Error && error.name === "ConfigError");
      assert.match(error.message, /'kubernetes\.namespace'/);
      assert.match(error.message, /retry_period_secs 0/);
      return true;
    });
    assert.equal(world.fake.calls.total, 0);
  }));

Deno.test("an identity that is blank fails the start before anything is set going", () =>
  inWorld(async (world) => {
    const parts = world.parts({ kubernetes: withElection({ identity: " " }) });
    await assert.rejects(startKubernetes(parts), RangeError);
    assert.equal(world.fake.calls.total, 0);
    assert.equal(world.clock.pendingTimers, 0);
  }));

Deno.test("the namespace is that of the configuration, then of the pod, then of the client", () =>
  inWorld(async (world) => {
    const of = async (namespace: string, podNamespace: string | undefined) => {
      const podInfo = { ...POD, namespace: podNamespace };
      const { runtime } = await world.start({ podInfo, kubernetes: { namespace } });
      return runtime.namespace;
    };
    assert.equal(await of("configured", "pod"), "configured");
    assert.equal(await of("", "pod"), "pod");
    assert.equal(await of("", undefined), "default");
  }));
