/**
 * The checks of a deployment client against the service as a process, and against servers that are not it: real
 * certificates, real connections, real tokens.
 */

import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { listenHttps } from "../../lib/testing/https_server.ts";
import { type Authority, createAuthority } from "../../lib/testing/mod.ts";
import { jwt } from "../auth/tokens.ts";
import { callerOf, type RealCaller } from "../client/real_caller.ts";
import { clusterTest } from "../cluster/cluster_test_support.ts";
import { setStatus } from "../service/orders.ts";
import { examine, machine } from "./examination.ts";

const { signal } = new AbortController();
const DAY_MS = 86_400_000;

clusterTest(
  "a deployment client that works: all that can be seen is ok, and nothing is left behind",
  async (cluster) => {
    await using caller = await callerOf(cluster, "doctor-ok");
    const { code, findings, stdout, find } = await examine(["--json"], machine(caller.env));
    assert.equal(code, 0, stdout);
    const others = findings.filter(({ verdict }) => verdict !== "ok").map(({ check }) => check);
    assert.deepEqual(others, ["sidecar-trust", "database"]);
    assert.match(find("token").says, /system:serviceaccount:doctor-ok-\w+:deployer/);
    assert.match(find("group").says, /stable, active site 'iad'/);
    const token = (await Deno.readTextFile(caller.settings.tokenFile)).trim();
    for (const part of token.split(".")) assert(!stdout.includes(part));

    const text = await examine([], machine(caller.env));
    assert.equal(text.code, 0);
    assert.match(text.stdout, /^ok {7}url +The URL of the service is an https URL$/m);
    assert.match(text.stdout, /^unseen {3}database .*\n {9} +do: /m);
    const handlers = caller.service.lines.map(({ handler }) => String(handler));
    const writes = handlers.filter((name) => ["grant", "renew", "release"].includes(name));
    assert.deepEqual(writes, [], "It never grants, renews or releases");

    await tellAnswersApart(caller);
  },
);

