/** deploy-api 16.1: what the HTTP API does, item by item, against the API server in memory. */

import assert from "node:assert/strict";
import { GATE_KIND } from "../../lib/records/names.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import {
  MYSQL_DATABASES,
  MYSQL_FAILOVER_GROUPS,
  type MysqlFailoverGroup,
} from "../../lib/group/types.ts";
import { formatTime } from "../../lib/records/record.ts";
import { type Answer, type DeploymentClient, grantedBody } from "../service/deployment_client.ts";
import { DEPLOYER, InProcessService, NAMESPACE, seedGroup } from "../service/in_process.ts";
import { ordersDatabase, stableStatus } from "../service/orders.ts";
import { annotate, REVOKE } from "./support.ts";

const orders = { namespace: NAMESPACE, name: "orders" };

function expiryAfter({ clock }: InProcessService, seconds: number): string {
  return formatTime(clock.wall() + seconds * 1000);
}

function tokenOf(answer: Answer): string {
  return grantedBody.parse(answer.body).token;
}

/** Every answer has these headers, and 204 has no body. */
function mustHaveForm(answer: Answer): Answer {
  assert.equal(answer.headers.get("Content-Type"), "application/json");
  assert.equal(answer.headers.get("Cache-Control"), "no-store");
  if (answer.status === 204) assert.equal(answer.text, "");
  else assert.ok(answer.text.endsWith("}\n"), answer.text);
  return answer;
}

function mustBe(answer: Answer, status: number, error?: string): Answer {
  mustHaveForm(answer);
  assert.equal(answer.status, status, answer.text);
  if (error !== undefined) assert.equal(answer.body.error, error);
  return answer;
}

function change(service: InProcessService, status: MysqlFailoverGroup["status"]): void {
  const group = service.fake.read(MYSQL_FAILOVER_GROUPS, orders);
  assert.ok(group);
  service.fake.seed(MYSQL_FAILOVER_GROUPS, { ...group, status: { ...group.status, ...status } });
}

async function granted(client: DeploymentClient, operation = "op-1", kind = "migration") {
  return tokenOf(mustBe(await client.grant(operation, "tenant", { kind }), 201));
}

Deno.test("deploy-api 16 item 1: a grant with a ttl of 1 is for 5 seconds", async () => {
  using service = new InProcessService();
  const answer = mustBe(await service.client().grant("op-1", "tenant", { ttlSeconds: 1 }), 201);
  const { token: _, ...rest } = grantedBody.parse(answer.body);
  assert.deepEqual(rest, {
    kind: "migration",
    operationId: "op-1",
    expiresAt: expiryAfter(service, 5),
    topologyGeneration: 7,
  });
});

Deno.test("deploy-api 16 items 2 to 4: a re-grant rotates the token, and the old one renews nothing", async () => {
  using service = new InProcessService();
  const client = service.client();
  const first = await granted(client);
  const again = mustBe(await client.grant("op-1", "tenant", { ttlSeconds: 999 }), 200);
  const second = tokenOf(again);
  assert.notEqual(second, first);
  assert.equal(again.body.expiresAt, expiryAfter(service, 120));
  mustBe(await client.renew("op-1", first), 403, "token_mismatch");
  const renewed = mustBe(await client.renew("op-1", second, { ttlSeconds: 60 }), 200);
  assert.deepEqual(renewed.body, { expiresAt: expiryAfter(service, 60), topologyGeneration: 7 });
});

Deno.test("deploy-api 16 items 5 to 9: a hold, a second operation, the view, and the releases", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  const hold = await granted(client, "op-1", "failover-hold");
  mustBe(await client.renew("op-1", hold, { kind: "failover-hold" }), 200);

  const held = mustBe(await client.grant("op-2", "tenant"), 409, "held");
  assert.deepEqual(held.body.holder, {
    expiresAt: expiryAfter(service, 30),
    instance: "tenant",
    operationId: "op-1",
  });
  const seen = mustBe(await client.observe(), 200);
  assert.equal(seen.body.stable, true);
  assert.deepEqual(
    Array.isArray(seen.body.leases) && seen.body.leases.map((lease) => lease.kind),
    ["migration", "failover-hold"],
  );

  for (const wrong of ["", "0".repeat(64), hold]) {
    mustBe(await client.release("op-1", wrong), 403, "token_mismatch");
  }
  mustBe(await client.release("op-1", token), 204);
  mustBe(await client.release("op-1", token), 204);
  mustBe(await client.release("op-1", "wrong"), 403, "token_mismatch");
  mustBe(await client.renew("op-1", token), 404, "not_found");
  mustBe(await client.release("op-1", hold, { kind: "failover-hold" }), 204);
  mustBe(await client.release("never", ""), 204);
});

