/**
 * What is stored by others and cannot be used: each has its documented answer, harms no other group, and shows in a log
 * line and in a metric. deploy-api 6.3, state protocol 2.1 and 2.5.
 */

import assert from "node:assert/strict";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import type { SendRequest } from "../../lib/kube/exchange.ts";
import type { LeaseClock } from "../../lib/lease_time/lease_time.ts";
import { gateName, holdName, slotName } from "../../lib/records/names.ts";
import { TestClock } from "../../lib/testing/mod.ts";
import { DEPLOYER, InProcessService, NAMESPACE, seedGroup } from "../service/in_process.ts";
import { ordersGroup, stableStatus } from "../service/orders.ts";
import { granted, HOLD, mustBe } from "./support.ts";

const orders = { namespace: NAMESPACE, name: "orders" };
const slot = { namespace: NAMESPACE, name: slotName("orders") };

/** A service with a second group beside `orders`. */
function serviceOfTwo(options: ConstructorParameters<typeof InProcessService>[0] = {}) {
  const service = new InProcessService(options);
  seedGroup(service.fake, "second", ["other"]);
  return { service, other: service.client(DEPLOYER, { group: "second" }) };
}

/** Writes a Lease as somebody else would. */
function rewrite(service: InProcessService, name: typeof slot, change: (lease: Lease) => Lease) {
  const lease = service.fake.read(LEASES, name);
  assert.ok(lease);
  service.fake.seed(LEASES, change(lease));
}

/** Every request about the group is 503, says nothing more, is told with its fault, and leaves the other group alone. */
async function mustBeClosed(
  { service, other }: ReturnType<typeof serviceOfTwo>,
  token: string,
  fault: string,
): Promise<void> {
  const client = service.client();
  service.lines.length = 0;
  const answers = [
    await client.observe(),
    await client.grant("op-2", "tenant"),
    await client.renew("op-1", token),
    await client.release("op-1", token),
  ];
  for (const answer of answers) {
    mustBe(answer, 503, "unavailable");
    assert.equal(answer.text, '{"error":"unavailable"}\n');
  }
  const told = service.lines.filter((line) => line.includes("deploy api unavailable"));
  assert.equal(told.length, answers.length);
  for (const line of told) {
    const { group, fault: said } = JSON.parse(line);
    assert.deepEqual([group, said], ["orders", fault]);
  }
  const labels = 'server="deploy",handler="group",method="GET",status="5xx"';
  assert.equal(await service.metric(`bloodraven_http_requests_total{${labels}}`), 1);
  mustBe(await other.observe(), 200);
  mustBe(await other.grant("op-9", "other"), 201);
}

Deno.test("a stored record that does not parse closes its group, and no other one", async () => {
  const place = serviceOfTwo();
  using service = place.service;
  const token = await granted(service.client());
  rewrite(service, slot, (lease) => ({
    ...lease,
    metadata: {
      ...lease.metadata,
      annotations: { "bloodraven.shipstream.io/deployment-lease": '{"kind":"migration"}' },
    },
  }));
  await mustBeClosed(place, token, "RecordError");
});

for (
  const [what, owners] of Object.entries({
    "another owner": [{ uid: "somebody-else" }],
    "two owners": [{}, { uid: "somebody-else" }],
    "no owner": [],
  })
) {
  Deno.test(`a mutex of ${what} closes its group, and no other one`, async () => {
    const place = serviceOfTwo();
    using service = place.service;
    const token = await granted(service.client());
    rewrite(service, slot, (lease) => {
      const [own] = lease.metadata.ownerReferences ?? [];
      assert.ok(own);
      const ownerReferences = owners.map((owner) => ({ ...own, ...owner }));
      return { ...lease, metadata: { ...lease.metadata, ownerReferences } };
    });
    const client = service.client();
    mustBe(await client.grant("op-2", "tenant"), 503, "unavailable");
    mustBe(await client.renew("op-1", token), 503, "unavailable");
    mustBe(await client.release("op-1", token), 503, "unavailable");
    const told = service.lines.filter((line) => line.includes('"fault":"ForeignOwnerError"'));
    assert.equal(told.length, 3);
    mustBe(await place.other.grant("op-9", "other"), 201);
  });
}

