/** `holdfast manifests service` on a real API server: the difference, the definitions, and a cluster without selectors. */

import assert from "node:assert/strict";
import { parseAllDocuments } from "yaml";
import { manifestsService } from "../../../handlers/commands/manifests/service.ts";
import type { ServiceManifestsOptions } from "../../../handlers/commands/manifests/arguments.ts";
import type { Manifest } from "../../../lib/manifests/service/objects.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { useCluster } from "../../cluster/cluster_test_support.ts";
import { member, mustSucceed } from "../../cluster/raw_client.ts";
import { grantedBody } from "../../service/deployment_client.ts";
import { collectionOf, eventually, ServicePlace } from "../../manifests/service_place.ts";
import { fakeSystem } from "./fake_system.ts";

const clusterTest = useCluster({ crds: false, audit: true });

/** Runs the command as the administrator of the cluster, or as somebody with a token. */
async function run(
  cluster: Cluster,
  values: unknown,
  options: Partial<ServiceManifestsOptions>,
  token?: string,
) {
  const files = {
    "/kubeconfig": cluster.kubeconfig(token === undefined ? undefined : { token }),
    "/values.yaml": JSON.stringify(values),
  };
  const system = fakeSystem({ env: { KUBECONFIG: "/kubeconfig" }, files });
  const code = await manifestsService({
    valuesFiles: ["/values.yaml"],
    outputDir: undefined,
    outputFile: undefined,
    withCrds: false,
    diff: false,
    schema: false,
    system,
    ...options,
  });
  return { code, ...system.written };
}

function objectsIn(yaml: string): readonly Manifest[] {
  return parseAllDocuments(yaml).map((document): Manifest => document.toJS());
}

/** Creates objects with the note that `kubectl apply` leaves on them. */
async function apply(cluster: Cluster, objects: readonly Manifest[]): Promise<void> {
  for (const object of objects) {
    const annotations = {
      ...object.metadata.annotations,
      "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify(object),
    };
    const body = { ...object, metadata: { ...object.metadata, annotations } };
    const answer = await cluster.admin("POST", collectionOf(object), { body });
    mustSucceed(answer, `create the ${object.kind}`);
  }
}

const API = {
  deployAPI: { enabled: true, networkPolicy: { enabled: true } },
  escrowTLS: { enabled: true, existingSecret: "tls" },
};

clusterTest(
  "--diff shows what would come, change and stay behind, and stores nothing",
  async (cluster) => {
    const nodeSelector = { "kubernetes.io/os": "linux" };
    const values = { name: "diffed", namespace: "diffed", auxiliary: API, nodeSelector };
    await cluster.createNamespace("diffed");
    const before = await run(cluster, values, { diff: true });
    assert.equal(before.code, 1, before.stderr);
    const { stdout } = await run(cluster, values, {});
    const objects = objectsIn(stdout);
    const lines = before.stdout.trimEnd().split("\n");
    assert.equal(lines.length, objects.length);
    assert.ok(lines.every((line) => line.startsWith("+ ")), before.stdout);
    assert.ok(lines.includes("+ Deployment diffed/diffed"));
    assert.ok(lines.includes("+ ClusterRole diffed"));

    await apply(cluster, objects);
    assert.deepEqual(await run(cluster, values, { diff: true }), {
      code: 0,
      stdout: "",
      stderr: "",
    });

    const changed = {
      ...values,
      replicaCount: 3,
      strategy: "Recreate",
      nodeSelector: null,
      auxiliary: {
        ...API,
        escrowTLS: { ...API.escrowTLS, port: 9443 },
        deployAPI: { enabled: true },
      },
      // What the server writes in another way is no difference.
      resources: { requests: { cpu: "0.05", memory: "128Mi" } },
    };
    const after = await run(cluster, changed, { diff: true });
    assert.equal(after.code, 1);
    const shown = after.stdout.trimEnd().split("\n");
    assert.ok(shown.includes("~ Deployment diffed/diffed"), after.stdout);
    assert.ok(shown.includes("    spec.replicas: 2 → 3"));
    assert.ok(shown.includes('    spec.strategy.type: "RollingUpdate" → "Recreate"'), after.stdout);
    assert.ok(
      shown.includes('    spec.template.spec.nodeSelector: {"kubernetes.io/os":"linux"} → nothing'),
      after.stdout,
    );
    assert.ok(shown.includes("~ Service diffed/bloodraven"));
    assert.ok(shown.includes("    spec.ports[1].port: 8443 → 9443"));
    assert.ok(shown.includes("- NetworkPolicy diffed/diffed-deploy-api"));
    assert.ok(
      !shown.some((line) => /Role|Budget|ServiceAccount|cpu/.test(line)),
      after.stdout,
    );
    // The labels of the version are the same, and nothing of the dry runs was stored.
    assert.deepEqual(await run(cluster, values, { diff: true }), {
      code: 0,
      stdout: "",
      stderr: "",
    });
  },
);

