/** Who reaches the service over the network, by the policy that is rendered: deploy-api 15.4. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { parseAllDocuments } from "yaml";
import type { Manifest } from "../../lib/manifests/service/objects.ts";
import { readServiceValues } from "../../lib/manifests/service/read_values.ts";
import { renderService } from "../../lib/manifests/service/render.ts";
import { member } from "../cluster/raw_client.ts";
import { allows, type Peer, type Policy, policySchema, type Target } from "./network_evaluator.ts";

const OWN = "bloodraven";
const CLIENT_NAMESPACE = { "shipstream.io/mysql-client": "true" };
const CLIENT_POD = { "bloodraven.shipstream.io/deploy-client": "true" };
const SIDECAR_POD = {
  "app.kubernetes.io/name": "mysql",
  "app.kubernetes.io/managed-by": "bloodraven",
};

function render(port: number, additionalIngress: readonly unknown[] = []) {
  return renderService(
    readServiceValues([{
      auxiliary: {
        deployAPI: { enabled: true, networkPolicy: { enabled: true, additionalIngress } },
        escrowTLS: { enabled: true, existingSecret: "tls", port },
      },
    }]),
    { version: "1.2.3" },
  );
}

/** The policy, and the pod as its Deployment makes it. */
function openWith(
  port: number,
  additionalIngress: readonly unknown[] = [],
): { readonly policy: Policy; readonly target: Target; readonly warnings: readonly string[] } {
  const { objects, warnings } = render(port, additionalIngress);
  const template = member(objects.find(({ kind }) => kind === "Deployment"), "spec", "template");
  const ports: { name: string; containerPort: number }[] = Object(
    member(template, "spec", "containers", 0, "ports"),
  );
  return {
    policy: policySchema.parse(objects.find(({ kind }) => kind === "NetworkPolicy")),
    target: {
      namespace: OWN,
      labels: Object(member(template, "metadata", "labels")),
      ports: Object.fromEntries(ports.map(({ name, containerPort }) => [name, containerPort])),
    },
    warnings,
  };
}

const PEERS: Readonly<Record<string, readonly [peer: Peer, reaches: boolean]>> = {
  "both labels": [
    { namespace: "app", namespaceLabels: CLIENT_NAMESPACE, podLabels: CLIENT_POD },
    true,
  ],
  "the namespace's label alone": [{ namespace: "app", namespaceLabels: CLIENT_NAMESPACE }, false],
  "the pod's label alone": [{ namespace: "app", podLabels: CLIENT_POD }, false],
  "neither label": [{ namespace: "app" }, false],
  "labels with other values": [{
    namespace: "app",
    namespaceLabels: { "shipstream.io/mysql-client": "yes" },
    podLabels: { "bloodraven.shipstream.io/deploy-client": "True" },
  }, false],
  "the labels on the wrong sides": [
    { namespace: "app", namespaceLabels: CLIENT_POD, podLabels: CLIENT_NAMESPACE },
    false,
  ],
  "a sidecar of the database, in any namespace": [
    { namespace: "database", podLabels: SIDECAR_POD },
    true,
  ],
  "a database that the operator does not manage": [
    { namespace: "database", podLabels: { "app.kubernetes.io/name": "mysql" } },
    false,
  ],
  "something else that the operator manages": [
    { namespace: "database", podLabels: { "app.kubernetes.io/managed-by": "bloodraven" } },
    false,
  ],
  "the service's own namespace": [{ namespace: OWN }, false],
  "another replica": [
    {
      namespace: OWN,
      podLabels: { "app.kubernetes.io/name": "holdfast", "app.kubernetes.io/instance": "holdfast" },
    },
    false,
  ],
};

Deno.test("the policy as the contract has it: who reaches the TLS port, and that the plain ports are open", () => {
  for (const tlsPort of [8443, 9443]) {
    const { policy, target, warnings } = openWith(tlsPort);
    assert.deepEqual(warnings, []);
    for (const [what, [peer, reaches]] of Object.entries(PEERS)) {
      const reach = (port: number, protocol?: "TCP" | "UDP") =>
        allows([policy], { peer, target, port, protocol });
      assert.equal(reach(tlsPort), reaches, `${what}, port ${tlsPort}`);
      for (const port of [8080, 8081, 8082]) assert.equal(reach(port), true, `${what}, ${port}`);
      for (const port of [tlsPort === 8443 ? 9443 : 8443, 443, 22]) {
        assert.equal(reach(port), false, `${what}, ${port}`);
      }
      assert.equal(reach(tlsPort, "UDP"), false, what);
      assert.equal(reach(8080, "UDP"), false, what);
    }
  }
});

