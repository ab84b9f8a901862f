import assert from "node:assert/strict";
import type { Hono } from "hono";
import { Registry } from "prom-client";
import { createAuxiliary } from "../../../handlers/http/auxiliary.ts";
import type { AuxEnv } from "../../../handlers/http/middleware/aux_log.ts";
import { HttpMetrics } from "../../../lib/host/metrics.ts";
import { TestClock } from "../../../lib/testing/mod.ts";
import { bareGroup, FakeView, groupNamed } from "../../auxiliary/support.ts";
import { recordingLogger } from "../../host/support.ts";

class Rig {
  readonly groups = new FakeView();
  readonly clock = new TestClock();
  readonly logger = recordingLogger();
  readonly registry = new Registry();
  readonly asked: string[] = [];
  cutoff: () => Promise<string | null> = () => Promise.resolve("2026-01-01T00:00:00Z");
  readonly app: Hono<AuxEnv>;

  constructor(page: Hono<AuxEnv> | null = null) {
    this.app = createAuxiliary({
      groups: this.groups,
      cutoffOf: (namespace, group, profile) => {
        this.asked.push(`${namespace}/${group}/${profile}`);
        return this.cutoff();
      },
      clock: this.clock,
      logger: this.logger,
      metrics: new HttpMetrics(this.registry),
      page,
    });
  }

  async get(path: string, method = "GET"): Promise<readonly [number, string, string | null]> {
    const response = await this.app.request(path, { method });
    return [response.status, await response.text(), response.headers.get("Content-Type")];
  }
}

const JSON_TYPE = "application/json";
const TEXT_TYPE = "text/plain; charset=utf-8";
const ORDERS = "namespace=database-ns&group=orders";

/** A rig with the group `orders`. */
function withOrders(): Rig {
  const rig = new Rig();
  rig.groups.put(groupNamed("orders"));
  return rig;
}

Deno.test("/healthz and /readyz are the text ok, whatever is known of groups", async () => {
  const rig = new Rig();
  rig.groups.synced = false;
  for (const path of ["/healthz", "/readyz"]) {
    assert.deepEqual(await rig.get(path), [200, "ok", TEXT_TYPE]);
  }
});

Deno.test("/status shows each group by its namespace and name", async () => {
  const rig = withOrders();
  rig.groups.put(groupNamed("billing", { activeSite: "pdx", sites: [] }));
  const [status, text, type] = await rig.get("/status");
  assert.deepEqual([status, type], [200, JSON_TYPE]);
  const site = (name: string, role: string, state: string) =>
    `{"name":"${name}","role":"${role}","state":"${state}","sourceHost":"","sourceConvergenceState":"",` +
    `"sourceConvergenceReason":"",${state === "unknown" ? "" : `"servingHealthy":true,`}` +
    `"recoveryState":"","divergentGtid":"","divergentTransactionCount":0}`;
  assert.equal(
    text,
    `{"database-ns/billing":{"activeSite":"pdx","sites":[${
      site("iad", "primary-candidate", "unknown")
    },${site("pdx", "dr-only", "unknown")}],"promotionGtidExecuted":""},` +
      `"database-ns/orders":{"activeSite":"iad","sites":[${
        site("iad", "primary-candidate", "writable")
      },${site("pdx", "dr-only", "read-only")}],"promotionGtidExecuted":""}}\n`,
  );
});

Deno.test("/status without a group says so", async () => {
  assert.deepEqual(await new Rig().get("/status"), [
    200,
    `{"status":"no active failover groups"}\n`,
    JSON_TYPE,
  ]);
});

Deno.test("/status does not say that there is no group before it has looked", async () => {
  const rig = new Rig();
  rig.groups.synced = false;
  assert.deepEqual(await rig.get("/status"), [
    503,
    `{"error":"no active topology managers"}\n`,
    JSON_TYPE,
  ]);
});

Deno.test("a group whose status lacks everything leaves the other groups as they are", async () => {
  const rig = withOrders();
  rig.groups.put(bareGroup());
  const [status, text] = await rig.get("/status");
  assert.equal(status, 200);
  const body = JSON.parse(text);
  assert.deepEqual(body["database-ns/bare"], {
    activeSite: "",
    sites: [],
    promotionGtidExecuted: "",
  });
  assert.equal(body["database-ns/orders"].activeSite, "iad");
  assert.deepEqual(await rig.get("/active-site?namespace=database-ns&group=bare"), [
    200,
    `{"namespace":"database-ns","group":"bare","activeSite":""}\n`,
    JSON_TYPE,
  ]);
  assert.equal((await rig.get(`/active-site?${ORDERS}`))[0], 200);
});

