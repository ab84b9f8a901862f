import assert from "node:assert/strict";
import type { FakeCluster } from "../../lib/testing/fake_cluster.ts";
import { ask, lease, LEASES_PATH, newFake } from "./helpers.ts";

const REVIEWS_PATH = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCOUNTS_PATH = "/api/v1/namespaces/default/serviceaccounts";
const RBAC = "rbac.authorization.k8s.io";

interface ReviewStatus {
  readonly authenticated?: boolean;
  readonly error?: string;
  readonly audiences?: readonly string[];
  readonly user?: { readonly username?: string; readonly groups?: readonly string[] };
}

async function review(fake: FakeCluster, token: string, audiences?: string[]) {
  const answer = await ask(fake, "POST", REVIEWS_PATH, { spec: { token, audiences } });
  assert.equal(answer.status, 201);
  const status: ReviewStatus = JSON.parse(JSON.stringify(answer.body.status));
  return status;
}

async function requestToken(fake: FakeCluster, spec: object) {
  const answer = await ask(fake, "POST", `${ACCOUNTS_PATH}/bot/token`, { spec });
  const status: { token: string; expirationTimestamp: string } = JSON.parse(
    JSON.stringify(answer.body.status ?? {}),
  );
  return { ...answer, ...status };
}

async function withAccount() {
  const made = newFake();
  await ask(made.fake, "POST", ACCOUNTS_PATH, { metadata: { name: "bot" } });
  return made;
}

function claimsOf(token: string) {
  const payload = token.split(".")[1] ?? "";
  return JSON.parse(
    new TextDecoder().decode(Uint8Array.fromBase64(payload, { alphabet: "base64url" })),
  );
}

Deno.test("a requested token is a JWT of its account, its audiences and its end", async () => {
  const { fake, clock } = await withAccount();
  fake.serverClockOffsetMs = 5_000;
  const answer = await requestToken(fake, { audiences: ["x"], expirationSeconds: 600 });
  assert.equal(answer.status, 201);
  const claims = claimsOf(answer.token);
  const now = clock.wall() / 1000 + 5;
  assert.equal(claims.sub, "system:serviceaccount:default:bot");
  assert.deepEqual(claims.aud, ["x"]);
  assert.deepEqual([claims.iat, claims.exp], [now, now + 600]);
  assert.equal(claims["kubernetes.io"].serviceaccount.name, "bot");
  assert.equal(answer.expirationTimestamp, "2026-01-01T00:10:05Z");
});

Deno.test("a token review answers the user and the audiences that were asked for", async () => {
  const { fake } = await withAccount();
  const { token } = await requestToken(fake, { audiences: ["x", "y"] });
  const status = await review(fake, token, ["y", "z"]);
  assert.equal(status.authenticated, true);
  assert.deepEqual(status.audiences, ["y"]);
  assert.equal(status.user?.username, "system:serviceaccount:default:bot");
  assert.ok(status.user?.groups?.includes("system:serviceaccounts:default"));
});

Deno.test("a review refuses another audience, an ended token, a forged one and one of an account that is gone", async () => {
  const { fake, clock } = await withAccount();
  const { token } = await requestToken(fake, { audiences: ["x"], expirationSeconds: 600 });
  const wrong = await review(fake, token, ["y"]);
  assert.equal(wrong.authenticated, undefined);
  assert.match(String(wrong.error), /token audiences \["x"\] is invalid for the target audiences/);
  assert.match(String((await review(fake, token)).error), /is invalid for the target audiences/);
  assert.equal((await review(fake, "x", ["x"])).error, "invalid bearer token");
  assert.equal(
    (await review(fake, `${token.slice(0, -3)}AAA`, ["x"])).error,
    "invalid bearer token",
  );
  assert.equal((await review(fake, "a.b.c", ["x"])).error, "invalid bearer token");
  await clock.advance(599_000);
  assert.equal((await review(fake, token, ["x"])).authenticated, true);
  fake.serverClockOffsetMs = 1_000;
  assert.match(String((await review(fake, token, ["x"])).error), /expired/);
  fake.serverClockOffsetMs = 0;
  await ask(fake, "DELETE", `${ACCOUNTS_PATH}/bot`);
  assert.match(
    String((await review(fake, token, ["x"])).error),
    /serviceaccounts "bot" not found/,
  );
  await ask(fake, "POST", ACCOUNTS_PATH, { metadata: { name: "bot" } });
  assert.equal((await review(fake, token, ["x"])).authenticated, undefined);
});

