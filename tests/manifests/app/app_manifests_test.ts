import assert from "node:assert/strict";
import fc from "fast-check";
import { parse, parseAllDocuments } from "yaml";
import { configSchema } from "../../../lib/config/schema.ts";
import {
  type AppInput,
  appInputOf,
  appManifests,
  type AppObject,
  ManifestError,
  MAX_GRACE_SECONDS,
  renderYaml,
} from "../../../lib/manifests/mod.ts";
import { validInput } from "./valid_input.ts";

const WEB: AppInput = { name: "web", image: "registry.example/web:1" };
const ALL: AppInput = { ...WEB, leaseName: "web-lease", configMaps: ["b", "a"] };

const kinds = (objects: readonly AppObject[]) => objects.map(({ kind }) => kind);

function find<K extends AppObject["kind"]>(
  objects: readonly AppObject[],
  kind: K,
): Extract<AppObject, { kind: K }> {
  const found = objects.find((each): each is Extract<AppObject, { kind: K }> => each.kind === kind);
  assert.ok(found, kind);
  return found;
}

function podOf(input: AppInput) {
  const { spec } = find(appManifests(input), "Deployment").spec.template;
  return { spec, container: spec.containers[0] };
}

Deno.test("defaults: two replicas in `default` on port 3000, with Events, a token and 50 s to end", () => {
  const objects = appManifests(WEB);
  assert.deepEqual(kinds(objects), [
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "Deployment",
    "Service",
    "PodDisruptionBudget",
  ]);
  assert.deepEqual(
    new Set(objects.map(({ metadata }) => metadata.namespace)),
    new Set(["default"]),
  );
  const { spec } = find(objects, "Deployment");
  assert.equal(spec.replicas, 2);
  assert.equal(spec.template.spec.automountServiceAccountToken, true);
  assert.equal(spec.template.spec.terminationGracePeriodSeconds, 50);
  const [{ ports, livenessProbe, readinessProbe, startupProbe, lifecycle, env }] =
    spec.template.spec.containers;
  assert.deepEqual(ports, [{ name: "http", containerPort: 3_000 }]);
  assert.deepEqual(
    [livenessProbe, readinessProbe, startupProbe].map(({ httpGet }) => httpGet.path),
    ["/live", "/ready", "/startup"],
  );
  assert.deepEqual(lifecycle, { preStop: { sleep: { seconds: 5 } } });
  assert.ok(!env.some(({ name }) => name === "AUTUMN_ROLE"));
  // Events alone: neither a Lease nor a ConfigMap is named.
  assert.deepEqual(find(objects, "Role").rules.map(({ resources }) => resources), [["events"]]);
  // What is there and undefined has its default too.
  assert.deepEqual(appManifests({ ...WEB, replicas: undefined, env: undefined }), objects);
});

Deno.test("from host and plugin configuration: each key lands in its field", () => {
  const config = configSchema.parse({
    kubernetes: {
      namespace: "shop",
      leader_election: { enabled: true, lease_name: "web-lease" },
      config_maps: { watch: ["settings"] },
    },
    host: {
      listen: "127.0.0.1:8088",
      role: "worker",
      prestop_grace_secs: 7,
      shutdown_timeout_secs: 60,
      live_path: "/l",
      ready_path: "/r",
      startup_path: "/s",
    },
  });
  assert.deepEqual(appInputOf(config), {
    namespace: "shop",
    port: 8_088,
    role: "worker",
    livePath: "/l",
    readyPath: "/r",
    startupPath: "/s",
    prestopGraceSeconds: 7,
    shutdownTimeoutSeconds: 60,
    leaseName: "web-lease",
    configMaps: ["settings"],
    events: true,
    labelLeader: false,
    apiAccess: true,
  });
  const { spec, container } = podOf({ ...appInputOf(config), ...WEB });
  assert.equal(spec.terminationGracePeriodSeconds, 5 + 7 + 60 + 10);
  assert.equal(container.livenessProbe.httpGet.path, "/l");

  const plain = appInputOf(configSchema.parse({}));
  // Neither is an empty namespace a namespace, nor does `combined` need a word.
  assert.ok(!("namespace" in plain));
  assert.deepEqual([plain.role, plain.leaseName, plain.events], [null, null, true]);

  const election = { enabled: true, lease_name: "web" };
  const off = { enabled: false, leader_election: election, config_maps: { watch: ["a"] } };
  const { leaseName, configMaps, events, apiAccess } = appInputOf(
    configSchema.parse({ kubernetes: off }),
  );
  assert.deepEqual([leaseName, configMaps, events, apiAccess], [null, [], false, false]);
  const quiet = configSchema.parse({ kubernetes: { events: false } });
  assert.deepEqual([appInputOf(quiet).events, appInputOf(quiet).apiAccess], [false, true]);
});