Deno.test("deploy-api 16 item 10: no token and no hash is in a log line, an answer or a metric", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  await client.renew("op-1", token);
  const seen = await client.observe();
  await client.release("op-1", token);
  const stored = JSON.stringify(service.fake.readAll(LEASES));
  const said = service.lines.join("") + seen.text + await service.metrics.registry.metrics();
  assert.ok(!stored.includes(token) && !said.includes(token));
  for (const secret of ["tokenHash", "Bearer", "eyJ"]) {
    assert.ok(!said.includes(secret), secret);
  }
});

Deno.test("deploy-api 16 item 11: unauthorized grants for ten names add ten to one series", async () => {
  using service = new InProcessService();
  for (let group = 0; group < 10; group++) {
    const client = service.client(DEPLOYER, { group: `group-${group}` });
    mustBe(await client.grant("op", "tenant"), 403, "forbidden");
  }
  const series =
    'bloodraven_deploy_lease_grants_total{group="",kind="migration",result="unauthorized"}';
  assert.equal(await service.metric(series), 10);
});

Deno.test("deploy-api 16 item 12: expired, and revoked by a generation or an operator: renew, release and re-grant", async () => {
  {
    using service = new InProcessService();
    const client = service.client();
    const token = await granted(client);
    await service.clock.advance(30_000);
    mustBe(await client.renew("op-1", token, { ttlSeconds: 5 }), 200);
    await service.clock.advance(5_001);
    mustBe(await client.renew("op-1", token), 404, "not_found");
    mustBe(await client.release("op-1", "wrong"), 403, "token_mismatch");
    mustBe(await client.release("op-1", token), 204);
    mustBe(await client.release("op-1", token), 204);
    mustBe(await client.grant("op-1", "tenant"), 201);
  }
  const revocations = [
    ["topology_changed", 8, (service: InProcessService) => {
      change(service, { activeSite: "iad", topologyGeneration: 8 });
    }],
    ["operator_revoked", 7, (service: InProcessService) => annotate(service, REVOKE, "true")],
  ] as const;
  for (const [reason, generation, revoke] of revocations) {
    using service = new InProcessService();
    const client = service.client();
    const token = await granted(client);
    revoke(service);
    const revoked = mustBe(await client.renew("op-1", token), 409, "revoked");
    assert.deepEqual([revoked.body.reason, revoked.body.topologyGeneration], [reason, generation]);
    annotate(service, REVOKE, null);
    mustBe(await client.release("op-1", "wrong"), 403, "token_mismatch");
    mustBe(await client.release("op-1", token), 204);
    mustBe(await client.release("op-1", token), 204);
    mustBe(await client.grant("op-1", "tenant"), 409, "revoked");
  }
});

Deno.test("deploy-api 16 item 13: callers without a permission learn nothing, and no group is read", async () => {
  const cases: Readonly<Record<string, (service: InProcessService) => DeploymentClient>> = {
    "wrong service account": (service) =>
      service.client({ ...DEPLOYER, serviceAccount: "intruder" }),
    "wrong namespace": (service) => service.client({ ...DEPLOYER, namespace: "elsewhere" }),
    "other group of the databases": (service) => {
      for (const name of ["tenant", "billing"]) {
        service.fake.seed(MYSQL_DATABASES, ordersDatabase(NAMESPACE, name, "other", [DEPLOYER]));
      }
      return service.client();
    },
    "databases that are being deleted": (service) => {
      for (const name of ["tenant", "billing"]) {
        const database = ordersDatabase(NAMESPACE, name, "orders", [DEPLOYER]);
        const metadata = {
          ...database.metadata,
          finalizers: ["x/y"],
          deletionTimestamp: "2026-01-01T00:00:00Z",
        };
        service.fake.seed(MYSQL_DATABASES, { ...database, metadata });
      }
      return service.client();
    },
    "no database": (service) => {
      for (const name of ["tenant", "billing"]) {
        service.fake.remove(MYSQL_DATABASES, { namespace: NAMESPACE, name });
      }
      return service.client();
    },
  };
  for (const [what, make] of Object.entries(cases)) {
    for (const exists of [true, false]) {
      using service = new InProcessService();
      const client = make(service);
      if (!exists) service.fake.remove(MYSQL_FAILOVER_GROUPS, orders);
      service.fake.calls.reset();
      const answers = [
        await client.observe(),
        await client.grant("op-1", "tenant"),
        await client.renew("op-1", "token"),
        await client.release("op-1", "token"),
      ];
      for (const answer of answers) {
        mustBe(answer, 403);
        assert.equal(answer.text, '{"error":"forbidden"}\n', what);
      }
      assert.equal(
        service.fake.calls.count({ resource: "mysqlfailovergroups.shipstream.io" }),
        0,
        what,
      );
      assert.equal(service.fake.calls.count({ resource: "leases.coordination.k8s.io" }), 0, what);
    }
  }
});

