/** deploy-api 4 with ADR 161 and ADR 164: a permission is asked by name, and every refusal rests on a list. */

import assert from "node:assert/strict";
import { MYSQL_DATABASES, MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { DEPLOYER, InProcessService, NAMESPACE } from "../service/in_process.ts";
import { ordersDatabase, ordersGroup, stableStatus } from "../service/orders.ts";
import { granted, HOLD, mustBe } from "./support.ts";

const DATABASES = "mysqldatabases.shipstream.io";

/** Declares a database; without clients it names nobody. */
function declare(
  { fake }: InProcessService,
  name: string,
  { clients = [DEPLOYER], group = "orders", namespace = NAMESPACE } = {},
): void {
  fake.seed(MYSQL_DATABASES, ordersDatabase(namespace, name, group, clients));
}

/** A service whose group has the database `tenant` alone. */
function withTenant(more = {}): InProcessService {
  const service = new InProcessService(more);
  service.fake.remove(MYSQL_DATABASES, { namespace: NAMESPACE, name: "billing" });
  return service;
}

/** The same with a group of that name in another namespace, of which no database is known. */
function withSecondGroup(): InProcessService {
  const service = withTenant();
  service.fake.seed(MYSQL_FAILOVER_GROUPS, {
    ...ordersGroup("second", "orders"),
    status: stableStatus,
  });
  return service;
}

function leasesOfSecond({ fake }: InProcessService): readonly unknown[] {
  return fake.readAll(LEASES).filter(({ metadata }) => metadata.namespace === "second");
}

/** How databases were looked at since the last time, in order: the verbs, and `cache` for a list that waits for nothing. */
function looks({ fake }: InProcessService): readonly string[] {
  const verbs = fake.calls.entries.filter(({ resource }) => resource === DATABASES)
    .map(({ verb, name, query }) => {
      if (name !== "") return `${verb} ${name}`;
      return query.includes("resourceVersion=0") ? "cache" : verb;
    });
  fake.calls.reset();
  return verbs;
}

Deno.test("ADR 161: a whole deployment waits for no list", async () => {
  using service = withTenant();
  const client = service.client();
  const token = await granted(client);
  const hold = await granted(client, "op-1", HOLD);
  mustBe(await client.renew("op-1", token), 200);
  mustBe(await client.renew("op-1", hold, HOLD), 200);
  mustBe(await client.observe(), 200);
  mustBe(await client.release("op-1", hold, HOLD), 204);
  mustBe(await client.release("op-1", token), 204);
  assert.deepEqual(looks(service), ["cache", ...Array(7).fill("get tenant")]);
});

Deno.test("ADR 161: what takes a permission away counts at the next request, and the list has the last word", async () => {
  const changes: Readonly<Record<string, (service: InProcessService) => void>> = {
    "a removed declaration": (service) => declare(service, "tenant", { clients: [] }),
    "another group": (service) => declare(service, "tenant", { group: "other" }),
    "a database that is gone": ({ fake }) =>
      fake.remove(MYSQL_DATABASES, { namespace: NAMESPACE, name: "tenant" }),
    "a database that is being deleted": ({ fake }) => {
      const database = ordersDatabase(NAMESPACE, "tenant", "orders", [DEPLOYER]);
      const metadata = {
        ...database.metadata,
        finalizers: ["example.com/keep"],
        deletionTimestamp: "2026-01-01T00:00:00Z",
      };
      fake.seed(MYSQL_DATABASES, { ...database, metadata });
    },
  };
  for (const [what, change] of Object.entries(changes)) {
    using service = withTenant();
    const client = service.client();
    const token = await granted(client);
    const before = JSON.stringify(service.fake.readAll(LEASES));
    change(service);
    looks(service);
    const requests = [
      () => client.renew("op-1", token),
      () => client.observe(),
      () => client.release("op-1", token),
      () => client.grant("op-1", "tenant"),
    ];
    for (const [index, request] of requests.entries()) {
      assert.equal((await request()).text, '{"error":"forbidden"}\n', what);
      // The first refusal ends the memory.
      const seen = index === 0 ? ["get tenant", "list"] : ["cache", "list"];
      assert.deepEqual(looks(service), seen, what);
    }
    assert.equal(JSON.stringify(service.fake.readAll(LEASES)), before, what);
  }
});

Deno.test("ADR 161: a caller that loses one of two databases keeps the other one", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  declare(service, "billing", { clients: [] });
  looks(service);
  mustBe(await client.renew("op-1", token), 200);
  assert.deepEqual(looks(service), ["get tenant"]);
  mustBe(await client.grant("op-2", "billing"), 403, "forbidden");
  mustBe(await client.renew("op-1", token), 200);
});

Deno.test("ADR 161: a caller of two databases with an operation on each waits for no list", async () => {
  using service = new InProcessService();
  const client = service.client();
  const tenant = await granted(client);
  mustBe(await client.release("op-1", tenant), 204);
  const billing = String(mustBe(await client.grant("op-2", "billing"), 201).body.token);
  looks(service);
  mustBe(await client.renew("op-2", billing), 200);
  mustBe(await client.renew("op-1", tenant), 404, "not_found");
  mustBe(await client.renew("op-2", billing), 200);
  assert.deepEqual(looks(service), ["get billing", "get tenant", "get billing"]);
  // A replica that did not grant it learns of it by one list.
  using other = new InProcessService({ fake: service.fake, clock: service.clock, seed: 2 });
  mustBe(await other.client().observe(), 200);
  looks(service);
  for (const look of [["list"], ["get billing"]]) {
    mustBe(await other.client().renew("op-2", billing), 200);
    assert.deepEqual(looks(service), look);
  }
});

