import assert from "node:assert/strict";
import { once } from "node:events";
// @ts-types="@types/ws"
import { type ClientOptions, WebSocket } from "ws";
import { openService } from "../../../../handlers/commands/serve.ts";
import { readDefinitions } from "../../../../handlers/commands/demo/crds.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../../../lib/group/types.ts";
import { ordersGroup, stableStatus } from "../../../service/orders.ts";
import { ServeRig, until } from "../serve_rig.ts";

const NAMESPACE = "database";

/** The shipped service with its page, on a cluster in memory. */
async function withService(
  settings: Readonly<Record<string, string>>,
  test: (rig: ServeRig, address: string) => Promise<void>,
): Promise<void> {
  await using rig = await ServeRig.open();
  for (const definition of readDefinitions()) rig.fake.apply(definition);
  put(rig, {});
  const host = await openService(rig.options({ "host.prestop_grace_secs": "0", ...settings }));
  try {
    await test(rig, await rig.address("auxiliary"));
  } finally {
    await host.stop("the test is over");
  }
}

function put(rig: ServeRig, change: MysqlFailoverGroup["status"]): void {
  const status = { ...stableStatus, ...change };
  rig.fake.seed(MYSQL_FAILOVER_GROUPS, { ...ordersGroup(NAMESPACE), status });
}

/** A client of the page's WebSocket that keeps what comes. */
async function connect(address: string, query = "", options: ClientOptions = {}) {
  const socket = new WebSocket(`ws://${address}/ws/page${query}`, {
    origin: `http://${address}`,
    ...options,
  });
  const messages: Record<string, unknown>[] = [];
  socket.on("message", (data) => void messages.push(JSON.parse(String(data))));
  await once(socket, "open");
  return { socket, messages };
}

async function refused(address: string, options: ClientOptions): Promise<number | undefined> {
  const socket = new WebSocket(`ws://${address}/ws/page`, options);
  const [, response] = await once(socket, "unexpected-response");
  response.resume();
  await once(response, "end");
  return response.statusCode;
}

async function page(address: string): Promise<string> {
  return await (await fetch(`http://${address}/`)).text();
}

Deno.test("without the switch there is no page, no script and no WebSocket of it", async () => {
  await withService({}, async (_rig, address) => {
    for (const path of ["/", "/page/page.js", "/ws/page"]) {
      const response = await fetch(`http://${address}${path}`);
      assert.deepEqual([response.status, await response.text()], [404, "404 page not found"], path);
    }
    assert.equal(await refused(address, { origin: `http://${address}` }), 404);
  });
});

Deno.test("with the switch the page shows the group, and its WebSocket tells what changes", async () => {
  await withService({ "auxiliary.status_page": "true" }, async (rig, address) => {
    await until(async () => (await page(address)).includes('id="group:database/orders"'));
    const html = await page(address);
    assert.match(html, /Seen by <strong>[^<]*holdfast[^<]*<\/strong>/);
    const [, epoch, sequence] = /data-epoch="(\w+)" data-sequence="(\d+)"/.exec(html) ?? [];
    const { socket, messages } = await connect(address, `?has=${epoch}.${sequence}.0`);
    await until(() => messages.length > 0);
    assert.deepEqual(messages.map(({ id }) => id), [undefined], "what it has is not sent again");
    const lagging = { name: "pdx", state: "read-only", replicating: true, secondsBehindSource: 77 };
    put(rig, { sites: [{ name: "iad", state: "writable", replicating: false }, lagging] });
    await until(() => messages.length >= 4);
    assert.deepEqual(messages.slice(1).map(({ id }) => id), [
      "head:database/orders",
      "site:database/orders:pdx",
      undefined,
    ]);
    assert.match(String(messages[2]?.html), /1m 17s/);
    socket.terminate();
    const lines = rig.lines.filter(({ msg, handler }) =>
      msg === "aux http" && handler === "ws-page"
    );
    assert.deepEqual(lines.map(({ status, path }) => [status, path]), [[101, "/ws/page"]]);
    assert.ok(rig.lines.some(({ msg, handler }) => msg === "aux http" && handler === "page"));
  });
});

Deno.test("no other page may read along, whatever origins the contract's WebSocket allows", async () => {
  const settings = { "auxiliary.status_page": "true", "auxiliary.ws_allowed_origins": "*" };
  await withService(settings, async (_rig, address) => {
    assert.equal(await refused(address, {}), 403);
    assert.equal(await refused(address, { origin: "https://evil.example.org" }), 403);
    assert.equal(await refused(address, { origin: "null" }), 403);
    const { socket } = await connect(address);
    socket.terminate();
  });
});

Deno.test("the cap of clients holds for the page by itself", async () => {
  const settings = { "auxiliary.status_page": "true", "auxiliary.ws_max_clients": "1" };
  await withService(settings, async (_rig, address) => {
    const { socket } = await connect(address);
    assert.equal(await refused(address, { origin: `http://${address}` }), 429);
    socket.terminate();
  });
});
