import assert from "node:assert/strict";
import { ask, fieldsOf, lease, LEASES_PATH, newFake, patch } from "./helpers.ts";

const OWNER = { apiVersion: "v1", kind: "ConfigMap", name: "m", uid: "u" };
const CONFIG_MAPS_PATH = "/api/v1/namespaces/default/configmaps";

Deno.test("leases: durations above 0, transitions of 0 or more and within 32 bits", async () => {
  const { fake } = newFake();
  const post = (spec: object) => ask(fake, "POST", LEASES_PATH, lease("a", {}, spec));
  const zero = await post({ leaseDurationSeconds: 0 });
  assert.equal(zero.status, 422);
  assert.deepEqual(fieldsOf(zero), ["spec.leaseDurationSeconds"]);
  assert.equal(zero.body.details?.kind, "Lease");
  const two = await post({ leaseDurationSeconds: -1, leaseTransitions: -1 });
  assert.deepEqual(fieldsOf(two), ["spec.leaseDurationSeconds", "spec.leaseTransitions"]);
  for (const leaseTransitions of [2 ** 31, 1.5, "1"]) {
    assert.equal((await post({ leaseTransitions })).status, 400);
  }
  assert.equal((await post({ leaseTransitions: 2 ** 31 - 1 })).status, 201);
});

Deno.test("times of a lease have six fraction digits or are refused, and come out in UTC", async () => {
  const { fake } = newFake();
  const renewTime = "2026-01-01T02:00:00.123456+02:00";
  const stored = await ask(fake, "POST", LEASES_PATH, lease("a", {}, { renewTime }));
  assert.equal(stored.body.spec?.renewTime, "2026-01-01T00:00:00.123456Z");
  for (const wrong of ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "x", 5]) {
    const answer = await ask(fake, "POST", LEASES_PATH, lease("b", {}, { renewTime: wrong }));
    assert.equal(answer.status, 400, String(wrong));
  }
});

Deno.test("names, labels, annotations and owners follow the rules of Kubernetes", async () => {
  const { fake } = newFake();
  const fields = async (metadata: object) =>
    fieldsOf(await ask(fake, "POST", LEASES_PATH, lease("a", metadata)));
  assert.deepEqual(await fields({ name: "A_b" }), ["metadata.name"]);
  assert.deepEqual(await fields({ name: "a".repeat(254) }), ["metadata.name"]);
  assert.deepEqual(await fields({ name: "" }), ["metadata.name"]);
  assert.deepEqual(await fields({ labels: { "a b": "c d" } }), [
    "metadata.labels",
    "metadata.labels",
  ]);
  for (
    const key of ["/a", "a/b/c", "A_/b", "a/", `a/${"b".repeat(64)}`]
  ) assert.deepEqual(await fields({ labels: { [key]: "" } }), ["metadata.labels"], key);
  assert.deepEqual(await fields({ labels: { a: "x".repeat(64) } }), ["metadata.labels"]);
  assert.deepEqual(await fields({ annotations: { "a b": "" } }), ["metadata.annotations"]);
  assert.deepEqual(await fields({ annotations: { a: "x".repeat(262_144) } }), [
    "metadata.annotations",
  ]);
  const owner = { apiVersion: "", kind: "", name: "", uid: "" };
  assert.equal((await fields({ ownerReferences: [owner] })).length, 4);
  assert.deepEqual(await fields({ ownerReferences: [{ ...owner, ...OWNER }] }), []);
  assert.deepEqual(await fields({ finalizers: ["a b"] }), ["metadata.finalizers"]);
  const number = await ask(fake, "POST", LEASES_PATH, lease("a", { labels: { a: 1 } }));
  assert.equal(number.status, 400);
});

Deno.test("a namespace that is deleted stays Terminating and takes nothing new", async () => {
  const { fake } = newFake();
  const created = await ask(fake, "POST", "/api/v1/namespaces", { metadata: { name: "n" } });
  assert.deepEqual(created.body.metadata?.labels, { "kubernetes.io/metadata.name": "n" });
  assert.deepEqual(created.body.status, { phase: "Active" });
  const deleted = await ask(fake, "DELETE", "/api/v1/namespaces/n");
  assert.deepEqual(deleted.body.status, { phase: "Terminating" });
  const labelled = await patch(fake, "/api/v1/namespaces/n", { metadata: { labels: { a: "b" } } });
  assert.equal(labelled.status, 200);
  const write = await ask(fake, "POST", "/api/v1/namespaces/n/configmaps", {
    metadata: { name: "m" },
  });
  assert.equal(write.status, 403);
  assert.equal(write.body.details?.causes?.[0]?.reason, "NamespaceTerminating");
  const dotted = await ask(fake, "POST", "/api/v1/namespaces", { metadata: { name: "a.b" } });
  assert.equal(dotted.status, 422);
});

