import assert from "node:assert/strict";
import { LEASES } from "../../../lib/kube/resources.ts";
import { slotName } from "../../../lib/records/names.ts";
import { DEPLOYER, InProcessService, NAMESPACE } from "../../service/in_process.ts";

const body = JSON.stringify({
  kind: "migration",
  operationId: "op-1",
  instance: "tenant",
  ttlSeconds: 30,
});

function grantRequest(service: InProcessService, signal?: AbortSignal): RequestInit {
  const token = service.fake.tokenFor({ ...DEPLOYER, audiences: ["bloodraven-deploy"] });
  return { method: "POST", body, headers: { Authorization: `Bearer ${token}` }, signal };
}

function apiLines(service: InProcessService): string[] {
  return service.lines.filter((line) => line.includes('"deploy api"'));
}

const url = "https://service/deploy/v1/groups/orders/leases";

// The listener gives a text as the reason, and hono hands only errors to its error handler.
for (const reason of ["Client connection prematurely closed.", new Error("gone"), undefined]) {
  Deno.test(`a client that goes away (${reason}) leaves one log line and no lease`, async () => {
    using service = new InProcessService();
    const client = new AbortController();
    const slow = service.fake.faults.add({
      verb: "get",
      resource: "mysqlfailovergroups",
      fault: { type: "hang" },
    });
    const answer = service.send(url, grantRequest(service, client.signal));
    await service.clock.advance(100);
    client.abort(reason);
    assert.equal((await answer).status, 503);
    assert.equal(apiLines(service).length, 1);
    slow.remove();
    await service.clock.advance(10_000);
    assert.equal(
      service.fake.read(LEASES, { namespace: NAMESPACE, name: slotName("orders") }),
      null,
    );
    assert.equal(service.clock.pendingTimers, 1, "the timer of the event loop's lag alone");
  });
}

Deno.test("a request whose time is over while it looks takes its grant back", async () => {
  using service = new InProcessService();
  // The reads of the first round pass, and the look after the write hangs.
  service.fake.faults.add({
    verb: "get",
    resource: "mysqlfailovergroups",
    skip: 2,
    fault: { type: "hang" },
  });
  const answer = service.send(url, grantRequest(service));
  await service.clock.advance(9_999);
  const slot = { namespace: NAMESPACE, name: slotName("orders") };
  const label = "bloodraven.shipstream.io/deployment-state";
  assert.equal(service.fake.read(LEASES, slot)?.metadata.labels?.[label], "active");
  await service.clock.advance(1);
  assert.equal((await answer).status, 503);
  assert.equal(service.fake.read(LEASES, slot)?.metadata.labels?.[label], "released");
  assert.equal(await service.metric('holdfast_retractions_total{result="released"}'), 1);
});
