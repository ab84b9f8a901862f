import assert from "node:assert/strict";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { readServiceValues, ValuesError } from "../../lib/manifests/service/read_values.ts";
import { serviceValuesJsonSchema } from "../../lib/manifests/service/values.ts";

/** What is wrong with values; nothing when they are right. */
function problemsOf(...layers: readonly unknown[]): readonly string[] {
  try {
    readServiceValues(layers);
    return [];
  } catch (error) {
    assert.ok(error instanceof ValuesError);
    assert.equal(error.message, error.problems.join("\n"));
    return error.problems;
  }
}

/** A tree with one leaf, from a dotted path. */
function at(path: string, value: unknown): unknown {
  return path.split(".").reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
}

Deno.test("without values, all have the chart's defaults, but for what difference 27 changes", () => {
  const { auxiliary, leaderElection, replicaCount, strategy } = readServiceValues([]);
  const { deployAPI, escrowTLS, service, wsAllowedOrigins, wsMaxClients } = auxiliary;
  assert.deepEqual(deployAPI, {
    enabled: false,
    audience: "bloodraven-deploy",
    networkPolicy: { enabled: false, additionalIngress: [] },
  });
  assert.deepEqual([escrowTLS.enabled, escrowTLS.port, escrowTLS.existingSecret], [
    false,
    8443,
    "",
  ]);
  assert.deepEqual(service, { enabled: true, name: "bloodraven", port: 8082, type: "ClusterIP" });
  assert.deepEqual([wsAllowedOrigins, wsMaxClients], ["*", 100]);
  assert.equal(leaderElection.enabled, true);
  assert.deepEqual([replicaCount, strategy], [2, "RollingUpdate"]);
});

const BAD: readonly (readonly [path: string, value: unknown, wish: string])[] = [
  ["name", "Holdfast", "a DNS label that begins with a letter"],
  ["name", "h".repeat(45), "a DNS label that begins with a letter"],
  ["name", "", "a DNS label that begins with a letter"],
  ["namespace", "a.b", "a DNS label"],
  ["clusterDomain", "a..b", "a DNS subdomain"],
  ["labels", ["a"], "a mapping of texts"],
  ["labels.tier", 1, "a text"],
  ["image.repository", "Some Image", "the name of an image"],
  ["image.tag", "a b", "a tag"],
  ["image.digest", "sha256:12", "sha256: and 64"],
  ["image.pullPolicy", "Sometimes", "one of IfNotPresent, Always, Never"],
  ["image.pullSecrets.0", "A", "a DNS subdomain"],
  ["replicaCount", -1, "a whole number from 0 to 100"],
  ["replicaCount", 1.5, "a whole number from 0 to 100"],
  ["replicaCount", "2", "a whole number from 0 to 100"],
  ["strategy", "Canary", "one of RollingUpdate, Recreate"],
  ["terminationGracePeriodSeconds", 0, "a whole number from 1 to 86400"],
  ["leaderElection.enabled", "yes", "true or false"],
  ["leaderElection.leaseName", "", "a DNS subdomain"],
  ["auxiliary", true, "a mapping"],
  ["auxiliary.deployAPI.audience", 7, "a text"],
  ["auxiliary.deployAPI.networkPolicy.additionalIngress", {}, "a list of mappings"],
  ["auxiliary.deployAPI.networkPolicy.additionalIngress.0", "tcp", "a mapping"],
  ["auxiliary.escrowTLS.port", 0, "a whole number from 1 to 65535"],
  ["auxiliary.escrowTLS.port", 65_536, "a whole number from 1 to 65535"],
  ["auxiliary.escrowTLS.existingSecret", "My Secret", "a DNS subdomain"],
  ["auxiliary.escrowTLS.certificate.issuerRef.kind", "Any", "one of Issuer, ClusterIssuer"],
  ["auxiliary.escrowTLS.certificate.duration", "90 days", "a duration"],
  ["auxiliary.escrowTLS.certificate.dnsNames.0", "https://x", "a DNS subdomain"],
  ["auxiliary.service.name", "1st", "a DNS label that begins with a letter"],
  ["auxiliary.service.port", 70_000, "a whole number from 1 to 65535"],
  ["auxiliary.service.type", "ExternalName", "one of ClusterIP, NodePort, LoadBalancer"],
  ["auxiliary.wsAllowedOrigins", "", "* or origins"],
  ["auxiliary.wsMaxClients", -1, "a whole number from 0 to 100000"],
  ["keyringEscrow.namespaces.0", "A", "a DNS label"],
  ["rbac.rules", "all", "one of least, reference"],
  ["config", [], "a mapping"],
  ["resources.requests.cpu", true, "a quantity"],
  ["topologySpread.whenUnsatisfiable", "Maybe", "one of ScheduleAnyway, DoNotSchedule"],
  ["metrics.podMonitor.interval", "often", "a duration"],
  ["nodeSelector.disk", 5, "a text"],
  ["tolerations", "all", "a list of mappings"],
];