Deno.test("rules of single kinds: ConfigMap keys, role verbs, the fixed roleRef", async () => {
  const { fake } = newFake();
  const map = await ask(fake, "POST", CONFIG_MAPS_PATH, {
    metadata: { name: "m" },
    data: { "a b": "" },
  });
  assert.deepEqual(fieldsOf(map), ["data[a b]"]);
  const number = await ask(fake, "POST", CONFIG_MAPS_PATH, {
    metadata: { name: "m" },
    data: { a: 1 },
  });
  assert.equal(number.status, 400);
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const role = await ask(fake, "POST", `${rbac}/clusterroles`, {
    metadata: { name: "r" },
    rules: [{ apiGroups: [""], resources: ["pods"], verbs: [] }],
  });
  assert.deepEqual(fieldsOf(role), ["rules[0].verbs"]);
  const binding = {
    metadata: { name: "b" },
    roleRef: { kind: "ClusterRole", name: "r" },
    subjects: [{ kind: "User", name: "bob" }],
  };
  const bindings = `${rbac}/clusterrolebindings`;
  const stored = await ask(fake, "POST", bindings, binding);
  assert.deepEqual(stored.body.roleRef, {
    apiGroup: "rbac.authorization.k8s.io",
    kind: "ClusterRole",
    name: "r",
  });
  const changed = await patch(fake, `${bindings}/b`, { roleRef: { name: "other" } });
  assert.deepEqual(fieldsOf(changed), ["roleRef"]);
  const nameless = await ask(fake, "POST", bindings, { metadata: { name: "c" }, roleRef: {} });
  assert.deepEqual(fieldsOf(nameless), ["roleRef.name"]);
});

Deno.test("a body that is not of the kind is 400, of another media type 415, too long 413", async () => {
  const { fake } = newFake();
  const post = (body: unknown, type = "application/json") =>
    ask(fake, "POST", LEASES_PATH, body, { "content-type": type });
  for (
    const body of [
      "",
      "{",
      "[]",
      { ...lease("a"), kind: "Foo" },
      { ...lease("a"), apiVersion: "v9" },
      { ...lease("a"), spec: "x" },
      { ...lease("a"), spec: [] },
      lease("a", { labels: [] }),
      lease("a", { finalizers: {} }),
      lease("a", { finalizers: [1] }),
      lease("a", { creationTimestamp: "yesterday" }),
      lease("a", { ownerReferences: [{ controller: "yes" }] }),
      lease("a", { generation: "1" }),
      lease("a", {}, { holderIdentity: true }),
    ]
  ) assert.equal((await post(body)).status, 400, JSON.stringify(body));
  assert.equal((await post("{}", "text/plain")).status, 415);
  assert.equal((await post(lease("a", { annotations: { a: "x".repeat(3_200_000) } }))).status, 413);
  assert.equal((await patch(fake, `${LEASES_PATH}/a`, {}, "application/json")).status, 415);
  await post(lease("a"));
  const typed = await patch(fake, `${LEASES_PATH}/a`, { spec: { leaseDurationSeconds: "x" } });
  assert.equal(typed.status, 422);
});

Deno.test("members that a kind does not have are dropped, with a warning; Strict refuses them", async () => {
  const { fake } = newFake();
  const body = { ...lease("a", {}, { zzz: 1 }), foo: 1 };
  const strict = await ask(fake, "POST", `${LEASES_PATH}?fieldValidation=Strict`, body);
  assert.equal(strict.status, 400);
  assert.match(String(strict.body.message), /unknown field "spec.zzz", unknown field "foo"/);
  const silent = await ask(fake, "POST", `${LEASES_PATH}?fieldValidation=Ignore&dryRun=All`, body);
  assert.equal(silent.headers.get("warning"), null);
  const stored = await ask(fake, "POST", LEASES_PATH, body);
  assert.equal(
    stored.headers.get("warning"),
    '299 - "unknown field \\"spec.zzz\\"", 299 - "unknown field \\"foo\\""',
  );
  assert.equal(stored.body.foo, undefined);
  assert.equal((await ask(fake, "POST", `${LEASES_PATH}?fieldValidation=x`, body)).status, 422);
});