Deno.test("deploy-api 16 item 14: a caller of two databases acts for each, and only for these", async () => {
  using service = new InProcessService();
  const client = service.client();
  mustBe(await client.call("GET", "?namespace=elsewhere"), 200);
  const token = tokenOf(mustBe(await client.grant("op-1", "billing"), 201));
  mustBe(await client.renew("op-1", token), 200);
  mustBe(await client.release("op-1", token), 204);
  mustBe(await client.grant("op-2", "undeclared"), 403, "forbidden");
});

Deno.test("deploy-api 16 item 15: the same names in a second namespace are ambiguous", async () => {
  using service = new InProcessService();
  service.fake.seed(MYSQL_DATABASES, ordersDatabase("second", "tenant", "orders", [DEPLOYER]));
  const client = service.client();
  service.fake.calls.reset();
  mustBe(await client.observe(), 403, "forbidden");
  mustBe(await client.grant("op-1", "tenant"), 403, "forbidden");
  mustBe(await client.renew("op-1", "token"), 403, "forbidden");
  mustBe(await client.release("op-1", "token"), 403, "forbidden");
  assert.equal(service.fake.calls.count({ resource: "mysqlfailovergroups.shipstream.io" }), 0);
});

Deno.test("deploy-api 16 item 17: the audience is configurable, and two requests are one review", async () => {
  using service = new InProcessService({ audience: "custom" });
  const client = service.client(DEPLOYER, { audience: "custom" });
  mustBe(await client.observe(), 200);
  mustBe(await client.observe(), 200);
  assert.equal(service.fake.calls.count({ resource: "tokenreviews.authentication.k8s.io" }), 1);
  mustBe(await service.client().observe(), 401, "unauthorized");
});

Deno.test("deploy-api 16 item 18: a removed client is refused at once, also with a cached identity", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  for (const name of ["tenant", "billing"]) {
    service.fake.seed(MYSQL_DATABASES, ordersDatabase(NAMESPACE, name, "orders", []));
  }
  mustBe(await client.renew("op-1", token), 403, "forbidden");
  assert.equal(service.fake.calls.count({ resource: "tokenreviews.authentication.k8s.io" }), 1);
});

Deno.test("deploy-api 16 item 19: malformed headers are refused without a review", async () => {
  using service = new InProcessService();
  const client = service.client();
  const headers: Readonly<Record<string, string>>[] = [
    { Authorization: "" },
    { Authorization: "Basic dXNlcjpwYXNz" },
    { Authorization: "Bearer" },
    { Authorization: "Bearer one two" },
    { Authorization: `Bearer ${"x".repeat(16_385)}` },
  ];
  for (const header of headers) {
    const answer = mustBe(await client.call("GET", "", { headers: header }), 401);
    assert.equal(answer.text, '{"error":"unauthorized"}\n');
  }
  assert.equal(service.fake.calls.count({ resource: "tokenreviews.authentication.k8s.io" }), 0);
  mustBe(await client.call("GET", "", { headers: { Authorization: "Bearer x" } }), 401);
  assert.equal(service.fake.calls.count({ resource: "tokenreviews.authentication.k8s.io" }), 1);
  const token = service.fake.tokenFor({ ...DEPLOYER, audiences: ["bloodraven-deploy"] });
  mustBe(await client.call("GET", "", { headers: { Authorization: `bEaReR ${token}` } }), 200);
});

