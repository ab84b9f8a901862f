/** The pods of the service, what they start with, and what is refused about them. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { renderYaml } from "../../lib/manifests/yaml.ts";
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

Deno.test("the pods keep to the restricted standard, with a root file system that nobody can write", () => {
  const { objects } = render(API, { config: { log: { level: "debug" } } });
  const pod = member(one(objects, "Deployment"), "spec", "template", "spec");
  assert.deepEqual(member(pod, "securityContext"), {
    runAsNonRoot: true,
    runAsUser: 65_534,
    runAsGroup: 65_534,
    fsGroup: 65_534,
    seccompProfile: { type: "RuntimeDefault" },
  });
  assert.deepEqual(container(objects).securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    runAsNonRoot: true,
    capabilities: { drop: ["ALL"] },
  });
  const mounts: readonly { readOnly?: boolean }[] = Object(container(objects).volumeMounts);
  assert.deepEqual(mounts.map(({ readOnly }) => readOnly), [true, true]);
  assert.equal(one(objects, "ServiceAccount").automountServiceAccountToken, false);
  assert.equal(member(pod, "automountServiceAccountToken"), true);
});

Deno.test("further configuration is mounted as holdfast.yaml, and a change of it starts new pods", () => {
  const hashOf = (level: string) => {
    const { objects } = render({ config: { log: { level } } });
    const map = one(objects, "ConfigMap");
    assert.deepEqual(map.data, { "holdfast.yaml": `log:\n  level: ${level}\n` });
    assert.equal(variables(objects).AUTUMN_MANIFEST_DIR, "/etc/holdfast");
    const template = member(one(objects, "Deployment"), "spec", "template");
    assert.deepEqual(member(template, "spec", "volumes"), [
      { name: "config", configMap: { name: "holdfast" } },
    ]);
    return member(template, "metadata", "annotations", "holdfast.shipstream.io/config-hash");
  };
  assert.notEqual(hashOf("debug"), hashOf("warn"));
  assert.equal(hashOf("debug"), hashOf("debug"));
});

Deno.test("a configuration with which the pods would not start is refused, with the key", () => {
  const table: readonly (readonly [Layer, RegExp])[] = [
    [{ log: { levle: "debug" } }, /there is no key 'log.levle'/],
    [{ log: { level: "loud" } }, /'log.level' from .* must be one of debug/],
    [{ planned_operations: { executor: "status" } }, /'planned_operations.executor'/],
    [{ kubernetes: { required: false } }, /'kubernetes.required' must be true/],
    [{ host: { prestop_grace_secs: 99_999 } }, /host.prestop_grace_secs/],
  ];
  for (const [config, expected] of table) {
    const [problem = "", ...more] = problemsOf({ config });
    assert.deepEqual(more, []);
    assert.match(problem, /^Cannot render 'config': /);
    assert.match(problem, expected);
  }
});

Deno.test("a key of the configuration that a value sets is refused, and the value is named", () => {
  const table: Readonly<Record<string, Layer>> = {
    "auxiliary.deployAPI.enabled": { deploy_api: { enabled: true } },
    "auxiliary.deployAPI.audience": { deploy_api: { audience: "x" } },
    "auxiliary.escrowTLS": { tls: { cert_file: "x" } },
    "auxiliary.escrowTLS.port": { listen: { tls: ":1" } },
    "plannedOperations.enabled": { planned_operations: { enabled: true } },
    "leaderElection.leaseName": { kubernetes: { leader_election: { lease_name: "x" } } },
    "leaderElection.label": { kubernetes: { leader_election: { label_leader: true } } },
    "auxiliary.wsMaxClients": { auxiliary: { ws_max_clients: 1 } },
  };
  for (const [value, config] of Object.entries(table)) {
    const [problem = "", ...more] = problemsOf({ config });
    assert.deepEqual(more, []);
    assert.match(problem, /^Cannot render 'config\.[a-z_.]+' as '[\w.]+' says it/);
    assert.ok(problem.includes(`as '${value}' says it`), problem);
  }
});

Deno.test("the grace period is what an orderly stop takes, and a shorter one is refused", () => {
  const graceOf = (...layers: readonly Layer[]) =>
    member(
      one(render(...layers).objects, "Deployment"),
      "spec",
      "template",
      "spec",
      "terminationGracePeriodSeconds",
    );
  assert.equal(graceOf(), 45);
  const config = { host: { prestop_grace_secs: 10, shutdown_timeout_secs: 60 } };
  assert.equal(graceOf({ config }), 80);
  assert.equal(graceOf({ config, terminationGracePeriodSeconds: 80 }), 80);
  assert.deepEqual(problemsOf({ config, terminationGracePeriodSeconds: 79 }), [
    "Cannot render 'terminationGracePeriodSeconds' as it must be at least 80, which is host.prestop_grace_secs, host.shutdown_timeout_secs and 10 together: current value is 79",
  ]);
  // The chart's own value is for another way to stop.
  assert.equal(problemsOf({ terminationGracePeriodSeconds: 10 }).length, 1);
});

Deno.test("a port that is there twice is refused, in the pod and in a Service", () => {
  const tls = (port: number, more: Layer = {}) => ({
    auxiliary: { escrowTLS: { enabled: true, existingSecret: "tls", port }, ...more },
  });
  assert.deepEqual(problemsOf(tls(8081)), [
    "Cannot render a pod as port 8081 is there twice: for health and for auxiliary.escrowTLS.port; change one of the two",
  ]);
  assert.deepEqual(problemsOf(tls(9000, { service: { port: 9000 } })), [
    "Cannot render a Service as port 9000 is there twice: for auxiliary.service.port and for auxiliary.escrowTLS.port; change one of the two",
  ]);
  const metrics = { serviceMonitor: { enabled: true } };
  assert.equal(problemsOf({ metrics, auxiliary: { service: { port: 8080 } } }).length, 1);
  assert.equal(problemsOf({ auxiliary: { service: { port: 8080 } } }).length, 0);
  assert.deepEqual(problemsOf(tls(9000, { service: { enabled: false, port: 9000 } })), []);
  assert.deepEqual(problemsOf({ auxiliary: { escrowTLS: { port: 8081 } } }), []);
});

Deno.test("labels that selectors use cannot be written over", () => {
  for (const label of ["app.kubernetes.io/name", "holdfast.shipstream.io/leader"]) {
    for (const value of ["labels", "podLabels"]) {
      assert.deepEqual(problemsOf({ [value]: { [label]: "x" } }), [
        `Cannot render '${value}' as it must not have the label ${label}: selectors use it`,
      ]);
    }
  }
});

Deno.test("a certificate of cert-manager covers every name of both Services, and brings the Secret", () => {
  const certificate = { enabled: true, issuerRef: { name: "ca", kind: "ClusterIssuer" } };
  const { objects } = render({
    auxiliary: { escrowTLS: { enabled: true, certificate: { ...certificate, dnsNames: ["db"] } } },
  });
  const made = one(objects, "Certificate");
  assert.deepEqual(member(made, "spec", "dnsNames"), [
    "bloodraven",
    "bloodraven.bloodraven",
    "bloodraven.bloodraven.svc",
    "bloodraven.bloodraven.svc.cluster.local",
    "bloodraven-all",
    "bloodraven-all.bloodraven",
    "bloodraven-all.bloodraven.svc",
    "bloodraven-all.bloodraven.svc.cluster.local",
    "db",
  ]);
  assert.equal(member(made, "spec", "secretName"), "holdfast-tls");
  const volumes = member(one(objects, "Deployment"), "spec", "template", "spec", "volumes");
  assert.equal(member(volumes, 0, "secret", "secretName"), "holdfast-tls");

  const named = { auxiliary: { escrowTLS: { enabled: true, certificate: { enabled: true } } } };
  assert.match(problemsOf(named).join(), /issuerRef.name is required/);
  assert.match(
    problemsOf({ auxiliary: { escrowTLS: { certificate } } }).join(),
    /requires auxiliary.escrowTLS.enabled=true/,
  );
  const nameless = {
    auxiliary: { escrowTLS: { enabled: true, certificate }, service: { enabled: false } },
  };
  assert.match(problemsOf(nameless).join(), /no name to certify/);
});

Deno.test("monitors are rendered on request, and find the port of the metrics", () => {
  const { objects } = render({
    metrics: {
      serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
      podMonitor: { enabled: true, interval: "10s" },
    },
  });
  const service = one(objects, "ServiceMonitor");
  assert.equal(service.metadata.labels?.release, "prometheus");
  assert.deepEqual(member(service, "spec", "endpoints"), [
    { port: "metrics", path: "/metrics", interval: "30s" },
  ]);
  const ports: readonly { name: string }[] = Object(
    member(one(objects, "Service", "bloodraven-all"), "spec", "ports"),
  );
  assert.ok(ports.some(({ name }) => name === "metrics"));
  const callers: readonly { name: string }[] = Object(
    member(one(objects, "Service", "bloodraven"), "spec", "ports"),
  );
  assert.ok(!callers.some(({ name }) => name === "metrics"));
  assert.deepEqual(member(one(objects, "PodMonitor"), "spec", "podMetricsEndpoints"), [
    { port: "metrics", path: "/metrics", interval: "10s" },
  ]);
  const off = { metrics: { serviceMonitor: { enabled: true } } };
  assert.match(
    problemsOf(off, { auxiliary: { service: { enabled: false } } }).join(),
    /requires auxiliary.service.enabled=true/,
  );
});

Deno.test("parts that need another part say so, and all problems are told at once", () => {
  assert.match(
    problemsOf({ keyringEscrow: { enabled: true } }).join(),
    /keyringEscrow.enabled=true as it requires auxiliary.escrowTLS.enabled=true/,
  );
  assert.match(
    problemsOf({ plannedOperations: { enabled: true } }).join(),
    /plannedOperations.enabled=true as it requires auxiliary.deployAPI.enabled=true/,
  );
  assert.match(
    problemsOf({ serviceAccount: { create: false } }).join(),
    /serviceAccount.name is required/,
  );
  const all = { auxiliary: { deployAPI: { enabled: true, audience: " " } } };
  assert.equal(problemsOf(all, { leaderElection: { enabled: false } }).length, 3);
});

Deno.test("an account, an image and a name of one's own go everywhere that they belong", () => {
  const { objects } = render(API, {
    name: "lease",
    namespace: "ops",
    labels: { team: "db" },
    image: { repository: "mirror/holdfast", digest: `sha256:${"a".repeat(64)}` },
    serviceAccount: { create: false, name: "shared" },
    podAnnotations: { note: "x" },
  });
  for (const object of objects) {
    assert.equal(object.metadata.labels?.team, "db");
    if (object.metadata.namespace !== undefined) assert.equal(object.metadata.namespace, "ops");
    if (object.kind === "Service") continue;
    assert.match(object.metadata.name, /^lease/);
  }
  const subjects = objects.filter(({ kind }) => kind.endsWith("RoleBinding"))
    .map((binding) => member(binding, "subjects", 0, "name"));
  assert.deepEqual([...new Set(subjects)], ["shared"]);
  assert.ok(!titles(objects).some((title) => title.startsWith("ServiceAccount")));
  assert.equal(container(objects).image, `mirror/holdfast@sha256:${"a".repeat(64)}`);
  assert.equal(container(render().objects).image, "holdfast:1.2.3");
  assert.equal(container(render({ image: { tag: "7" } }).objects).image, "holdfast:7");
});

Deno.test("the same values give the same bytes, whatever the order of their keys", () => {
  const reversed = (value: unknown): unknown =>
    typeof value !== "object" || value === null || Array.isArray(value)
      ? value
      : Object.fromEntries(
        Object.entries(value).reverse().map(([key, inner]) => [key, reversed(inner)]),
      );
  const values = fc.record({
    replicaCount: fc.integer({ min: 0, max: 5 }),
    auxiliary: fc.record({
      wsMaxClients: fc.nat(100),
      escrowTLS: fc.record({ enabled: fc.boolean(), existingSecret: fc.constant("tls") }),
    }),
    topologySpread: fc.record({ enabled: fc.boolean() }),
  }, { requiredKeys: [] });
  fc.assert(
    fc.property(values, (layer) => {
      const text = renderYaml(render(layer).objects);
      assert.equal(renderYaml(render(Object(reversed(layer))).objects), text);
    }),
    { numRuns: 20 },
  );
});
