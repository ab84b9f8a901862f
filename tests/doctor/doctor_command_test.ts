/**
 * The command itself: what it is given, how it ends, and that it needs no more permissions than those of its set.
 */

import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { diagnosis, ok, renderFindings, warning, wrong } from "../../lib/doctor/finding.ts";
import { HoldfastProcess } from "../handlers/commands/holdfast_process.ts";
import { examine, machine } from "./examination.ts";

Deno.test("options that do not go together end with 2 and one line, and nothing is looked at", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/unknown.yaml`, "nonsense: 1\n");
    await Deno.writeTextFile(`${folder}/broken.yaml`, "a: [\n");
    const table: readonly (readonly [readonly string[], RegExp])[] = [
      [["--from", "cluster", "--url", "https://h"], /Cannot use --url, .* leave --from out/],
      [["--from", "api", "--namespace", "x"], /Cannot use --namespace with the API/],
      [["--url", "https://h", "--namespace", "x"], /Cannot use --namespace with the API/],
      [["-f", `${folder}/none.yaml`], /Cannot read the values in '.*none.yaml'/],
      [["-f", `${folder}/broken.yaml`], /must be there and hold YAML/],
      [["-f", `${folder}/unknown.yaml`], /there is no 'nonsense'/],
    ];
    for (const [args, text] of table) {
      const { code, stdout, stderr } = await examine(args, machine({}));
      assert.deepEqual([code, stdout], [2, ""], stderr);
      assert.match(stderr, text);
      assert.equal(stderr.trim().split("\n").length, 1);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("without a URL and without a cluster it says what to set", async () => {
  const { code, findings } = await examine(["--json"], machine({}));
  assert.equal(code, 1);
  assert.equal(findings.length, 1);
  assert.match(findings[0]?.todo ?? "", /KUBECONFIG.*--url/);
});

Deno.test("as a process with the permissions of its set: bad settings are findings, and unknown options are 2", async () => {
  const env = { HOLDFAST_URL: "http://holdfast", HOLDFAST_GROUP: "Orders" };
  const [bad, unknown] = await Promise.all([
    HoldfastProcess.run(["doctor", "--token-file", "/none"], env),
    HoldfastProcess.run(["doctor", "--nope"], env),
  ]);
  assert.equal(bad.code, 1, bad.stderr);
  assert.equal(bad.stderr, "");
  assert.match(bad.stdout, /^wrong {4}url +.*does not begin with https/m);
  assert.match(bad.stdout, /^wrong {4}group-name +'Orders' cannot be the name of a group$/m);
  assert.match(bad.stdout, /^wrong {4}token +Cannot read the token in '\/none'$/m);
  assert.match(bad.stdout, /^unseen {3}service /m);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /unknown option '--nope'/);
});

Deno.test("a name and a real connection, as a process: the address is found with the permissions of the set", async () => {
  const env = { HOLDFAST_URL: "https://localhost:1", HOLDFAST_GROUP: "orders" };
  const { stdout } = await HoldfastProcess.run(["doctor", "--json"], env);
  const { findings } = JSON.parse(stdout);
  const verdicts = new Map(
    findings.map((one: { check: string; verdict: string }) => [one.check, one.verdict]),
  );
  assert.deepEqual([verdicts.get("name"), verdicts.get("connection")], ["ok", "wrong"]);
});

Deno.test("Ctrl+C ends it at once, also while a server says nothing", async () => {
  const open: Socket[] = [];
  const accepted = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    // The first one is the check of the connection; the second one waits for TLS.
    if (open.push(socket) === 2) accepted.resolve();
  });
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", () => done()));
  const address = server.address();
  assert(address !== null && typeof address === "object");
  const handlers = new Map<() => void, string>();
  const system = Object.assign(machine({ HOLDFAST_URL: `https://127.0.0.1:${address.port}` }), {
    onSignal(name: string, handler: () => void) {
      handlers.set(handler, name);
      return () => void handlers.delete(handler);
    },
  });
  const work = examine(["--json"], system);
  await accepted.promise;
  for (const [handler, name] of handlers) if (name === "SIGINT") handler();
  const { code, stdout, stderr } = await work;
  assert.deepEqual([code, stdout, stderr, handlers.size], [1, "", "", 0]);
  for (const socket of open) socket.destroy();
  await new Promise<void>((done) => void server.close(() => done()));
});

Deno.test("only what is wrong makes a diagnosis unhealthy, and lines stand below each other", () => {
  const findings = [ok("a", "All is well"), warning("longer", "Look", "Do this")];
  const healthy = diagnosis("api", 0, findings);
  assert.deepEqual([healthy.healthy, healthy.at], [true, "1970-01-01T00:00:00Z"]);
  assert.deepEqual(renderFindings(healthy), [
    "ok       a       All is well",
    "warning  longer  Look",
    "                 do: Do this",
  ]);
  assert.equal(diagnosis("api", 0, [...findings, wrong("b", "No", "Yes")]).healthy, false);
});
