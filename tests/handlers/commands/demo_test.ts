import assert from "node:assert/strict";
import { CURL_TITLE, KUBECTL_TITLE } from "../../../handlers/commands/demo/hints.ts";
import { parseDotenv } from "../../../lib/config/dotenv.ts";
import { DemoProcess } from "./demo/demo_process.ts";

Deno.test("demo --once plays the twenty steps with the permissions of its task, and leaves nothing", async () => {
  const startedMs = performance.now();
  const { code, lines, errors, left } = await DemoProcess.run(["--once"]);
  assert.deepEqual({ code, errors, left }, { code: 0, errors: "", left: [] });
  const answers = lines.flatMap((line) => / -> (\w+)$/.exec(line)?.[1] ?? []);
  assert.deepEqual(answers, [
    ...["200", "201", "409", "200", "200", "204", "201", "204"],
    ...["201", "201", "Deferred", "200", "423", "204", "Succeeded"],
    ...["409", "409", "201", "409", "204"],
  ]);
  assert.match(lines.join("\n"), /Refused: orders-app holds it .* until \d\d:\d\d:\d\d UTC/);
  assert.match(
    lines.join(" "),
    /DeploymentHold: "Planned failover to pdx is held by the deployment +orders-release-43 of/,
  );
  assert.match(lines.join(" "), /moved from iad to pdx, at topology generation 8/);
  assert.equal(lines.filter((line) => line.startsWith("   Why: ")).length, 20);
  assert.match(lines.at(-1) ?? "", /^The story is over/);
  assert.ok(performance.now() - startedMs < 30_000);
});

Deno.test("the printed curl lines do each step again, as often as they are copied", async () => {
  await using demo = await DemoProcess.start([]);
  await demo.ready();
  const script = demo.between(CURL_TITLE, KUBECTL_TITLE).join("\n");
  for (let round = 0; round < 2; round++) {
    const { code, stdout, stderr } = await new Deno.Command("bash", {
      args: ["-e", "-o", "pipefail", "-c", script],
      // A proxy of the user must not come in between.
      env: { https_proxy: "http://127.0.0.1:1", http_proxy: "http://127.0.0.1:1" },
    }).output();
    assert.deepEqual([code, new TextDecoder().decode(stderr)], [0, ""]);
    const output = new TextDecoder().decode(stdout);
    const statuses = output.split("\n").filter((line) => /^\d{3}$/.test(line));
    assert.deepEqual(statuses, ["200", "201", "409", "200", "200", "204", "201", "204"]);
    const held = /\{"error":"held".*\}/.exec(output)?.[0] ?? "{}";
    assert.equal(JSON.parse(held).holder.instance, "orders-app");
    assert.match(output, /^bloodraven_deploy_lease_grants_total\{.*result="granted"\} \d+$/m);
  }
});

