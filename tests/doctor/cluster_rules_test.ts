import assert from "node:assert/strict";
import { clusterFindings } from "../../lib/doctor/cluster_rules.ts";
import type { ClusterFacts, SecretFacts } from "../../lib/doctor/cluster_facts.ts";
import type { Verdict } from "../../lib/doctor/finding.ts";
import { NETWORK_POLICIES } from "../../lib/doctor/kinds.ts";
import { networkPolicy } from "../../lib/manifests/service/network_policy.ts";
import { client, found, healthyCluster, NOW } from "./facts.ts";

type Row = readonly [Partial<ClusterFacts>, string, Verdict, RegExp, RegExp?];

function hold(rows: readonly Row[]): void {
  for (const [change, check, verdict, says, todo = /^/] of rows) {
    const finding = found(clusterFindings({ ...healthyCluster, ...change }), check);
    assert.equal(finding.verdict, verdict, JSON.stringify(finding));
    assert.match(finding.says, says);
    assert.match(finding.todo, todo);
    assert.equal(finding.todo === "", verdict === "ok");
  }
}

const forbidden = { type: "unseen", why: "forbidden" } as const;
const absent = { type: "absent" } as const;

Deno.test("a healthy cluster has nothing but ok", () => {
  const findings = clusterFindings(healthyCluster);
  assert.deepEqual(findings.filter(({ verdict }) => verdict !== "ok"), []);
  assert.ok(findings.length > 12);
});

Deno.test("a cluster that does not answer is the only finding", () => {
  const facts = { ...healthyCluster, version: { type: "unseen", why: "unavailable" } } as const;
  const findings = clusterFindings(facts);
  assert.deepEqual(findings.map(({ check, verdict }) => [check, verdict]), [["cluster", "wrong"]]);
  assert.match(findings[0]?.says ?? "", /\(unavailable\)/);
});

function definition(
  versions: readonly object[],
  established = "True",
): ClusterFacts["definitions"]["mysqldatabases"] {
  return {
    type: "seen",
    value: {
      metadata: {},
      spec: { versions: versions.map((one) => ({ name: "v1alpha1", served: true, ...one })) },
      status: { conditions: [{ type: "Established", status: established }] },
    },
  };
}
const groups = (mysqlfailovergroups: ClusterFacts["definitions"]["mysqlfailovergroups"]) => ({
  definitions: { ...healthyCluster.definitions, mysqlfailovergroups },
});
const databases = (mysqldatabases: ClusterFacts["definitions"]["mysqldatabases"]) => ({
  definitions: { ...healthyCluster.definitions, mysqldatabases },
});

Deno.test("definitions: absent, not served, not established, without status, without the selectable field", () => {
  const group = "definition-mysqlfailovergroups";
  const database = "definition-mysqldatabases";
  hold([
    [groups(absent), group, "wrong", /does not know mysqlfailovergroups/, /Install/],
    [groups(forbidden), group, "unseen", /not allowed to/, /"get" on customresourcedefinitions/],
    [groups(definition([{ name: "v1" }])), group, "wrong", /not served as v1alpha1/],
    [groups(definition([{ served: false }])), group, "wrong", /not served as v1alpha1/],
    [groups(definition([{}], "False")), group, "wrong", /does not serve .* yet/],
    [groups(definition([{}])), group, "wrong", /no subresource 'status'/],
    [databases(absent), database, "wrong", /does not know mysqldatabases/],
    [databases(definition([{}])), database, "warning", /cannot be listed by '.spec.groupRef.name'/],
    [
      databases(definition([{ selectableFields: [{ jsonPath: ".spec.other" }] }])),
      database,
      "warning",
      /databases of all groups/,
      /selectableFields/,
    ],
  ]);
});

Deno.test("rights: each verb that lacks is named, with its kind, its name and its namespace", () => {
  const missing = {
    type: "seen",
    value: [
      {
        verb: "create",
        resource: "tokenreviews",
        group: "authentication.k8s.io",
        namespace: "",
        name: "",
      },
      { verb: "patch", resource: "pods", group: "", namespace: "bloodraven", name: "one" },
    ],
  } as const;
  hold([
    [
      { rights: [{ role: "", scope: "cluster", missing }] },
      "rights",
      "wrong",
      /'bloodraven\/holdfast' may not create tokenreviews.authentication.k8s.io, patch pods 'one' in 'bloodraven', which the deployment API needs/,
      /holdfast manifests service/,
    ],
    [
      { rights: [{ role: "", scope: "own", missing }] },
      "rights-own",
      "wrong",
      /the election needs/,
    ],
    [
      { rights: [{ role: "auxiliary", scope: "cluster", missing }] },
      "rights-auxiliary",
      "wrong",
      /which auxiliary needs/,
    ],
    [
      { rights: [{ role: "", scope: "cluster", missing: forbidden }] },
      "rights",
      "unseen",
      /cannot be seen, as you are not allowed to/,
      /subjectaccessreviews/,
    ],
  ]);
});

