/**
 * How an API server reads: consistency, selectors, pages, and the time in each answer.
 *
 * @module
 */

import assert from "node:assert/strict";
import { member, type RawAnswer } from "../cluster/raw_client.ts";
import {
  type Assertion,
  BAD_REQUEST,
  createLease,
  database,
  lease,
  MERGE,
  namesOf,
  refusal,
  type Scope,
  versionOf,
  withQuery,
} from "./scope.ts";

async function select(
  { raw }: Scope,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<unknown[]> {
  const answer = await raw("GET", withQuery(path, query));
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return namesOf(answer);
}

/** Facts of reading. */
export const READS: readonly Assertion[] = [
  {
    name: "a read after a write sees it, and so does a list without a version",
    async check(scope) {
      await createLease(scope, "a");
      for (let duration = 1; duration <= 20; duration++) {
        const written = await scope.raw("PATCH", `${scope.leases}/a`, {
          body: { spec: { leaseDurationSeconds: duration + 100 } },
          contentType: MERGE,
        });
        const [read, list] = await Promise.all([
          scope.raw("GET", `${scope.leases}/a`),
          scope.raw("GET", scope.leases),
        ]);
        assert.equal(versionOf(read), versionOf(written));
        assert.equal(
          member(list.body, "items", 0, "spec", "leaseDurationSeconds"),
          duration + 100,
        );
        assert(BigInt(versionOf(list)) >= BigInt(versionOf(written)));
      }
    },
  },
  {
    name:
      "a list names its kind, has its items in the order of their names, and is empty where there is nothing",
    async check(scope) {
      const empty = await scope.raw("GET", scope.leases);
      assert.equal(empty.status, 200);
      assert.deepEqual(member(empty.body, "items"), []);
      for (const name of ["b", "c", "a"]) await createLease(scope, name);
      const list = await scope.raw("GET", scope.leases);
      assert.equal(member(list.body, "kind"), "LeaseList");
      assert.equal(member(list.body, "apiVersion"), "coordination.k8s.io/v1");
      assert.deepEqual(namesOf(list), ["a", "b", "c"]);
      const everywhere = await scope.raw("GET", "/apis/coordination.k8s.io/v1/leases");
      const items = member(everywhere.body, "items");
      assert(Array.isArray(items));
      const mine = items.filter((item: unknown) =>
        member(item, "metadata", "namespace") === scope.namespace
      );
      assert.equal(mine.length, 3);
    },
  },
  {
    name: "label selectors select",
    async check(scope) {
      await createLease(scope, "one", { labels: { app: "x", tier: "a" } });
      await createLease(scope, "two", { labels: { app: "x", tier: "b", old: "" } });
      await createLease(scope, "three", { labels: { app: "y" } });
      const by = (labelSelector: string) => select(scope, scope.leases, { labelSelector });
      assert.deepEqual(await by("app=x"), ["one", "two"]);
      assert.deepEqual(await by("app==y"), ["three"]);
      assert.deepEqual(await by("app!=x"), ["three"]);
      assert.deepEqual(await by("tier!=a"), ["three", "two"]);
      assert.deepEqual(await by("tier in (a, b)"), ["one", "two"]);
      assert.deepEqual(await by("tier notin (a)"), ["three", "two"]);
      assert.deepEqual(await by("tier"), ["one", "two"]);
      assert.deepEqual(await by("!tier"), ["three"]);
      assert.deepEqual(await by("app=x,tier in (a,b),!old"), ["one"]);
      assert.deepEqual(await by("old="), ["two"]);
      const wrong = withQuery(scope.leases, { labelSelector: "tier in (" });
      assert.deepEqual(refusal(await scope.raw("GET", wrong)), BAD_REQUEST);
    },
  },
  {
    name: "field selectors select by name, and a field that is none is refused",
    async check(scope) {
      await createLease(scope, "a");
      await createLease(scope, "b");
      const by = (fieldSelector: string) => select(scope, scope.leases, { fieldSelector });
      assert.deepEqual(await by("metadata.name=a"), ["a"]);
      assert.deepEqual(await by("metadata.name!=a"), ["b"]);
      assert.deepEqual(await by(`metadata.name=a,metadata.namespace=${scope.namespace}`), ["a"]);
      assert.deepEqual(await by("metadata.namespace=other"), []);
      const wrong = withQuery(scope.leases, { fieldSelector: "spec.holderIdentity=a" });
      assert.deepEqual(refusal(await scope.raw("GET", wrong)), BAD_REQUEST);
    },
  },
  {
    name:
      "databases can be selected by their group, and by no field that the definition does not name",
    async check(scope) {
      for (const [name, group] of [["a", "orders"], ["b", "billing"], ["c", "orders"]] as const) {
        const answer = await scope.raw("POST", scope.databases, { body: database(name, group) });
        assert.equal(answer.status, 201);
      }
      const by = (fieldSelector: string) => select(scope, scope.databases, { fieldSelector });
      assert.deepEqual(await by("spec.groupRef.name=orders"), ["a", "c"]);
      assert.deepEqual(await by("spec.groupRef.name!=orders"), ["b"]);
      assert.deepEqual(await by("spec.groupRef.name=none"), []);
      assert.deepEqual(await by("metadata.name=c,spec.groupRef.name=orders"), ["c"]);
      const wrong = await scope.raw(
        "GET",
        withQuery(scope.databases, { fieldSelector: "spec.other=x" }),
      );
      assert.deepEqual(refusal(wrong), BAD_REQUEST);
      assert.match(String(member(wrong.body, "message")), /field label not supported/);
    },
  },
  {
    name: "a list in pages gives each object once, all in the state of the first page",
    async check(scope) {
      for (const name of ["a", "b", "c", "d", "e"]) await createLease(scope, name);
      const seen: unknown[] = [];
      const versions = new Set<string>();
      let token = "";
      for (let page = 0; page < 3; page++) {
        const answer = await scope.raw(
          "GET",
          withQuery(scope.leases, { limit: "2", ...(token === "" ? {} : { continue: token }) }),
        );
        assert.equal(answer.status, 200);
        seen.push(...namesOf(answer));
        versions.add(versionOf(answer));
        token = String(member(answer.body, "metadata", "continue") ?? "");
        // What comes between two pages is in none of them.
        if (page === 0) await createLease(scope, "c-later");
      }
      assert.deepEqual(seen, ["a", "b", "c", "d", "e"]);
      assert.equal(versions.size, 1);
      assert.equal(token, "");
      const garbage = withQuery(scope.leases, { limit: "2", continue: "?" });
      assert.deepEqual(refusal(await scope.raw("GET", garbage)), BAD_REQUEST);
    },
  },
  {
    name: "every answer has the server's time, to the second: errors too",
    async check(scope) {
      const { raw, leases } = scope;
      const nobody = scope.caller("no-token");
      const stored = await createLease(scope, "a");
      const answers: RawAnswer[] = [
        stored,
        await raw("GET", "/version"),
        await raw("GET", leases),
        await raw("GET", `${leases}/none`),
        await raw("POST", leases, { body: lease("a") }),
        await raw("PUT", `${leases}/a`, { body: lease("a") }),
        await raw("PUT", `${leases}/a`, { body: lease("b") }),
        await raw("GET", "/apis/none.example.com/v1"),
        await nobody.raw("GET", leases),
        await raw("DELETE", `${leases}/a`),
      ];
      assert.deepEqual(
        answers.map(({ status }) => status),
        [201, 200, 200, 404, 409, 422, 400, 404, 401, 200],
      );
      for (const { headers } of answers) {
        const date = headers.get("date") ?? "";
        assert.match(date, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
      }
      const created = Date.parse(String(member(stored.body, "metadata", "creationTimestamp")));
      const answered = Date.parse(stored.headers.get("date") ?? "");
      assert(answered - created >= 0 && answered - created <= 1_000);
    },
  },
  {
    name: "the server says its version, that it is ready, and what it serves",
    async check({ raw }) {
      const version = await raw("GET", "/version");
      assert.match(String(member(version.body, "gitVersion")), /^v1\.\d+/);
      for (const path of ["/readyz", "/livez"]) {
        const answer = await raw("GET", path);
        assert.deepEqual([answer.status, answer.body], [200, "ok"]);
      }
      const served = async (path: string) => {
        const answer = await raw("GET", path);
        assert.equal(member(answer.body, "kind"), "APIResourceList");
        const resources = member(answer.body, "resources");
        assert(Array.isArray(resources));
        return new Map(
          resources.map((entry: unknown) => [member(entry, "name"), member(entry, "kind")]),
        );
      };
      const leases = await served("/apis/coordination.k8s.io/v1");
      assert.equal(leases.get("leases"), "Lease");
      const core = await served("/api/v1");
      assert.equal(core.get("configmaps"), "ConfigMap");
      assert.equal(core.get("serviceaccounts/token"), "TokenRequest");
      const ours = await served("/apis/shipstream.io/v1alpha1");
      assert.equal(ours.get("mysqldatabases"), "MysqlDatabase");
      assert.equal(ours.get("mysqlfailovergroups/status"), "MysqlFailoverGroup");
      assert.equal(ours.has("mysqldatabases/status"), false);
    },
  },
];