Deno.test("the policy selects the pods of the Deployment, and no others of the namespace", () => {
  const { policy, target } = openWith(8443);
  const peer = { namespace: "app" };
  assert.equal(allows([policy], { peer, target, port: 22 }), false);
  const others: readonly Record<string, string>[] = [
    {},
    { "app.kubernetes.io/name": "holdfast" },
    SIDECAR_POD,
  ];
  for (const labels of others) {
    assert.equal(allows([policy], { peer, target: { ...target, labels }, port: 22 }), true);
  }
  const elsewhere = { ...target, namespace: "app" };
  assert.equal(allows([policy], { peer, target: elsewhere, port: 22 }), true);
});

Deno.test("additionalIngress is there as it was written, behind the two rules, and adds what it says", () => {
  const rule = {
    from: [{ namespaceSelector: { matchLabels: { team: "ci" } } }, {
      ipBlock: { cidr: "10.1.0.0/16", except: ["10.1.2.0/24"] },
    }],
    ports: [{ port: "escrow-tls" }],
  };
  const { policy, target, warnings } = openWith(8443, [rule]);
  const { objects } = render(8443, [rule]);
  const ingress = member(
    objects.find(({ kind }) => kind === "NetworkPolicy"),
    "spec",
    "ingress",
  );
  assert.deepEqual(Object(ingress).slice(2), [rule]);
  assert.deepEqual(warnings, []);
  const reach = (peer: Peer) => allows([policy], { peer, target, port: 8443 });
  assert.equal(reach({ namespace: "runner", namespaceLabels: { team: "ci" } }), true);
  assert.equal(reach({ namespace: "runner", namespaceLabels: { team: "web" } }), false);
  assert.equal(reach({ namespace: "outside", address: "10.1.9.9" }), true);
  assert.equal(reach({ namespace: "outside", address: "10.1.2.9" }), false);
  for (const [what, [peer, reaches]] of Object.entries(PEERS)) {
    assert.equal(reach(peer), reaches, what);
  }
});

Deno.test("policies add up: a second one opens more and closes nothing", () => {
  const { policy, target } = openWith(8443);
  const second = (ingress: unknown) =>
    policySchema.parse({
      metadata: { namespace: OWN },
      spec: { podSelector: {}, policyTypes: ["Ingress"], ingress },
    });
  const [client] = PEERS["both labels"] ?? [];
  const stranger = { namespace: "app" };
  assert.ok(client !== undefined);
  const deny = second([]);
  const open = second([{}]);
  for (const [policies, strangers] of [[[policy, deny], false], [[policy, open], true]] as const) {
    assert.equal(allows(policies, { peer: client, target, port: 8443 }), true);
    assert.equal(allows(policies, { peer: stranger, target, port: 8443 }), strangers);
  }
});

Deno.test("no further rule takes anything away from what the policy allows", () => {
  const label = fc.constantFrom("a", "b", "true");
  const selector = fc.record({ matchLabels: fc.dictionary(label, label, { maxKeys: 2 }) });
  const rule = fc.record({
    from: fc.array(fc.record({ namespaceSelector: selector, podSelector: selector }), {
      maxLength: 2,
    }),
    ports: fc.array(fc.record({ port: fc.integer({ min: 1, max: 65_535 }) }), { maxLength: 2 }),
  }, { requiredKeys: [] });
  fc.assert(
    fc.property(fc.array(rule, { maxLength: 3 }), (rules) => {
      const before = openWith(8443);
      const after = openWith(8443, rules);
      for (const [peer] of Object.values(PEERS)) {
        for (const port of [8080, 8081, 8082, 8443, 22]) {
          const connection = { peer, target: before.target, port };
          if (allows([before.policy], connection)) assert.ok(allows([after.policy], connection));
        }
      }
    }),
    { numRuns: 30 },
  );
});