Deno.test("token requests are checked: time, account, name", async () => {
  const { fake } = await withAccount();
  assert.equal((await requestToken(fake, { expirationSeconds: 599 })).status, 422);
  assert.equal((await requestToken(fake, { expirationSeconds: 2 ** 33 })).status, 422);
  const missing = await ask(fake, "POST", `${ACCOUNTS_PATH}/none/token`, { spec: {} });
  assert.equal(missing.status, 404);
  const body = { metadata: { name: "other" }, spec: {} };
  assert.equal((await ask(fake, "POST", `${ACCOUNTS_PATH}/bot/token`, body)).status, 422);
  assert.equal((await ask(fake, "GET", `${ACCOUNTS_PATH}/bot/token`)).status, 405);
  assert.equal((await ask(fake, "POST", REVIEWS_PATH, { spec: {} })).status, 400);
  assert.equal((await ask(fake, "POST", REVIEWS_PATH, "[]")).status, 400);
});

Deno.test("tokens of other users are good for the server alone", async () => {
  const { fake } = newFake();
  const token = fake.userToken("bob", ["devs"]);
  const status = await review(fake, token);
  assert.deepEqual(status.user?.groups, ["devs", "system:authenticated"]);
  assert.equal((await review(fake, token, ["x"])).error, "invalid bearer token");
});

Deno.test("tokenFor makes the account and its namespace, and may end before the real minimum", async () => {
  const { fake, clock } = newFake();
  const options = { namespace: "app", serviceAccount: "bot", audiences: ["x"] };
  const token = fake.tokenFor({ ...options, expirationSeconds: 5 });
  assert.equal((await review(fake, token, ["x"])).authenticated, true);
  assert.equal((await ask(fake, "GET", "/api/v1/namespaces/app")).status, 200);
  await clock.advance(5_000);
  assert.equal((await review(fake, token, ["x"])).authenticated, undefined);
  assert.equal((await review(fake, fake.tokenFor(options), ["x"])).authenticated, true);
});

function bearer(token: string) {
  return { authorization: `Bearer ${token}` };
}

Deno.test("a bearer token that is none, or is for another audience, is 401", async () => {
  const { fake } = newFake();
  const other = fake.tokenFor({ namespace: "app", serviceAccount: "bot", audiences: ["x"] });
  for (const token of ["wrong", other]) {
    const answer = await ask(fake, "GET", LEASES_PATH, undefined, bearer(token));
    assert.deepEqual([answer.status, answer.body.reason], [401, "Unauthorized"]);
  }
});

function grant(fake: FakeCluster, rules: object[], subject: object, namespace?: string) {
  const kind = namespace === undefined ? "ClusterRole" : "Role";
  fake.apply({
    apiVersion: `${RBAC}/v1`,
    kind,
    metadata: { name: "r", ...(namespace ? { namespace } : {}) },
    rules,
  });
  fake.apply({
    apiVersion: `${RBAC}/v1`,
    kind: `${kind}Binding`,
    metadata: { name: "b", ...(namespace ? { namespace } : {}) },
    roleRef: { kind, name: "r" },
    subjects: [subject],
  });
}

const BOB = { kind: "User", name: "bob" };

Deno.test("with RBAC a user without rules is refused as on the real server", async () => {
  const { fake } = newFake({ rbac: true });
  const bob = bearer(fake.userToken("bob"));
  const one = await ask(fake, "GET", `${LEASES_PATH}/a`, undefined, bob);
  assert.deepEqual([one.status, one.body.reason], [403, "Forbidden"]);
  assert.equal(
    one.body.message,
    'leases.coordination.k8s.io "a" is forbidden: User "bob" cannot get resource "leases" in API group ' +
      '"coordination.k8s.io" in the namespace "default"',
  );
  const all = await ask(fake, "GET", "/apis/coordination.k8s.io/v1/leases", undefined, bob);
  assert.match(String(all.body.message), /cannot list resource "leases" .* at the cluster scope$/);
  assert.equal((await ask(fake, "GET", "/version", undefined, bob)).status, 200);
  assert.equal((await ask(fake, "GET", "/apis", undefined, bob)).status, 200);
  const metrics = await ask(fake, "GET", "/metrics", undefined, bob);
  assert.equal(metrics.body.message, 'forbidden: User "bob" cannot get path "/metrics"');
  assert.equal((await ask(fake, "GET", "/metrics")).status, 404);
  assert.equal((await ask(fake, "GET", LEASES_PATH)).status, 200);
  fake.rbac = false;
  assert.equal((await ask(fake, "GET", LEASES_PATH, undefined, bob)).status, 200);
});

