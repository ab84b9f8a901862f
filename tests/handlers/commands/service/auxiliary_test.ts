import assert from "node:assert/strict";
import { once } from "node:events";
// @ts-types="@types/ws"
import { type ClientOptions, WebSocket } from "ws";
import { openService } from "../../../../handlers/commands/serve.ts";
import type { ApplicationHost } from "../../../../lib/host/host.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../../../lib/group/types.ts";
import { readDefinitions } from "../../../../handlers/commands/demo/crds.ts";
import { ServeRig, until } from "../serve_rig.ts";

const NAMESPACE = "database";

/** A service with the group `orders`. */
class AuxiliaryRig implements AsyncDisposable {
  readonly serve: ServeRig;
  readonly address: string;
  readonly host: ApplicationHost;

  private constructor(serve: ServeRig, host: ApplicationHost, address: string) {
    this.serve = serve;
    this.host = host;
    this.address = address;
  }

  static async open(settings: Readonly<Record<string, string>> = {}): Promise<AuxiliaryRig> {
    const serve = await ServeRig.open();
    for (const definition of readDefinitions()) serve.fake.apply(definition);
    const host = await openService(
      serve.options({ "host.prestop_grace_secs": "0", ...settings }),
    );
    const rig = new AuxiliaryRig(serve, host, await serve.address("auxiliary"));
    rig.put("iad");
    await until(async () => (await rig.get("/status")).text.includes("orders"));
    return rig;
  }

  /** Writes the group as its operator would. */
  put(activeSite: string): void {
    const group: MysqlFailoverGroup = {
      metadata: { name: "orders", namespace: NAMESPACE },
      spec: { sites: ["iad", "pdx"].map((name) => ({ name, role: "primary-candidate" })) },
      status: { activeSite },
    };
    this.serve.fake.seed(MYSQL_FAILOVER_GROUPS, group);
  }

  async get(path: string, port = "auxiliary"): Promise<{ status: number; text: string }> {
    const response = await fetch(`http://${await this.serve.address(port)}${path}`);
    return { status: response.status, text: await response.text() };
  }

  /** Connects to `/ws/status`, and notes what comes. */
  async connect(options: ClientOptions = {}): Promise<{ socket: WebSocket; messages: string[] }> {
    const socket = new WebSocket(`ws://${this.address}/ws/status`, options);
    const messages: string[] = [];
    socket.on("message", (data) => void messages.push(String(data)));
    await once(socket, "open");
    return { socket, messages };
  }

  /** Tries to connect. @returns The status of the refusal. */
  async refused(options: ClientOptions = {}): Promise<number | undefined> {
    const socket = new WebSocket(`ws://${this.address}/ws/status`, options);
    const [, response] = await once(socket, "unexpected-response");
    response.resume();
    await once(response, "end");
    return response.statusCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.host.stop("the test is over");
    await this.serve[Symbol.asyncDispose]();
  }
}

const siteOf = (text: string | undefined) => JSON.parse(text ?? "{}").activeSite;

Deno.test("a client of /ws/status gets the group when it comes and each change, and the gauge counts it", async () => {
  await using rig = await AuxiliaryRig.open();
  const { socket, messages } = await rig.connect();
  await until(() => messages.length === 1);
  rig.put("pdx");
  await until(() => messages.length === 2);
  assert.deepEqual(messages.map(siteOf), ["iad", "pdx"]);
  assert.match(
    (await rig.get("/metrics", "metrics")).text,
    /\nbloodraven_websocket_connected_clients 1\n/,
  );
  socket.terminate();
  await until(async () =>
    (await rig.get("/metrics", "metrics")).text.includes(
      "\nbloodraven_websocket_connected_clients 0\n",
    )
  );
});

Deno.test("the cap and the origins of the configuration hold, and each try is one aux http line", async () => {
  await using rig = await AuxiliaryRig.open({
    "auxiliary.ws_max_clients": "1",
    "auxiliary.ws_allowed_origins": "https://a.example.org,https://b.example.org",
  });
  assert.equal(await rig.refused(), 403);
  assert.equal(await rig.refused({ origin: "https://evil.example.org" }), 403);
  const { socket } = await rig.connect({ origin: "https://b.example.org" });
  assert.equal(await rig.refused({ origin: "https://a.example.org" }), 429);
  const tries = rig.serve.lines.filter(({ msg, handler }) =>
    msg === "aux http" && handler === "ws-status"
  );
  assert.deepEqual(tries.map(({ status, method, path }) => [status, method, path]), [
    [403, "GET", "/ws/status"],
    [403, "GET", "/ws/status"],
    [101, "GET", "/ws/status"],
    [429, "GET", "/ws/status"],
  ]);
  assert.match(String(tries[0]?.remote), /^127\.0\.0\.1:\d+$/);
  socket.terminate();
});

Deno.test("the end of the service asks its WebSocket clients to go, and shows the groups until then", async () => {
  await using rig = await AuxiliaryRig.open({ "host.prestop_grace_secs": "1" });
  const { socket, messages } = await rig.connect();
  await until(() => messages.length === 1);
  const ended = rig.host.stop("the test is over");
  assert.equal((await rig.get("/readyz", "probes")).text, "stopping");
  rig.put("pdx");
  await until(() => messages.length === 2);
  const [code] = await once(socket, "close");
  assert.deepEqual([code, await ended], [1001, 0]);
});

Deno.test("neither the deployment API nor the escrow is on the auxiliary port", async () => {
  await using rig = await AuxiliaryRig.open();
  for (const path of ["/deploy/v1/groups/orders", "/keyring/escrow", "/metrics", "/"]) {
    assert.deepEqual(await rig.get(path), { status: 404, text: "404 page not found" });
  }
});

Deno.test("before the cluster is there the auxiliary port answers that it knows nothing", async () => {
  await using serve = await ServeRig.open();
  const hang = serve.fake.faults.add({ resource: "/version", fault: { type: "hang" } });
  const opening = openService(serve.options({ "host.prestop_grace_secs": "0" }));
  const address = await serve.address("auxiliary");
  const get = async (path: string) => {
    const response = await fetch(`http://${address}${path}`);
    return [response.status, await response.text()];
  };
  const unknown = [503, `{"error":"no active topology managers"}\n`];
  assert.deepEqual(await get("/status"), unknown);
  assert.deepEqual(await get("/active-site?namespace=a&group=b"), unknown);
  assert.deepEqual(await get("/pitr-cutoff?namespace=a&group=b&profile=c"), unknown);
  assert.deepEqual(await get("/healthz"), [200, "ok"]);
  hang.remove();
  const host = await opening;
  assert.equal(await host.stop("the test is over"), 0);
});

Deno.test("a service that may not see groups serves all else, and tells it in the log", async () => {
  await using serve = await ServeRig.open();
  serve.fake.faults.add({ resource: "mysqlfailovergroups", fault: { type: "status", code: 403 } });
  const host = await openService(serve.options({ "host.prestop_grace_secs": "0" }));
  const { status } = await fetch(`http://${await serve.address("probes")}/readyz`)
    .then(async (response) => ({ status: response.status, text: await response.text() }));
  assert.equal(status, 200);
  await until(() =>
    serve.lines.some(({ msg, resource }) =>
      msg === "watch failed" && resource === "mysqlfailovergroups"
    )
  );
  assert.equal(await host.stop("the test is over"), 0);
});
