/**
 * The client against the API server in memory: in this process, and over HTTPS. What the two answer is the matter of
 * tests/kube_contract; here it is how the client comes through what goes wrong.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Connection } from "../../lib/kube/connection.ts";
import { staticToken } from "../../lib/kube/credentials.ts";
import {
  AlreadyExistsError,
  ConflictError,
  ForbiddenError,
  KubeTimeoutError,
  NotFoundError,
  UnauthorizedError,
  UnavailableError,
} from "../../lib/kube/errors.ts";
import { HttpApi, type KubeApi, type Lease, LEASES, type WatchEvent } from "../../lib/kube/mod.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { authority } from "./https_support.ts";

const A = { name: "a", namespace: "default" };

/** A cluster in memory, and a client of it. */
interface Place {
  readonly api: KubeApi;
  readonly fake: FakeCluster;
  readonly clock: TestClock;
  readonly signal: AbortSignal;
  /** Another client, with this token. */
  as(token: string): KubeApi;
}

/** Runs a test against the cluster in this process, and against the same over HTTPS. */
function bothWays(name: string, test: (place: Place) => Promise<void>): void {
  const parts = () => {
    const clock = new TestClock();
    const entropy = seededEntropy(7);
    return { clock, entropy, fake: new FakeCluster({ clock, entropy }) };
  };
  const clientOf = (
    { clock, entropy, fake }: ReturnType<typeof parts>,
    baseUrl: string,
    fetch: (request: Request) => Promise<Response>,
  ): Place => {
    const as = (token: string) =>
      new HttpApi({
        baseUrl,
        fetch,
        credentials: staticToken(token),
        clock,
        entropy,
        defaultNamespace: "default",
      });
    const { signal } = new AbortController();
    return { api: as(fake.adminToken), fake, clock, signal, as };
  };

  Deno.test(`${name} (in this process)`, async () => {
    const made = parts();
    await using fake = made.fake;
    await test(clientOf(made, "https://fake", fake.fetch));
    assert.equal(made.clock.pendingTimers, 0);
  });

  Deno.test(`${name} (over HTTPS)`, async () => {
    const made = parts();
    await using fake = made.fake;
    const { caPem, issue } = await authority();
    const { certPem, keyPem } = await issue({ ipAddresses: ["127.0.0.1"] });
    const { url } = await fake.listen({ cert: certPem, key: keyPem });
    using connection = new Connection({ authority: { pem: caPem, from: "ca.crt" } });
    await test(clientOf(made, url, connection.fetch));
  });
}

bothWays("an object is created, read, written, patched, listed and deleted", async (place) => {
  const { api, signal } = place;
  const created = await api.createNamed(LEASES, { metadata: A, spec: { leaseTransitions: 0 } }, {
    signal,
  });
  await assert.rejects(api.createNamed(LEASES, { metadata: A }, { signal }), AlreadyExistsError);
  assert.deepEqual(await api.get(LEASES, A, { signal }), created);
  const written = await api.replace(LEASES, { ...created, spec: { holderIdentity: "me" } }, {
    signal,
  });
  await assert.rejects(api.replace(LEASES, created, { signal }), ConflictError);
  const body = {
    metadata: { resourceVersion: written.metadata.resourceVersion },
    spec: { leaseTransitions: 1 },
  };
  const patched = await api.patch(LEASES, A, { type: "merge", body }, { signal });
  assert.deepEqual(patched.spec, { holderIdentity: "me", leaseTransitions: 1 });
  await assert.rejects(api.patch(LEASES, A, { type: "merge", body }, { signal }), ConflictError);
  const test = { op: "test", path: "/metadata/resourceVersion", value: "1" };
  await assert.rejects(
    api.patch(LEASES, A, { type: "json", body: [test] }, { signal }),
    ConflictError,
  );
  const list = await api.list(LEASES, { namespace: "default", signal });
  assert.deepEqual(list.items, [patched]);
  await assert.rejects(api.delete(LEASES, A, created.metadata, { signal }), ConflictError);
  await api.delete(LEASES, A, patched.metadata, { signal });
  await assert.rejects(api.get(LEASES, A, { signal }), NotFoundError);
  await assert.rejects(api.replace(LEASES, patched, { signal }), ConflictError);
  assert.match((await api.version({ signal })).gitVersion, /^v1\./);
});

