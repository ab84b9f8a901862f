/** The example application under the variables of its own Deployment: it is there where the probes look. */

import assert from "node:assert/strict";
import { loadConfig } from "../../lib/config/layers.ts";
import { appInputOf, appManifests } from "../../lib/manifests/mod.ts";
import { eventually } from "../host/support.ts";
import { ExampleProcess } from "./example_process.ts";

const FOLDER = new URL("../../deploy/examples/app/", import.meta.url).pathname;

/** A port that was free a moment ago. */
function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

Deno.test("an application that runs with what its Deployment says answers each of its probes", async () => {
  const port = freePort();
  const { config } = loadConfig({
    env: {},
    readTextFile: (path) =>
      path === "holdfast.yaml" ? Deno.readTextFileSync(FOLDER + path) : undefined,
    options: [{ option: "--set", key: "host.listen", text: `127.0.0.1:${port}` }],
  });
  const objects = appManifests({
    ...appInputOf(config),
    name: "example-app",
    image: "example-app:1",
    // In a folder without a cluster the profile of the cluster would not start.
    env: { AUTUMN_ENV: "test", AUTUMN_MANIFEST_DIR: FOLDER },
  });
  const deployment = objects.find((each) => each.kind === "Deployment");
  assert.ok(deployment?.kind === "Deployment");
  const [container] = deployment.spec.template.spec.containers;
  assert.deepEqual(container.ports, [{ name: "http", containerPort: port }]);
  const env = Object.fromEntries(
    container.env.flatMap((variable) =>
      "value" in variable ? [[variable.name, variable.value]] : []
    ),
  );
  await using app = new ExampleProcess([], {
    ...env,
    // As the kubelet fills them in; and no cluster of whoever runs the test.
    POD_NAME: "example-app-1",
    POD_NAMESPACE: "default",
    KUBECONFIG: "",
    HOME: "/nonexistent",
    HOLDFAST__LOG__FORMAT: "json",
  });
  await app.ready(1);
  for (const probe of ["startupProbe", "readinessProbe", "livenessProbe"] as const) {
    const { path } = container[probe].httpGet;
    await eventually(async () => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`);
      await answer.body?.cancel();
      return answer.status === 200;
    }, `${probe} is answered`);
  }
  // Every interface, and not the loopback address alone: the kubelet asks from outside.
  const addresses = app.lines.filter(({ msg }) => msg === "listening").map(({ addr }) => addr);
  assert.deepEqual(addresses, [`0.0.0.0:${port}`]);
  assert.equal(await app.stop(), 0);
});
