import assert from "node:assert/strict";
import { type KnownVersions, RewindGuard } from "../../lib/controllers/rewind_guard.ts";
import { HttpApi, staticToken } from "../../lib/kube/mod.ts";
import { CONFIG_MAPS, LEASES, NAMESPACES, SERVICE_ACCOUNTS } from "../../lib/kube/resources.ts";
import { TOKEN_REQUESTS } from "../../lib/kube/resources.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";

const { signal } = new AbortController();
const options = { signal };
const name = { namespace: "default", name: "a" };
const lease = { metadata: name, spec: { leaseDurationSeconds: 1 } };

/** A guard that is told that the watches know a version, and counts what it finds. */
function rig() {
  const clock = new TestClock();
  const fake = new FakeCluster({ clock, entropy: seededEntropy(1) });
  const guard = new RewindGuard(
    new HttpApi({
      baseUrl: "https://fake",
      fetch: fake.fetch,
      credentials: staticToken(fake.adminToken),
      clock,
      entropy: seededEntropy(2),
      defaultNamespace: "default",
    }),
  );
  const found = { count: 0 };
  const begin = (known: Partial<KnownVersions>) => {
    found.count = 0;
    guard.begin({ newest: () => "", shown: () => null, ...known }, () => found.count++);
  };
  return { fake, guard, found, begin };
}

Deno.test("a write whose answer is older than what was known before it was sent is a sign", async () => {
  const { guard, found, begin } = rig();
  begin({ newest: (resource) => resource === LEASES ? "1000000" : "" });
  const created = await guard.createNamed(LEASES, lease, options);
  assert.equal(found.count, 1);
  await guard.replace(LEASES, { ...created, spec: { leaseDurationSeconds: 2 } }, options);
  assert.equal(found.count, 2);
  const body = { metadata: { labels: { a: "b" } } };
  await guard.patch(LEASES, name, { type: "merge", body }, options);
  assert.equal(found.count, 3);
});

Deno.test("a list that is older than what was known is a sign, and one of another kind is not", async () => {
  const { guard, found, begin } = rig();
  begin({ newest: (resource) => resource === LEASES ? "1000000" : "" });
  await guard.list(LEASES, options);
  assert.equal(found.count, 1);
  await guard.list(CONFIG_MAPS, options);
  assert.equal(found.count, 1);
});

Deno.test("a read of an older version is a sign only for the same object", async () => {
  const { guard, found, begin } = rig();
  const { metadata } = await guard.createNamed(LEASES, lease, options);
  begin({ shown: () => ({ uid: metadata.uid, resourceVersion: "1000000" }) });
  await guard.get(LEASES, name, options);
  assert.equal(found.count, 1);
  begin({ shown: () => ({ uid: "another", resourceVersion: "1000000" }) });
  await guard.get(LEASES, name, options);
  begin({ shown: () => ({ uid: metadata.uid, resourceVersion: metadata.resourceVersion }) });
  await guard.get(LEASES, name, options);
  assert.equal(found.count, 0);
});

Deno.test("what the watches learn while a call is under way is no sign against its answer", async () => {
  const { guard, found, begin } = rig();
  let newest = "1";
  begin({ newest: () => newest });
  const writing = guard.createNamed(LEASES, lease, options);
  newest = "1000000";
  await writing;
  assert.equal(found.count, 0);
});

Deno.test("outside a term nothing is compared, and all calls pass through", async () => {
  const { fake, guard, found, begin } = rig();
  begin({ newest: () => "1000000", shown: () => ({ uid: "u", resourceVersion: "1000000" }) });
  guard.end();
  const { metadata } = await guard.createNamed(LEASES, lease, options);
  await guard.create(CONFIG_MAPS, { metadata: name }, options);
  assert.equal(guard.defaultNamespace, "default");
  assert.equal((await guard.version(options)).major, "1");
  fake.tokenFor({ namespace: "default", serviceAccount: "bot" });
  const account = { namespace: "default", name: "bot" };
  const request = { metadata: {}, spec: { audiences: ["x"], expirationSeconds: 600 } };
  const made = await guard.createSubresource(
    SERVICE_ACCOUNTS,
    account,
    "token",
    TOKEN_REQUESTS,
    request,
    options,
  );
  assert.ok(made.status?.token);
  const end = new AbortController();
  for await (const event of guard.watch(NAMESPACES, { signal: end.signal })) {
    assert.equal(event.type, "initial");
    end.abort();
  }
  const { uid, resourceVersion } = metadata;
  await guard.delete(LEASES, name, { uid, resourceVersion }, options);
  assert.equal(fake.read(LEASES, name), null);
  assert.equal(found.count, 0);
});
