import assert from "node:assert/strict";
import fc from "fast-check";
import { productionSystem } from "../../handlers/commands/system.ts";
import { parseLabels, readPodInfo } from "../../lib/plugin/pod_info.ts";

const read = (env: Record<string, string>, files: Record<string, string> = {}) =>
  readPodInfo({ env, readTextFile: (path) => files[path] });

Deno.test("everything that the Downward API gives is read", () => {
  const env = {
    POD_NAME: " web-1 ",
    HOSTNAME: "other",
    POD_NAMESPACE: "shop",
    POD_UID: "u",
    NODE_NAME: "n",
    POD_IP: "10.0.0.1",
    POD_SERVICE_ACCOUNT: "web",
    KUBERNETES_SERVICE_HOST: "10.0.0.1",
  };
  assert.deepEqual(read(env, { "/etc/podinfo/labels": 'app="web"\n' }), {
    name: "web-1",
    namespace: "shop",
    uid: "u",
    nodeName: "n",
    ip: "10.0.0.1",
    serviceAccount: "web",
    labels: { app: "web" },
    inCluster: true,
  });
});

Deno.test("the host's name and the service account's file stand in for what is missing", () => {
  const file = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
  const info = read({ HOSTNAME: "web-2" }, { [file]: "shop\n" });
  assert.equal(info.name, "web-2");
  assert.equal(info.namespace, "shop");
  assert.equal(info.inCluster, false);
});

Deno.test("blank values count as missing", () => {
  const info = read({ POD_NAME: " ", HOSTNAME: "h", POD_UID: "", KUBERNETES_SERVICE_HOST: " " }, {
    "/var/run/secrets/kubernetes.io/serviceaccount/namespace": " \n",
  });
  assert.equal(info.name, "h");
  assert.equal(info.uid, undefined);
  assert.equal(info.namespace, undefined);
  assert.equal(info.inCluster, false);
});

Deno.test("the directories can be others", () => {
  const files = { "/sa/namespace": "shop", "/info/labels": 'a="b"' };
  const readTextFile = (path: string) => new Map(Object.entries(files)).get(path);
  const info = readPodInfo({
    env: {},
    readTextFile,
    serviceAccountDirectory: "/sa",
    podInfoDirectory: "/info",
  });
  assert.deepEqual([info.namespace, info.labels], ["shop", { a: "b" }]);
});

Deno.test("a file that cannot be read counts as missing", () => {
  const info = readPodInfo({
    env: {},
    readTextFile: () => {
      throw new Deno.errors.PermissionDenied("no");
    },
  });
  assert.deepEqual([info.namespace, info.labels], [undefined, {}]);
});

Deno.test("labels: escapes are decoded, what does not decode is kept, and lines that are none are skipped", () => {
  const text = [
    'app.kubernetes.io/name="web"',
    'quote="say \\"hi\\""',
    'go="\\a"',
    "bare=word",
    'equals="a=b"',
    "number=5",
    'empty=""',
    "no equals sign",
    '="no key"',
    "",
  ].join("\n");
  assert.deepEqual(parseLabels(text), {
    "app.kubernetes.io/name": "web",
    quote: 'say "hi"',
    go: '"\\a"',
    bare: "word",
    equals: "a=b",
    number: "5",
    empty: "",
  });
});

Deno.test("labels of any text come back as they were written", () => {
  const key = fc.stringMatching(/^[a-z][a-z0-9./-]{0,20}[a-z0-9]$/);
  fc.assert(fc.property(fc.dictionary(key, fc.string()), (labels) => {
    const text = Object.entries(labels).map(([name, value]) =>
      `${name}=${JSON.stringify(value)}\n`
    );
    assert.deepEqual(parseLabels(text.join("")), { ...labels });
  }));
});

Deno.test("the environment of this very process can be read", () => {
  const { env, readTextFile } = productionSystem();
  assert.equal(typeof readPodInfo({ env, readTextFile }).inCluster, "boolean");
});