function secret(change: Partial<SecretFacts>): Partial<ClusterFacts> {
  assert(healthyCluster.secret.type === "seen");
  return { secret: { type: "seen", value: { ...healthyCluster.secret.value, ...change } } };
}

Deno.test("the Secret: absent, a key that lacks, no certificate, a foreign key, a name that lacks, expired", () => {
  const certificate = {
    names: [],
    subject: "a",
    issuer: "b",
    notBeforeMs: NOW - 1_000_000,
    notAfterMs: NOW - 1_000,
  };
  hold([
    [
      { secret: absent },
      "secret",
      "wrong",
      /no Secret 'bloodraven\/holdfast-tls'/,
      /existingSecret/,
    ],
    [{ secret: absent }, "certificate-name", "unseen", /not looked at/],
    [{ secret: forbidden }, "secret", "unseen", /not allowed to/, /"get" on secrets/],
    [secret({ hasPrivateKey: false }), "secret", "wrong", /lacks 'tls.key'$/],
    [
      secret({ hasPrivateKey: false, hasCertificateKey: false, certificate: null }),
      "secret",
      "wrong",
      /lacks 'tls.crt' and 'tls.key'/,
    ],
    [secret({ certificate: null }), "secret", "wrong", /holds no certificate/],
    [secret({ keyFits: false }), "certificate-key", "wrong", /does not belong/],
    [
      secret({ missingNames: ["a.b.svc", "a.b.svc.cluster.local"] }),
      "certificate-name",
      "wrong",
      /not for 'a.b.svc' and 'a.b.svc.cluster.local'/,
      /common name does not count/,
    ],
    [secret({ certificate }), "certificate-expiry", "wrong", /expired 1s ago/],
  ]);
});

Deno.test("Services: absent, and one that selects nobody", () => {
  const [first, second] = healthyCluster.services;
  assert(first !== undefined && second !== undefined);
  const waits = { name: "holdfast-b", labels: { app: "holdfast" } };
  hold([
    [
      { services: [absent, second] },
      "service",
      "wrong",
      /no Service 'bloodraven\/bloodraven'/,
      /-f/,
    ],
    [{ services: [first, forbidden] }, "service-all", "unseen", /not allowed to/],
    [
      { pods: { type: "seen", value: [] } },
      "service",
      "wrong",
      /selects no pod/,
      /Deployment runs/,
    ],
    [
      { pods: { type: "seen", value: [waits] } },
      "service",
      "wrong",
      /selects no pod/,
      /labelled as the leader/,
    ],
    [{ pods: { type: "seen", value: [waits] } }, "service-all", "ok", /selects 'holdfast-b'/],
    [{ pods: forbidden }, "service", "unseen", /not looked at/],
    [{ pods: forbidden }, "network-app-ns/deployer", "unseen", /not looked at/],
  ]);
});

