import assert from "node:assert/strict";
import { loadClientNodeConfig } from "../../lib/kube/client_node.ts";

const config = (cluster: string, context?: string) =>
  JSON.stringify({
    "current-context": context,
    contexts: [{ name: cluster, context: { cluster, user: cluster } }],
    clusters: [{
      name: cluster,
      cluster: { server: `https://${cluster}`, "certificate-authority": "ca.crt" },
    }],
    users: [{ name: cluster, user: { token: cluster } }],
  });

/** Loads from files in memory. */
const load = (kubeconfig: string, files: Record<string, string>, pathSeparator?: string) =>
  loadClientNodeConfig({
    mode: "kubeconfig",
    env: (name) => name === "KUBECONFIG" ? kubeconfig : undefined,
    readTextFile: (path) => files[path],
    pathSeparator,
  });

Deno.test("in a pod it is that of the pod's credentials", async () => {
  const { currentContext } = await loadClientNodeConfig({
    mode: "in_cluster",
    env: () => undefined,
    readTextFile: () => undefined,
  });
  assert.equal(currentContext, "inClusterContext");
});

Deno.test("several files are one configuration, the first current context counts, and files are meant from their own place", async () => {
  const files = {
    "/a/x": config("one"),
    "/b/y": config("two", "two"),
    "/c/z": config("three", "three"),
  };
  const merged = await load("/a/x;/missing;/b/y;/c/z", files, ";");
  assert.equal(merged.currentContext, "two");
  assert.deepEqual(merged.clusters.map(({ name, caFile }) => [name, caFile]), [
    ["one", "/a/ca.crt"],
    ["two", "/b/ca.crt"],
    ["three", "/c/ca.crt"],
  ]);
});

Deno.test("one name in two files is refused by client-node, and the error tells the file and nothing of it", async () => {
  const files = { "/a": config("secret"), "/b": config("secret") };
  await assert.rejects(load("/a:/b", files, ":"), {
    name: "ClusterConfigError",
    message: "Cannot read the kubeconfig /b: client-node refuses it",
  });
});
