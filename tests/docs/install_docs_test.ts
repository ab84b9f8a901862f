/** docs/install.md and the examples that it uses: what can be run here is run. */

import assert from "node:assert/strict";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { readConfig } from "../../lib/config/layers.ts";
import { completeSettings } from "../../lib/client/settings.ts";
import { readServiceValues } from "../../lib/manifests/service/read_values.ts";
import { renderService } from "../../lib/manifests/service/render.ts";
import manifest from "../../deno.json" with { type: "json" };
import { member } from "../cluster/raw_client.ts";
import { ROOT } from "../checks/shell.ts";
import { type Block, blocksIn, readDocument } from "./markdown.ts";

const page = await readDocument("docs/install.md");
const version = manifest.version;

function blocks(language: string): readonly Block[] {
  return blocksIn(page).filter((block) => block.language === language);
}

Deno.test("the certificate of docs/install.md is one that its clients take, for every name of the Services", async () => {
  const script = blocks("sh").find(({ text }) => text.includes("openssl req"))?.text ?? "";
  const folder = await Deno.makeTempDir({ prefix: "holdfast-" });
  try {
    const run = async (command: string, ...args: readonly string[]) => {
      const { code, stdout, stderr } = await new Deno.Command(command, {
        args: [...args],
        cwd: folder,
        stdin: "null",
      }).output();
      const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
      return { code, text };
    };
    const made = await run("bash", "-euc", script);
    assert.equal(made.code, 0, made.text);
    const names = [...script.matchAll(/DNS:([\w.-]+)/g)].map(([, name = ""]) => name);
    assert.ok(names.includes("bloodraven.bloodraven.svc.cluster.local"));
    assert.ok(names.includes("bloodraven-all.bloodraven.svc.cluster.local"));
    for (const name of names) {
      const { code, text } = await run(
        "openssl",
        ...["verify", "-purpose", "sslserver", "-CAfile", "ca.crt", "-verify_hostname", name],
        "tls.crt",
      );
      assert.equal(code, 0, text);
    }
    // The client's own TLS is stricter: it takes no authority for a server.
    const read = (name: string) => Deno.readTextFile(`${folder}/${name}`);
    const [ca, cert, key] = await Promise.all([read("ca.crt"), read("tls.crt"), read("tls.key")]);
    using listener = Deno.listenTls({ hostname: "127.0.0.1", port: 0, cert, key });
    const { port } = listener.addr;
    const [server, client] = await Promise.all([
      listener.accept(),
      Deno.connect({ hostname: "127.0.0.1", port }).then((connection) =>
        Deno.startTls(connection, { hostname: names[0], caCerts: [ca] })
      ),
    ]);
    await Promise.all([client.handshake(), server.handshake()]);
    client.close();
    server.close();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("the values of docs/install.md are those of the example, with an image, and render what the page lists", async () => {
  const [values] = blocks("yaml").map(({ text }): unknown => parse(text));
  const example: unknown = parse(await readDocument("deploy/examples/values.yaml"));
  const { image, ...rest } = z.looseObject({ image: z.unknown() }).parse(values);
  assert.deepEqual(rest, example);
  assert.ok(image);
  const layer = { ...rest, image: { repository: "example/holdfast" } };
  const { objects, warnings } = renderService(readServiceValues([layer]), { version });
  assert.deepEqual(warnings, []);
  for (const name of ["Deployment `holdfast`", "Service `bloodraven-all`"]) {
    const [kind, title] = name.replaceAll("`", "").split(" ");
    assert.ok(page.includes(name));
    assert.ok(objects.some((object) => object.kind === kind && object.metadata.name === title));
  }
  const policy = objects.find(({ kind }) => kind === "NetworkPolicy");
  assert.ok(page.includes(`NetworkPolicy \`${policy?.metadata.name}\``));
});

Deno.test("the Job of the first lease has settings that the client takes, and labels that the policy lets in", async () => {
  const objects = parseAllDocuments(await readDocument("deploy/examples/first-lease.yaml"))
    .map((document): unknown => document.toJS());
  const [namespace, account, job] = objects;
  const pod = member(job, "spec", "template");
  const container = member(pod, "spec", "containers", 0);
  assert.equal(member(namespace, "metadata", "labels", "shipstream.io/mysql-client"), "true");
  assert.equal(
    member(pod, "metadata", "labels", "bloodraven.shipstream.io/deploy-client"),
    "true",
  );
  assert.equal(member(pod, "spec", "serviceAccountName"), member(account, "metadata", "name"));
  assert.equal(member(container, "image"), `holdfast:${version}`);
  const variables = z.array(z.object({ name: z.string(), value: z.string() }))
    .parse(member(container, "env"));
  const env = Object.fromEntries(variables.map(({ name, value }) => [name, value]));
  const settings = completeSettings({}, env);
  assert.equal(settings.url, "https://bloodraven.bloodraven.svc.cluster.local:8443");
  // Where the token is mounted is where the client looks by itself.
  const mount = String(member(container, "volumeMounts", 0, "mountPath"));
  assert.equal(settings.tokenFile, `${mount}/token`);
  const audience = member(
    pod,
    ...["spec", "volumes", 0, "projected", "sources", 0, "serviceAccountToken", "audience"],
  );
  const { config } = readConfig({ env: {}, readTextFile: () => undefined });
  assert.equal(audience, config.deploy_api.audience);
});

Deno.test("every file that the commands of docs/install.md name is there", async () => {
  const commands = blocks("sh").map(({ text }) => text).join("\n");
  const paths = [...commands.matchAll(/\bdeploy\/[\w./-]+/g)].map(([path]) => path);
  assert.ok(paths.length >= 4);
  for (const path of paths) await Deno.stat(new URL(path, ROOT));
});
