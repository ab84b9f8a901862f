/** What the manifests of the service are made of: deploy-api 15.2 to 15.4, and where difference 27 leaves them. */

import assert from "node:assert/strict";
import { member } from "../cluster/raw_client.ts";
import {
  API,
  container,
  type Layer,
  one,
  problemsOf,
  render,
  titles,
  variables,
} from "./service_rendering.ts";

Deno.test("deploy-api 16 item 65: each render failure says what it requires", () => {
  const table: readonly (readonly [layers: readonly Layer[], text: string])[] = [
    [
      [{ auxiliary: { deployAPI: { enabled: true } } }],
      "requires auxiliary.escrowTLS.enabled=true",
    ],
    [[API, { leaderElection: { enabled: false } }], "requires leaderElection.enabled=true"],
    [
      [{ auxiliary: { escrowTLS: { enabled: true } } }],
      "auxiliary.escrowTLS.existingSecret is required",
    ],
    [
      [{ auxiliary: { deployAPI: { networkPolicy: { enabled: true } } } }],
      "requires auxiliary.deployAPI.enabled=true",
    ],
    [[API, { auxiliary: { deployAPI: { audience: "" } } }], "audience must not be empty"],
    [[API, { auxiliary: { deployAPI: { audience: " \t" } } }], "audience must not be empty"],
  ];
  for (const [layers, text] of table) {
    const [problem = "", ...more] = problemsOf(...layers);
    assert.deepEqual(more, []);
    assert.ok(problem.includes(text), problem);
  }
});

Deno.test("deploy-api 16 item 65: the variables of the API are there only when it is enabled", () => {
  const off = variables(render().objects);
  assert.deepEqual(Object.keys(off).filter((name) => /DEPLOY_API|ESCROW/.test(name)), []);
  assert.equal(off.BLOODRAVEN_WS_ALLOWED_ORIGINS, "*");
  assert.equal(off.BLOODRAVEN_WS_MAX_CLIENTS, "100");

  const tlsAlone = variables(
    render({ auxiliary: { escrowTLS: { enabled: true, existingSecret: "tls" } } }).objects,
  );
  assert.deepEqual(Object.keys(tlsAlone).filter((name) => name.includes("DEPLOY_API")), []);

  const custom = { deployAPI: { audience: "deployments" }, escrowTLS: { port: 9443 } };
  for (
    const [layers, audience, address] of [
      [[API], "bloodraven-deploy", ":8443"],
      [[API, { auxiliary: custom }], "deployments", ":9443"],
    ] as const
  ) {
    const on = variables(render(...layers).objects);
    assert.equal(on.BLOODRAVEN_DEPLOY_API_ENABLED, "true");
    assert.equal(on.BLOODRAVEN_DEPLOY_API_AUDIENCE, audience);
    assert.equal(on.BLOODRAVEN_ESCROW_TLS_ADDR, address);
    assert.equal(on.BLOODRAVEN_ESCROW_TLS_CERT_FILE, "/etc/bloodraven/escrow-tls/tls.crt");
    assert.equal(on.BLOODRAVEN_ESCROW_TLS_KEY_FILE, "/etc/bloodraven/escrow-tls/tls.key");
  }
});