Deno.test("rules count by verb, group, resource, name and namespace", async () => {
  const { fake } = newFake({ rbac: true });
  fake.apply(lease("a"));
  const bob = bearer(fake.userToken("bob"));
  grant(
    fake,
    [{
      apiGroups: ["coordination.k8s.io"],
      resources: ["leases"],
      verbs: ["get", "watch"],
      resourceNames: ["a"],
    }],
    BOB,
    "default",
  );
  const status = async (method: string, path: string) =>
    (await ask(fake, method, path, undefined, bob)).status;
  assert.equal(await status("GET", `${LEASES_PATH}/a`), 200);
  assert.equal(await status("GET", `${LEASES_PATH}/b`), 403);
  assert.equal(await status("GET", LEASES_PATH), 403);
  assert.equal(await status("DELETE", `${LEASES_PATH}/a`), 403);
  assert.equal(await status("GET", `${LEASES_PATH.replace("default", "other")}/a`), 403);
  assert.equal(await status("GET", `${LEASES_PATH}?watch=1`), 403);
  const one = await fake.fetch(
    `https://fake${LEASES_PATH}?watch=1&fieldSelector=metadata.name%3Da`,
    { headers: bob },
  );
  assert.equal(one.status, 200);
  await one.body?.cancel();
});

Deno.test("a PUT that creates needs create on the name as well as update", async () => {
  const { fake } = newFake({ rbac: true });
  const bob = bearer(fake.userToken("bob"));
  const rule = { apiGroups: ["coordination.k8s.io"], resources: ["leases"], resourceNames: ["a"] };
  const put = async () => await ask(fake, "PUT", `${LEASES_PATH}/a`, lease("a"), bob);
  grant(fake, [{ ...rule, verbs: ["update"] }], BOB);
  const refused = await put();
  assert.equal(refused.status, 403);
  assert.match(String(refused.body.message), /cannot create resource "leases"/);
  grant(fake, [{ ...rule, verbs: ["update", "create"] }], BOB);
  assert.equal((await put()).status, 201);
  assert.equal((await ask(fake, "POST", LEASES_PATH, lease("a"), bob)).status, 403);
});

Deno.test("subresources, groups, service accounts, wildcards and paths", async () => {
  const { fake } = newFake({ rbac: true });
  const token = fake.tokenFor({ namespace: "default", serviceAccount: "bot" });
  const status = async (method: string, path: string, body?: object) =>
    (await ask(fake, method, path, body, bearer(token))).status;
  const account = { kind: "ServiceAccount", name: "bot" };
  grant(
    fake,
    [{ apiGroups: [""], resources: ["serviceaccounts/token"], verbs: ["create"] }],
    account,
    "default",
  );
  assert.equal(await status("POST", `${ACCOUNTS_PATH}/bot/token`, { spec: {} }), 201);
  assert.equal(await status("GET", `${ACCOUNTS_PATH}/bot`), 403);
  grant(fake, [{ apiGroups: ["*"], resources: ["*/token"], verbs: ["*"] }], account, "default");
  assert.equal(await status("POST", `${ACCOUNTS_PATH}/bot/token`, { spec: {} }), 201);
  grant(
    fake,
    [{ apiGroups: ["*"], resources: ["*"], verbs: ["get"] }, {
      nonResourceURLs: ["/metrics", "/debug/*"],
      verbs: ["get"],
    }],
    { kind: "Group", name: "system:serviceaccounts" },
  );
  assert.equal(await status("GET", `${ACCOUNTS_PATH}/bot`), 200);
  assert.equal(await status("GET", "/metrics"), 404);
  assert.equal(await status("GET", "/debug/x"), 404);
  assert.equal(await status("GET", "/other"), 403);
  grant(fake, [{ apiGroups: ["*"], resources: ["*"], verbs: ["list"] }], { kind: "Robot" });
  assert.equal(await status("GET", ACCOUNTS_PATH), 403);
});

Deno.test("SelfSubjectAccessReview tells what is allowed, and why", async () => {
  const { fake } = newFake({ rbac: true });
  const bob = bearer(fake.userToken("bob"));
  const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const attributes = {
    namespace: "default",
    verb: "get",
    group: "coordination.k8s.io",
    resource: "leases",
    name: "a",
  };
  const ask1 = async () =>
    (await ask(fake, "POST", path, { spec: { resourceAttributes: attributes } }, bob)).body.status;
  assert.deepEqual(await ask1(), { allowed: false });
  grant(
    fake,
    [{ apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get"] }],
    BOB,
  );
  assert.deepEqual(await ask1(), {
    allowed: true,
    reason: 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "bob"',
  });
  fake.rbac = false;
  assert.deepEqual(await ask1(), { allowed: true });
  assert.equal((await ask(fake, "POST", path, { spec: {} }, bob)).status, 422);
});
