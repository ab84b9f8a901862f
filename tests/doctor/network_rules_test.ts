import assert from "node:assert/strict";
import fc from "fast-check";
import type { NetworkPolicy } from "../../lib/doctor/kinds.ts";
import {
  isolating,
  type Labels,
  lets,
  type Peer,
  selects,
} from "../../lib/doctor/network_rules.ts";
import { networkPolicy } from "../../lib/manifests/service/network_policy.ts";
import { NETWORK_POLICIES } from "../../lib/doctor/kinds.ts";

const TLS = { number: 8443, name: "escrow-tls" };
const pods = { app: "holdfast" };
const ours: NetworkPolicy = NETWORK_POLICIES.parse(networkPolicy({
  installation: { name: "holdfast", namespace: "bloodraven", labels: {} },
  selector: pods,
  tlsPort: 8443,
  additionalIngress: [],
}));

function policy(spec: NetworkPolicy["spec"]): NetworkPolicy {
  return { metadata: {}, spec };
}

const peer = (namespaceLabels: Labels, podLabels: Labels, isLocal = false): Peer => ({
  namespaceLabels,
  podLabels,
  isLocal,
});
const labelled = { "shipstream.io/mysql-client": "true" };
const client = { "bloodraven.shipstream.io/deploy-client": "true" };
const sidecar = { "app.kubernetes.io/name": "mysql", "app.kubernetes.io/managed-by": "bloodraven" };

Deno.test("the policy of the contract lets labelled clients and sidecars to the TLS port, and nobody else", () => {
  const table: readonly (readonly [Peer, boolean])[] = [
    [peer(labelled, client), true],
    [peer({}, client), false],
    [peer(labelled, {}), false],
    [peer({ "shipstream.io/mysql-client": "false" }, client), false],
    [peer({}, {}, true), false],
    [peer({}, sidecar), true],
    [peer({}, { "app.kubernetes.io/name": "mysql" }), false],
  ];
  for (const [from, allowed] of table) {
    assert.equal(lets([ours], from, TLS), allowed, JSON.stringify(from));
    assert.equal(lets([ours], from, { number: 8080, name: "metrics" }), true);
    assert.equal(lets([ours], from, { number: 22, name: "" }), false);
  }
});

Deno.test("a policy isolates what it selects, and only from what comes in when it says so", () => {
  assert.deepEqual(isolating([ours], pods), [ours]);
  assert.deepEqual(isolating([ours], { app: "other" }), []);
  const everything = policy({ podSelector: {} });
  const out = policy({ podSelector: {}, policyTypes: ["Egress"] });
  assert.deepEqual(isolating([everything, out], { any: "thing" }), [everything]);
  assert.equal(lets([everything], peer(labelled, client), TLS), false);
  assert.equal(lets([], peer({}, {}), TLS), true);
});

Deno.test("a port is a number, a range, a name or none, and only by TCP", () => {
  const withPorts = (
    ...ports: NonNullable<NonNullable<NetworkPolicy["spec"]["ingress"]>[0]["ports"]>
  ) => lets([policy({ ingress: [{ ports }] })], peer({}, {}), TLS);
  assert.equal(withPorts(), true);
  assert.equal(withPorts({ port: 8443 }), true);
  assert.equal(withPorts({ port: "escrow-tls", protocol: "TCP" }), true);
  assert.equal(withPorts({ port: 8000, endPort: 9000 }), true);
  assert.equal(withPorts({ protocol: "TCP" }), true);
  assert.equal(withPorts({ port: 8443, protocol: "UDP" }), false);
  assert.equal(withPorts({ port: 8000, endPort: 8442 }), false);
  assert.equal(withPorts({ port: "metrics" }), false);
});

Deno.test("a pod selector without a namespace selector is for the policy's own namespace, and addresses say nothing of pods", () => {
  const local = policy({ ingress: [{ from: [{ podSelector: { matchLabels: client } }] }] });
  assert.equal(lets([local], peer({}, client, true), TLS), true);
  assert.equal(lets([local], peer(labelled, client), TLS), false);
  const addresses = policy({ ingress: [{ from: [{ ipBlock: { cidr: "0.0.0.0/0" } }] }] });
  assert.equal(lets([addresses], peer({}, {}), TLS), false);
});

Deno.test("selectors: each operator, and one that is not known selects nothing", () => {
  const by = (operator: string, values: string[], labels: Labels) =>
    selects({ matchExpressions: [{ key: "k", operator, values }] }, labels);
  assert(by("In", ["a", "b"], { k: "a" }) && !by("In", ["a"], { k: "c" }) && !by("In", ["a"], {}));
  assert(
    by("NotIn", ["a"], { k: "c" }) && by("NotIn", ["a"], {}) && !by("NotIn", ["a"], { k: "a" }),
  );
  assert(by("Exists", [], { k: "" }) && !by("Exists", [], {}));
  assert(by("DoesNotExist", [], {}) && !by("DoesNotExist", [], { k: "" }));
  assert(!by("Like", ["a"], { k: "a" }));
  assert(selects(undefined, {}) && selects(null, {}) && selects({}, { a: "b" }));
});

const labels = fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("1", "2"));
const anySelector = fc.record({ matchLabels: labels });
const anyPolicy = fc.record({
  from: fc.array(fc.record({ namespaceSelector: anySelector, podSelector: anySelector }), {
    maxLength: 3,
  }),
  ports: fc.array(fc.record({ port: fc.constantFrom(8443, 80) }), { maxLength: 2 }),
}).map((rule) => policy({ podSelector: {}, ingress: [rule] }));

Deno.test("policies add up: a further one takes nothing away, and what one lets in all let in", () => {
  fc.assert(fc.property(
    fc.array(anyPolicy, { minLength: 1, maxLength: 4 }),
    anyPolicy,
    labels,
    labels,
    (policies, more, namespaceLabels, podLabels) => {
      const from = peer(namespaceLabels, podLabels);
      const before = lets(policies, from, TLS);
      assert.equal(lets([...policies, more], from, TLS), before || lets([more], from, TLS));
    },
  ));
});