Deno.test("deploy-api 16 item 65: the rules of RBAC, the least ones and the reference's own", () => {
  const rule = (group: string, resource: string, ...verbs: readonly string[]) => ({
    apiGroups: [group],
    resources: [resource],
    verbs,
  });
  const leases = rule(
    "coordination.k8s.io",
    "leases",
    "create",
    "delete",
    "get",
    "list",
    "patch",
    "update",
    "watch",
  );
  const reviews = rule("authentication.k8s.io", "tokenreviews", "create");
  const groups = "mysqlfailovergroups";
  const { objects } = render(API);
  assert.deepEqual(one(objects, "ClusterRole", "holdfast").rules, [
    reviews,
    rule("shipstream.io", "mysqldatabases", "get", "list"),
    rule("shipstream.io", groups, "get", "list", "patch", "watch"),
    leases,
    rule("events.k8s.io", "events", "create", "patch"),
  ]);
  assert.deepEqual(
    titles(objects).filter((title) => title.includes("Role ")),
    ["ClusterRole holdfast", "ClusterRole holdfast-auxiliary", "Role holdfast"],
  );
  assert.deepEqual(titles(render().objects).filter((title) => title.includes("Role ")), [
    "ClusterRole holdfast-auxiliary",
    "Role holdfast",
  ]);

  const reference = render(API, { rbac: { rules: "reference" } }).objects;
  assert.deepEqual(one(reference, "ClusterRole").rules, [
    reviews,
    leases,
    rule("shipstream.io", "mysqldatabases", "get", "list", "patch", "update", "watch"),
    rule("shipstream.io", groups, "create", "delete", "get", "list", "patch", "update", "watch"),
    rule("shipstream.io", `${groups}/status`, "get", "patch", "update"),
    { apiGroups: ["", "events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] },
    rule("shipstream.io", "mysqlbackups", "list"),
  ]);
  assert.deepEqual(one(reference, "Role").rules, [rule("", "pods", "patch")]);
  const none = titles(render(API, { rbac: { create: false } }).objects);
  assert.deepEqual(none.filter((title) => title.includes("Role")), []);
});

Deno.test("deploy-api 16 item 65: the Service publishes the TLS port by its name, at the address that the reference's values give", () => {
  for (const port of [8443, 9443]) {
    const { objects } = render(API, { auxiliary: { escrowTLS: { port } } });
    const service = one(objects, "Service", "bloodraven");
    assert.equal(service.metadata.namespace, "bloodraven");
    assert.deepEqual(member(service, "spec", "ports"), [
      { name: "auxiliary", port: 8082, targetPort: "auxiliary", protocol: "TCP" },
      { name: "escrow-tls", port, targetPort: "escrow-tls", protocol: "TCP" },
    ]);
    assert.deepEqual(container(objects).ports, [
      { name: "metrics", containerPort: 8080, protocol: "TCP" },
      { name: "health", containerPort: 8081, protocol: "TCP" },
      { name: "auxiliary", containerPort: 8082, protocol: "TCP" },
      { name: "escrow-tls", containerPort: port, protocol: "TCP" },
    ]);
  }
  const { objects } = render();
  assert.deepEqual(
    Object(member(one(objects, "Service", "bloodraven"), "spec", "ports")).map(
      ({ name }: { name: string }) => name,
    ),
    ["auxiliary"],
  );
});

Deno.test("deploy-api 16 item 65: the NetworkPolicy has its two rules, for the port, audience and peers that are wished", () => {
  const peer = { from: [{ podSelector: { matchLabels: { app: "ci" } } }], ports: [{ port: 9443 }] };
  const networkPolicy = { enabled: true, additionalIngress: [peer] };
  const custom = { deployAPI: { audience: "x", networkPolicy }, escrowTLS: { port: 9443 } };
  const policy = one(render(API, { auxiliary: custom }).objects, "NetworkPolicy");
  assert.equal(policy.metadata.name, "holdfast-deploy-api");
  assert.deepEqual(policy.spec, {
    podSelector: {
      matchLabels: {
        "app.kubernetes.io/name": "holdfast",
        "app.kubernetes.io/instance": "holdfast",
      },
    },
    policyTypes: ["Ingress"],
    ingress: [
      { ports: [8080, 8081, 8082].map((port) => ({ protocol: "TCP", port })) },
      {
        from: [
          {
            namespaceSelector: { matchLabels: { "shipstream.io/mysql-client": "true" } },
            podSelector: { matchLabels: { "bloodraven.shipstream.io/deploy-client": "true" } },
          },
          {
            namespaceSelector: {},
            podSelector: {
              matchLabels: {
                "app.kubernetes.io/name": "mysql",
                "app.kubernetes.io/managed-by": "bloodraven",
              },
            },
          },
        ],
        ports: [{ protocol: "TCP", port: 9443 }],
      },
      peer,
    ],
  });
  assert.ok(!titles(render(API).objects).some((title) => title.startsWith("NetworkPolicy")));
});

Deno.test("deploy-api 16 item 65: probes, ports by name, and the mounted Secret", () => {
  const { objects } = render(API);
  const { livenessProbe, readinessProbe, volumeMounts } = container(objects);
  const probe = (path: string, ...times: readonly number[]) => ({
    httpGet: { path, port: "health" },
    initialDelaySeconds: times[0],
    periodSeconds: times[1],
    timeoutSeconds: times[2],
    failureThreshold: times[3],
  });
  assert.deepEqual(livenessProbe, probe("/healthz", 15, 20, 5, 3));
  assert.deepEqual(readinessProbe, probe("/readyz", 5, 10, 5, 3));
  assert.deepEqual(volumeMounts, [
    { name: "escrow-tls", mountPath: "/etc/bloodraven/escrow-tls", readOnly: true },
  ]);
  assert.deepEqual(
    member(one(objects, "Deployment"), "spec", "template", "spec", "volumes"),
    [{ name: "escrow-tls", secret: { secretName: "tls", defaultMode: 0o440 } }],
  );
  assert.equal(container(render().objects).volumeMounts, undefined);
});

Deno.test("difference 27: two replicas, a rolling update that keeps both, a budget, and a Service for the leader beside one for all", () => {
  const { objects } = render(API);
  const deployment = one(objects, "Deployment");
  assert.equal(member(deployment, "spec", "replicas"), 2);
  assert.deepEqual(member(deployment, "spec", "strategy"), {
    type: "RollingUpdate",
    rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
  });
  const selector = {
    "app.kubernetes.io/name": "holdfast",
    "app.kubernetes.io/instance": "holdfast",
  };
  assert.deepEqual(one(objects, "PodDisruptionBudget").spec, {
    maxUnavailable: 1,
    selector: { matchLabels: selector },
  });
  assert.deepEqual(member(one(objects, "Service", "bloodraven"), "spec", "selector"), {
    ...selector,
    "holdfast.shipstream.io/leader": "true",
  });
  const all = member(one(objects, "Service", "bloodraven-all"), "spec", "selector");
  assert.deepEqual(all, selector);
  assert.equal(
    variables(objects).HOLDFAST__KUBERNETES__LEADER_ELECTION__LABEL_LEADER,
    "true",
  );
  const spread = member(deployment, "spec", "template", "spec", "topologySpreadConstraints");
  assert.deepEqual(
    Object(spread).map(({ topologyKey }: { topologyKey: string }) => topologyKey),
    ["kubernetes.io/hostname", "topology.kubernetes.io/zone"],
  );

  const plain = render(API, { leaderElection: { label: false } });
  const [service, ...others] = plain.objects.filter(({ kind }) => kind === "Service");
  assert.deepEqual([service?.metadata.name, others], ["bloodraven", []]);
  assert.deepEqual(member(service, "spec", "selector"), selector);
  assert.equal(plain.warnings.length, 1);
  assert.ok(!JSON.stringify(one(plain.objects, "Role").rules).includes("pods"));
});

Deno.test("one replica has no budget, which would only stop a drain; Recreate and no Service are warned of", () => {
  const single = render(API, { replicaCount: 1 });
  assert.ok(!titles(single.objects).some((title) => title.startsWith("PodDisruption")));
  const warned = (...layers: readonly Layer[]) => render(API, ...layers).warnings.length;
  assert.equal(warned(), 0);
  assert.equal(warned({ replicaCount: 1 }), 1);
  assert.equal(warned({ strategy: "Recreate" }), 1);
  assert.equal(warned({ auxiliary: { service: { enabled: false } } }), 1);
  assert.equal(warned({ keyringEscrow: { enabled: true } }), 1);
  assert.equal(warned({ keyringEscrow: { enabled: true, namespaces: ["database"] } }), 0);
  const monitors = { serviceMonitor: { enabled: true }, podMonitor: { enabled: true } };
  assert.equal(warned({ metrics: monitors }), 1);
  const recreate = render(API, { strategy: "Recreate" }).objects;
  assert.deepEqual(member(one(recreate, "Deployment"), "spec", "strategy"), { type: "Recreate" });
});
