/** What is rendered from many values, before a real API server: as objects, as YAML by kubectl, and as a kustomization. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { manifestsService } from "../../handlers/commands/manifests/service.ts";
import { productionSystem } from "../../handlers/commands/system.ts";
import type { Manifest } from "../../lib/manifests/service/objects.ts";
import { readServiceValues } from "../../lib/manifests/service/read_values.ts";
import { renderService } from "../../lib/manifests/service/render.ts";
import { renderYaml } from "../../lib/manifests/yaml.ts";
import { ensureBinaries } from "../cluster/binaries.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { member, mustSucceed } from "../cluster/raw_client.ts";
import { foreignDefinitions } from "./foreign_definitions.ts";
import { collectionOf } from "./service_place.ts";

type Layer = Readonly<Record<string, unknown>>;

const kubectl = (await ensureBinaries({ programs: ["kubectl"] }))?.path("kubectl") ?? "kubectl";
const clusterTest = useCluster({ crds: false });

const tls = { enabled: true, existingSecret: "tls" };
const api = { deployAPI: { enabled: true }, escrowTLS: tls };
const policy = (...additionalIngress: readonly unknown[]) => ({
  ...api,
  deployAPI: { enabled: true, networkPolicy: { enabled: true, additionalIngress } },
});

/** What can be chosen, one list for each thing. The first choice of each is the default. */
const DIMENSIONS: readonly (readonly Layer[])[] = [
  [
    {},
    { auxiliary: { escrowTLS: tls } },
    { auxiliary: api },
    {
      auxiliary: { ...api, escrowTLS: { ...tls, port: 9443 } },
      plannedOperations: { enabled: true },
    },
    { auxiliary: policy() },
    {
      auxiliary: policy(
        { from: [{ namespaceSelector: { matchLabels: { team: "ci" } } }], ports: [{ port: 8443 }] },
        { ports: [{ port: "escrow-tls" }] },
        { from: [{ ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16"] } }] },
      ),
    },
    {
      auxiliary: {
        deployAPI: { enabled: true, audience: "deployments" },
        escrowTLS: {
          enabled: true,
          certificate: { enabled: true, issuerRef: { name: "ca" }, dnsNames: ["db.example.org"] },
        },
      },
    },
    { auxiliary: api, keyringEscrow: { enabled: true, namespaces: ["default", "kube-system"] } },
    { auxiliary: api, keyringEscrow: { enabled: true } },
  ],
  [{}, { leaderElection: { label: false } }, { leaderElection: { leaseName: "a.b-c" } }],
  [{}, { replicaCount: 1, strategy: "Recreate" }, { replicaCount: 0 }, { replicaCount: 5 }],
  [{}, { rbac: { rules: "reference" } }, { rbac: { create: false } }],
  [
    {},
    { metrics: { serviceMonitor: { enabled: true, labels: { release: "p" } } } },
    { metrics: { podMonitor: { enabled: true, interval: "1m" } } },
  ],
  [
    {},
    { config: { log: { level: "debug" }, deploy_api: { max_hold_age: "1h" } } },
    { config: { host: { prestop_grace_secs: 0 } }, terminationGracePeriodSeconds: 600 },
  ],
  [
    {},
    {
      nodeSelector: { "kubernetes.io/os": "linux" },
      tolerations: [{ key: "a", operator: "Exists", effect: "NoSchedule" }],
      priorityClassName: "system-cluster-critical",
      topologySpread: { enabled: false },
    },
    {
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [{
            topologyKey: "kubernetes.io/hostname",
            labelSelector: { matchLabels: { "app.kubernetes.io/name": "holdfast" } },
          }],
        },
      },
      topologySpread: { whenUnsatisfiable: "DoNotSchedule" },
    },
  ],
  [
    {},
    {
      labels: { team: "db" },
      podLabels: { tier: "control" },
      podAnnotations: { "example.org/note": "yes: it is" },
      serviceAccount: { annotations: { "example.org/role": "on" } },
      image: { pullSecrets: ["pull"], pullPolicy: "Always", tag: "1.0" },
    },
    {
      serviceAccount: { create: false, name: "shared" },
      podDisruptionBudget: { enabled: false },
      resources: { requests: { cpu: 0.1, memory: "64Mi" }, limits: { cpu: "1000m" } },
    },
  ],
];

const SERVICES: readonly Layer[] = [
  {},
  { auxiliary: { service: { type: "NodePort", port: 80 } } },
  { auxiliary: { service: { type: "LoadBalancer", name: "database-leases" } } },
];

const COMBINATIONS = 40;

/** Every choice comes several times, each time beside others: the steps have no common divisor with the lists. */
const combinations: readonly (readonly Layer[])[] = Array.from(
  { length: COMBINATIONS },
  (_, at) => [
    { name: `c${at}`, namespace: `n${at % 4}` },
    ...[...DIMENSIONS, SERVICES].map((choices, dimension) =>
      choices[Math.floor(at * (1 + dimension * 0.37)) % choices.length] ?? {}
    ),
  ],
);

function rendered(layers: readonly Layer[]): readonly Manifest[] {
  return renderService(readServiceValues(layers), { version: "1.2.3" }).objects;
}

async function prepare(cluster: Cluster): Promise<void> {
  for (let at = 0; at < 4; at++) await cluster.createNamespace(`n${at}`);
  await cluster.applyCrds(foreignDefinitions);
}

/** Runs kubectl as a user would, with a cache of its own. */
async function runKubectl(cluster: Cluster, folder: string, ...args: readonly string[]) {
  const kubeconfig = `${folder}.kubeconfig`;
  await Deno.writeTextFile(kubeconfig, cluster.kubeconfig());
  const { code, stdout, stderr } = await new Deno.Command(kubectl, {
    args: ["--kubeconfig", kubeconfig, "--cache-dir", `${folder}.cache`, ...args],
    env: { HOME: folder },
    stdin: "null",
  }).output();
  await Deno.remove(kubeconfig);
  await Deno.remove(`${folder}.cache`, { recursive: true }).catch(() => {});
  const decoder = new TextDecoder();
  return {
    code,
    lines: decoder.decode(stdout).trimEnd().split("\n"),
    errors: decoder.decode(stderr),
  };
}

Deno.test("the matrix has each choice, and no combination twice", () => {
  assert.equal(
    new Set(combinations.map((layers) => JSON.stringify(layers.slice(1)))).size,
    COMBINATIONS,
  );
  for (const choice of [...DIMENSIONS.flat(), ...SERVICES]) {
    assert.ok(combinations.some((layers) => layers.includes(choice)), JSON.stringify(choice));
  }
});

clusterTest(
  "every object of 40 combinations of values is accepted in a dry run of the API server",
  async (cluster) => {
    await prepare(cluster);
    const kinds = new Set<string>();
    const refused: unknown[] = [];
    for (const layers of combinations) {
      await Promise.all(
        rendered(layers).map(async (object) => {
          kinds.add(object.kind);
          const path = `${collectionOf(object)}?dryRun=All&fieldValidation=Strict`;
          const answer = await cluster.admin("POST", path, { body: object });
          const warning = answer.headers.get("warning");
          if (answer.status !== 201 || warning !== null) {
            refused.push([object.kind, layers, answer.body, warning]);
          }
        }),
      );
    }
    assert.deepEqual(refused, []);
    assert.deepEqual([...kinds].sort(), [
      "Certificate",
      "ClusterRole",
      "ClusterRoleBinding",
      "ConfigMap",
      "Deployment",
      "NetworkPolicy",
      "PodDisruptionBudget",
      "PodMonitor",
      "Role",
      "RoleBinding",
      "Service",
      "ServiceAccount",
      "ServiceMonitor",
    ]);
    const planted = { ...rendered([{ namespace: "n0" }]).at(-1), spec: { replica: 2 } };
    const path = "/apis/apps/v1/namespaces/n0/deployments?dryRun=All&fieldValidation=Strict";
    assert.notEqual((await cluster.admin("POST", path, { body: planted })).status, 201);
  },
);

clusterTest(
  "kubectl applies the YAML of the same combinations, and the folder with its kustomization",
  async (cluster) => {
    await prepare(cluster);
    const folder = await Deno.makeTempDir({ prefix: "holdfast-" });
    try {
      const texts = `${folder}/texts`;
      await Deno.mkdir(texts);
      const count = { objects: 0 };
      for (const [at, layers] of combinations.entries()) {
        const objects = rendered(layers);
        count.objects += objects.length;
        await Deno.writeTextFile(`${texts}/${at}.yaml`, renderYaml(objects));
      }
      const dryRun = ["--dry-run=server", "-o", "name"];
      const created = await runKubectl(cluster, texts, "create", ...dryRun, "-f", texts);
      assert.deepEqual([created.code, created.errors], [0, ""]);
      assert.equal(created.lines.length, count.objects);

      await Deno.writeTextFile(
        `${folder}/values.yaml`,
        JSON.stringify({ namespace: "n1", auxiliary: policy() }),
      );
      const kustomize = `${folder}/out`;
      for (const namespace of ["holdfast-check", "holdfast-check-client", "orders-app"]) {
        await cluster.createNamespace(namespace);
      }
      const examples = new URL("../../deploy/examples/", import.meta.url);
      for (const [name, count] of [["networkpolicy-check", 5], ["first-lease", 3]] as const) {
        const file = fileURLToPath(new URL(`${name}.yaml`, examples));
        const { code, lines, errors } = await runKubectl(
          cluster,
          texts,
          ...["apply", ...dryRun, "-f", file],
        );
        // The namespaces were not made by kubectl, and it says so.
        assert.deepEqual([code, lines.length], [0, count], errors);
      }

      const code = await manifestsService({
        valuesFiles: [`${folder}/values.yaml`],
        outputDir: kustomize,
        outputFile: undefined,
        withCrds: false,
        diff: false,
        schema: false,
        system: productionSystem(),
      });
      assert.equal(code, 0);
      for (const option of ["-k", "-f"]) {
        const applied = await runKubectl(cluster, kustomize, "apply", ...dryRun, option, kustomize);
        // Of a whole folder, kubectl reads the kustomization too, which is no object of the cluster.
        if (option === "-k") assert.deepEqual([applied.code, applied.errors], [0, ""]);
        assert.ok(applied.lines.includes("deployment.apps/holdfast"), applied.errors);
        assert.ok(applied.lines.includes("networkpolicy.networking.k8s.io/holdfast-deploy-api"));
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);

clusterTest(
  "the pods are admitted where the restricted standard is enforced, and one with more is not",
  async (cluster) => {
    await prepare(cluster);
    const body = {
      metadata: {
        name: "restricted",
        labels: { "pod-security.kubernetes.io/enforce": "restricted" },
      },
    };
    mustSucceed(await cluster.admin("POST", "/api/v1/namespaces", { body }), "make the namespace");
    await cluster.createServiceAccount("restricted", "holdfast");
    const objects = rendered([{ namespace: "restricted", auxiliary: api, config: { log: {} } }]);
    const template = member(objects.find(({ kind }) => kind === "Deployment"), "spec", "template");
    const admit = async (spec: unknown) =>
      await cluster.admin("POST", "/api/v1/namespaces/restricted/pods?dryRun=All", {
        body: { metadata: { ...Object(member(template, "metadata")), name: "pod" }, spec },
      });
    const spec: Readonly<Record<string, unknown>> = Object(member(template, "spec"));
    const admitted = await admit(spec);
    assert.equal(admitted.status, 201, JSON.stringify(admitted.body));
    assert.equal((await admit({ ...spec, hostNetwork: true })).status, 403);
    assert.equal((await admit({ ...spec, securityContext: {} })).status, 403);
  },
);
