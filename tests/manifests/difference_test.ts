import assert from "node:assert/strict";
import fc from "fast-check";
import { applyPatch, differences } from "../../lib/manifests/difference.ts";
import { resourceOf } from "../../lib/manifests/kinds.ts";

Deno.test("each member that differs is told with its path, what it is and what it would be", () => {
  const before = {
    metadata: { name: "x", resourceVersion: "1", generation: 1, managedFields: [1] },
    spec: { replicas: 2, ports: [{ port: 1 }, { port: 2 }], gone: { a: 1 }, same: [1] },
    status: { ready: 1 },
  };
  const after = {
    metadata: {
      name: "x",
      resourceVersion: "2",
      generation: 2,
      managedFields: [],
      annotations: { "example.org/a": "b" },
    },
    spec: { replicas: 3, ports: [{ port: 1 }], same: [1], kind: [], "a.b": 1 },
    status: { ready: 2 },
  };
  assert.deepEqual(differences(before, after), [
    { path: "metadata.annotations", before: undefined, after: { "example.org/a": "b" } },
    { path: "spec.replicas", before: 2, after: 3 },
    { path: "spec.ports[1]", before: { port: 2 }, after: undefined },
    { path: "spec.kind", before: undefined, after: [] },
    { path: 'spec."a.b"', before: undefined, after: 1 },
    { path: "spec.gone", before: { a: 1 }, after: undefined },
  ]);
});

Deno.test("a list in the place of a mapping is one difference, and null is a value", () => {
  assert.deepEqual(differences({ a: { b: 1 } }, { a: [1] }), [
    { path: "a", before: { b: 1 }, after: [1] },
  ]);
  assert.deepEqual(differences({ a: null }, { a: null }), []);
  assert.deepEqual(differences({ a: null }, {}), [{ path: "a", before: null, after: undefined }]);
});

Deno.test("an object does not differ from its copy, and differs from another one", () => {
  fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
    // JSON has no -0: the API server sends none.
    const copy: unknown = JSON.parse(JSON.stringify(one));
    assert.deepEqual(differences(copy, JSON.parse(JSON.stringify(copy))), []);
    const differs = JSON.stringify(one) !== JSON.stringify(other);
    if (differs && typeof one !== "object") assert.equal(differences(one, other).length, 1);
  }));
});

Deno.test("the patch of an apply removes what the last apply wrote and is wanted no more, and nothing else", () => {
  const note = (last: unknown) => ({
    "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify(last),
  });
  const wanted = { kind: "Deployment", spec: { strategy: { type: "Recreate" }, list: [{ a: 1 }] } };
  const last = {
    kind: "Deployment",
    spec: {
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } },
      list: [{ a: 1, b: 2 }],
      nodeSelector: { disk: "ssd" },
    },
  };
  assert.deepEqual(applyPatch(note(last), wanted), {
    kind: "Deployment",
    spec: {
      strategy: { type: "Recreate", rollingUpdate: null },
      list: [{ a: 1 }],
      nodeSelector: null,
    },
  });
  for (const annotations of [undefined, {}, note(null), note([1])]) {
    assert.deepEqual(applyPatch(annotations, wanted), wanted);
  }
  const broken = { "kubectl.kubernetes.io/last-applied-configuration": "{" };
  assert.deepEqual(applyPatch(broken, wanted), wanted);
});

Deno.test("a kind that is generated has its resource, and another one is refused", () => {
  const { group, version, plural, namespaced } = resourceOf("apps/v1", "Deployment");
  assert.deepEqual([group, version, plural, namespaced], ["apps", "v1", "deployments", true]);
  const { group: core } = resourceOf("v1", "Service");
  assert.equal(core, "");
  assert.equal(resourceOf("rbac.authorization.k8s.io/v1", "ClusterRole").namespaced, false);
  for (const kind of ["Gadget", "constructor", "toString"]) {
    assert.throws(() => resourceOf("v1", kind), {
      name: "RangeError",
      message: `Cannot find the resource of v1 ${kind}: it is not known here`,
    });
  }
});
