import assert from "node:assert/strict";
import { createAuthority } from "../../lib/testing/authority.ts";
import type { FakeClusterOptions } from "../../lib/testing/fake_cluster.ts";
import { EventReader, lease, LEASES_PATH, newFake } from "./helpers.ts";

const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
const { certPem, keyPem } = await authority.issue({ ipAddresses: ["127.0.0.1"] });

async function serving(options: Partial<FakeClusterOptions> = {}) {
  const made = newFake(options);
  const server = await made.fake.listen({ key: keyPem, cert: certPem });
  const client = Deno.createHttpClient({ caCerts: [authority.caPem] });
  return {
    ...made,
    server,
    client,
    call: (path: string, init: RequestInit = {}) =>
      fetch(`${server.url}${path}`, { client, ...init }),
    async [Symbol.asyncDispose]() {
      client.close();
      await made.fake.close();
    },
  };
}

function withJson(method: string, body: unknown): RequestInit {
  return {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
}

Deno.test("the same rules are served over HTTPS, with the server's own time", async () => {
  await using made = await serving({ serverClockOffsetMs: 90_000 });
  const created = await made.call(LEASES_PATH, withJson("POST", lease("a")));
  assert.equal(created.status, 201);
  assert.equal(Date.parse(created.headers.get("date") ?? ""), made.fake.serverNowMs());
  await created.body?.cancel();
  const conflict = await made.call(
    `${LEASES_PATH}/a`,
    withJson("PUT", lease("a", { resourceVersion: "1" })),
  );
  assert.equal((await conflict.json()).reason, "Conflict");
  const head = await made.call(LEASES_PATH, { method: "HEAD" });
  assert.equal(head.status, 405);
  assert.equal(await head.text(), "");
});

Deno.test("over the network a caller without a token is anonymous", async () => {
  await using made = await serving({ rbac: true });
  const anonymous = await made.call(LEASES_PATH);
  assert.match((await anonymous.json()).message, /User "system:anonymous" cannot list/);
  const admin = await made.call(LEASES_PATH, {
    headers: { authorization: `Bearer ${made.fake.adminToken}` },
  });
  assert.equal((await admin.json()).kind, "LeaseList");
});

Deno.test("a watch streams each event as it happens, and a client that goes away ends it", async () => {
  await using made = await serving();
  const controller = new AbortController();
  const response = await made.call(`${LEASES_PATH}?watch=1`, { signal: controller.signal });
  const events = new EventReader(response);
  for (const name of ["a", "b"]) {
    made.fake.apply(lease(name));
    assert.match(String(await events.next()), new RegExp(`^ADDED ${name}`));
  }
  assert.equal(made.clock.pendingTimers, 1);
  controller.abort();
  await assert.rejects(events.next());
  while (made.clock.pendingTimers > 0) await new Promise((resolve) => setTimeout(resolve, 5));
});

Deno.test("a client that does not read is not written to, and gets all when it does", async () => {
  await using made = await serving();
  const response = await made.call(`${LEASES_PATH}?watch=1`);
  const events = new EventReader(response);
  const padding = "x".repeat(20_000);
  for (let round = 0; round < 500; round++) {
    made.fake.apply(lease("a", { annotations: { padding } }, { leaseTransitions: round }));
  }
  for (let round = 0; round < 500; round++) {
    const event = await events.nextRaw();
    assert.equal(event?.object.spec?.leaseTransitions, round);
  }
  await events.cancel();
});

Deno.test("a reset breaks the connection, before or after the write", async () => {
  await using made = await serving();
  made.fake.faults.add({ count: 1, fault: { type: "reset" } });
  await assert.rejects(made.call(LEASES_PATH, withJson("POST", lease("a"))), TypeError);
  assert.equal(made.fake.revision, 2);
  made.fake.faults.add({ count: 1, fault: { type: "lost-answer", as: "reset" } });
  await assert.rejects(made.call(LEASES_PATH, withJson("POST", lease("a"))), TypeError);
  assert.equal(made.fake.revision, 3);
  assert.equal((await (await made.call(LEASES_PATH)).json()).items.length, 1);
});

Deno.test("a watch that breaks fails at the client", async () => {
  await using made = await serving();
  const events = new EventReader(await made.call(`${LEASES_PATH}?watch=1`));
  made.fake.faults.add({ fault: { type: "watch-break" } });
  await assert.rejects(events.next());
});

Deno.test("hangs end when the client gives up: before the head, and in the body", async () => {
  await using made = await serving();
  const controller = new AbortController();
  const before = made.fake.faults.add({ fault: { type: "hang" } });
  const call = made.call(LEASES_PATH, { signal: controller.signal });
  while (before.hits === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  controller.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
  made.fake.faults.clear();
  made.fake.faults.add({ fault: { type: "hang-body" } });
  const late = new AbortController();
  const response = await made.call(LEASES_PATH, { signal: late.signal });
  assert.equal(response.status, 200);
  const body = response.text();
  late.abort(new Error("enough"));
  await assert.rejects(body, /enough/);
});

Deno.test("a body over the limit is 413, and one far over it breaks nothing else", async () => {
  await using made = await serving();
  const big = withJson("POST", lease("a", { annotations: { a: "x".repeat(3_500_000) } }));
  const refused = await made.call(LEASES_PATH, big);
  assert.equal(refused.status, 413);
  await refused.body?.cancel();
  const huge = withJson("POST", lease("a", { annotations: { a: "x".repeat(6_000_000) } }));
  const outcome = await made.call(LEASES_PATH, huge).then(
    (answer) => answer.text(),
    () => "broken",
  );
  assert.ok(outcome === "broken" || outcome.includes("RequestEntityTooLarge"));
  assert.equal((await (await made.call("/version")).json()).major, "1");
});

Deno.test("a client that does not trust the server disturbs nobody", async () => {
  await using made = await serving();
  const stranger = Deno.createHttpClient({ caCerts: [] });
  await assert.rejects(fetch(`${made.server.url}/version`, { client: stranger }));
  stranger.close();
  assert.equal((await (await made.call("/version")).json()).major, "1");
});

Deno.test("a listener closes by itself, and the cluster goes on in process", async () => {
  await using made = await serving();
  const events = new EventReader(await made.call(`${LEASES_PATH}?watch=1`));
  await made.server.close();
  await assert.rejects(events.next());
  await assert.rejects(made.call("/version"));
  assert.equal((await made.fake.fetch("https://fake/version")).status, 200);
});
