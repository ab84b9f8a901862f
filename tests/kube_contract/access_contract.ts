/**
 * Who a caller is, and what it may do: tokens, reviews and Roles.
 *
 * @module
 */

import assert from "node:assert/strict";
import {
  createServiceAccount,
  requestToken,
  type RoleRule,
  type TokenWish,
} from "../cluster/access.ts";
import type { Caller } from "../cluster/caller.ts";
import { member, type RawAnswer } from "../cluster/raw_client.ts";
import {
  type Assertion,
  createLease,
  FORBIDDEN,
  group,
  invalid,
  lease,
  type Members,
  MERGE,
  NOT_FOUND,
  refusal,
  type Scope,
  withQuery,
} from "./scope.ts";

const SUBJECT_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const SELF_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const LOCAL_REVIEWS = {
  apiGroups: ["authorization.k8s.io"],
  resources: ["localsubjectaccessreviews"],
};
const LEASE_ATTRIBUTES = { group: "coordination.k8s.io", resource: "leases" };

const LEASES = { apiGroups: ["coordination.k8s.io"], resources: ["leases"] };

/** Makes a service account with rules in its own namespace. */
async function worker(scope: Scope, ...rules: readonly RoleRule[]): Promise<Caller> {
  const subject = { namespace: scope.namespace, serviceAccount: "worker" };
  await createServiceAccount(scope.raw, subject.namespace, subject.serviceAccount);
  if (rules.length > 0) await scope.grant({ subject, namespace: scope.namespace, rules });
  return scope.caller(await requestToken(scope.raw, subject));
}

async function tokenOf(scope: Scope, wish: Omit<TokenWish, "namespace" | "serviceAccount">) {
  const subject = { namespace: scope.namespace, serviceAccount: "deployer" };
  await createServiceAccount(scope.raw, subject.namespace, subject.serviceAccount);
  return await requestToken(scope.raw, { ...subject, ...wish });
}

function review({ raw }: Scope, token: string, audiences?: readonly string[]): Promise<RawAnswer> {
  return raw("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {
    body: { spec: { token, audiences } },
  });
}