Deno.test("the order, the names and the labels are those of the contract, to the byte", () => {
  const objects = appManifests({ ...ALL, namespace: "shop" });
  assert.deepEqual(kinds(objects), [
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "Deployment",
    "Service",
    "PodDisruptionBudget",
  ]);
  for (const { metadata } of objects) {
    assert.equal(
      JSON.stringify(metadata),
      '{"name":"web","namespace":"shop","labels":{"app.kubernetes.io/name":"web",' +
        '"app.kubernetes.io/managed-by":"autumn-plugin-kubernetes"}}',
    );
  }
  const selector = { "app.kubernetes.io/name": "web" };
  const deployment = find(objects, "Deployment");
  assert.deepEqual(deployment.spec.selector.matchLabels, selector);
  assert.deepEqual(deployment.spec.template.metadata.labels, deployment.metadata.labels);
  assert.deepEqual(find(objects, "Service").spec.selector, selector);
  assert.deepEqual(find(objects, "PodDisruptionBudget").spec.selector.matchLabels, selector);
});

Deno.test("the rules are exactly those that are needed", () => {
  assert.deepEqual(find(appManifests({ ...ALL, labelLeader: true }), "Role").rules, [
    {
      apiGroups: ["coordination.k8s.io"],
      resources: ["leases"],
      verbs: ["create", "get", "list", "patch", "update", "watch"],
      resourceNames: ["web-lease"],
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

Deno.test("no access gives no Role and no token", () => {
  const objects = appManifests({ ...WEB, events: false, apiAccess: false });
  assert.deepEqual(kinds(objects), [
    "ServiceAccount",
    "Deployment",
    "Service",
    "PodDisruptionBudget",
  ]);
  const { spec } = find(objects, "Deployment").spec.template;
  assert.equal(spec.automountServiceAccountToken, false);
  assert.equal(spec.serviceAccountName, "web");
  // A rule without a token could not be used.
  const named = podOf({ ...WEB, events: false, apiAccess: false, leaseName: "web" });
  assert.equal(named.spec.automountServiceAccountToken, true);
});

Deno.test("a token is there with no rules, since a client in a cluster needs one", () => {
  const objects = appManifests({ ...WEB, events: false });
  assert.ok(!kinds(objects).includes("Role") && !kinds(objects).includes("RoleBinding"));
  const { spec } = find(objects, "Deployment").spec.template;
  assert.equal(spec.automountServiceAccountToken, true);
});

Deno.test("the Deployment is wired: identity, environment, labels, probes, preStop, security", () => {
  const env = { ZONE: "a", AUTUMN_SERVER__HOST: "::", "my.name-1": "", _x: "1" };
  const { spec, container } = podOf({ ...ALL, role: "web", port: 8_080, env });
  assert.equal(spec.containers.length, 1);
  assert.equal(container.name, "app");
  assert.equal(container.image, "registry.example/web:1");
  const field = (name: string, fieldPath: string) => ({
    name,
    valueFrom: { fieldRef: { fieldPath } },
  });
  assert.deepEqual(container.env, [
    field("POD_NAME", "metadata.name"),
    field("POD_NAMESPACE", "metadata.namespace"),
    field("POD_UID", "metadata.uid"),
    field("NODE_NAME", "spec.nodeName"),
    field("POD_IP", "status.podIP"),
    field("POD_SERVICE_ACCOUNT", "spec.serviceAccountName"),
    { name: "AUTUMN_ROLE", value: "web" },
    { name: "AUTUMN_SERVER__HOST", value: "::" },
    { name: "AUTUMN_SERVER__PORT", value: "8080" },
    { name: "ZONE", value: "a" },
    { name: "_x", value: "1" },
    { name: "my.name-1", value: "" },
  ]);
  assert.deepEqual(spec.volumes, [{
    name: "podinfo",
    downwardAPI: { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] },
  }]);
  assert.deepEqual(container.volumeMounts, [
    { name: "podinfo", mountPath: "/etc/podinfo", readOnly: true },
  ]);
  const probe = (path: string, periodSeconds: number, failureThreshold: number) => ({
    httpGet: { path, port: "http" },
    periodSeconds,
    failureThreshold,
  });
  assert.deepEqual(container.livenessProbe, probe("/live", 10, 3));
  assert.deepEqual(container.readinessProbe, probe("/ready", 5, 1));
  assert.deepEqual(container.startupProbe, probe("/startup", 2, 30));
  assert.deepEqual(container.lifecycle, { preStop: { sleep: { seconds: 5 } } });
  assert.deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    runAsNonRoot: true,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
    seccompProfile: { type: "RuntimeDefault" },
  });
  assert.deepEqual(spec.securityContext, {
    runAsNonRoot: true,
    seccompProfile: { type: "RuntimeDefault" },
  });
  const writable = podOf({ ...WEB, readOnlyRootFilesystem: false }).container.securityContext;
  assert.ok(!("readOnlyRootFilesystem" in writable));
});

Deno.test("there is no hook at a preStop of 0, and 45 s to end", () => {
  const { spec, container } = podOf({ ...WEB, preStopSeconds: 0 });
  assert.ok(!("lifecycle" in container));
  assert.equal(spec.terminationGracePeriodSeconds, 45);
});

Deno.test("the Service is port 80 to `http`, and a PodDisruptionBudget is there from two replicas on", () => {
  const objects = appManifests(WEB);
  assert.deepEqual(find(objects, "Service").spec.ports, [
    { name: "http", port: 80, targetPort: "http" },
  ]);
  const budget = find(objects, "PodDisruptionBudget");
  assert.equal(budget.apiVersion, "policy/v1");
  assert.equal(budget.spec.minAvailable, 1);
  for (const [replicas, there] of [[0, false], [1, false], [2, true], [3, true]] as const) {
    const found = kinds(appManifests({ ...WEB, replicas })).includes("PodDisruptionBudget");
    assert.equal(found, there, `${replicas} replicas`);
  }
});

Deno.test("the YAML parses into the six documents, whatever the values look like", () => {
  const objects = appManifests(ALL);
  const text = renderYaml(objects);
  assert.equal(text.match(/^---$/gm)?.length, 6);
  assert.ok(text.startsWith("---\n"));
  assert.deepEqual(parseAllDocuments(text).map((document) => document.toJS()), objects);
  assert.equal(renderYaml(appManifests(ALL)), text);

  // Texts that one version of YAML or the other takes for something else.
  const strange = "yes no on off y n null ~ 1 0x1f 0o17 017 1_000 1e3 .inf 1:20:30 = << 2001-01-01"
    .split(" ").concat("", " a ", "a: b", "# c", "a\n---\nb\n", "é\u2028", '"', "'", "\t", "-");
  const env = Object.fromEntries(strange.map((value, index) => [`V${index}`, value]));
  fc.assert(
    fc.property(fc.oneof(fc.constant(env), fc.dictionary(fc.constantFrom("A", "B"), fc.string())), (
      given,
    ) => {
      const wanted = JSON.parse(JSON.stringify(appManifests({ ...WEB, env: given })));
      const written = renderYaml(appManifests({ ...WEB, env: given }));
      // Kubernetes' own tools split at these lines, without a look at what is between them.
      const documents = written.split(/^---\n/m).slice(1);
      assert.equal(documents.length, wanted.length);
      for (const version of ["1.1", "1.2"] as const) {
        assert.deepEqual(documents.map((each) => parse(each, { version })), wanted);
      }
    }),
    { numRuns: 50 },
  );
});

Deno.test("each bad field is refused, and the error names the field, the value and what would be right", () => {
  const a64 = "a".repeat(64);
  const label = "a DNS label that begins with a letter";
  const whole = (least: number, most: number) => `a whole number from ${least} to ${most}`;
  const grace = whole(0, MAX_GRACE_SECONDS);
  const subdomain = "a DNS subdomain";
  const path = "a path that begins with /";
  const envForm = "names of letters, digits, '_', '-' and '.', with no digit first";
  const taken = "names other than those that the pod itself fills in";
  const table: readonly (readonly [Partial<AppInput>, keyof AppInput, string, string])[] = [
    [{ name: "" }, "name", label, '""'],
    [{ name: "1web" }, "name", label, '"1web"'],
    [{ name: "Web" }, "name", label, '"Web"'],
    [{ name: "a.b" }, "name", label, '"a.b"'],
    [{ name: a64 }, "name", label, `"${a64}"`],
    [{ namespace: "a.b" }, "namespace", "a DNS label", '"a.b"'],
    [{ namespace: "" }, "namespace", "a DNS label", '""'],
    [{ image: "" }, "image", "a text without blanks around it", '""'],
    [{ image: " \t" }, "image", "a text without blanks around it", '" \\t"'],
    [{ port: 0 }, "port", whole(1, 65_535), "0"],
    [{ port: 65_536 }, "port", whole(1, 65_535), "65536"],
    [{ port: NaN }, "port", whole(1, 65_535), "NaN"],
    [{ replicas: -1 }, "replicas", whole(0, 2_147_483_647), "-1"],
    [{ replicas: 1.5 }, "replicas", whole(0, 2_147_483_647), "1.5"],
    [{ livePath: "live" }, "livePath", path, '"live"'],
    [{ readyPath: "" }, "readyPath", path, '""'],
    [{ startupPath: "s/" }, "startupPath", path, '"s/"'],
    [{ preStopSeconds: -1 }, "preStopSeconds", grace, "-1"],
    [{ preStopSeconds: 2 ** 53 }, "preStopSeconds", grace, "9007199254740992"],
    [{ prestopGraceSeconds: 0.5 }, "prestopGraceSeconds", grace, "0.5"],
    [{ shutdownTimeoutSeconds: Infinity }, "shutdownTimeoutSeconds", grace, "Infinity"],
    [{ bufferSeconds: -1 }, "bufferSeconds", grace, "-1"],
    [{ leaseName: "" }, "leaseName", subdomain, '""'],
    [{ leaseName: "a..b" }, "leaseName", subdomain, '"a..b"'],
    [{ configMaps: ["a", "B"] }, "configMaps", "DNS subdomains", '"B"'],
    [{ env: { "1A": "" } }, "env", envForm, '"1A"'],
    [{ env: { "": "" } }, "env", envForm, '""'],
    [{ env: { "a b": "secret" } }, "env", envForm, '"a b"'],
    [{ env: { POD_IP: "secret" } }, "env", taken, '"POD_IP"'],
    [{ env: { NODE_NAME: "x" } }, "env", taken, '"NODE_NAME"'],
  ];
  for (const [wrong, field, wish, value] of table) {
    assert.throws(() => appManifests({ ...WEB, ...wrong }), (error) => {
      assert.ok(error instanceof ManifestError && error instanceof RangeError);
      assert.equal(error.field, field);
      assert.equal(
        error.message,
        `Cannot make the manifests of an application as '${field}' must be ${wish}: current value is ${value}`,
      );
      return true;
    });
  }
});

Deno.test("the binding ties the Role to the service account of the same name and namespace", () => {
  const objects = appManifests({ ...WEB, namespace: "shop" });
  const { metadata, roleRef, subjects } = find(objects, "RoleBinding");
  assert.deepEqual(roleRef, { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "web" });
  assert.deepEqual(subjects, [{ kind: "ServiceAccount", name: "web", namespace: "shop" }]);
  assert.deepEqual(find(objects, "Role").metadata, metadata);
  assert.deepEqual(find(objects, "ServiceAccount").metadata, metadata);
});

Deno.test("whatever is valid gives one object of a kind, one name, and a grace period above its preStop sleep", () => {
  fc.assert(fc.property(validInput, (input) => {
    const objects = appManifests(input);
    assert.equal(new Set(kinds(objects)).size, objects.length);
    assert.deepEqual(new Set(objects.map(({ metadata }) => metadata.name)), new Set([input.name]));
    const { spec, container } = podOf(input);
    const sleep = container.lifecycle?.preStop.sleep.seconds ?? 0;
    assert.ok(spec.terminationGracePeriodSeconds >= sleep);
    const names = container.env.map(({ name }) => name);
    assert.equal(new Set(names).size, names.length);
    assert.deepEqual(names.slice(6), [...names.slice(6)].sort());
  }));
});
