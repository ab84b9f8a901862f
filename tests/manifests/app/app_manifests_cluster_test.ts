/** The generated objects on a real API server: it takes all of them, as JSON and as YAML, with nothing unknown in them. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { appManifests, type AppObject, renderYaml } from "../../../lib/manifests/mod.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { useCluster } from "../../cluster/cluster_test_support.ts";
import { member, mustSucceed } from "../../cluster/raw_client.ts";
import { validInput } from "./valid_input.ts";

const clusterTest = useCluster({ crds: false });

const NAMESPACE = "shop";
const ROOTS: Readonly<Record<AppObject["kind"], string>> = {
  ServiceAccount: "/api/v1/namespaces/shop/serviceaccounts",
  Role: "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles",
  RoleBinding: "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings",
  Deployment: "/apis/apps/v1/namespaces/shop/deployments",
  Service: "/api/v1/namespaces/shop/services",
  PodDisruptionBudget: "/apis/policy/v1/namespaces/shop/poddisruptionbudgets",
};

/** Strict: an unknown or repeated member is an error, and not a warning. */
const DRY = "?dryRun=All&fieldValidation=Strict";

let prepared: Promise<unknown> | undefined;
const prepare = (cluster: Cluster) => prepared ??= cluster.createNamespace(NAMESPACE);

/** What the server makes of an object, without what it counts or draws anew each time. */
function settled(answer: unknown): unknown {
  const text = JSON.stringify(
    answer,
    (key, value) =>
      ["uid", "creationTimestamp", "time", "clusterIP", "clusterIPs"].includes(key)
        ? undefined
        : value,
  );
  return JSON.parse(text);
}

/** Sends each object twice, as JSON and as its YAML document; gives the server's answers to the former. */
async function dryRun({ admin }: Cluster, objects: readonly AppObject[]): Promise<unknown[]> {
  const documents = renderYaml(objects).split(/^---\n/m).slice(1);
  assert.equal(documents.length, objects.length);
  return await Promise.all(objects.map(async (object, index) => {
    const path = `${ROOTS[object.kind]}${DRY}`;
    const json = await admin("POST", path, { body: object });
    mustSucceed(json, `send the ${object.kind} as JSON`);
    const contentType = "application/yaml";
    const yaml = await admin("POST", path, { text: documents[index], contentType });
    mustSucceed(yaml, `send the ${object.kind} as YAML:\n${documents[index]}\n`);
    assert.deepEqual(settled(yaml.body), settled(json.body));
    return json.body;
  }));
}

clusterTest(
  "a server-side dry run takes the six objects, as objects and as YAML",
  async (cluster) => {
    await prepare(cluster);
    const objects = appManifests({
      name: "web",
      image: "registry.example/web:1",
      namespace: NAMESPACE,
      leaseName: "web",
      configMaps: ["web-settings"],
      labelLeader: true,
      env: { ON: "on", NUMBER: "0o17", LINES: "a\n---\nb" },
    });
    assert.equal(objects.length, 6);
    const answers = await dryRun(cluster, objects);
    // What was sent came through as it was: the server adds defaults, and changes nothing.
    objects.forEach((object, index) => assertWithin(object, answers[index], object.kind));
  },
);

clusterTest(
  "a server-side dry run takes forty combinations of valid inputs and their extremes",
  async (cluster) => {
    await prepare(cluster);
    for (const input of fc.sample(validInput, { seed: 13, numRuns: 40 })) {
      await dryRun(cluster, appManifests(input));
    }
  },
);

clusterTest("the objects can be applied in their order, and again", async (cluster) => {
  await prepare(cluster);
  const input = { name: "applied", image: "web:1", namespace: NAMESPACE, leaseName: "applied" };
  const query = "?fieldManager=test&fieldValidation=Strict";
  for (const replicas of [2, 3]) {
    const objects = appManifests({ ...input, replicas });
    for (const { kind, metadata: { name } } of objects) {
      const object = objects.find((each) => each.kind === kind) ?? {};
      const answer = await cluster.admin("PATCH", `${ROOTS[kind]}/${name}${query}`, {
        text: renderYaml([object]),
        contentType: "application/apply-patch+yaml",
      });
      mustSucceed(answer, `apply the ${kind}`);
    }
    const stored = await cluster.admin("GET", `${ROOTS.Deployment}/applied`);
    assert.equal(member(stored.body, "spec", "replicas"), replicas);
  }
});

clusterTest("the pod keeps to the strictest of the Pod Security Standards", async (cluster) => {
  const label = { "pod-security.kubernetes.io/enforce": "restricted" };
  const metadata = { name: "strict", labels: label };
  mustSucceed(
    await cluster.admin("POST", "/api/v1/namespaces", { body: { metadata } }),
    "make the namespace",
  );
  await cluster.createServiceAccount("strict", "web");
  const objects = appManifests({ name: "web", image: "web:1", namespace: "strict" });
  const deployment = objects.find((each) => each.kind === "Deployment");
  assert.ok(deployment?.kind === "Deployment");
  const { template } = deployment.spec;
  const pods = "/api/v1/namespaces/strict/pods?dryRun=All&fieldValidation=Strict";
  const pod = { ...template, metadata: { ...template.metadata, name: "web-1" } };
  mustSucceed(await cluster.admin("POST", pods, { body: pod }), "make the pod");
  // The standard is in force: without the context of the container the pod is refused.
  const [{ securityContext: _, ...bare }] = template.spec.containers;
  const loose = { ...pod, spec: { ...template.spec, containers: [bare] } };
  const refused = await cluster.admin("POST", pods, { body: loose });
  assert.equal(refused.status, 403);
  assert.match(String(member(refused.body, "message")), /allowPrivilegeEscalation/);
});

/** Insists that all of `part` is in `whole`. */
function assertWithin(part: unknown, whole: unknown, path: string): void {
  if (typeof part !== "object" || part === null) return assert.deepEqual(whole, part, path);
  for (const [key, value] of Object.entries(part)) {
    assertWithin(value, member(whole, key), `${path}.${key}`);
  }
}
