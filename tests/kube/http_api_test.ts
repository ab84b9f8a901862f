import assert from "node:assert/strict";
import { LEASES, SERVICE_ACCOUNTS, TOKEN_REQUESTS, TOKEN_REVIEWS } from "../../lib/kube/mod.ts";
import {
  AlreadyExistsError,
  ConflictError,
  DecodeError,
  GoneError,
  InvalidError,
  KubeTimeoutError,
  NotFoundError,
} from "../../lib/kube/errors.ts";
import { CONFIG_MAPS, NAMESPACES } from "../../lib/kube/resources.ts";
import { ANSWER_DATE, hangs, json, lease, listOf, SECRET_TEXT, setup, status } from "./support.ts";

const A = { name: "a", namespace: "database" };
const LEASES_PATH = "/apis/coordination.k8s.io/v1/namespaces/database/leases";

Deno.test("get reads one object, and keeps the members that the schema does not know", async () => {
  const stored = { ...lease("a", "7", { strategy: "new" }), future: { x: 1 } };
  const { api, seen, signal } = setup([json(stored)]);
  assert.deepEqual(await api.get(LEASES, A, { signal }), stored);
  assert.equal(seen[0]?.method, "GET");
  assert.equal(seen[0]?.path, `${LEASES_PATH}/a`);
  assert.equal(seen[0]?.headers.get("accept"), "application/json");
  assert.equal(seen[0]?.headers.get("user-agent"), "holdfast");
});

Deno.test("every answer reaches the observer once, errors too, with its times and its date", async () => {
  const { api, observed, calls, clock, signal } = setup([
    async () => {
      await clock.advance(3);
      return Response.json(lease("a", "1"), { headers: { date: ANSWER_DATE } });
    },
    status(404, "NotFound"),
    () => Response.json(lease("a", "1"), { headers: { date: "yesterday" } }),
  ]);
  await api.get(LEASES, A, { signal });
  await assert.rejects(api.get(LEASES, A, { signal }), NotFoundError);
  await api.get(LEASES, A, { signal });
  const about = { verb: "get", resource: "leases.coordination.k8s.io" };
  const serverDateMs = Date.UTC(2026, 0, 1);
  assert.deepEqual(observed, [
    { ...about, sentMs: 0, receivedMs: 3, serverDateMs, status: 200 },
    { ...about, sentMs: 3, receivedMs: 3, serverDateMs, status: 404 },
    { ...about, sentMs: 3, receivedMs: 3, serverDateMs: null, status: 200 },
  ]);
  assert.deepEqual(calls, [
    { ...about, outcome: "ok", durationMs: 3 },
    { ...about, outcome: "not_found", durationMs: 0 },
    { ...about, outcome: "ok", durationMs: 0 },
  ]);
});

Deno.test("an object that lacks what a stored one has is a decode error that names the members", async () => {
  const { api, signal } = setup([json({ metadata: { name: "a", uid: "" } })]);
  await assert.rejects(api.get(LEASES, A, { signal }), (error) => {
    assert.ok(error instanceof DecodeError);
    assert.deepEqual(error.paths, ["metadata.uid", "metadata.resourceVersion"]);
    assert.equal(error.mayHaveLanded, false);
    return true;
  });
});

Deno.test("an answer that is no JSON, or of another form, is a decode error without its text", async () => {
  const { api, signal } = setup([
    () => new Response(`<html>${SECRET_TEXT}`),
    json(lease("a", "1", { leaseTransitions: SECRET_TEXT })),
    () => new Response("{"),
    json({ items: [] }),
    json({ major: 1 }),
    () => new Response("nothing"),
    () => new Response(null, { status: 204 }),
  ]);
  const failures = [
    api.get(LEASES, A, { signal }),
    api.get(LEASES, A, { signal }),
    api.list(LEASES, { signal }),
    api.list(LEASES, { signal }),
    api.version({ signal }),
    api.version({ signal }),
    api.get(LEASES, A, { signal }),
  ];
  const paths: (readonly string[])[] = [];
  for (const failure of failures) {
    await assert.rejects(failure, (error) => {
      assert.ok(error instanceof DecodeError);
      assert.doesNotMatch(error.message, /secret/);
      paths.push(error.paths);
      return true;
    });
  }
  assert.deepEqual(paths, [
    [],
    ["spec.leaseTransitions"],
    [],
    ["metadata"],
    ["major", "minor", "gitVersion"],
    [],
    [],
  ]);
});

