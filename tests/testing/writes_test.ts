import assert from "node:assert/strict";
import fc from "fast-check";
import {
  ask,
  fieldsOf,
  JSON_PATCH,
  lease,
  LEASES_PATH,
  newFake,
  patch,
  versionOf,
  widget,
  WIDGET_CRD,
  WIDGETS_PATH,
} from "./helpers.ts";

const CONFIG_MAPS_PATH = "/api/v1/namespaces/default/configmaps";

Deno.test("POST creates with uid, version and time, and a second one is 409 AlreadyExists", async () => {
  const { fake } = newFake();
  const created = await ask(fake, "POST", LEASES_PATH, lease("a"));
  assert.equal(created.status, 201);
  assert.match(String(created.body.metadata?.uid), /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  assert.equal(created.body.metadata?.creationTimestamp, "2026-01-01T00:00:00Z");
  assert.equal(created.body.metadata?.namespace, "default");
  const again = await ask(fake, "POST", LEASES_PATH, lease("a"));
  assert.equal(again.status, 409);
  assert.equal(again.body.reason, "AlreadyExists");
  assert.deepEqual(again.body.details, {
    name: "a",
    group: "coordination.k8s.io",
    kind: "leases",
  });
});

Deno.test("PUT of a missing lease creates it, also with a stale version; with a uid as well it is 409", async () => {
  const { fake } = newFake();
  const created = await ask(fake, "PUT", `${LEASES_PATH}/a`, lease("a"));
  assert.equal(created.status, 201);
  await ask(fake, "DELETE", `${LEASES_PATH}/a`);
  const { uid, resourceVersion } = created.body.metadata ?? {};
  const both = await ask(fake, "PUT", `${LEASES_PATH}/a`, lease("a", { uid, resourceVersion }));
  assert.equal(both.status, 409);
  assert.equal(both.body.reason, "Conflict");
  const stale = await ask(fake, "PUT", `${LEASES_PATH}/a`, lease("a", { resourceVersion }));
  assert.equal(stale.status, 201);
  assert.notEqual(stale.body.metadata?.uid, uid);
});

Deno.test("PUT of a missing ConfigMap or custom object is 404, with a uid too", async () => {
  const { fake } = newFake();
  fake.apply(WIDGET_CRD);
  for (const uid of ["", "x"]) {
    const map = await ask(fake, "PUT", `${CONFIG_MAPS_PATH}/m`, { metadata: { name: "m", uid } });
    assert.equal(map.status, 404);
    const custom = await ask(fake, "PUT", `${WIDGETS_PATH}/w`, widget("w", {}, { uid }));
    assert.equal(custom.status, 404);
  }
});

Deno.test("PUT without a version: 422 for a lease, stored for a ConfigMap", async () => {
  const { fake } = newFake();
  await ask(fake, "POST", LEASES_PATH, lease("a"));
  const refused = await ask(fake, "PUT", `${LEASES_PATH}/a`, lease("a"));
  assert.equal(refused.status, 422);
  assert.equal(refused.body.reason, "Invalid");
  assert.match(
    String(refused.body.message),
    /metadata.resourceVersion: .* must be specified for an update/,
  );
  assert.deepEqual(fieldsOf(refused), ["metadata.resourceVersion"]);
  await ask(fake, "POST", CONFIG_MAPS_PATH, { metadata: { name: "m" }, data: { a: "1" } });
  const stored = await ask(fake, "PUT", `${CONFIG_MAPS_PATH}/m`, {
    metadata: { name: "m" },
    data: { a: "2" },
  });
  assert.equal(stored.status, 200);
  assert.deepEqual(stored.body.data, { a: "2" });
});

Deno.test("a write with a version that is not the stored one is 409 Conflict", async () => {
  const { fake } = newFake();
  await ask(fake, "POST", LEASES_PATH, lease("a"));
  const put = await ask(fake, "PUT", `${LEASES_PATH}/a`, lease("a", { resourceVersion: "1" }));
  const merge = await patch(fake, `${LEASES_PATH}/a`, { metadata: { resourceVersion: "1" } });
  const both = await patch(fake, `${LEASES_PATH}/a`, {
    metadata: { uid: "x", resourceVersion: "1" },
  });
  for (const answer of [put, merge, both]) {
    assert.equal(answer.status, 409);
    assert.equal(answer.body.reason, "Conflict");
    assert.equal(answer.body.details?.kind, "leases");
  }
});

Deno.test("a version that is no number is 500, as on the real server", async () => {
  const { fake } = newFake();
  await ask(fake, "POST", LEASES_PATH, lease("a"));
  const answer = await ask(fake, "PUT", `${LEASES_PATH}/a`, lease("a", { resourceVersion: "x" }));
  assert.equal(answer.status, 500);
  const create = await ask(fake, "POST", LEASES_PATH, lease("b", { resourceVersion: "5" }));
  assert.equal(create.status, 500);
});

Deno.test("a wrong uid: 409 in a PUT, 422 in a patch", async () => {
  const { fake } = newFake();
  await ask(fake, "POST", LEASES_PATH, lease("a"));
  const put = await ask(fake, "PUT", `${LEASES_PATH}/a`, lease("a", { uid: "x" }));
  assert.equal(put.status, 409);
  const merged = await patch(fake, `${LEASES_PATH}/a`, { metadata: { uid: "x" } });
  assert.equal(merged.status, 422);
  assert.deepEqual(fieldsOf(merged), ["metadata.uid", "metadata.uid"]);
  assert.match(
    String(merged.body.message),
    /is invalid: metadata.uid: Invalid value: "x": field is immutable$/,
  );
});

Deno.test("a write that changes nothing answers 200 and keeps the version", async () => {
  const { fake } = newFake();
  const created = await ask(fake, "POST", LEASES_PATH, lease("a"));
  const same = await ask(fake, "PUT", `${LEASES_PATH}/a`, created.body);
  assert.equal(same.status, 200);
  assert.equal(versionOf(same), versionOf(created));
  const merged = await patch(fake, `${LEASES_PATH}/a`, { spec: { holderIdentity: "a" } });
  assert.equal(versionOf(merged), versionOf(created));
  assert.equal(String(fake.revision), versionOf(created));
});

Deno.test("of eight PUTs at once that create, exactly one does", async () => {
  const { fake } = newFake();
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => ask(fake, "PUT", `${LEASES_PATH}/a`, lease("a"))),
  );
  assert.equal(answers.filter(({ status }) => status === 201).length, 1);
  assert.equal(answers.filter(({ status }) => status === 422).length, 7);
});