Deno.test("ADR 161: a database that was declared a moment ago counts at the next request", async () => {
  using service = withTenant();
  const client = service.client();
  mustBe(await client.observe(), 200);
  declare(service, "billing");
  looks(service);
  mustBe(await client.grant("op-1", "billing"), 201);
  assert.deepEqual(looks(service), ["list"]);
});

Deno.test("ADR 161: a lease of a database that this replica has not seen yet is renewed and released", async () => {
  using service = withTenant();
  using other = new InProcessService({ fake: service.fake, clock: service.clock, seed: 2 });
  const client = service.client();
  for (const request of ["renew", "release"] as const) {
    declare(service, "billing", { clients: [] });
    await service.clock.advance(60_000);
    mustBe(await client.observe(), 200);
    declare(service, "billing");
    const grant = await other.client().grant(request, "billing");
    const token = String(mustBe(grant, 201).body.token);
    looks(service);
    const answer = await client[request](request, token);
    mustBe(answer, request === "renew" ? 200 : 204);
    assert.deepEqual(looks(service), ["get tenant", "list"]);
    mustBe(await client.release(request, token), 204);
  }
});

Deno.test("ADR 161: a lease of a database that names the caller no more is not theirs, by the list", async () => {
  using service = new InProcessService();
  const client = service.client();
  const token = await granted(client);
  declare(service, "tenant", { clients: [] });
  mustBe(await client.renew("op-1", token), 403, "token_mismatch");
  looks(service);
  mustBe(await client.renew("op-1", token), 403, "token_mismatch");
  mustBe(await client.release("op-1", token), 403, "token_mismatch");
  assert.deepEqual(looks(service), ["list", "list"]);
  // The list says more than what was missing: with a second namespace nobody knows what group is meant.
  declare(service, "billing", { namespace: "second" });
  mustBe(await client.renew("op-1", token), 403, "forbidden");
});

Deno.test("ADR 164: a second namespace is seen when the list is 90 s old, and grants nothing before", async () => {
  using service = withSecondGroup();
  const client = service.client();
  const token = await granted(client, "op-1", { ttlSeconds: 120 });
  await service.clock.advance(29_999);
  declare(service, "tenant", { namespace: "second" });
  mustBe(await client.renew("op-1", token, { ttlSeconds: 120 }), 200);
  assert.deepEqual(leasesOfSecond(service), []);
  await service.clock.advance(60_001);
  looks(service);
  mustBe(await client.renew("op-1", token), 403, "forbidden");
  assert.deepEqual(looks(service), ["cache", "list"]);
});

Deno.test("ADR 164: a second namespace is seen within half a minute where the caller comes often, and grants nothing before", async () => {
  using service = withSecondGroup();
  const client = service.client();
  const token = await granted(client);
  declare(service, "tenant", { namespace: "second" });
  for (let second = 0; second < 30; second += 10) {
    await service.clock.advance(10_000);
    looks(service);
    mustBe(await client.renew("op-1", token), 200);
  }
  assert.deepEqual(looks(service), ["get tenant", "cache"]);
  assert.deepEqual(leasesOfSecond(service), []);
  await service.clock.advance(1);
  mustBe(await client.renew("op-1", token), 403, "forbidden");
  assert.deepEqual(looks(service), ["cache", "list"]);
});

Deno.test("ADR 161: databases that move to another namespace are followed at the next request", async () => {
  using service = withTenant();
  const client = service.client();
  mustBe(await client.observe(), 200);
  service.fake.remove(MYSQL_DATABASES, { namespace: NAMESPACE, name: "tenant" });
  service.fake.seed(MYSQL_FAILOVER_GROUPS, {
    ...ordersGroup("second", "orders"),
    status: { ...stableStatus, topologyGeneration: 9 },
  });
  declare(service, "tenant", { namespace: "second" });
  const grant = mustBe(await client.grant("op-1", "tenant"), 201);
  assert.equal(grant.body.topologyGeneration, 9);
});

Deno.test("ADR 161: a role without get costs a list for each request, and one try a minute", async () => {
  using service = withTenant();
  service.fake.faults.add({
    resource: DATABASES,
    verb: "get",
    fault: { type: "status", code: 403 },
  });
  const client = service.client();
  const token = await granted(client);
  assert.deepEqual(looks(service), ["cache", "get tenant", "list"]);
  mustBe(await client.renew("op-1", token), 200);
  mustBe(await client.grant("op-1", "tenant", HOLD), 201);
  assert.deepEqual(looks(service), ["list", "list"]);
  declare(service, "tenant", { clients: [] });
  mustBe(await client.observe(), 403, "forbidden");
  declare(service, "tenant");
  await service.clock.advance(60_000);
  looks(service);
  mustBe(await client.observe(), 200);
  assert.deepEqual(looks(service), ["cache", "get tenant", "list"]);
  const warnings = service.lines.filter((line) => line.includes("does not allow to get them"));
  assert.equal(warnings.length, 2);
});

Deno.test("ADR 161: a database that cannot be read by name is 503, as a list that cannot be read", async () => {
  using service = withTenant();
  const client = service.client();
  mustBe(await client.observe(), 200);
  service.fake.faults.add({
    resource: DATABASES,
    verb: "get",
    fault: { type: "status", code: 500 },
  });
  mustBe(await client.observe(), 503, "unavailable");
});
