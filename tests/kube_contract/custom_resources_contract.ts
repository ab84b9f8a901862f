/**
 * The kinds of deploy/crds: their validation (deploy-api 15.5), status, what an operator adds, and selectable fields.
 *
 * @module
 */

import assert from "node:assert/strict";
import { pause } from "../cluster/keeper.ts";
import { member, mustSucceed, type RawAnswer } from "../cluster/raw_client.ts";
import {
  type Assertion,
  BAD_REQUEST,
  CONFLICT,
  database,
  group,
  invalid,
  type Members,
  MERGE,
  NOT_FOUND,
  refusal,
  type Scope,
  versionOf,
  withQuery,
} from "./scope.ts";

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

async function createGroup({ raw, groups }: Scope, members: Members = {}): Promise<RawAnswer> {
  const body = { ...group("orders"), ...members };
  return mustSucceed(await raw("POST", groups, { body }), "create the group");
}

function patchStatus(
  { raw, groups }: Scope,
  status: Members,
  metadata: Members = {},
): Promise<RawAnswer> {
  return raw("PATCH", `${groups}/orders/status`, {
    body: { metadata, status },
    contentType: MERGE,
  });
}

/** Facts of custom resources. */
export const CUSTOM_RESOURCES: readonly Assertion[] = [
  {
    name: "a custom object is created by POST: a PUT of a missing one finds nothing",
    async check(scope) {
      const put = await scope.raw("PUT", `${scope.groups}/orders`, { body: group("orders") });
      assert.deepEqual(refusal(put), NOT_FOUND);
      const created = await createGroup(scope);
      assert.equal(created.status, 201);
      assert.equal(member(created.body, "metadata", "generation"), 1);
      const blind = await scope.raw("PUT", `${scope.groups}/orders`, { body: group("orders") });
      assert.deepEqual(refusal(blind), invalid("metadata.resourceVersion"));
    },
  },
  {
    name: "status is written through its own path alone, and nothing else is",
    async check(scope) {
      const created = await createGroup(scope, { status: { activeSite: "pdx" } });
      assert.equal(member(created.body, "status"), undefined);
      const status = await scope.raw("PATCH", `${scope.groups}/orders/status`, {
        body: {
          metadata: { annotations: { a: "b" }, labels: { l: "m" } },
          spec: { failoverCooldown: "1m" },
          status: { activeSite: "iad" },
        },
        contentType: MERGE,
      });
      assert.equal(status.status, 200);
      assert.deepEqual(member(status.body, "status"), { activeSite: "iad" });
      assert.equal(member(status.body, "metadata", "annotations"), undefined);
      assert.equal(member(status.body, "metadata", "labels"), undefined);
      assert.deepEqual(member(status.body, "spec"), member(created.body, "spec"));
      assert.notEqual(versionOf(status), versionOf(created));
      const main = await scope.raw("PATCH", `${scope.groups}/orders`, {
        body: { status: { activeSite: "pdx" } },
        contentType: MERGE,
      });
      assert.equal(main.status, 200);
      assert.deepEqual(member(main.body, "status"), { activeSite: "iad" });
      assert.equal(versionOf(main), versionOf(status));
    },
  },
  {
    name:
      "a status write under a stale version is a conflict, and a patch without a version passes",
    async check(scope) {
      const created = await createGroup(scope);
      const stale = { resourceVersion: versionOf(created) };
      assert.equal((await patchStatus(scope, { activeSite: "iad" })).status, 200);
      assert.deepEqual(refusal(await patchStatus(scope, { activeSite: "pdx" }, stale)), CONFLICT);
      const put = (metadata: Members) =>
        scope.raw("PUT", `${scope.groups}/orders/status`, {
          body: group("orders", metadata, { status: { activeSite: "pdx" } }),
        });
      assert.deepEqual(refusal(await put(stale)), CONFLICT);
      assert.deepEqual(refusal(await put({})), invalid("metadata.resourceVersion"));
      const read = await scope.raw("GET", `${scope.groups}/orders/status`);
      assert.equal(member(read.body, "status", "activeSite"), "iad");
      const fresh = await put({ resourceVersion: versionOf(read) });
      assert.equal(member(fresh.body, "status", "activeSite"), "pdx");
    },
  },
  {
    name: "a status of what is not there finds nothing",
    async check(scope) {
      assert.deepEqual(refusal(await patchStatus(scope, { activeSite: "iad" })), NOT_FOUND);
      const put = await scope.raw("PUT", `${scope.groups}/orders/status`, {
        body: group("orders", {}, { status: {} }),
      });
      assert.deepEqual(refusal(put), NOT_FOUND);
    },
  },
  {
    name: "metadata.generation counts changes of the spec alone",
    async check(scope) {
      await createGroup(scope);
      const generation = (answer: RawAnswer) => member(answer.body, "metadata", "generation");
      const patch = (body: Members) =>
        scope.raw("PATCH", `${scope.groups}/orders`, { body, contentType: MERGE });
      assert.equal(generation(await patch({ metadata: { labels: { a: "b" } } })), 1);
      assert.equal(generation(await patchStatus(scope, { activeSite: "iad" })), 1);
      assert.equal(generation(await patch({ spec: { failoverCooldown: "1m" } })), 2);
    },
  },
  {
    name: "topologyGeneration is an integer of 0 or more, also above 32 bits",
    async check(scope) {
      await createGroup(scope);
      const set = (topologyGeneration: unknown) => patchStatus(scope, { topologyGeneration });
      const field = "status.topologyGeneration";
      assert.deepEqual(refusal(await set(-1)), invalid(field));
      assert.deepEqual(refusal(await set("5")), invalid(field));
      assert.equal((await set(1.5)).status, 422);
      const large = await set(2 ** 40);
      assert.equal(large.status, 200);
      const read = await scope.raw("GET", `${scope.groups}/orders`);
      assert.equal(member(read.body, "status", "topologyGeneration"), 1_099_511_627_776);
    },
  },
  {
    name: "closed sets of words are closed, and open ones are open",
    async check(scope) {
      await createGroup(scope);
      const refused = async (status: Members) => refusal(await patchStatus(scope, status));
      assert.deepEqual(
        await refused({ plannedFailover: { phase: "Nope" } }),
        invalid("status.plannedFailover.phase"),
      );
      assert.deepEqual(
        await refused({ restoreInPlace: { phase: "Nope" } }),
        invalid("status.restoreInPlace.phase"),
      );
      assert.deepEqual(
        await refused({ dragonfly: { upgrade: { phase: "Nope" } } }),
        invalid("status.dragonfly.upgrade.phase"),
      );
      assert.deepEqual(
        await refused({ sites: [{ name: "iad", state: "nope" }] }),
        invalid("status.sites[0].state"),
      );
      assert.deepEqual(await refused({ lastFailover: "today" }), invalid("status.lastFailover"));
      const open = await patchStatus(scope, {
        updatePhase: "UpdatingReplicas",
        plannedFailover: { phase: "Deferred", reason: "AnyReason", retryAfter: null },
        restoreInPlace: { phase: "" },
        lastFailover: "2026-01-01T00:00:00Z",
        sites: [{ name: "iad", state: "writable", recoveryState: "Recloning", lastSeen: null }],
        conditions: [{ type: "Ready", status: "True", reason: "AnyReason" }],
      });
      assert.equal(open.status, 200, JSON.stringify(open.body));
      assert.equal(member(open.body, "status", "sites", 0, "recoveryState"), "Recloning");
    },
  },
  {
    name: "a group has 2 to 16 sites, each with a name and a known role",
    async check({ raw, groups }) {
      const create = async (spec: unknown) =>
        refusal(await raw("POST", groups, { body: { ...group("orders"), spec } }));
      const sites = (count: number) =>
        Array.from({ length: count }, (_, index) => ({ name: `site-${index}` }));
      assert.deepEqual(await create({ sites: sites(1) }), invalid("spec.sites"));
      assert.deepEqual(await create({ sites: sites(17) }), invalid("spec.sites"));
      assert.deepEqual(await create({}), invalid("spec.sites"));
      assert.deepEqual(await create(undefined), invalid("spec"));
      assert.deepEqual(
        await create({ sites: [{ name: "iad" }, { role: "dr-only" }] }),
        invalid("spec.sites[1].name"),
      );
      assert.deepEqual(
        await create({ sites: [{ name: "iad" }, { name: "pdx", role: "boss" }] }),
        invalid("spec.sites[1].role"),
      );
      assert.equal((await create({ sites: sites(16) })).status, 201);
    },
  },
  {
    name:
      "a deployment client has a namespace and a service account of the right form, one a namespace",
    async check({ raw, databases }) {
      const create = async (...deploymentClients: readonly Members[]) =>
        refusal(
          await raw("POST", databases, { body: database("a", "orders", { deploymentClients }) }),
        );
      const path = "spec.deploymentClients";
      const client = (namespace: string, serviceAccount: string) => ({ namespace, serviceAccount });
      assert.deepEqual(await create({ namespace: "app" }), invalid(`${path}[0].serviceAccount`));
      assert.deepEqual(await create({ serviceAccount: "x" }), invalid(`${path}[0].namespace`));
      for (const bad of ["App", "a.b", "-a", "a-", "", "a".repeat(64)]) {
        assert.deepEqual(await create(client(bad, "x")), invalid(`${path}[0].namespace`), bad);
      }
      for (const bad of ["X", "a..b", ".a", "", "a".repeat(254)]) {
        assert.deepEqual(await create(client("a", bad)), invalid(`${path}[0].serviceAccount`), bad);
      }
      assert.deepEqual(
        await create(client("app", "x"), client("app", "y")),
        invalid(`${path}[1]`),
      );
      const good = await create(client("app", "x"), client("a".repeat(63), "a.b-c"));
      assert.equal(good.status, 201);
    },
  },
  {
    name: "a database names its group, and names the same one for ever",
    async check({ raw, databases }) {
      const nameless = { ...database("a", "orders"), spec: {} };
      assert.deepEqual(
        refusal(await raw("POST", databases, { body: nameless })),
        invalid("spec.groupRef"),
      );
      assert.equal((await raw("POST", databases, { body: database("a", "orders") })).status, 201);
      const moved = await raw("PATCH", `${databases}/a`, {
        body: { spec: { groupRef: { name: "billing" } } },
        contentType: MERGE,
      });
      assert.deepEqual(refusal(moved), invalid("spec.groupRef.name"));
      const declared = await raw("PATCH", `${databases}/a`, {
        body: { spec: { deploymentClients: [{ namespace: "app", serviceAccount: "x" }] } },
        contentType: MERGE,
      });
      assert.equal(declared.status, 200);
    },
  },
  {
    name: "an operator's further fields survive every write, wherever they are",
    async check(scope) {
      const spec = {
        sites: [{ name: "iad", zone: { a: 1 } }, { name: "pdx" }],
        plannedFailover: { maxLagWait: "5m", newer: [1, "two", null] },
        later: { x: true },
      };
      await createGroup(scope, { spec });
      const status = {
        activeSite: "iad",
        sites: [{ name: "iad", newer: { b: 2 } }],
        dragonfly: { phase: "Ready", newer: 1, upgrade: { phase: "", newer: 2 } },
        conditions: [{ type: "Ready", status: "True", newer: "x" }],
        later: [{ y: 1.5 }],
      };
      assert.equal((await patchStatus(scope, status)).status, 200);
      const read = await scope.raw("GET", `${scope.groups}/orders`);
      assert.deepEqual(member(read.body, "spec"), spec);
      assert.deepEqual(member(read.body, "status"), status);
      const put = await scope.raw("PUT", `${scope.groups}/orders`, {
        body: { ...Object(read.body), spec: { ...spec, failoverCooldown: "1m" } },
      });
      assert.equal(put.status, 200);
      assert.deepEqual(member(put.body, "spec", "later"), { x: true });
      assert.deepEqual(member(put.body, "status"), status);

      const clients = [{ namespace: "app", serviceAccount: "x", newer: 1 }];
      const body = database("a", "orders", { deploymentClients: clients, later: { z: [] } });
      assert.equal((await scope.raw("POST", scope.databases, { body })).status, 201);
      const patched = await scope.raw("PATCH", `${scope.databases}/a`, {
        body: { metadata: { annotations: { a: "b" } } },
        contentType: MERGE,
      });
      assert.deepEqual(member(patched.body, "spec"), body.spec);
    },
  },
  {
    name: "an object with a finalizer stays, and is marked, until the finalizer is gone",
    async check({ raw, groups }) {
      const path = `${groups}/orders`;
      const body = group("orders", { finalizers: ["example.com/wait"] });
      assert.equal((await raw("POST", groups, { body })).status, 201);
      const marked = await raw("DELETE", path);
      assert.equal(marked.status, 200);
      const read = await raw("GET", path);
      assert.match(
        String(member(read.body, "metadata", "deletionTimestamp")),
        /^\d{4}-\d\d-\d\dT/,
      );
      const added = await raw("PATCH", path, {
        body: { metadata: { finalizers: ["example.com/wait", "example.com/more"] } },
        contentType: MERGE,
      });
      assert.deepEqual(refusal(added), invalid("metadata.finalizers"));
      const freed = await raw("PATCH", path, {
        body: { metadata: { finalizers: null } },
        contentType: MERGE,
      });
      assert.equal(freed.status, 200);
      assert.deepEqual(refusal(await raw("GET", path)), NOT_FOUND);
    },
  },
  {
    name: "a field can be selected by once the definition names it, and not before",
    async check(scope) {
      const kind = `w${scope.namespace.replaceAll("-", "")}`;
      const owner = "contract.example.com";
      const definition = (metadata: Members, selectableFields?: readonly Members[]) => ({
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        metadata: { name: `${kind}s.${owner}`, ...metadata },
        spec: {
          group: owner,
          scope: "Namespaced",
          names: { kind: `W${kind}`, listKind: `W${kind}List`, plural: `${kind}s`, singular: kind },
          versions: [{
            name: "v1",
            served: true,
            storage: true,
            selectableFields,
            schema: {
              openAPIV3Schema: {
                type: "object",
                properties: {
                  spec: { type: "object", properties: { owner: { type: "string" } } },
                },
              },
            },
          }],
        },
      });
      const path = `/apis/${owner}/v1/namespaces/${scope.namespace}/${kind}s`;
      const query = withQuery(path, { fieldSelector: "spec.owner=me" });
      /** Asks until the wanted status comes. Until then only those come that a change of a definition brings. */
      const until = async (url: string, wanted: number, meanwhile: readonly number[]) => {
        for (let attempt = 0; attempt < 400; attempt++) {
          const answer = await scope.raw("GET", url);
          if (answer.status === wanted) return answer;
          assert(meanwhile.includes(answer.status), `status ${answer.status} on the way`);
          if (answer.status === 429) {
            assert.match(String(member(answer.body, "message")), /storage is \(re\)initializing/);
            assert.equal(answer.headers.get("retry-after"), "1");
          }
          await pause(25);
        }
        throw new Error(`Cannot see status ${wanted} after 10 s`);
      };
      const created = await scope.raw("POST", DEFINITIONS, { body: definition({}) });
      assert.equal(created.status, 201, JSON.stringify(created.body));
      await until(path, 200, [404, 429]);
      const refused = await scope.raw("GET", query);
      assert.deepEqual(refusal(refused), BAD_REQUEST);
      assert.match(
        String(member(refused.body, "message")),
        /field label not supported: spec\.owner/,
      );

      const current = await scope.raw("GET", `${DEFINITIONS}/${kind}s.${owner}`);
      const changed = definition(
        { resourceVersion: versionOf(current) },
        [{ jsonPath: ".spec.owner" }],
      );
      const replaced = await scope.raw("PUT", `${DEFINITIONS}/${kind}s.${owner}`, {
        body: changed,
      });
      assert.equal(replaced.status, 200, JSON.stringify(replaced.body));
      const empty = await until(query, 200, [400, 404, 429]);
      assert.deepEqual(member(empty.body, "items"), []);
      const removed = await scope.raw("DELETE", `${DEFINITIONS}/${kind}s.${owner}`);
      assert.equal(removed.status, 200);
    },
  },
];
