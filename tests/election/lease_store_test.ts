import assert from "node:assert/strict";
import { LeaseStore } from "../../lib/election/lease_store.ts";
import { systemClock } from "../../handlers/commands/system.ts";
import { HttpApi, NO_CREDENTIALS } from "../../lib/kube/mod.ts";
import { seededEntropy } from "../../lib/testing/mod.ts";

const SPEC = {
  holder: "me",
  durationMs: 15_000,
  acquiredMicros: Date.UTC(2026, 0, 1) * 1_000 + 1,
  renewedMicros: Date.UTC(2026, 0, 1, 0, 0, 1) * 1_000,
  transitions: 3,
};

/** A store whose server keeps the requests and answers each with one Lease. */
function recorded() {
  const requests: { line: string; type: string | null; body: unknown }[] = [];
  const api = new HttpApi({
    baseUrl: "https://cluster.test",
    credentials: NO_CREDENTIALS,
    clock: systemClock,
    entropy: seededEntropy(1),
    defaultNamespace: "shop",
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      requests.push({
        line: `${request.method} ${pathname}${search}`,
        type: request.headers.get("content-type"),
        body: JSON.parse(await request.text()),
      });
      return Response.json({
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name: "app", namespace: "shop", uid: "u-1", resourceVersion: "8" },
      });
    },
  });
  return { requests, store: new LeaseStore(api, "shop", "app") };
}

const call = { signal: new AbortController().signal };
const PATH = "/apis/coordination.k8s.io/v1/namespaces/shop/leases/app";
const written = {
  holderIdentity: "me",
  leaseDurationSeconds: 15,
  acquireTime: "2026-01-01T00:00:00.000001Z",
  renewTime: "2026-01-01T00:00:01.000000Z",
  leaseTransitions: 3,
};

Deno.test("a renewal is a merge patch of exactly five fields, fenced by version and uid", async () => {
  const { requests, store } = recorded();
  const known = { ...SPEC, version: "7", uid: "u-1" };
  await store.write(SPEC, { ...known, durationSeconds: 15 }, call);
  await store.write({ ...SPEC, holder: "" }, { ...known, durationSeconds: 15 }, call);
  const metadata = { resourceVersion: "7", uid: "u-1" };
  const type = "application/merge-patch+json";
  assert.deepEqual(requests, [
    { line: `PATCH ${PATH}`, type, body: { metadata, spec: written } },
    // Null takes the field away: an empty holder is refused by no server, and understood by few readers.
    { line: `PATCH ${PATH}`, type, body: { metadata, spec: { ...written, holderIdentity: null } } },
  ]);
});

Deno.test("a Lease is created by a PUT of its name without a version", async () => {
  const { requests, store } = recorded();
  await store.create(SPEC, call);
  assert.deepEqual(requests, [{
    line: `PUT ${PATH}`,
    type: "application/json",
    body: {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "app", namespace: "shop" },
      spec: written,
    },
  }]);
});