Deno.test("a list is read in pages, and gives its items their kind", async () => {
  const { api, seen, signal } = setup([
    json(listOf("90", [{ metadata: lease("a", "1").metadata }], "more/?&")),
    json(listOf("90", [lease("b", "2")])),
  ]);
  const list = await api.list(LEASES, {
    namespace: "database",
    labelSelector: "x in (a,b)",
    fieldSelector: "metadata.name=a",
    signal,
  });
  assert.deepEqual(list.items.map((item) => [item.kind, item.apiVersion, item.metadata.name]), [
    ["Lease", "coordination.k8s.io/v1", "a"],
    ["Lease", "coordination.k8s.io/v1", "b"],
  ]);
  assert.equal(list.resourceVersion, "90");
  const selected = "labelSelector=x+in+%28a%2Cb%29&fieldSelector=metadata.name%3Da&limit=500";
  assert.deepEqual(seen.map(({ path }) => path), [
    `${LEASES_PATH}?${selected}`,
    `${LEASES_PATH}?${selected}&continue=more%2F%3F%26`,
  ]);
});

Deno.test("an item of another form does not hide the others", async () => {
  const { api, signal } = setup([
    json(listOf("9", [
      lease("a", "1"),
      { metadata: { name: "odd", namespace: "database" }, spec: { leaseTransitions: "many" } },
      { metadata: { name: 7 } },
      "text",
      { metadata: { name: "no-uid", namespace: "database", resourceVersion: "1" } },
    ])),
  ]);
  const { items, undecodable } = await api.list(LEASES, { signal });
  assert.deepEqual(items.map((item) => item.metadata.name), ["a"]);
  assert.deepEqual(undecodable, [
    { namespace: "database", name: "odd", paths: ["spec.leaseTransitions"] },
    { namespace: "", name: "", paths: ["metadata.name"] },
    { namespace: "", name: "", paths: [""] },
    { namespace: "database", name: "no-uid", paths: ["metadata.uid"] },
  ]);
});

Deno.test("an empty list may have null for its items", async () => {
  const { api, seen, signal } = setup([json({ metadata: { resourceVersion: "4" }, items: null })]);
  const list = await api.list(NAMESPACES, { signal });
  assert.deepEqual(list, { items: [], resourceVersion: "4", undecodable: [] });
  assert.equal(seen[0]?.path, "/api/v1/namespaces?limit=500");
});

Deno.test("a list from the cache asks for any version, on each of its pages", async () => {
  const { api, seen, signal } = setup([
    json(listOf("90", [lease("a", "1")], "next")),
    status(410, "Expired"),
    json(listOf("95", [lease("a", "1")])),
  ]);
  await api.list(NAMESPACES, { cached: true, signal });
  assert.deepEqual(seen.map(({ path }) => path), [
    "/api/v1/namespaces?limit=500&resourceVersion=0",
    "/api/v1/namespaces?limit=500&continue=next&resourceVersion=0",
    "/api/v1/namespaces?resourceVersion=0",
  ]);
});

Deno.test("a list whose pages are dropped in the middle starts again without pages", async () => {
  const { api, seen, signal } = setup([
    json(listOf("90", [lease("a", "1")], "next")),
    status(410, "Expired"),
    json(listOf("95", [lease("a", "1"), lease("b", "2")])),
  ]);
  const list = await api.list(LEASES, { signal });
  assert.equal(list.items.length, 2);
  assert.equal(list.resourceVersion, "95");
  assert.equal(seen[2]?.path, "/apis/coordination.k8s.io/v1/leases");
});