Deno.test("deploy-api 16 item 20: bad requests, each with its answer and its Allow", async () => {
  using service = new InProcessService();
  const client = service.client();
  const lease = "/leases/migration/op-1";
  const body = (value: unknown) => ({ body: JSON.stringify(value) });
  const good = { kind: "migration", operationId: "op-1", instance: "tenant" };
  const rows: readonly [string, string, RequestInit, number, string?][] = [
    ["POST", "/leases", { body: "" }, 400],
    ["POST", "/leases", { body: "null" }, 400],
    ["POST", "/leases", { body: "[]" }, 400],
    ["POST", "/leases", { body: "{" }, 400],
    ["POST", "/leases", body({ ...good, more: 1 }), 400],
    ["POST", "/leases", { body: JSON.stringify(good) + "{}" }, 400],
    ["POST", "/leases", { body: JSON.stringify(good) + "null" }, 400],
    ["POST", "/leases", body({ ...good, ttlSeconds: "30" }), 400],
    ["POST", "/leases", body({ ...good, kind: "lock" }), 400],
    ["POST", "/leases", body({ ...good, operationId: "" }), 400],
    ["POST", "/leases", body({ ...good, operationId: "x".repeat(129) }), 400],
    ["POST", "/leases", body({ ...good, instance: "Tenant" }), 400],
    ["POST", "/leases", body({ ...good, operationId: "x".repeat(5_000) }), 413],
    ["POST", "/leases", { body: JSON.stringify(good) + " ".repeat(5_000) }, 413],
    ["PUT", lease, { body: "[]" }, 400],
    ["PUT", lease, { body: " ".repeat(5_000) }, 413],
    ["PUT", "/leases/lock/op-1", body({}), 400],
    ["PUT", `/leases/migration/${"x".repeat(129)}`, body({}), 400],
    ["PUT", "/leases/migration/", body({}), 400],
    ["DELETE", "/leases/migration/", {}, 400],
    ["POST", "", {}, 405, "GET"],
    ["HEAD", "", {}, 405, "GET"],
    ["GET", "/leases", {}, 405, "POST"],
    ["PATCH", lease, {}, 405, "PUT, DELETE"],
    ["GET", "/leases/migration/", {}, 405, "PUT, DELETE"],
    ["GET", "/other", {}, 404],
    ["GET", "/leases/", {}, 404],
    ["PUT", `${lease}/more`, body({}), 404],
  ];
  const names = new Map([[400, "invalid_request"], [413, "request_too_large"], [404, "not_found"], [
    405,
    "method_not_allowed",
  ]]);
  for (const [method, path, init, status, allow] of rows) {
    const answer = await client.call(method, path, init);
    assert.equal(answer.status, status, `${method} ${path}`);
    assert.equal(answer.headers.get("Allow"), allow ?? null, `${method} ${path}`);
    if (method !== "HEAD") assert.equal(answer.text, `{"error":"${names.get(status)}"}\n`);
  }
  for (const group of ["Orders", ""]) {
    mustBe(await client.with({ group }).observe(), 404, "not_found");
  }
});

Deno.test("deploy-api 16 item 21: a follower answers without a review, and faults are 503 and nothing else", async () => {
  using service = new InProcessService();
  const client = service.client();
  service.leads = false;
  const follower = mustBe(await client.observe(), 503, "not_leader");
  assert.equal(follower.headers.get("Connection"), "close");
  assert.equal(follower.headers.get("Retry-After"), "1");
  assert.equal(service.fake.calls.count(), 0);
  service.leads = true;

  for (const resource of ["mysqldatabases", "mysqlfailovergroups", "leases"]) {
    const fault = service.fake.faults.add({ resource, fault: { type: "status", code: 500 } });
    const answer = mustBe(await client.observe(), 503);
    assert.equal(answer.text, '{"error":"unavailable"}\n', resource);
    fault.remove();
  }
});

Deno.test("deploy-api 16 item 21: a lead that is lost between the two checks writes nothing", async () => {
  using service = new InProcessService({
    send: (send) => async (request) => {
      const answer = await send(request);
      if (request.url.includes("mysqlfailovergroups")) service.leads = false;
      return answer;
    },
  });
  mustBe(await service.client().grant("op-1", "tenant"), 503, "not_leader");
  const written = service.fake.readAll(LEASES).filter((lease) =>
    lease.metadata.labels?.["bloodraven.shipstream.io/deployment-kind"] !== GATE_KIND
  );
  assert.deepEqual(written, []);
});

Deno.test("deploy-api 16 item 22: an ordered update shows in the view and refuses a grant", async () => {
  using service = new InProcessService();
  change(service, { updatePhase: "UpdateReplica" });
  const client = service.client();
  const seen = mustBe(await client.observe(), 200);
  assert.deepEqual([seen.body.stable, seen.body.unstableReason], [false, "OrderedUpdate"]);
  const refused = mustBe(await client.grant("op-1", "tenant"), 423, "unstable");
  assert.deepEqual(refused.body, {
    error: "unstable",
    reason: "OrderedUpdate",
    retryAfterSeconds: 1,
  });
});