Deno.test("the env file is there once the story is over, and all that it names works", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/demo.env`;
    await Deno.writeTextFile(path, "HOLDFAST_URL=https://127.0.0.1:1\n");
    await using demo = await DemoProcess.start(["--env-file", path]);
    await demo.ready();
    const variables = parseDotenv(path, await Deno.readTextFile(path));
    assert.deepEqual([...variables.keys()], [
      "HOLDFAST_URL",
      "HOLDFAST_CA_FILE",
      "HOLDFAST_TOKEN_FILE",
      "HOLDFAST_GROUP",
      "HOLDFAST_INSTANCE",
      "HOLDFAST_STATUS_URL",
      "DEMO_KUBECONFIG",
    ]);
    const read = (name: string) => Deno.readTextFile(variables.get(name) ?? "");
    using client = Deno.createHttpClient({ caCerts: [await read("HOLDFAST_CA_FILE")] });
    const response = await fetch(
      `${variables.get("HOLDFAST_URL")}/deploy/v1/groups/${variables.get("HOLDFAST_GROUP")}/leases`,
      {
        client,
        method: "POST",
        headers: { Authorization: `Bearer ${await read("HOLDFAST_TOKEN_FILE")}` },
        body: JSON.stringify({
          kind: "migration",
          operationId: "of-the-env-file",
          instance: variables.get("HOLDFAST_INSTANCE"),
        }),
      },
    );
    await response.body?.cancel();
    assert.equal(response.status, 201);
    assert.match(await read("DEMO_KUBECONFIG"), /"kind": "Config"/);
    const files: string[] = [];
    for await (const { name } of Deno.readDir(folder)) files.push(name);
    assert.deepEqual(files, ["demo.env"], "no unfinished file may be left");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.test(`${signal} ends a demo that stays up in order, and its folder is gone`, async () => {
    await using demo = await DemoProcess.start([]);
    await demo.ready();
    demo.kill(signal);
    const { code, errors, left } = await demo.ended();
    assert.deepEqual({ code, errors, left }, { code: 0, errors: "", left: [] });
  });
}

Deno.test("a demo that is asked to end while it sets itself up leaves nothing behind", async () => {
  await using demo = await DemoProcess.start([]);
  await demo.printed(/^Holdfast/);
  demo.kill("SIGINT");
  const { code, errors, left } = await demo.ended();
  assert.deepEqual({ code, errors, left }, { code: 0, errors: "", left: [] });
});

/** A first port with three more free ones behind it, as far as a look can tell. */
function freePorts(): number {
  for (;;) {
    const port = withListener(0, (found) => found);
    try {
      for (let next = port; next < port + 5; next++) withListener(next, () => {});
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse || error instanceof TypeError)) throw error;
    }
  }
}

function withListener<T>(port: number, use: (port: number) => T): T {
  using listener = Deno.listen({ hostname: "127.0.0.1", port });
  return use(listener.addr.port);
}

Deno.test("--port gives the service its port, and the rest those behind it", async () => {
  const port = freePorts();
  const { code, lines, errors } = await DemoProcess.run(["--once", "--port", String(port)]);
  assert.deepEqual([code, errors], [0, ""]);
  const text = lines.join("\n");
  assert.match(text, new RegExp(`Service +https://127\\.0\\.0\\.1:${port}, `));
  assert.match(text, new RegExp(`API server +https://127\\.0\\.0\\.1:${port + 4}, `));
});

const NAMES = [
  "the service",
  "the service's metrics",
  "the service's probes",
  "the service's auxiliary views",
  "the API server",
];

for (const [at, name] of NAMES.entries()) {
  Deno.test(`a port that is taken where ${name} listens ends the demo with its number and the option`, async () => {
    const port = freePorts();
    using _taken = Deno.listen({ hostname: "127.0.0.1", port: port + at });
    const { code, errors, left } = await DemoProcess.run(["--once", "--port", String(port)]);
    assert.deepEqual([code, left], [1, []]);
    assert.match(
      errors,
      new RegExp(
        `^holdfast: Cannot listen on port ${port + at} for ${name}.* as the port is in use: ` +
          `give another first port with --port [^\n]*\n$`,
      ),
    );
  });
}

Deno.test("an env file that cannot be written ends the demo before it begins", async () => {
  const { code, lines, errors, left } = await DemoProcess.run(["--env-file", "/nowhere/demo.env"]);
  assert.deepEqual([code, lines, left], [1, [], []]);
  assert.match(errors, /^holdfast: Cannot write the env file \/nowhere\/demo\.env as [^\n]+\n$/);
});

Deno.test("a machine without room for temporary files is told in one line", async () => {
  const { code, errors } = await DemoProcess.run(["--once"], { env: { TMPDIR: "/nowhere" } });
  assert.equal(code, 1);
  assert.match(
    errors,
    /^holdfast: Cannot make a temporary folder \(NotFound\): let TMPDIR [^\n]+\n$/,
  );
});

Deno.test("the demo works on a machine with a proxy", async () => {
  const env = { HTTPS_PROXY: "http://127.0.0.1:1", HTTP_PROXY: "http://127.0.0.1:1" };
  const { code, errors } = await DemoProcess.run(["--once"], { env });
  assert.deepEqual([code, errors], [0, ""]);
});