Deno.test("a patch of a missing object is 404", async () => {
  const { fake } = newFake();
  assert.equal((await patch(fake, `${LEASES_PATH}/a`, {})).status, 404);
});

Deno.test("a patch cannot move an object", async () => {
  const { fake } = newFake();
  await ask(fake, "POST", LEASES_PATH, lease("a"));
  const renamed = await patch(fake, `${LEASES_PATH}/a`, { metadata: { name: "b" } });
  const moved = await patch(fake, `${LEASES_PATH}/a`, { metadata: { namespace: "b" } });
  assert.deepEqual([renamed.status, moved.status], [400, 400]);
});

Deno.test("a JSON patch is applied whole or, when a test fails, not at all", async () => {
  const { fake } = newFake();
  const created = await ask(fake, "POST", LEASES_PATH, lease("a"));
  const path = `${LEASES_PATH}/a`;
  const refused = await patch(fake, path, [
    { op: "replace", path: "/spec/holderIdentity", value: "b" },
    { op: "test", path: "/metadata/resourceVersion", value: "1" },
  ], JSON_PATCH);
  assert.equal(refused.status, 422);
  const stored = await patch(fake, path, [
    { op: "test", path: "/metadata/resourceVersion", value: versionOf(created) },
    { op: "replace", path: "/spec/holderIdentity", value: "c" },
  ], JSON_PATCH);
  assert.equal(stored.body.spec?.holderIdentity, "c");
});