Deno.test("a 410 on the first page is told, and so is another error in the middle", async () => {
  const { api, signal } = setup([
    status(410, "Gone"),
    json(listOf("90", [], "next")),
    status(404, "NotFound"),
  ]);
  await assert.rejects(api.list(LEASES, { signal }), GoneError);
  await assert.rejects(api.list(LEASES, { signal }), NotFoundError);
});

Deno.test("the time limit of a list covers all of its pages", async () => {
  const { api, clock, signal } = setup([
    async () => {
      await clock.advance(60);
      return Response.json(listOf("9", [], "next"));
    },
    hangs,
  ]);
  const list = api.list(LEASES, { signal, timeoutMs: 100 });
  const rejected = assert.rejects(list, (error) => {
    assert.ok(error instanceof KubeTimeoutError);
    assert.equal(
      error.message,
      "Cannot list leases.coordination.k8s.io: no answer within 100 ms",
    );
    return true;
  });
  await clock.advance(40);
  await rejected;
  assert.equal(clock.monotonic(), 100);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("createNamed is a PUT without a version, with apiVersion and kind filled in", async () => {
  const { api, seen, signal } = setup([json(lease("a", "5"), 201)]);
  const created = await api.createNamed(LEASES, { metadata: A, spec: {} }, {
    signal,
    dryRun: true,
  });
  assert.equal(created.metadata.resourceVersion, "5");
  assert.equal(seen[0]?.method, "PUT");
  assert.equal(seen[0]?.path, `${LEASES_PATH}/a?dryRun=All`);
  assert.equal(seen[0]?.headers.get("content-type"), "application/json");
  assert.deepEqual(seen[0]?.body, {
    metadata: A,
    spec: {},
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
  });
});

Deno.test("createNamed tells by 422 about the version, and by any 409, that the object exists", async () => {
  const { api, signal } = setup([
    status(422, "Invalid", { causes: [{ field: "metadata.resourceVersion" }] }),
    status(409, "AlreadyExists"),
    status(409, "Conflict"),
    status(422, "Invalid", { causes: [{ field: "spec.leaseDurationSeconds" }] }),
  ]);
  const create = () => api.createNamed(LEASES, { metadata: A }, { signal });
  await assert.rejects(create(), AlreadyExistsError);
  await assert.rejects(create(), AlreadyExistsError);
  await assert.rejects(create(), AlreadyExistsError);
  await assert.rejects(create(), (error) => {
    assert.ok(error instanceof InvalidError);
    assert.deepEqual(error.fields, ["spec.leaseDurationSeconds"]);
    return true;
  });
});

Deno.test("createNamed refuses an object that was read, and a kind that a PUT does not create", async () => {
  const { api, seen, signal } = setup([]);
  await assert.rejects(
    api.createNamed(LEASES, { metadata: { ...A, resourceVersion: "1" } }, { signal }),
    TypeError,
  );
  await assert.rejects(
    api.createNamed(LEASES, { metadata: { ...A, uid: "u" } }, { signal }),
    TypeError,
  );
  await assert.rejects(api.createNamed(CONFIG_MAPS, { metadata: A }, { signal }), TypeError);
  await assert.rejects(
    api.createNamed({ ...LEASES, group: "shipstream.io" }, { metadata: A }, { signal }),
    /Cannot create leases by name .*: use create\(\)/,
  );
  assert.equal(seen.length, 0);
});

Deno.test("replace sends uid and version, and writes its status apart", async () => {
  const { api, seen, signal } = setup([json(lease("a", "6")), json(lease("a", "7"))]);
  await api.replace(LEASES, lease("a", "5"), { signal });
  await api.replace(LEASES, lease("a", "6"), { signal, subresource: "status" });
  assert.deepEqual(seen.map(({ method, path }) => `${method} ${path}`), [
    `PUT ${LEASES_PATH}/a`,
    `PUT ${LEASES_PATH}/a/status`,
  ]);
  assert.deepEqual(seen[0]?.body, lease("a", "5"));
});

Deno.test("replace and delete refuse to be fenced by nothing", async () => {
  const { api, seen, signal } = setup([]);
  const { metadata } = lease("a", "5");
  for (const member of ["uid", "resourceVersion"]) {
    const object = { ...lease("a", "5"), metadata: { ...metadata, [member]: "" } };
    await assert.rejects(api.replace(LEASES, object, { signal }), {
      name: "TypeError",
      message:
        `Cannot replace leases as '${member}' must be that of the object that was read: current value is empty`,
    });
    const preconditions = { uid: "u", resourceVersion: "1", [member]: "" };
    await assert.rejects(api.delete(LEASES, A, preconditions, { signal }), TypeError);
  }
  assert.equal(seen.length, 0);
});

Deno.test("a write that means another object is a conflict, however the server says so", async () => {
  const { api, signal } = setup([
    status(409, "Conflict"),
    status(422, "Invalid", { causes: [{ field: "metadata.uid" }] }),
    status(422, "Invalid"),
    status(422, "Invalid"),
    status(409, "Conflict"),
  ]);
  const write = { signal };
  await assert.rejects(api.replace(LEASES, lease("a", "5"), write), ConflictError);
  const body = { metadata: { uid: "other" } };
  await assert.rejects(api.patch(LEASES, A, { type: "merge", body }, write), ConflictError);
  const test = { op: "test", path: "/metadata/resourceVersion", value: "1" };
  const patch = { type: "json", body: [test] } as const;
  await assert.rejects(api.patch(LEASES, A, patch, write), ConflictError);
  const unfenced = { type: "json", body: [{ ...test, path: "/spec" }] } as const;
  await assert.rejects(api.patch(LEASES, A, unfenced, write), InvalidError);
  const preconditions = { uid: "u", resourceVersion: "1" };
  await assert.rejects(api.delete(LEASES, A, preconditions, write), ConflictError);
});

Deno.test("a patch says how it is to be read", async () => {
  const { api, seen, signal } = setup([json(lease("a", "6")), json(lease("a", "7"))]);
  const body = { spec: { holderIdentity: null } };
  await api.patch(LEASES, A, { type: "merge", body }, { signal });
  const remove = { op: "remove", path: "/spec" };
  await api.patch(LEASES, A, { type: "json", body: [remove] }, { signal, subresource: "status" });
  assert.deepEqual(
    seen.map(({ method, path, headers, body }) => [
      method,
      path,
      headers.get("content-type"),
      body,
    ]),
    [
      ["PATCH", `${LEASES_PATH}/a`, "application/merge-patch+json", body],
      ["PATCH", `${LEASES_PATH}/a/status`, "application/json-patch+json", [remove]],
    ],
  );
});

Deno.test("delete sends both preconditions, and takes any answer for done", async () => {
  const { api, seen, signal } = setup([json({ kind: "Status", status: "Success" })]);
  await api.delete(LEASES, A, { uid: "u", resourceVersion: "3" }, { signal });
  assert.deepEqual(seen.map(({ method, path }) => `${method} ${path}`), [
    `DELETE ${LEASES_PATH}/a`,
  ]);
  assert.deepEqual(seen[0]?.body, {
    apiVersion: "v1",
    kind: "DeleteOptions",
    preconditions: { uid: "u", resourceVersion: "3" },
  });
});

Deno.test("create posts, and returns a review that was answered and not stored", async () => {
  const { api, seen, signal } = setup([
    json({ status: { authenticated: true } }, 201),
    status(409, "AlreadyExists"),
    status(409, "Conflict"),
  ]);
  const review = await api.create(TOKEN_REVIEWS, { metadata: {}, spec: { token: "t" } }, {
    signal,
  });
  assert.equal(review.status?.authenticated, true);
  assert.equal(seen[0]?.path, "/apis/authentication.k8s.io/v1/tokenreviews");
  const generated = { metadata: { generateName: "x-", namespace: "database" } };
  await assert.rejects(api.create(LEASES, generated, { signal }), (error) => {
    assert.ok(error instanceof AlreadyExistsError);
    assert.equal(error.call.target, "database/x-");
    return true;
  });
  await assert.rejects(api.create(LEASES, generated, { signal }), ConflictError);
});

Deno.test("createSubresource posts a body of its own kind", async () => {
  const status = { token: "t", expirationTimestamp: "2026-01-01T00:10:00Z" };
  const { api, seen, calls, signal } = setup([json({ metadata: {}, status }, 201)]);
  const name = { name: "deployer", namespace: "app" };
  const body = { metadata: {}, spec: { audiences: ["x"] } };
  const answer = await api.createSubresource(
    SERVICE_ACCOUNTS,
    name,
    "token",
    TOKEN_REQUESTS,
    body,
    {
      signal,
    },
  );
  assert.deepEqual(answer.status, status);
  assert.equal(seen[0]?.path, "/api/v1/namespaces/app/serviceaccounts/deployer/token");
  assert.deepEqual(seen[0]?.body, {
    ...body,
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
  });
  assert.equal(calls[0]?.resource, "serviceaccounts/token");
});

Deno.test("a write whose answer cannot be read has landed", async () => {
  const { api, signal } = setup([json({}), json({ metadata: {} }, 201)]);
  const landed = (error: unknown) => error instanceof DecodeError && error.mayHaveLanded;
  await assert.rejects(api.replace(LEASES, lease("a", "5"), { signal }), landed);
  await assert.rejects(api.createNamed(LEASES, { metadata: A }, { signal }), landed);
});

Deno.test("version reads the server's version", async () => {
  const version = { major: "1", minor: "36", gitVersion: "v1.36.3" };
  const { api, seen, signal } = setup([json(version)]);
  assert.deepEqual(await api.version({ signal }), version);
  assert.equal(seen[0]?.path, "/version");
});

Deno.test("a name or a namespace that cannot be a part of a path is refused before a request", async () => {
  const { api, seen, signal } = setup([]);
  for (const name of ["", ".", "..", "a/b"]) {
    await assert.rejects(api.get(LEASES, { name, namespace: "database" }, { signal }), TypeError);
    await assert.rejects(api.list(LEASES, { namespace: name, signal }), TypeError);
  }
  await assert.rejects(api.get(LEASES, { name: "a" }, { signal }), {
    message: "Cannot address an object of leases as 'namespace' must be set: it is left out",
  });
  await assert.rejects(api.create(LEASES, { metadata: { name: "a" } }, { signal }), TypeError);
  await assert.rejects(
    api.get(NAMESPACES, { name: "a", namespace: "b" }, { signal }),
    /the kind has no namespaces/,
  );
  assert.equal(seen.length, 0);
});

Deno.test("what a name holds cannot change the path", async () => {
  const { api, seen, signal } = setup([json(lease("a", "1"))]);
  await api.get(LEASES, { name: "a?b#c%2e", namespace: "database" }, { signal });
  assert.equal(seen[0]?.path, `${LEASES_PATH}/a%3Fb%23c%252e`);
});

Deno.test("a path of the base URL is kept", async () => {
  const { api, seen, signal } = setup([json(lease("a", "1"))], {
    baseUrl: "https://cluster.test/k8s/clusters/one/",
  });
  await api.get(LEASES, A, { signal });
  assert.equal(seen[0]?.path, `/k8s/clusters/one${LEASES_PATH}/a`);
});
