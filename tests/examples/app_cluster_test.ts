/** The example application on a real API server, through a kubeconfig, with the Role that is generated for it. */

import assert from "node:assert/strict";
import { z } from "zod";
import { loadConfig } from "../../lib/config/layers.ts";
import { CONFIG_MAPS } from "../../lib/kube/mod.ts";
import { rbacNeedsOf, rbacObjects } from "../../lib/manifests/mod.ts";
import { useCluster } from "../cluster/cluster_test_support.ts";
import { mustSucceed } from "../cluster/raw_client.ts";
import { eventually } from "../host/support.ts";
import { ExampleProcess } from "./example_process.ts";

const clusterTest = useCluster({ crds: false });
const Page = z.looseObject({ greeting: z.string(), mode: z.string(), leads: z.boolean() });

clusterTest(
  "two processes of the example share one lead, see the ConfigMap, and hand over",
  async (cluster) => {
    const namespace = "example";
    await cluster.createNamespace(namespace);
    await cluster.createServiceAccount(namespace, "example");
    const folder = new URL("../../deploy/examples/app/", import.meta.url);
    const { config } = loadConfig({
      env: { AUTUMN_MANIFEST_DIR: folder.pathname },
      readTextFile: (path) =>
        path.endsWith("/holdfast.yaml") ? Deno.readTextFileSync(path) : undefined,
    });
    const [role, binding] = rbacObjects({ name: "example", namespace }, rbacNeedsOf(config));
    const base = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
    mustSucceed(await cluster.admin("POST", `${base}/roles`, { body: role }), "make the Role");
    mustSucceed(await cluster.admin("POST", `${base}/rolebindings`, { body: binding }), "bind it");
    const token = await cluster.token({ namespace, serviceAccount: "example" });
    const file = await Deno.makeTempFile();
    await Deno.writeTextFile(file, cluster.kubeconfig({ token }, namespace));
    const env = (name: string) => ({
      KUBECONFIG: file,
      POD_NAME: name,
      HOLDFAST__HOST__LISTEN: "127.0.0.1:0",
      HOLDFAST__LOG__FORMAT: "json",
    });
    const look = async (url: string) => Page.parse(await (await fetch(url)).json());
    try {
      await using first = new ExampleProcess([], env("one"));
      const [a = ""] = await first.ready(1);
      await eventually(async () => (await look(a)).leads, "the first one leads");
      await using second = new ExampleProcess([], env("two"));
      const [b = ""] = await second.ready(1);
      const page = await look(b);
      assert.deepEqual([page.mode, page.leads, page.greeting], ["kubeconfig", false, "hello"]);

      const data = { "settings.json": JSON.stringify({ greeting: "good day" }) };
      const metadata = { name: "example-settings", namespace };
      const { signal } = new AbortController();
      await cluster.adminApi.create(CONFIG_MAPS, { metadata, data }, { signal });
      await eventually(async () => (await look(b)).greeting === "good day", "the change is seen");

      assert.equal(await first.stop(), 0);
      await eventually(async () => (await look(b)).leads, "the second one leads", 2_000);
      assert.equal(await second.stop(), 0);
    } finally {
      await Deno.remove(file);
    }
  },
);