Deno.test("the leader: no Lease, a free one, one that ended, and the reference operator's own name", () => {
  const held = (holder: string, endsMs: number | null = NOW + 1) =>
    ({ type: "seen", value: { holder, endsMs } }) as const;
  const place = { ...healthyCluster.place, leaseName: "bloodraven.shipstream.io" };
  hold([
    [{ election: absent }, "leader", "wrong", /no Lease .*no replica has ever led/],
    [{ election: held("") }, "leader", "wrong", /is free/],
    [
      { election: held("pod-1", NOW - 61_000) },
      "leader",
      "wrong",
      /'pod-1' led, .* ended 1m 1s ago/,
    ],
    [{ election: held("pod-1", null) }, "leader", "ok", /'pod-1' leads/],
    [{ election: forbidden }, "leader", "unseen", /not allowed to/],
    [{ place }, "leader", "warning", /reference operator's own/, /never lead/],
    [
      { reference: held("operator-1") },
      "reference-operator",
      "warning",
      /leads here too \('operator-1'\)/,
    ],
    [
      { reference: held("holdfast-a_x") },
      "reference-operator",
      "warning",
      /A pod of this service holds/,
    ],
    [{ reference: held("operator-1", NOW - 1) }, "reference-operator", "ok", /Nobody leads/],
    [{ reference: held("") }, "reference-operator", "ok", /Nobody leads/],
    [{ reference: forbidden }, "reference-operator", "unseen", /not allowed to/],
  ]);
});

const policies = {
  type: "seen",
  value: [NETWORK_POLICIES.parse(networkPolicy({
    installation: { name: "holdfast", namespace: "bloodraven", labels: {} },
    selector: { app: "holdfast" },
    tlsPort: 8443,
    additionalIngress: [],
  }))],
} as const;
const clients = (change: Partial<typeof client>): Partial<ClusterFacts> => ({
  policies,
  clients: { type: "seen", value: [{ ...client, ...change }] },
});

Deno.test("the network: labels of a namespace and of pods that no policy lets in, and clients that are not there", () => {
  const check = "network-app-ns/deployer";
  const unlabelled = { type: "seen", value: {} } as const;
  hold([
    [clients({}), check, "ok", /lets 'migrate-1' in/],
    [
      clients({ namespaceLabels: unlabelled }),
      check,
      "wrong",
      /lets 'migrate-1' of 'app-ns' in/,
      /mysql-client=true/,
    ],
    [
      clients({ pods: { type: "seen", value: [{ name: "p", labels: {} }] } }),
      check,
      "wrong",
      /lets 'p' of 'app-ns' in/,
      /deploy-client=true/,
    ],
    [
      clients({ pods: { type: "seen", value: [] } }),
      check,
      "unseen",
      /No pod .* runs now/,
      /has this label/,
    ],
    [clients({ pods: forbidden }), check, "unseen", /No pod .* runs now/],
    [
      clients({ pods: { type: "seen", value: [] }, namespaceLabels: unlabelled }),
      check,
      "wrong",
      /also not with the label/,
    ],
    [clients({ namespaceLabels: absent }), check, "wrong", /no namespace 'app-ns'/],
    [clients({ namespaceLabels: forbidden }), check, "unseen", /labels of the namespace/],
    [clients({ account: absent }), "client-app-ns/deployer", "warning", /is not there/],
    [clients({ account: forbidden }), "client-app-ns/deployer", "unseen", /not allowed to/],
    [{ policies: forbidden }, "network", "unseen", /NetworkPolicy is in the way/],
    [{ clients: forbidden }, "network", "unseen", /Who may deploy/],
    [{ clients: { type: "seen", value: [] } }, "clients", "warning", /No MysqlDatabase names/],
  ]);
});

Deno.test("sidecars: trusted, not trusted, not to be seen, and what is not looked at is said", () => {
  const check = "sidecar-trust-database/orders";
  const one = {
    group: "database/orders",
    secret: "",
    authorities: 1,
    isTrusted: true,
    pods: { type: "seen", value: 2 },
  } as const;
  const sidecars = (change: object): Partial<ClusterFacts> => ({
    sidecars: { type: "seen", value: [{ ...one, ...change }] },
  });
  hold([
    [sidecars({}), check, "ok", /mount the authority that signed.*cannot be seen from here/],
    [
      sidecars({ isTrusted: false }),
      check,
      "warning",
      /none of them signed/,
      /escrow_pushes_total/,
    ],
    [
      sidecars({ isTrusted: false, authorities: 0 }),
      check,
      "unseen",
      /no authority that can be read/,
    ],
    [sidecars({ secret: "tls" }), check, "ok", /'ca.crt' of the Secret 'tls' .* has the authority/],
    [
      sidecars({ secret: "tls", isTrusted: false }),
      check,
      "wrong",
      /so its sidecars refuse the service/,
      /both authorities/,
    ],
    [
      sidecars({ secret: "tls", isTrusted: false, authorities: 0 }),
      check,
      "unseen",
      /cannot be read, or holds no certificate/,
    ],
    [sidecars({ pods: forbidden }), check, "unseen", /not allowed to/],
    [{ ...sidecars({}), secret: absent }, check, "unseen", /not looked at/],
    [{ sidecars: forbidden }, "sidecar-trust", "unseen", /Which groups are encrypted/],
  ]);
});
