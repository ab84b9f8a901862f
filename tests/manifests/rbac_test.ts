import assert from "node:assert/strict";
import fc from "fast-check";
import { configSchema } from "../../lib/config/schema.ts";
import { rbacNeedsOf, rbacObjects, rbacRules } from "../../lib/manifests/mod.ts";

const APP = { name: "web", namespace: "shop" };
const read = (kubernetes: unknown, host: unknown = {}) => configSchema.parse({ kubernetes, host });

Deno.test("all that is switched on gives exactly these rules", () => {
  const needs = { leaseName: "web", configMaps: ["b", "a"], events: true, labelLeader: true };
  assert.deepEqual(rbacRules(needs), [
    {
      apiGroups: ["coordination.k8s.io"],
      resources: ["leases"],
      verbs: ["create", "get", "list", "patch", "update", "watch"],
      resourceNames: ["web"],
    },
    {
      apiGroups: [""],
      resources: ["configmaps"],
      verbs: ["list", "watch"],
      resourceNames: ["b", "a"],
    },
    { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] },
    { apiGroups: [""], resources: ["pods"], verbs: ["patch"] },
  ]);
});

Deno.test("the needs are those of the configuration", () => {
  const election = { enabled: true, lease_name: "web", label_leader: true };
  assert.deepEqual(rbacNeedsOf(read({})), {
    leaseName: null,
    configMaps: [],
    events: true,
    labelLeader: false,
  });
  const all = { leader_election: election, config_maps: { watch: ["a"] }, events: false };
  assert.deepEqual(rbacNeedsOf(read(all)), {
    leaseName: "web",
    configMaps: ["a"],
    events: false,
    labelLeader: true,
  });
  const idle = read({ leader_election: { ...election, roles: ["worker"] } }, { role: "web" });
  assert.deepEqual([rbacNeedsOf(idle).leaseName, rbacNeedsOf(idle).labelLeader], [null, false]);
  assert.deepEqual(rbacNeedsOf(read({ ...all, enabled: false })), {});
});

Deno.test("the Role and its binding have the application's name, and nothing is made of no rule", () => {
  assert.deepEqual(rbacObjects(APP, {}), []);
  const [role, binding] = rbacObjects(APP, { events: true });
  const metadata = {
    name: "web",
    namespace: "shop",
    labels: {
      "app.kubernetes.io/name": "web",
      "app.kubernetes.io/managed-by": "autumn-plugin-kubernetes",
    },
  };
  assert.deepEqual(role?.metadata, metadata);
  assert.deepEqual(binding, {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "web" },
    subjects: [{ kind: "ServiceAccount", name: "web", namespace: "shop" }],
  });
});

Deno.test("a name that is none is refused, and the message says which", () => {
  const message = (act: () => void) => {
    try {
      act();
    } catch (error) {
      return error instanceof RangeError ? error.message : String(error);
    }
    return "no error";
  };
  assert.equal(
    message(() => rbacObjects({ ...APP, name: "1web" }, {})),
    `Cannot make a Role as 'name' must be a DNS label that begins with a letter: current value is "1web"`,
  );
  assert.match(message(() => rbacObjects({ ...APP, namespace: "a.b" }, {})), /'namespace'/);
  assert.match(message(() => rbacObjects(APP, { leaseName: "" })), /'leaseName'/);
  assert.match(message(() => rbacObjects(APP, { configMaps: ["a", "B"] })), /'configMaps'.*"B"/);
});

Deno.test("no rule has an empty list of names, which would mean every object", () => {
  const needs = fc.record({
    leaseName: fc.option(fc.constant("web")),
    configMaps: fc.array(fc.constantFrom("a", "b")),
    events: fc.boolean(),
    labelLeader: fc.boolean(),
  });
  fc.assert(fc.property(needs, (some) => {
    for (const rule of rbacRules(some)) {
      assert.notEqual(rule.resourceNames?.length, 0);
      assert.ok(!rule.verbs.includes("*") && !rule.resources.includes("*"));
    }
  }));
});