clusterTest(
  "--diff without the rights ends with 112, and says what is missing",
  async (cluster) => {
    await cluster.createNamespace("poor");
    await cluster.createServiceAccount("poor", "reader");
    const token = await cluster.token({ namespace: "poor", serviceAccount: "reader" });
    const { code, stdout, stderr } = await run(
      cluster,
      { namespace: "poor" },
      { diff: true },
      token,
    );
    assert.deepEqual([code, stdout], [112, ""]);
    assert.match(stderr, /^holdfast: Cannot get .*serviceaccounts/);
  },
);

clusterTest(
  "--with-crds brings the definitions where there are none or ours, and refuses to write over others",
  async (cluster) => {
    const values = { name: "defined", namespace: "defined" };
    await cluster.createNamespace("defined");
    const without = await run(cluster, values, {});
    assert.ok(!without.stdout.includes("CustomResourceDefinition"));

    const first = await run(cluster, values, { withCrds: true });
    assert.deepEqual([first.code, first.stderr], [0, ""]);
    const objects = objectsIn(first.stdout);
    assert.deepEqual(
      objects.slice(0, 3).map(({ kind, metadata }) => `${kind} ${metadata.name}`),
      ["mysqlfailovergroups", "mysqldatabases", "mysqlbackups"].map((plural) =>
        `CustomResourceDefinition ${plural}.shipstream.io`
      ),
    );
    await apply(cluster, objects);
    const again = await run(cluster, values, { withCrds: true, diff: true });
    assert.deepEqual(again, { code: 0, stdout: "", stderr: "" });

    // Another operator's: it has no label of ours.
    const path =
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mysqldatabases.shipstream.io";
    const label = (value: string | null) =>
      cluster.admin("PATCH", path, {
        body: { metadata: { labels: { "app.kubernetes.io/managed-by": value } } },
        contentType: "application/merge-patch+json",
      });
    for (const manager of [null, "Helm"]) {
      mustSucceed(await label(manager), "change the label");
      const folder = await Deno.makeTempDir({ prefix: "holdfast-" });
      const outputDir = `${folder}/out`;
      const refused = await run(cluster, values, { withCrds: true, outputDir });
      assert.deepEqual([refused.code, refused.stdout], [1, ""]);
      assert.equal(
        refused.stderr,
        "holdfast: Cannot write the definition mysqldatabases.shipstream.io as the cluster has one that is not ours: leave --with-crds out, or label it app.kubernetes.io/managed-by=holdfast if it may be replaced\n",
      );
      assert.deepEqual(await Array.fromAsync(Deno.readDir(folder)), []);
      await Deno.remove(folder);
    }
    mustSucceed(await label("holdfast"), "give the label back");
  },
);

clusterTest(
  "definitions without selectableFields serve as well: the list of databases is read whole",
  async (cluster) => {
    const { stdout } = await run(cluster, { namespace: "defined" }, { withCrds: true });
    const definitions = objectsIn(stdout).filter(({ kind }) => kind === "CustomResourceDefinition")
      .map((definition) => {
        const copy = structuredClone(definition);
        const versions: Record<string, unknown>[] = Object(member(copy, "spec", "versions"));
        for (const version of versions) delete version.selectableFields;
        return copy;
      });
    assert.ok(!JSON.stringify(definitions).includes("selectableFields"));
    await cluster.applyCrds(definitions);
    await using place = await ServicePlace.open(cluster, () => ({ auxiliary: API }));
    const service = await place.start();
    const client = await place.client(service);
    await eventually("it leads", async () => (await client.observe()).status === 200);
    const granted = await client.grant("op-1", "tenant");
    assert.equal(granted.status, 201, granted.text);
    const { token } = grantedBody.parse(granted.body);
    assert.equal((await client.renew("op-1", token)).status, 200);
    assert.equal((await client.release("op-1", token)).status, 204);
    const lists = (await cluster.auditLog()).filter(({ user, verb, resource }) =>
      user === place.user && verb === "list" && resource === "mysqldatabases"
    );
    const selects = (uri: string) => uri.includes("fieldSelector");
    assert.ok(lists.some(({ requestUri, status }) => selects(requestUri) && status === 400));
    assert.ok(lists.some(({ requestUri, status }) => !selects(requestUri) && status === 200));
  },
);