Deno.test("a hold of another owner is not this group's: the view leaves it out", async () => {
  using service = new InProcessService();
  const client = service.client();
  await granted(client);
  await granted(client, "op-1", HOLD);
  const name = { namespace: NAMESPACE, name: holdName("orders", "op-1") };
  rewrite(service, name, (lease) => ({
    ...lease,
    metadata: {
      ...lease.metadata,
      ownerReferences: lease.metadata.ownerReferences?.map((own) => ({ ...own, uid: "another" })),
    },
  }));
  const seen = mustBe(await client.observe(), 200);
  assert.ok(Array.isArray(seen.body.leases));
  assert.deepEqual(seen.body.leases.map(({ kind }) => kind), ["migration"]);
});

Deno.test("a status with wrong types closes its group, and no other one", async () => {
  // The schema of the custom resource would refuse it. Another schema, or an older one, may not.
  let broken = false;
  const send = (next: SendRequest): SendRequest => async (request) => {
    const answer = await next(request);
    if (!broken || !request.url.endsWith("/mysqlfailovergroups/orders")) return answer;
    const group = await answer.json();
    return Response.json({ ...group, status: { ...group.status, topologyGeneration: "seven" } }, {
      headers: answer.headers,
    });
  };
  const place = serviceOfTwo({ send });
  using _ = place.service;
  const token = await granted(place.service.client());
  broken = true;
  await mustBeClosed(place, token, "DecodeError");
});

Deno.test("values that a newer operator may write are open strings: unstable where the contract says so", async () => {
  const rows: readonly [object, string][] = [
    [{ updatePhase: "UpdatingReplicas" }, "OrderedUpdate"],
    [{ restoreInPlace: { phase: "Rehearsing" } }, "RestoreInPlace"],
    [{ dragonfly: { upgrade: { phase: "Molting" } } }, "DragonflyUpgrade"],
    [{ plannedFailover: { phase: "Dreaming" } }, ""],
  ];
  for (const [status, reason] of rows) {
    using service = new InProcessService({
      send: (next) => async (request) => {
        const answer = await next(request);
        if (!request.url.endsWith("/mysqlfailovergroups/orders")) return answer;
        const group = await answer.json();
        const body = { ...group, status: { ...group.status, ...status } };
        return Response.json(body, { headers: answer.headers });
      },
    });
    const seen = mustBe(await service.client().observe(), 200);
    assert.deepEqual([seen.body.unstableReason, seen.body.stable], [reason, reason === ""]);
  }
});

Deno.test("a group that was deleted and created again is closed until the old one's objects are gone", async () => {
  const place = serviceOfTwo();
  using service = place.service;
  const token = await granted(service.client());
  service.fake.remove(MYSQL_FAILOVER_GROUPS, orders);
  mustBe(await service.client().renew("op-1", token), 404, "not_found");
  service.fake.seed(MYSQL_FAILOVER_GROUPS, { ...ordersGroup(NAMESPACE), status: stableStatus });
  await mustBeClosed(place, token, "GateError");
  // The garbage collector removes what the old group owned.
  for (const name of [slotName("orders"), gateName("orders")]) {
    service.fake.remove(LEASES, { namespace: NAMESPACE, name });
  }
  mustBe(await service.client().observe(), 200);
  mustBe(await service.client().renew("op-1", token), 404, "not_found");
  mustBe(await service.client().grant("op-1", "tenant"), 201);
});

Deno.test("an uncertain clock takes nobody's lease away, and keeps nobody from renewing and releasing", async () => {
  const clock = new TestClock();
  let uncertaintyMs = 0;
  const time: LeaseClock = {
    reading: () => ({
      earliestMs: clock.wall() - uncertaintyMs,
      latestMs: clock.wall() + uncertaintyMs,
      uncertaintyMs,
    }),
  };
  const place = serviceOfTwo({ clock, time });
  using service = place.service;
  const client = service.client();
  const token = await granted(client);
  uncertaintyMs = 1_001;
  mustBe(await client.renew("op-1", token, { ttlSeconds: 5 }), 200);
  await clock.advance(20_000);
  mustBe(await client.grant("op-2", "tenant"), 503, "unavailable");
  const label = "bloodraven.shipstream.io/deployment-state";
  assert.equal(service.fake.read(LEASES, slot)?.metadata.labels?.[label], "active");
  mustBe(await client.release("op-1", token), 204);
  uncertaintyMs = 0;
  mustBe(await client.grant("op-2", "tenant"), 201);
});