Deno.test("a rule that opens another port than the TLS port, or all of them, is warned of", () => {
  const path = "auxiliary.deployAPI.networkPolicy.additionalIngress";
  const warned: readonly (readonly [rule: unknown, warning: string | null])[] = [
    [{ ports: [{ port: 9443 }] }, null],
    [{ ports: [{ port: 9443, protocol: "TCP" }] }, null],
    [{ ports: [{ port: "escrow-tls" }] }, null],
    [{ ports: [{ port: 9443, endPort: 9443 }] }, null],
    [
      { ports: [{ port: 8443 }] },
      `'${path}.0' opens {"port":8443}, which is not the TLS port: callers need TCP 9443`,
    ],
    [
      { ports: [{ port: 9443 }, { port: 9443, endPort: 9500 }] },
      `'${path}.0' opens {"port":9443,"endPort":9500}, which is not the TLS port: callers need TCP 9443`,
    ],
    [
      { ports: [{ port: 9443, protocol: "UDP" }] },
      `'${path}.0' opens {"port":9443,"protocol":"UDP"}, which is not the TLS port: callers need TCP 9443`,
    ],
    [
      { ports: ["9443"] },
      `'${path}.0' opens "9443", which is not the TLS port: callers need TCP 9443`,
    ],
    [
      { from: [{ podSelector: {} }] },
      `'${path}.0' names no port, so it opens every port of the pods: give it the TLS port, 9443`,
    ],
    [
      { ports: [] },
      `'${path}.0' names no port, so it opens every port of the pods: give it the TLS port, 9443`,
    ],
  ];
  for (const [rule, warning] of warned) {
    const { warnings } = render(9443, [rule]);
    assert.deepEqual(warnings, warning === null ? [] : [warning]);
  }
});

Deno.test("deploy/examples/networkpolicy-check.yaml says of each of its Jobs what the policy does", async () => {
  const url = new URL("../../deploy/examples/networkpolicy-check.yaml", import.meta.url);
  const objects: Manifest[] = parseAllDocuments(await Deno.readTextFile(url))
    .map((document) => document.toJS());
  const { policy, target } = openWith(8443);
  const seen: Record<string, readonly boolean[]> = {};
  for (const job of objects.filter(({ kind }) => kind === "Job")) {
    const { name, namespace = "" } = job.metadata;
    const home = objects.find(({ kind, metadata }) =>
      kind === "Namespace" && metadata.name === namespace
    );
    const peer = {
      namespace,
      namespaceLabels: home?.metadata.labels,
      podLabels: Object(member(job, "spec", "template", "metadata", "labels")),
    };
    seen[name] = [8082, 8443].map((port) => allows([policy], { peer, target, port }));
    const script = String(member(job, "spec", "template", "spec", "containers", 0, "args", 0));
    const [service] = name === "sidecar" ? ["bloodraven-all"] : ["bloodraven"];
    assert.ok(script.includes(`${service}.${OWN}.svc.cluster.local 8443`), name);
    assert.match(script, name === "denied" ? /if nc .* 8443; then/ : / 8443 \|\| /);
  }
  assert.deepEqual(seen, { denied: [true, false], client: [true, true], sidecar: [true, true] });
});

Deno.test("the evaluator itself: selectors by expression, ranges, and a policy of egress alone", () => {
  const target = { namespace: "a", labels: { app: "x" }, ports: {} };
  const policy = (spec: unknown) => policySchema.parse({ metadata: { namespace: "a" }, spec });
  const from = (operator: string, values?: readonly string[]) =>
    policy({
      podSelector: { matchLabels: { app: "x" } },
      ingress: [{
        from: [{ podSelector: { matchExpressions: [{ key: "tier", operator, values }] } }],
        ports: [{ port: 10, endPort: 20 }, { protocol: "UDP" }],
      }],
    });
  const reach = (one: Policy, podLabels: Record<string, string>, port = 15) =>
    allows([one], { peer: { namespace: "a", podLabels }, target, port });
  assert.deepEqual([reach(from("In", ["web"]), { tier: "web" }), reach(from("In", ["web"]), {})], [
    true,
    false,
  ]);
  assert.deepEqual([
    reach(from("NotIn", ["web"]), {}),
    reach(from("NotIn", ["web"]), { tier: "web" }),
  ], [
    true,
    false,
  ]);
  assert.deepEqual([reach(from("Exists"), { tier: "" }), reach(from("Exists"), {})], [true, false]);
  assert.deepEqual([reach(from("DoesNotExist"), {}), reach(from("DoesNotExist"), { tier: "" })], [
    true,
    false,
  ]);
  assert.deepEqual([9, 10, 20, 21].map((port) => reach(from("Exists"), { tier: "" }, port)), [
    false,
    true,
    true,
    false,
  ]);
  const udp = { peer: { namespace: "a", podLabels: { tier: "" } }, target, port: 53 };
  assert.equal(allows([from("Exists")], { ...udp, protocol: "UDP" }), true);
  assert.equal(allows([policy({ podSelector: {}, policyTypes: ["Egress"] })], udp), true);
});