bothWays("more objects than fit into a page are all listed", async ({ api, fake, signal }) => {
  for (let index = 0; index < 1_101; index++) {
    fake.seed(LEASES, { metadata: { name: `lease-${index}`, namespace: "default" } });
  }
  const { items, resourceVersion } = await api.list(LEASES, { signal });
  assert.equal(new Set(items.map((item) => item.metadata.name)).size, 1_101);
  assert.equal(resourceVersion, String(fake.revision));
});

bothWays("a watch lives through breaks, a compaction and a restored backup", async (place) => {
  const { api, fake, clock } = place;
  const controller = new AbortController();
  const iterator = api.watch(LEASES, { signal: controller.signal })[Symbol.asyncIterator]();
  const next = async (): Promise<WatchEvent<Lease>["type"] | string> => {
    const { value, done } = await iterator.next();
    if (done) return "end";
    if (value.type === "restarted") return `restarted ${value.reason}`;
    return "object" in value ? `${value.type} ${nameOf(value)}` : value.type;
  };
  /** Lets the pause after a failure pass, in small steps, since over a socket the timer may start late. */
  const nextAfterPause = async () => {
    let waiting = true;
    const event = next().finally(() => waiting = false);
    while (waiting) {
      await clock.advance(100);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return await event;
  };
  const seed = (name: string) => fake.seed(LEASES, { metadata: { name, namespace: "default" } });
  assert.equal(await next(), "initial");
  seed("a");
  assert.equal(await next(), "added a");
  const backup = fake.snapshot();
  const broken = fake.faults.add({ fault: { type: "watch-break" }, count: 1 });
  seed("b");
  assert.equal(await next(), "failed");
  broken.remove();
  assert.equal(await nextAfterPause(), "added b");
  fake.faults.add({ fault: { type: "watch-gone" }, count: 1 });
  assert.equal(await next(), "restarted gone");
  seed("c");
  assert.equal(await next(), "added c");
  fake.restore(backup);
  let told = await nextAfterPause();
  while (told === "failed") told = await nextAfterPause();
  assert.equal(told, "restarted rewound");
  controller.abort();
  assert.equal(await next(), "end");
});

function nameOf(event: Exclude<WatchEvent<Lease>, { type: "initial" | "restarted" | "failed" }>) {
  return event.type === "undecodable" ? event.object.name : event.object.metadata.name;
}

bothWays("a lost answer is told as perhaps landed, and is not sent again", async (place) => {
  const { api, fake, signal } = place;
  await api.list(LEASES, { signal });
  fake.faults.add({ fault: { type: "lost-answer", as: "reset" }, verb: "update", count: 1 });
  await assert.rejects(api.createNamed(LEASES, { metadata: A }, { signal }), (error) => {
    assert.ok(error instanceof UnavailableError);
    assert.equal(error.mayHaveLanded, true);
    return true;
  });
  assert.ok(fake.read(LEASES, A) !== null);
});

bothWays("a reset is not seen by a reader", async ({ api, fake, signal }) => {
  fake.seed(LEASES, { metadata: A });
  await api.get(LEASES, A, { signal });
  fake.faults.add({ fault: { type: "reset" }, verb: "get", count: 1 });
  await api.get(LEASES, A, { signal });
});

bothWays(
  "a server that hangs in its body is left on time",
  async ({ api, fake, clock, signal }) => {
    fake.seed(LEASES, { metadata: A });
    const fault = fake.faults.add({ fault: { type: "hang-body" } });
    const call = assert.rejects(api.get(LEASES, A, { signal, timeoutMs: 500 }), KubeTimeoutError);
    while (fault.hits === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await clock.advance(500);
    await call;
    fault.remove();
  },
);

bothWays("an unknown token and a Role that lacks a rule are told apart", async (place) => {
  const { fake, signal, as } = place;
  fake.rbac = true;
  await assert.rejects(as("nobody").get(LEASES, A, { signal }), UnauthorizedError);
  await assert.rejects(as(fake.userToken("guest")).get(LEASES, A, { signal }), ForbiddenError);
});