Deno.test("deploy-api 16 item 24: a request is one log line of seven fields, and one count", async () => {
  using service = new InProcessService();
  await granted(service.client());
  const [line, ...more] = service.lines.filter((found) => found.includes('"deploy api"'));
  assert.deepEqual(more, []);
  const { time, ...rest } = JSON.parse(line ?? "{}");
  assert.match(time, /^2026-01-01T00:00:00/);
  assert.deepEqual(Object.entries(rest), [
    ["level", "INFO"],
    ["msg", "deploy api"],
    ["handler", "grant"],
    ["group", "orders"],
    ["instance", "tenant"],
    ["namespace", NAMESPACE],
    ["operationId", "op-1"],
    ["status", 201],
    ["duration_ms", 0],
  ]);
  const labels = 'server="deploy",handler="grant",method="POST"';
  assert.equal(
    await service.metric(`bloodraven_http_requests_total{${labels},status="2xx"}`),
    1,
  );
});

Deno.test("deploy-api 16 item 25: a hold needs the migration of the same operation and instance", async () => {
  using service = new InProcessService();
  const client = service.client();
  const hold = { kind: "failover-hold" };
  mustBe(await client.grant("op-1", "tenant", hold), 403, "forbidden");
  await granted(client);
  mustBe(await client.grant("op-2", "tenant", hold), 403, "forbidden");
  mustBe(await client.grant("op-1", "billing", hold), 403, "forbidden");
  mustBe(await client.grant("op-1", "tenant", hold), 201);
  const series =
    'bloodraven_deploy_lease_grants_total{group="orders",kind="failover-hold",result="unauthorized"}';
  assert.equal(await service.metric(series), 3);
});

Deno.test("deploy-api 16 item 27: another replica over the same storage shows the same view, to the byte", async () => {
  using first = new InProcessService();
  const client = first.client();
  await granted(client);
  await granted(client, "op-1", "failover-hold");
  using second = new InProcessService({ fake: first.fake, clock: first.clock, seed: 2 });
  const view = mustBe(await client.observe(), 200);
  assert.equal((await second.client().observe()).text, view.text);
  assert.deepEqual(view.body.health, {
    degradedReason: "",
    ready: true,
    recoveryPending: false,
    replicationLagSeconds: 0,
    replicationRunning: true,
  });
  assert.ok(Array.isArray(view.body.leases));
  for (const lease of view.body.leases) {
    assert.deepEqual(Object.keys(lease), [
      "expiresAt",
      "instance",
      "kind",
      "operationId",
      "topologyGeneration",
    ]);
  }
});

Deno.test("difference 2: an authorized caller of an absent group gets 404, and 204 for a release", async () => {
  using service = new InProcessService();
  service.fake.remove(MYSQL_FAILOVER_GROUPS, orders);
  const client = service.client();
  mustBe(await client.observe(), 404, "not_found");
  mustBe(await client.grant("op-1", "tenant"), 404, "not_found");
  mustBe(await client.renew("op-1", "token"), 404, "not_found");
  mustBe(await client.release("op-1", "token"), 204);
});

Deno.test("difference 8: a stuck group does not hold up another one", async () => {
  using service = new InProcessService();
  seedGroup(service.fake, "second", ["other"]);
  const stuck = service.fake.faults.add({
    resource: "mysqlfailovergroups",
    name: "orders",
    fault: { type: "hang" },
  });
  const waiting = service.client().observe();
  mustBe(await service.client(DEPLOYER, { group: "second" }).observe(), 200);
  await service.clock.advance(10_000);
  mustBe(await waiting, 503, "unavailable");
  stuck.remove();
});

Deno.test("deploy-api 16 item 46: a group that changes during every look is 423, and never a torn view", async () => {
  let version = 0;
  using service = new InProcessService({
    send: (send) => async (request) => {
      const answer = await send(request);
      if (request.url.includes("mysqlfailovergroups")) {
        change(service, {
          sites: [...stableStatus.sites.map((site) => ({ ...site, gtidExecuted: `${version++}` }))],
        });
      }
      return answer;
    },
  });
  const answer = mustBe(await service.client().observe(), 423, "unstable");
  assert.equal(answer.body.reason, "TopologyObservationChanged");
});