Deno.test("each bad value is refused with its key, what it must be, and what it is", () => {
  for (const [path, value, wish] of BAD) {
    const values = path.endsWith(".0") ? at(path.slice(0, -2), [value]) : at(path, value);
    const [problem = "", ...more] = problemsOf(values);
    assert.deepEqual(more, [], path);
    assert.ok(
      problem.startsWith(`Cannot use the values as '${path}' must be ${wish}`),
      `${path}: ${problem}`,
    );
    assert.ok(problem.endsWith(`: current value is ${JSON.stringify(value)}`), problem);
  }
});

Deno.test("the JSON schema refuses the same values, and takes the defaults and an empty file", () => {
  const validate = new Ajv2020({ strict: false }).compile(serviceValuesJsonSchema());
  for (const values of [{}, readServiceValues([])]) {
    assert.ok(validate(values), JSON.stringify(validate.errors));
  }
  for (const [path, value] of BAD) {
    const values = path.endsWith(".0") ? at(path.slice(0, -2), [value]) : at(path, value);
    assert.equal(validate(values), false, path);
    const place = `/${path.replaceAll(".", "/")}`;
    assert.ok(validate.errors?.some(({ instancePath }) => instancePath === place), path);
  }
  assert.equal(validate({ auxiliary: { deployApi: {} } }), false);
});

Deno.test("an unknown value is named at its place, with what there is", () => {
  const problems = problemsOf({ auxiliary: { deployApi: { enabled: true } }, replicas: 3 });
  assert.deepEqual([...problems].sort(), [
    "Cannot use the values as there is no 'auxiliary.deployApi': there is deployAPI, escrowTLS, service, wsAllowedOrigins, wsMaxClients",
    "Cannot use the values as there is no 'replicas': there is affinity, auxiliary, clusterDomain, config, image, keyringEscrow, labels, leaderElection, metrics, name, namespace, nodeSelector, plannedOperations, podAnnotations, podDisruptionBudget, podLabels, priorityClassName, rbac, replicaCount, resources, serviceAccount, strategy, terminationGracePeriodSeconds, tolerations, topologySpread",
  ]);
});

Deno.test("several files are merged key by key, a list is replaced, and an empty value is its default again", () => {
  const first = {
    replicaCount: 3,
    auxiliary: { escrowTLS: { enabled: true, port: 9443 }, service: { name: "one" } },
    tolerations: [{ key: "a" }, { key: "b" }],
  };
  const second = {
    replicaCount: null,
    auxiliary: { escrowTLS: { port: 9444 }, service: null },
    tolerations: [{ key: "c" }],
  };
  const { replicaCount, auxiliary, tolerations } = readServiceValues([first, null, second]);
  assert.equal(replicaCount, 2);
  assert.deepEqual([auxiliary.escrowTLS.enabled, auxiliary.escrowTLS.port], [true, 9444]);
  assert.equal(auxiliary.service.name, "bloodraven");
  assert.deepEqual(tolerations, [{ key: "c" }]);
});

Deno.test("what is no mapping is refused, and a long value is shown in part", () => {
  assert.deepEqual(problemsOf([1]), [
    "Cannot use the values as they must be a mapping: current value is [1]",
  ]);
  const [problem = ""] = problemsOf({ name: "x".repeat(500) });
  assert.ok(problem.length < 300 && problem.endsWith("…"), problem);
});

Deno.test("a key that is called __proto__ is unknown, and changes nothing else", () => {
  const [problem = ""] = problemsOf(JSON.parse('{"__proto__": {"replicaCount": 9}}'));
  assert.match(problem, /there is no '__proto__'/);
  assert.equal(Object.hasOwn(Object.prototype, "replicaCount"), false);
});

Deno.test("whatever the values are, they are read or refused, and a refusal says why", () => {
  fc.assert(fc.property(fc.array(fc.jsonValue(), { maxLength: 3 }), (layers) => {
    for (const problem of problemsOf(...layers)) {
      assert.match(problem, /^Cannot use the values as /);
      assert.ok(!problem.includes("\n"));
    }
  }));
});