Deno.test("/active-site tells the active site of one group", async () => {
  assert.deepEqual(await withOrders().get(`/active-site?${ORDERS}`), [
    200,
    `{"namespace":"database-ns","group":"orders","activeSite":"iad"}\n`,
    JSON_TYPE,
  ]);
});

const INCOMPLETE = [
  "",
  "?",
  "?namespace=database-ns",
  "?group=orders",
  "?namespace=&group=orders",
  "?namespace=database-ns&group=",
  "?Namespace=database-ns&Group=orders",
  "?namespace&group",
];

for (const query of INCOMPLETE) {
  Deno.test(`/active-site${query} is 400, as a parameter is missing or empty`, async () => {
    assert.deepEqual(await withOrders().get(`/active-site${query}`), [
      400,
      `{"error":"namespace and group query parameters are required"}\n`,
      JSON_TYPE,
    ]);
  });
}

Deno.test("/active-site of a group that is not there is 404 while there is another, however it is named", async () => {
  const rig = withOrders();
  const names = [
    "billing",
    "%00",
    "a%2Fb",
    "..%2Forders",
    "%zz",
    "x".repeat(10_000),
    "ord%C3%A9rs",
  ];
  for (const name of names) {
    assert.deepEqual(await rig.get(`/active-site?namespace=database-ns&group=${name}`), [
      404,
      `{"error":"failover group not found"}\n`,
      JSON_TYPE,
    ]);
  }
});

Deno.test("/active-site without any group is 503, and a bad query is told first", async () => {
  const rig = new Rig();
  for (const synced of [true, false]) {
    rig.groups.synced = synced;
    assert.deepEqual(await rig.get(`/active-site?${ORDERS}`), [
      503,
      `{"error":"no active topology managers"}\n`,
      JSON_TYPE,
    ]);
    assert.equal((await rig.get("/active-site"))[0], 400);
  }
});

Deno.test("of a parameter that is there twice the first counts", async () => {
  const [status] = await withOrders().get(`/active-site?${ORDERS}&group=billing`);
  assert.equal(status, 200);
});

Deno.test("/pitr-cutoff tells the cut-off of a profile, and leaves it out where there is none", async () => {
  const rig = withOrders();
  assert.deepEqual(await rig.get(`/pitr-cutoff?${ORDERS}&profile=daily`), [
    200,
    `{"namespace":"database-ns","group":"orders","profile":"daily","cutoffTime":"2026-01-01T00:00:00Z"}\n`,
    JSON_TYPE,
  ]);
  rig.cutoff = () => Promise.resolve(null);
  assert.deepEqual(await rig.get(`/pitr-cutoff?${ORDERS}&profile=weekly`), [
    200,
    `{"namespace":"database-ns","group":"orders","profile":"weekly"}\n`,
    JSON_TYPE,
  ]);
  assert.deepEqual(rig.asked, ["database-ns/orders/daily", "database-ns/orders/weekly"]);
});

for (const query of [...INCOMPLETE, `?${ORDERS}`, `?${ORDERS}&profile=`]) {
  Deno.test(`/pitr-cutoff${query} is 400, and nothing is asked of the cluster`, async () => {
    const rig = withOrders();
    assert.deepEqual(await rig.get(`/pitr-cutoff${query}`), [
      400,
      `{"error":"namespace, group, and profile query parameters are required"}\n`,
      JSON_TYPE,
    ]);
    assert.deepEqual(rig.asked, []);
  });
}

Deno.test("/pitr-cutoff is 500 when the cluster cannot say, and tells nothing of why", async () => {
  const rig = withOrders();
  for (const error of [new TypeError("secret"), "secret"]) {
    rig.cutoff = () => Promise.reject(error);
    assert.deepEqual(await rig.get(`/pitr-cutoff?${ORDERS}&profile=daily`), [
      500,
      `{"error":"internal error resolving PITR cutoff"}\n`,
      JSON_TYPE,
    ]);
  }
  const warnings = rig.logger.lines.filter(({ level }) => level === "warn");
  assert.deepEqual(warnings.map(({ message, fields }) => [message, fields]), [
    ["pitr cutoff not found", { error: "TypeError" }],
    ["pitr cutoff not found", { error: "unknown" }],
  ]);
  assert.ok(!JSON.stringify(rig.logger.lines).includes("secret"));
});

Deno.test("/pitr-cutoff without any group is 503", async () => {
  assert.deepEqual(await new Rig().get(`/pitr-cutoff?${ORDERS}&profile=daily`), [
    503,
    `{"error":"no active topology managers"}\n`,
    JSON_TYPE,
  ]);
});