Deno.test("the operations of a JSON patch, and patches that are none", async () => {
  const { fake } = newFake();
  await ask(fake, "POST", LEASES_PATH, lease("a", { labels: { a: "1", b: "2" } }));
  const path = `${LEASES_PATH}/a`;
  const changed = await patch(fake, path, [
    { op: "copy", from: "/metadata/labels/a", path: "/metadata/labels/c" },
    { op: "move", from: "/metadata/labels/b", path: "/metadata/labels/d" },
    { op: "remove", path: "/metadata/labels/a" },
    { op: "add", path: "/metadata/labels/example.io~1e", value: "3" },
  ], JSON_PATCH);
  assert.deepEqual(changed.body.metadata?.labels, { c: "1", d: "2", "example.io/e": "3" });
  for (
    const operation of [
      "x",
      { op: "remove" },
      { op: "frob", path: "/spec" },
      { op: "move", path: "/spec" },
      { op: "remove", path: "/metadata/labels/none" },
      { op: "replace", path: "", value: 5 },
    ]
  ) {
    const answer = await patch(fake, path, [operation], JSON_PATCH);
    assert.equal(answer.status, 422, JSON.stringify(operation));
  }
  assert.equal((await patch(fake, path, {}, JSON_PATCH)).status, 400);
  for (const text of ["{", "[]", '"x"']) assert.equal((await patch(fake, path, text)).status, 400);
});

Deno.test("DELETE judges its preconditions, uid first, and answers a Status", async () => {
  const { fake } = newFake();
  const created = await ask(fake, "POST", LEASES_PATH, lease("a"));
  const path = `${LEASES_PATH}/a`;
  const stale = await ask(fake, "DELETE", path, { preconditions: { resourceVersion: "1" } });
  assert.equal(stale.status, 409);
  assert.match(String(stale.body.message), /ResourceVersion in the precondition \(1\)/);
  const wrong = await ask(fake, "DELETE", path, {
    preconditions: { uid: "x", resourceVersion: "1" },
  });
  assert.equal(wrong.status, 409);
  assert.match(String(wrong.body.message), /UID in the precondition \(x\)/);
  const { uid, resourceVersion } = created.body.metadata ?? {};
  const gone = await ask(fake, "DELETE", path, { preconditions: { uid, resourceVersion } });
  assert.deepEqual([gone.status, gone.body.kind, gone.body.status], [200, "Status", "Success"]);
  assert.equal(gone.body.details?.uid, uid);
  assert.equal((await ask(fake, "DELETE", path)).status, 404);
});

Deno.test("DELETE of a service account answers the object", async () => {
  const { fake } = newFake();
  const path = "/api/v1/namespaces/default/serviceaccounts";
  await ask(fake, "POST", path, { metadata: { name: "bot" } });
  assert.equal((await ask(fake, "DELETE", `${path}/bot`)).body.kind, "ServiceAccount");
});

Deno.test("an object with finalizers is marked by DELETE, and goes when the last one is dropped", async () => {
  const { fake } = newFake();
  fake.apply(WIDGET_CRD);
  const path = `${WIDGETS_PATH}/w`;
  await ask(fake, "POST", WIDGETS_PATH, widget("w", {}, { finalizers: ["example.io/x"] }));
  const marked = await ask(fake, "DELETE", path);
  assert.equal(marked.body.metadata?.deletionTimestamp, "2026-01-01T00:00:00Z");
  assert.equal(marked.body.metadata?.generation, 2);
  const again = await ask(fake, "DELETE", path);
  assert.equal(versionOf(again), versionOf(marked));
  const recreate = await ask(fake, "POST", WIDGETS_PATH, widget("w"));
  assert.match(String(recreate.body.message), /^object is being deleted/);
  const added = await patch(fake, path, {
    metadata: { finalizers: ["example.io/x", "example.io/y"] },
  });
  assert.equal(added.status, 422);
  const kept = await patch(fake, path, { metadata: { deletionTimestamp: null } });
  assert.equal(kept.body.metadata?.deletionTimestamp, "2026-01-01T00:00:00Z");
  const released = await patch(fake, path, { metadata: { finalizers: null } });
  assert.equal(released.status, 200);
  assert.equal((await ask(fake, "GET", path)).status, 404);
});