/** Facts of authentication and authorization. */
export const ACCESS: readonly Assertion[] = [
  {
    name: "a review of a token with its audience names the user and that audience",
    async check(scope) {
      const token = await tokenOf(scope, { audiences: ["deploy"] });
      const answer = await review(scope, token, ["deploy"]);
      assert.equal(answer.status, 201);
      assert.equal(member(answer.body, "status", "authenticated"), true);
      assert.equal(member(answer.body, "status", "error"), undefined);
      assert.deepEqual(member(answer.body, "status", "audiences"), ["deploy"]);
      const user = member(answer.body, "status", "user");
      assert.equal(
        member(user, "username"),
        `system:serviceaccount:${scope.namespace}:deployer`,
      );
      const account = await scope.raw(
        "GET",
        `/api/v1/namespaces/${scope.namespace}/serviceaccounts/deployer`,
      );
      assert.equal(member(user, "uid"), member(account.body, "metadata", "uid"));
      assert.deepEqual(member(user, "groups"), [
        "system:serviceaccounts",
        `system:serviceaccounts:${scope.namespace}`,
        "system:authenticated",
      ]);
    },
  },
  {
    name: "a review answers the audiences that were asked for and that the token has",
    async check(scope) {
      const token = await tokenOf(scope, { audiences: ["deploy", "other"] });
      const both = await review(scope, token, ["none", "other", "deploy"]);
      const audiences = member(both.body, "status", "audiences");
      assert(Array.isArray(audiences));
      assert.deepEqual(audiences.toSorted(), ["deploy", "other"]);
      const one = await review(scope, token, ["other", "none"]);
      assert.deepEqual(member(one.body, "status", "audiences"), ["other"]);
    },
  },
  {
    name:
      "a review with another audience, or of no token at all, is not authenticated and says an error",
    async check(scope) {
      const token = await tokenOf(scope, { audiences: ["deploy"] });
      const own = await tokenOf(scope, {});
      const answers = [
        await review(scope, token, ["another"]),
        await review(scope, token),
        await review(scope, own, ["deploy"]),
        await review(scope, "garbage", ["deploy"]),
        await review(scope, `${token.slice(0, -4)}AAAA`, ["deploy"]),
      ];
      for (const answer of answers) {
        assert.equal(answer.status, 201);
        assert.notEqual(member(answer.body, "status", "authenticated"), true);
        assert.match(String(member(answer.body, "status", "error")), /invalid bearer token/);
        assert.equal(member(answer.body, "status", "audiences"), undefined);
        assert.equal(member(answer.body, "status", "user", "username"), undefined);
      }
      assert.equal((await review(scope, "", ["deploy"])).status, 400);
    },
  },
  {
    name:
      "a token is for at least 10 minutes and of a service account that is there, and says what it is for",
    async check(scope) {
      const path = `/api/v1/namespaces/${scope.namespace}/serviceaccounts`;
      const ask = (name: string, expirationSeconds: number) =>
        scope.raw("POST", `${path}/${name}/token`, {
          body: { spec: { audiences: ["deploy"], expirationSeconds } },
        });
      const token = await tokenOf(scope, { audiences: ["deploy"], expirationSeconds: 600 });
      assert.deepEqual(refusal(await ask("deployer", 599)), invalid("spec.expirationSeconds"));
      assert.deepEqual(refusal(await ask("nobody", 600)), NOT_FOUND);
      const answer = await ask("deployer", 600);
      assert.equal(answer.status, 201);
      assert.match(
        String(member(answer.body, "status", "expirationTimestamp")),
        /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
      );
      const parts = token.split(".");
      assert.equal(parts.length, 3);
      const claims: unknown = JSON.parse(
        atob(String(parts[1]).replaceAll("-", "+").replaceAll("_", "/")),
      );
      assert.deepEqual(member(claims, "aud"), ["deploy"]);
      assert.equal(member(claims, "sub"), `system:serviceaccount:${scope.namespace}:deployer`);
      assert.equal(Number(member(claims, "exp")) - Number(member(claims, "iat")), 600);
    },
  },
  {
    name: "a caller with no valid token for the server is refused before all else",
    async check(scope) {
      const unauthorized = { status: 401, reason: "Unauthorized", fields: [] };
      const elsewhere = await tokenOf(scope, { audiences: ["deploy"] });
      for (const token of ["garbage", elsewhere]) {
        const { raw } = scope.caller(token);
        assert.deepEqual(refusal(await raw("GET", scope.leases)), unauthorized);
        assert.deepEqual(refusal(await raw("GET", "/version")), unauthorized);
      }
    },
  },
  {
    name: "a caller without a rule is forbidden, and the answer says what it lacks",
    async check(scope) {
      const { raw } = await worker(scope);
      const answer = await raw("GET", `${scope.leases}/a`);
      assert.deepEqual(refusal(answer), FORBIDDEN);
      assert.equal(
        member(answer.body, "message"),
        `leases.coordination.k8s.io "a" is forbidden: User "system:serviceaccount:${scope.namespace}:worker" ` +
          `cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "${scope.namespace}"`,
      );
    },
  },
  {
    name: "each verb needs its own rule",
    async check(scope) {
      await createLease(scope, "a");
      const { raw } = await worker(scope, { ...LEASES, verbs: ["get", "list"] });
      assert.equal((await raw("GET", `${scope.leases}/a`)).status, 200);
      assert.equal((await raw("GET", scope.leases)).status, 200);
      const watch = withQuery(scope.leases, { watch: "true", timeoutSeconds: "1" });
      const patch = { body: { metadata: {} }, contentType: MERGE };
      const refused = [
        await raw("GET", watch),
        await raw("POST", scope.leases, { body: lease("b") }),
        await raw("PUT", `${scope.leases}/a`, { body: lease("a") }),
        await raw("PATCH", `${scope.leases}/a`, patch),
        await raw("DELETE", `${scope.leases}/a`),
        await raw("GET", scope.leases.replace(scope.namespace, "default")),
        await raw("GET", "/apis/coordination.k8s.io/v1/leases"),
        await raw("GET", scope.groups),
      ];
      for (const answer of refused) assert.deepEqual(refusal(answer), FORBIDDEN);
    },
  },
  {
    name: "a PUT of a missing Lease needs update and create of that name, and no more",
    async check(scope) {
      const { raw } = await worker(scope, {
        ...LEASES,
        verbs: ["create", "update"],
        resourceNames: ["mine"],
      });
      assert.equal((await raw("PUT", `${scope.leases}/mine`, { body: lease("mine") })).status, 201);
      const other = await raw("PUT", `${scope.leases}/other`, { body: lease("other") });
      assert.deepEqual(refusal(other), FORBIDDEN);
      const post = await raw("POST", scope.leases, { body: lease("mine") });
      assert.deepEqual(refusal(post), FORBIDDEN);
      assert.deepEqual(refusal(await raw("GET", `${scope.leases}/mine`)), FORBIDDEN);
    },
  },
  {
    name: "a PUT of a missing Lease with only one of update and create is forbidden",
    async check(scope) {
      const { raw } = await worker(
        scope,
        { ...LEASES, verbs: ["update"], resourceNames: ["updated"] },
        { ...LEASES, verbs: ["create"], resourceNames: ["created"] },
      );
      for (const name of ["updated", "created"]) {
        const answer = await raw("PUT", `${scope.leases}/${name}`, { body: lease(name) });
        assert.deepEqual(refusal(answer), FORBIDDEN);
      }
      assert.deepEqual(refusal(await scope.raw("GET", `${scope.leases}/updated`)), NOT_FOUND);
    },
  },
  {
    name: "a rule for one name lets it be listed and watched by that name alone",
    async check(scope) {
      await createLease(scope, "mine");
      await createLease(scope, "other");
      const { raw } = await worker(scope, {
        ...LEASES,
        verbs: ["get", "list"],
        resourceNames: ["mine"],
      });
      assert.equal((await raw("GET", `${scope.leases}/mine`)).status, 200);
      assert.deepEqual(refusal(await raw("GET", `${scope.leases}/other`)), FORBIDDEN);
      assert.deepEqual(refusal(await raw("GET", scope.leases)), FORBIDDEN);
      const by = (name: string) =>
        raw("GET", withQuery(scope.leases, { fieldSelector: `metadata.name=${name}` }));
      assert.equal((await by("mine")).status, 200);
      assert.deepEqual(refusal(await by("other")), FORBIDDEN);
    },
  },
  {
    name: "a subresource needs a rule of its own",
    async check(scope) {
      await scope.raw("POST", scope.groups, { body: group("orders") });
      const { raw } = await worker(scope, {
        apiGroups: ["shipstream.io"],
        resources: ["mysqlfailovergroups/status"],
        verbs: ["patch"],
      }, {
        apiGroups: [""],
        resources: ["serviceaccounts/token"],
        verbs: ["create"],
        resourceNames: ["worker"],
      });
      const patch = { body: { status: { activeSite: "iad" } }, contentType: MERGE };
      assert.equal((await raw("PATCH", `${scope.groups}/orders/status`, patch)).status, 200);
      assert.deepEqual(refusal(await raw("PATCH", `${scope.groups}/orders`, patch)), FORBIDDEN);
      assert.deepEqual(refusal(await raw("GET", `${scope.groups}/orders/status`)), FORBIDDEN);
      const accounts = `/api/v1/namespaces/${scope.namespace}/serviceaccounts`;
      const body = { spec: { audiences: ["x"] } };
      assert.equal((await raw("POST", `${accounts}/worker/token`, { body })).status, 201);
      assert.deepEqual(
        refusal(await raw("POST", `${accounts}/other/token`, { body })),
        FORBIDDEN,
      );
    },
  },
  {
    name: "a rule in the whole cluster holds in every namespace, and for kinds without one",
    async check(scope) {
      await createServiceAccount(scope.raw, scope.namespace, "reviewer");
      const subject = { namespace: scope.namespace, serviceAccount: "reviewer" };
      const { raw } = scope.caller(await requestToken(scope.raw, subject));
      const ask = () =>
        raw("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {
          body: { spec: { token: "garbage", audiences: ["x"] } },
        });
      assert.deepEqual(refusal(await ask()), FORBIDDEN);
      await scope.grant({
        subject,
        rules: [
          { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
          { ...LEASES, verbs: ["*"] },
        ],
      });
      assert.equal((await ask()).status, 201);
      assert.equal((await raw("GET", "/apis/coordination.k8s.io/v1/leases")).status, 200);
      assert.equal(
        (await raw("GET", scope.leases.replace(scope.namespace, "default"))).status,
        200,
      );
    },
  },
  {
    name: "a review tells what somebody may do, by the user and the groups that it names",
    async check(scope) {
      await worker(scope, { ...LEASES, verbs: ["get"], resourceNames: ["mine"] });
      const { namespace } = scope;
      const user = `system:serviceaccount:${namespace}:worker`;
      const attributes = { ...LEASE_ATTRIBUTES, namespace, verb: "get", name: "mine" };
      const ask = async (spec: Members) => {
        const answer = await scope.raw("POST", SUBJECT_REVIEWS, { body: { spec } });
        assert.equal(answer.status, 201);
        assert.equal(member(answer.body, "kind"), "SubjectAccessReview");
        return member(answer.body, "status", "allowed");
      };
      assert.equal(await ask({ user, resourceAttributes: attributes }), true);
      for (const change of [{ verb: "list" }, { name: "other" }, { namespace: "default" }]) {
        assert.equal(await ask({ user, resourceAttributes: { ...attributes, ...change } }), false);
      }
      assert.equal(await ask({ user: "nobody", resourceAttributes: attributes }), false);
      const groups = ["system:masters"];
      assert.equal(await ask({ groups, resourceAttributes: attributes }), true);
      const discovery = { verb: "get", path: "/apis" };
      assert.equal(await ask({ user, nonResourceAttributes: discovery }), false);
      const authenticated = ["system:authenticated"];
      const spec = { user, groups: authenticated, nonResourceAttributes: discovery };
      assert.equal(await ask(spec), true);
    },
  },
  {
    name: "a review in a namespace is for that namespace alone, and needs a right there alone",
    async check(scope) {
      const { namespace } = scope;
      const { raw } = await worker(scope, { ...LOCAL_REVIEWS, verbs: ["create"] });
      const path =
        `/apis/authorization.k8s.io/v1/namespaces/${namespace}/localsubjectaccessreviews`;
      const user = `system:serviceaccount:${namespace}:worker`;
      const ask = (spec: Members, where = path) => raw("POST", where, { body: { spec } });
      const resourceAttributes = {
        verb: "create",
        group: "authorization.k8s.io",
        resource: "localsubjectaccessreviews",
        namespace,
      };
      const allowed = await ask({ user, resourceAttributes });
      assert.equal(allowed.status, 201);
      assert.equal(member(allowed.body, "status", "allowed"), true);
      assert.equal(member(allowed.body, "metadata", "namespace"), namespace);
      const elsewhere = { ...resourceAttributes, namespace: "default" };
      const path1 = { verb: "get", path: "/apis" };
      const refused = [
        [await ask({ user, resourceAttributes: elsewhere }), "spec.resourceAttributes.namespace"],
        [await ask({ user, nonResourceAttributes: path1 }), "spec.nonResourceAttributes"],
        [await ask({ resourceAttributes }), "spec.user"],
      ] as const;
      for (const [answer, field] of refused) assert.deepEqual(refusal(answer), invalid(field));
      assert.deepEqual(
        refusal(await ask({ user, resourceAttributes }, SUBJECT_REVIEWS)),
        FORBIDDEN,
      );
      const other = path.replace(namespace, "default");
      assert.deepEqual(refusal(await ask({ user, resourceAttributes }, other)), FORBIDDEN);
    },
  },
  {
    name: "a review needs somebody and exactly one thing to ask about",
    async check(scope) {
      const resourceAttributes = { ...LEASE_ATTRIBUTES, verb: "get" };
      const nonResourceAttributes = { verb: "get", path: "/apis" };
      const both = { resourceAttributes, nonResourceAttributes };
      const table: readonly (readonly [string, Members, readonly string[]])[] = [
        [SUBJECT_REVIEWS, { resourceAttributes }, ["spec.user"]],
        [SUBJECT_REVIEWS, { user: "bob" }, ["spec.resourceAttributes"]],
        [SUBJECT_REVIEWS, { user: "bob", ...both }, ["spec.nonResourceAttributes"]],
        [SUBJECT_REVIEWS, {}, ["spec.resourceAttributes", "spec.user"]],
        [SELF_REVIEWS, {}, ["spec.resourceAttributes"]],
        [SELF_REVIEWS, both, ["spec.nonResourceAttributes"]],
      ];
      for (const [path, spec, fields] of table) {
        const answer = await scope.raw("POST", path, { body: { spec } });
        const refused = refusal(answer);
        // Kubernetes 1.37 names the whole where one of two members is missing, or one is too many.
        const whole = fields.map((field) => field === "spec.user" ? field : "spec");
        assert.deepEqual(refused, invalid(...refused.fields.includes("spec") ? whole : fields));
      }
    },
  },
];
