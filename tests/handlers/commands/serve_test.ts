import assert from "node:assert/strict";
import { openService, serve } from "../../../handlers/commands/serve.ts";
import { RefusalError, type ServeOptions } from "../../../handlers/commands/options.ts";
import { ConfigError } from "../../../lib/config/errors.ts";
import { ServeRig, until } from "./serve_rig.ts";

/** Starts a service that must refuse, and gives its reason. */
async function refusalOf(rig: ServeRig, options: ServeOptions): Promise<string> {
  const error = await serve(options).then(() => null, (thrown: unknown) => thrown);
  assert.ok(error instanceof RefusalError || error instanceof ConfigError, String(error));
  assert.equal(rig.listening, 0, "nobody listens for signals any more");
  assert.equal(rig.lease, null, "nobody campaigned");
  assert.ok(!error.message.includes("\n"));
  return error.message;
}

Deno.test("a service that cannot start says why in one line, and leaves nothing behind", async () => {
  await using rig = await ServeRig.open();
  const broken = `${rig.folder}/broken.crt`;
  await Deno.writeTextFile(broken, "no certificate");
  assert.match(
    await refusalOf(rig, rig.options({ "tls.cert_file": broken })),
    /^Cannot serve TLS with '.*broken\.crt' as it does not hold a certificate: /,
  );
  assert.match(
    await refusalOf(rig, rig.options({ "tls.key_file": `${rig.folder}/none` })),
    /^Cannot serve TLS with '.*none' as there is no such file$/,
  );
  const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = taken.addr;
  assert.match(
    await refusalOf(rig, rig.options({ "listen.metrics": `127.0.0.1:${port}` })),
    /^Cannot listen for 'metrics' on '127\.0\.0\.1:\d+' as the address is in use: /,
  );
  taken.close();
  assert.match(await refusalOf(rig, rig.options({}, {})), /^Cannot [^\n]*cluster/);
  assert.match(
    await refusalOf(rig, rig.options({}, { "/kubeconfig": "{" })),
    /^Cannot [^\n]*\/kubeconfig/,
  );
  const elsewhere = rig.kubeconfig.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${port}`);
  assert.match(
    await refusalOf(rig, rig.options({}, { "/kubeconfig": elsewhere })),
    /^Cannot start as the API server of the cluster \(kubeconfig\) does not answer \(\w+\): /,
  );
});

Deno.test("without an election and without the deployment API it serves the other ports, and frees nothing", async () => {
  await using rig = await ServeRig.open();
  const host = await openService(
    rig.options({ "deploy_api.enabled": "false", "kubernetes.leader_election.enabled": "false" }),
  );
  const probes = await rig.address("probes");
  const ready = await fetch(`http://${probes}/readyz`);
  assert.deepEqual([ready.status, await ready.text()], [200, "ok"]);
  assert.equal(rig.lease, null);
  assert.equal(await host.stop("the test is over"), 0);
});

Deno.test("before the start is over the ports answer: not ready, and not the leader", async () => {
  await using rig = await ServeRig.open();
  const hang = rig.fake.faults.add({ resource: "/version", fault: { type: "hang" } });
  const opening = openService(rig.options());
  const tls = await rig.address("tls");
  const probes = await rig.address("probes");
  await until(() => hang.hits > 0);
  assert.deepEqual(await rig.look(tls), { status: 503, error: "not_leader" });
  const probe = async (path: string) => {
    const response = await fetch(`http://${probes}${path}`);
    return [response.status, await response.text()];
  };
  assert.deepEqual(await probe("/readyz"), [503, "starting"]);
  assert.deepEqual(await probe("/healthz"), [200, "ok"]);
  hang.remove();
  const host = await opening;
  assert.deepEqual(await probe("/readyz"), [200, "ok"]);
  assert.equal(rig.lines.filter(({ msg }) => msg === "serving").length, 1);
  assert.equal(await host.stop("the test is over"), 0);
});

Deno.test("a signal while it starts ends it with 0", async () => {
  await using rig = await ServeRig.open();
  const hang = rig.fake.faults.add({ resource: "/version", fault: { type: "hang" } });
  const serving = serve(rig.options());
  await until(() => hang.hits > 0);
  rig.signal("SIGTERM");
  assert.equal(await serving, 0);
  hang.remove();
  assert.equal(rig.lease, null);
});

Deno.test("a stop refuses new requests at once, waits for those in flight, frees the Lease before the grace, and listens through it", async () => {
  await using rig = await ServeRig.open();
  const host = await openService(
    rig.options({ "deploy_api.request_timeout": "600ms", "host.prestop_grace_secs": "2" }),
  );
  const tls = await rig.address("tls");
  await until(async () => (await rig.look(tls)).error !== "not_leader");
  assert.deepEqual(await rig.look(tls), { status: 401, error: "unauthorized" });

  // A review that does not come holds a request until its own deadline.
  const hang = rig.fake.faults.add({ resource: "tokenreviews", fault: { type: "hang" } });
  const inFlight = rig.look(tls);
  await until(() => hang.hits > 0);
  const stoppedAt = performance.now();
  rig.signal("SIGTERM");
  assert.deepEqual(await rig.look(tls), { status: 503, error: "not_leader" });
  assert.notEqual(rig.lease?.spec?.holderIdentity ?? "", "", "kept for the request in flight");
  assert.equal((await inFlight).status, 503);
  await until(() => (rig.lease?.spec?.holderIdentity ?? "") === "");
  assert.deepEqual(await rig.look(tls), { status: 503, error: "not_leader" });
  hang.remove();

  assert.equal(await host.done, 0);
  assert.ok(performance.now() - stoppedAt >= 2_000, "the grace passed");
  await assert.rejects(rig.look(tls));
  assert.equal(rig.listening, 0);
});

Deno.test("the metrics are those of the host, the cluster and the service: the calls of the election are counted, and all answers set lease time", async () => {
  await using rig = await ServeRig.open();
  const host = await openService(rig.options());
  const tls = await rig.address("tls");
  await until(async () => (await rig.look(tls)).error !== "not_leader");
  const scrape = await (await fetch(`http://${await rig.address("metrics")}/metrics`)).text();
  assert.match(
    scrape,
    /\nholdfast_kube_calls_total\{[^}]*resource="leases[^"]*",outcome="ok"\} [1-9]/,
  );
  assert.match(scrape, /\nkubernetes_leader\{lease="holdfast\.shipstream\.io"\} 1\n/);
  assert.match(scrape, /\nholdfast_clock_offset_seconds \S+\n/);
  const names = [...scrape.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  assert.deepEqual(names, [...new Set(names)], "each family once");
  assert.ok(!rig.lines.some(({ msg }) => msg.startsWith("metrics left out")));
  assert.equal(await host.stop("the test is over"), 0);
});

Deno.test("a pod that knows its name gets Events, unless they are switched off", async () => {
  for (const events of ["true", "false"]) {
    await using rig = await ServeRig.open();
    const options = rig.options({ "kubernetes.events": events, "host.prestop_grace_secs": "0" });
    const { system } = options;
    const env = { ...system.env, POD_NAME: "holdfast-1" };
    const host = await openService({ ...options, system: { ...system, env } });
    await until(() => (rig.lease?.spec?.holderIdentity ?? "").startsWith("holdfast-1-"));
    assert.equal(await host.stop("the test is over"), 0);
    const written = rig.fake.calls.count({ verb: "create", resource: "events" });
    assert.equal(written > 0, events === "true");
  }
});