Deno.test("dryRun=All answers as if it were stored, and stores nothing", async () => {
  const { fake } = newFake();
  const before = fake.revision;
  const created = await ask(fake, "POST", `${LEASES_PATH}?dryRun=All`, lease("a"));
  assert.equal(created.status, 201);
  assert.equal(created.body.metadata?.resourceVersion, undefined);
  const put = await ask(fake, "PUT", `${LEASES_PATH}/a?dryRun=All`, lease("a"));
  assert.equal(put.status, 201);
  assert.equal(fake.revision, before);
  const stored = await ask(fake, "POST", LEASES_PATH, lease("a"));
  await patch(fake, `${LEASES_PATH}/a?dryRun=All`, { spec: { holderIdentity: "z" } });
  await ask(fake, "DELETE", `${LEASES_PATH}/a?dryRun=All`);
  assert.deepEqual((await ask(fake, "GET", `${LEASES_PATH}/a`)).body, stored.body);
  fake.apply(WIDGET_CRD);
  fake.apply(widget("f", {}, { finalizers: ["example.io/x"] }));
  await ask(fake, "DELETE", `${WIDGETS_PATH}/f?dryRun=All`);
  const kept = await ask(fake, "GET", `${WIDGETS_PATH}/f`);
  assert.equal(kept.body.metadata?.deletionTimestamp, undefined);
  assert.equal((await ask(fake, "POST", `${LEASES_PATH}?dryRun=x`, lease("b"))).status, 422);
});

Deno.test("generateName makes names that differ", async () => {
  const { fake } = newFake();
  const body = lease("", { generateName: "hold-" });
  const one = await ask(fake, "POST", LEASES_PATH, body);
  const two = await ask(fake, "POST", LEASES_PATH, body);
  assert.match(String(one.body.metadata?.name), /^hold-[a-z0-9]{5}$/);
  assert.notEqual(one.body.metadata?.name, two.body.metadata?.name);
});

Deno.test("the name and the namespace of the body are those of the URL", async () => {
  const { fake } = newFake();
  const other = await ask(fake, "PUT", `${LEASES_PATH}/b`, lease("c"));
  const none = await ask(fake, "PUT", `${LEASES_PATH}/b`, lease(""));
  const place = await ask(fake, "POST", LEASES_PATH, lease("a", { namespace: "other" }));
  assert.deepEqual([other.status, none.status, place.status], [400, 400, 400]);
  assert.equal(
    other.body.message,
    "the name of the object (c) does not match the name on the URL (b)",
  );
});

Deno.test("a write into a missing namespace is 404, and in lenient mode it is stored", async () => {
  const path = "/apis/coordination.k8s.io/v1/namespaces/nope/leases";
  const strict = newFake().fake;
  for (const [method, url] of [["POST", path], ["PUT", `${path}/a`]] as const) {
    const answer = await ask(strict, method, url, lease("a"));
    assert.equal(answer.status, 404);
    assert.deepEqual(answer.body.details, { name: "nope", kind: "namespaces" });
  }
  const lenient = newFake({ lenientNamespaces: true }).fake;
  assert.equal((await ask(lenient, "POST", path, lease("a"))).status, 201);
});

Deno.test("versions rise over the whole store, whatever is written", async () => {
  const write = fc.record({
    method: fc.constantFrom("PUT", "DELETE"),
    name: fc.constantFrom("a", "b", "c"),
    holder: fc.constantFrom("x", "y"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(write, { maxLength: 30 }), async (writes) => {
      const { fake } = newFake();
      let last = fake.revision;
      for (const { method, name, holder } of writes) {
        const stored = await ask(fake, "GET", `${LEASES_PATH}/${name}`);
        const metadata = stored.status === 200 ? { ...stored.body.metadata } : {};
        const body = method === "PUT"
          ? lease(name, metadata, { holderIdentity: holder })
          : undefined;
        const answer = await ask(fake, method, `${LEASES_PATH}/${name}`, body);
        const changed = answer.status < 300 &&
          (method === "DELETE" || stored.body.spec?.holderIdentity !== holder);
        assert.equal(fake.revision, changed ? last + 1 : last);
        last = fake.revision;
        if (method === "PUT" && changed) assert.equal(versionOf(answer), String(last));
      }
    }),
    { numRuns: 40 },
  );
});