/** One service for what it answers, one after the other. */
async function tellAnswersApart(caller: RealCaller): Promise<void> {
  const { env, namespace, cluster } = caller;
  const run = (more: Readonly<Record<string, string>> = {}, args: readonly string[] = []) =>
    examine(["--json", ...args], machine({ ...env, ...more }));

  const other = await run({ HOLDFAST_GROUP: "elsewhere" });
  assert.equal(other.code, 1);
  assert.match(other.find("authorization").says, /not allowed to use group 'elsewhere' \(403\)/);

  await caller.writeToken("stranger");
  assert.match((await run()).find("authorization").says, /\(403\)/);

  const foreign = await cluster.token({
    namespace,
    serviceAccount: "deployer",
    audiences: ["vault"],
  });
  await Deno.writeTextFile(caller.settings.tokenFile, foreign);
  const wrongAudience = await run();
  assert.match(
    wrongAudience.find("token-audience").says,
    /'vault', and not for 'bloodraven-deploy'/,
  );
  assert.equal(wrongAudience.find("authorization").verdict, "unseen");
  // The service asks for another audience than the client believes.
  const refused = await run({}, ["--audience", "vault"]);
  assert.match(refused.find("authorization").says, /refuses the token \(401\)/);

  await Deno.writeTextFile(
    caller.settings.tokenFile,
    await cluster.token({ namespace, serviceAccount: "deployer" }),
  );
  const before = caller.service.lines.length;
  const own = await run();
  assert.match(own.find("token-audience").says, /API server's own token/);
  assert.match(own.find("token-audience").todo, /was not sent/);
  assert.equal(caller.service.lines.length, before, "The token was not sent");

  await caller.writeToken("deployer");
  const group = { namespace, name: "orders" };
  await setStatus(cluster.adminApi, group, { updatePhase: "UpdateReplica" }, signal);
  assert.match((await run()).find("group").says, /grants no lease now: OrderedUpdate/);
  await setStatus(cluster.adminApi, group, { updatePhase: "" }, signal);

  await cluster.admin(
    "DELETE",
    `/apis/shipstream.io/v1alpha1/namespaces/${namespace}/mysqlfailovergroups/orders`,
  );
  const gone = await run();
  assert.match(gone.find("authorization").says, /no group 'orders'.*\(404\)/);
}

/** A place with an authority, a token for the service, and servers of all kinds. */
class Place implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  private constructor(readonly folder: string, readonly authority: Authority) {
    this.#stack.defer(() => Deno.remove(folder, { recursive: true }));
  }

  static async open(): Promise<Place> {
    const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    const place = new Place(await Deno.makeTempDir({ prefix: "holdfast-doctor-" }), authority);
    await place.write("ca.crt", authority.caPem);
    await place.write("token", jwt({ aud: ["bloodraven-deploy"], exp: Date.now() / 1_000 + 600 }));
    return place;
  }

  async write(name: string, text: string): Promise<string> {
    const path = `${this.folder}/${name}`;
    await Deno.writeTextFile(path, text);
    return path;
  }

  /** A server that answers each GET with this. */
  async serve(
    answer: () => Response,
    request: Parameters<Authority["issue"]>[0] = { ipAddresses: ["127.0.0.1"] },
    authority = this.authority,
  ) {
    const seen: string[] = [];
    const { certPem: cert, keyPem: key } = await authority.issue(request);
    const server = await listenHttps(({ method }) => {
      seen.push(method);
      return Promise.resolve(answer());
    }, { cert, key });
    this.#stack.defer(() => server.close());
    return { url: server.url, seen };
  }

  /** A listener that is no TLS server. */
  async plain(onConnection: (socket: Socket) => void) {
    const open: Socket[] = [];
    const server = createServer((socket) => {
      open.push(socket);
      // The doctor hangs up in the midst.
      socket.on("error", () => {});
      onConnection(socket);
    });
    const port = await listening(server);
    this.#stack.defer(() => {
      for (const socket of open) socket.destroy();
      return new Promise((done) => void server.close(() => done()));
    });
    return `https://127.0.0.1:${port}`;
  }

  examine(url: string, more: Readonly<Record<string, string>> = {}, hurry = false) {
    const env = {
      HOLDFAST_URL: url,
      HOLDFAST_CA_FILE: `${this.folder}/ca.crt`,
      HOLDFAST_TOKEN_FILE: `${this.folder}/token`,
      HOLDFAST_GROUP: "orders",
      ...more,
    };
    return examine(["--json"], machine(env, { hurry }));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

function listening(server: Server): Promise<number> {
  return new Promise((done, fail) => {
    server.once("error", fail);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string") fail(new Error("No port"));
      else done(address.port);
    });
  });
}

const nobody = () => Response.json({ error: "not_leader" }, { status: 503 });

Deno.test("a name that is not in the certificate, a foreign issuer, an expired certificate: told apart, and the token is not sent", async () => {
  await using place = await Place.open();
  const stranger = await createAuthority({
    webCrypto: crypto,
    nowMs: Date.now(),
    commonName: "stranger",
  });
  const names = await place.serve(nobody, { dnsNames: ["bloodraven.bloodraven.svc"] });
  const issuer = await place.serve(nobody, { ipAddresses: ["127.0.0.1"] }, stranger);
  const expired = await place.serve(nobody, {
    ipAddresses: ["127.0.0.1"],
    notAfterMs: Date.now() - DAY_MS,
  });
  const all = await place.serve(
    nobody,
    { dnsNames: ["x"], notAfterMs: Date.now() - DAY_MS },
    stranger,
  );
  const verdicts = async (url: string, more = {}) => {
    const { find, code } = await place.examine(url, more);
    assert.equal(code, 1);
    return ["name", "issuer", "expiry"].map((part) => find(`certificate-${part}`).verdict);
  };
  assert.deepEqual(await verdicts(names.url), ["wrong", "ok", "ok"]);
  assert.deepEqual(await verdicts(issuer.url), ["ok", "wrong", "ok"]);
  assert.deepEqual(await verdicts(expired.url), ["ok", "ok", "wrong"]);
  assert.deepEqual(await verdicts(all.url), ["wrong", "wrong", "wrong"]);
  // Of one that has expired the platform does not say whether it knows the authority.
  const unknown = await place.examine(expired.url, { HOLDFAST_CA_FILE: "" });
  assert.equal(unknown.find("certificate-issuer").verdict, "unseen");
  // The platform does not know a private authority.
  assert.deepEqual(await verdicts(names.url, { HOLDFAST_CA_FILE: "" }), ["wrong", "wrong", "ok"]);
  const { find } = await place.examine(issuer.url);
  assert.match(find("certificate-issuer").says, /'stranger' signed the certificate/);
  assert.equal(find("service").verdict, "unseen");
  assert.deepEqual([names.seen, issuer.seen, expired.seen, all.seen], [[], [], [], []]);
});