Deno.test("anything else is the text 404, the deployment API and other methods too", async () => {
  const rig = withOrders();
  const others = [
    ["/", "GET"],
    ["/deploy/v1", "GET"],
    ["/deploy/v1/", "GET"],
    ["/deploy/v1/groups/orders", "GET"],
    ["/deploy/v1/groups/orders/leases", "POST"],
    ["/keyring/escrow", "POST"],
    ["/metrics", "GET"],
    ["/status/", "GET"],
    ["/STATUS", "GET"],
    ["/ws", "GET"],
    ["/status", "POST"],
    ["/status", "DELETE"],
    ["/active-site", "OPTIONS"],
    ["/pitr-cutoff", "PUT"],
  ] as const;
  for (const [path, method] of others) {
    assert.deepEqual(await rig.get(path, method), [404, "404 page not found", TEXT_TYPE], path);
  }
  assert.deepEqual(
    new Set(rig.logger.lines.map(({ fields }) => fields.handler)),
    new Set(["notfound"]),
  );
});

Deno.test("HEAD is answered as GET, without a body", async () => {
  assert.deepEqual(await withOrders().get("/status", "HEAD"), [200, "", JSON_TYPE]);
});

Deno.test("/ws/status without the request to switch says what it wants", async () => {
  const response = await new Rig().app.request("/ws/status");
  assert.deepEqual(
    [response.status, await response.text(), response.headers.get("Upgrade")],
    [426, "websocket upgrade required", "websocket"],
  );
});

Deno.test("no answer is kept by anybody", async () => {
  const rig = withOrders();
  for (
    const path of ["/healthz", "/status", "/active-site", `/pitr-cutoff?${ORDERS}`, "/nothing"]
  ) {
    const response = await rig.app.request(path);
    assert.equal(response.headers.get("Cache-Control"), "no-store", path);
  }
});

Deno.test("each request is one aux http line, with its fields in order, and without its query", async () => {
  const rig = withOrders();
  rig.cutoff = async () => {
    await rig.clock.advance(250);
    return null;
  };
  await rig.get(`/pitr-cutoff?${ORDERS}&profile=daily`);
  const incoming = {
    method: "GET",
    url: "/active-site?namespace=secret&group=secret",
    socket: { remoteAddress: "10.1.2.3", remotePort: 4711 },
  };
  await rig.app.request("/active-site?namespace=secret&group=secret", {}, { incoming });
  await rig.app.request("/nothing", {}, {
    incoming: { ...incoming, url: "/./nothing", socket: { remoteAddress: "::1", remotePort: 1 } },
  });
  assert.deepEqual(rig.logger.lines.map(({ level, message, fields }) => [level, message, fields]), [
    ["info", "aux http", {
      method: "GET",
      path: "/pitr-cutoff",
      handler: "pitr-cutoff",
      status: 200,
      duration_ms: 250,
      remote: "",
    }],
    ["info", "aux http", {
      method: "GET",
      path: "/active-site",
      handler: "active-site",
      status: 404,
      duration_ms: 0,
      remote: "10.1.2.3:4711",
    }],
    ["info", "aux http", {
      method: "GET",
      path: "/./nothing",
      handler: "notfound",
      status: 404,
      duration_ms: 0,
      remote: "[::1]:1",
    }],
  ]);
  assert.deepEqual(Object.keys(rig.logger.lines[0]?.fields ?? {}), [
    "method",
    "path",
    "handler",
    "status",
    "duration_ms",
    "remote",
  ]);
});

Deno.test("each request is counted once under the server aux and its handler", async () => {
  const rig = withOrders();
  for (const path of ["/healthz", "/readyz", "/status", "/active-site", "/nothing", "/nowhere"]) {
    await rig.get(path);
  }
  const text = await rig.registry.metrics();
  const counted = (handler: string, status: string) =>
    `bloodraven_http_requests_total{server="aux",handler="${handler}",method="GET",status="${status}"}`;
  for (
    const line of [
      `${counted("healthz", "2xx")} 1`,
      `${counted("readyz", "2xx")} 1`,
      `${counted("status", "2xx")} 1`,
      `${counted("active-site", "4xx")} 1`,
      `${counted("notfound", "4xx")} 2`,
    ]
  ) {
    assert.ok(text.split("\n").includes(line), line);
  }
});

Deno.test("a fault of ours is 500 without its text, and the next request is served", async () => {
  const rig = withOrders();
  const keys = rig.groups.keys.bind(rig.groups);
  rig.groups.keys = () => {
    throw new RangeError("secret");
  };
  assert.deepEqual(await rig.get("/status"), [500, `{"error":"internal error"}\n`, JSON_TYPE]);
  assert.deepEqual(
    rig.logger.lines.map((
      { level, message, fields },
    ) => [level, message, fields.error ?? fields.status]),
    [
      ["error", "aux http failed", "RangeError"],
      ["info", "aux http", 500],
    ],
  );
  rig.groups.keys = keys;
  assert.equal((await rig.get("/status"))[0], 200);
});