Deno.test("a certificate that ends within a week is worth a warning, and authorities that it cannot be read from are wrong", async () => {
  await using place = await Place.open();
  const soon = await place.serve(nobody, { ipAddresses: ["127.0.0.1"], days: 3 });
  assert.equal((await place.examine(soon.url)).find("certificate-expiry").verdict, "warning");
  const none = await place.write("none.crt", "hello");
  const broken = await place.write(
    "broken.crt",
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
  );
  for (const file of [none, broken]) {
    const { find } = await place.examine(soon.url, { HOLDFAST_CA_FILE: file });
    assert.match(find("authority").says, /holds no certificate/);
    assert.equal(find("connection").verdict, "ok");
    assert.equal(find("tls").verdict, "unseen");
  }
  const { find } = await place.examine(soon.url, { HOLDFAST_CA_FILE: "/none" });
  assert.match(find("authority").says, /Cannot read/);
});

Deno.test("a name that nobody knows, a port where nobody listens, one that speaks no TLS, one that says nothing", async () => {
  await using place = await Place.open();
  const unknown = await place.examine("https://no-such-name.invalid:8443");
  assert.match(unknown.find("name").says, /Cannot find the address of the service/);
  const free = createServer();
  const port = await listening(free);
  await new Promise<void>((done) => void free.close(() => done()));
  const refused = await place.examine(`https://127.0.0.1:${port}`);
  assert.match(refused.find("connection").says, /\(ECONNREFUSED\)/);
  const text = await place.plain((socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  assert.match((await place.examine(text)).find("tls").says, /does not speak TLS/);
  const mute = await place.plain(() => {});
  const hung = await place.examine(mute, {}, true);
  assert.match(hung.find("tls").says, /\(no answer in time\)/);
});

Deno.test("no leader is asked three times; a clock that differs, a foreign answer and a token that no header carries are seen", async () => {
  await using place = await Place.open();
  const leaderless = await place.serve(nobody);
  const none = await place.examine(leaderless.url, {}, true);
  assert.match(none.find("leader").says, /503 not_leader/);
  assert.deepEqual(leaderless.seen, ["GET", "GET", "GET"]);

  const late = await place.serve(() =>
    Response.json({ error: "forbidden" }, {
      status: 403,
      headers: { Date: new Date(Date.now() - 300_000).toUTCString() },
    })
  );
  assert.match((await place.examine(late.url)).find("clock").says, /4m 5\ds ahead of/);

  const proxy = await place.serve(() => new Response("<html>", { status: 200 }));
  assert.match((await place.examine(proxy.url)).find("service").says, /not the deployment API/);

  for (
    const [text, says] of [["a b\nc", /holds no token/], [
      "opaque",
      /no service account token/,
    ]] as const
  ) {
    const file = await place.write("other-token", text);
    const { find, stdout } = await place.examine(proxy.url, { HOLDFAST_TOKEN_FILE: file });
    assert.match(find("token").says, says);
    assert(!stdout.includes("opaque"));
  }
  const expired = await place.write("expired", jwt({ aud: ["bloodraven-deploy"], exp: 1 }));
  const { find } = await place.examine(proxy.url, { HOLDFAST_TOKEN_FILE: expired });
  assert.equal(find("token-expiry").verdict, "wrong");
});
