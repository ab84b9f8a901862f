import assert from "node:assert/strict";
import process from "node:process";
import { connect, type ConnectOptions } from "../../lib/kube/connect.ts";
import { ClusterConfigError, NoClusterError } from "../../lib/kube/connect_errors.ts";
import { inClusterHost } from "../../lib/kube/in_cluster.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { type Logger, silentLogger } from "../../lib/runtime/log.ts";
import { seededEntropy } from "../../lib/testing/entropy.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";
import { authority, type Handle, startHttp1Server, type TestServer } from "./https_support.ts";
import { lease, SECRET_TEXT } from "./support.ts";
import { eventually } from "../host/support.ts";

const { signal } = new AbortController();
const A = { name: "a", namespace: "database" };
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** A machine with these variables and files. */
function machine(
  variables: Record<string, string | undefined>,
  files: Record<string, string | Error>,
): ConnectOptions & { readonly warnings: unknown[] } {
  const warnings: unknown[] = [];
  const logger: Logger = {
    ...silentLogger,
    warn: (message, fields) => void warnings.push([message, fields?.file]),
  };
  return {
    env: (name) => variables[name],
    clock: new TestClock(),
    entropy: seededEntropy(1),
    signal,
    logger,
    warnings,
    pathSeparator: ":",
    readTextFile: (path) => {
      const content = files[path];
      if (content === undefined) return Promise.reject(new Deno.errors.NotFound(SECRET_TEXT));
      return content instanceof Error ? Promise.reject(content) : Promise.resolve(content);
    },
  };
}

/** A server that writes down who calls. */
async function startRecording(): Promise<TestServer & { readonly callers: unknown[] }> {
  const callers: unknown[] = [];
  const handle: Handle = (request, response) => {
    callers.push(request.headers.authorization);
    response.end(JSON.stringify(lease("a", "1")));
  };
  return { ...await startHttp1Server(handle), callers };
}

/** A kubeconfig with one context, its parts changed as a test wishes. */
function kubeconfig(
  server: string,
  caPem: string,
  parts: { user?: unknown; cluster?: Record<string, unknown>; context?: Record<string, unknown> } =
    {},
): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "here",
    contexts: [{ name: "here", context: { cluster: "c", user: "u", ...parts.context } }],
    clusters: [{
      name: "c",
      cluster: { server, "certificate-authority-data": btoa(caPem), ...parts.cluster },
    }],
    users: [{ name: "u", user: parts.user ?? { token: "kubeconfig-token" } }],
  });
}

async function refused(options: ConnectOptions): Promise<string> {
  try {
    (await connect(options)).close();
  } catch (error) {
    assert.ok(error instanceof ClusterConfigError, `${error}`);
    assert.doesNotMatch(error.message, new RegExp(SECRET_TEXT));
    assert.equal(error.cause, undefined);
    return error.message;
  }
  assert.fail("it was not refused");
}

Deno.test("without a kubeconfig and outside a pod there is no cluster", async () => {
  for (const mode of ["auto", "kubeconfig", "in_cluster"] as const) {
    await assert.rejects(connect({ ...machine({ HOME: "/users/me" }, {}), mode }), NoClusterError);
    await assert.rejects(connect({ ...machine({}, {}), mode }), NoClusterError);
  }
});

Deno.test("in a pod the files of the service account are used", async () => {
  await using server = await startRecording();
  const { caPem } = await authority();
  const variables = {
    KUBERNETES_SERVICE_HOST: "127.0.0.1",
    KUBERNETES_SERVICE_PORT: String(server.port),
  };
  const files: Record<string, string> = {
    [`${SERVICE_ACCOUNT}/ca.crt`]: caPem,
    [`${SERVICE_ACCOUNT}/token`]: "pod-token\n",
    [`${SERVICE_ACCOUNT}/namespace`]: "apps\n",
  };
  using cluster = await connect(machine(variables, files));
  assert.equal(cluster.mode, "in_cluster");
  assert.equal(cluster.runsCommands, false);
  assert.equal(cluster.api.defaultNamespace, "apps");
  await cluster.api.get(LEASES, A, { signal });
  assert.deepEqual(server.callers, ["Bearer pod-token"]);
  delete files[`${SERVICE_ACCOUNT}/namespace`];
  using other = await connect(machine(variables, files));
  assert.equal(other.api.defaultNamespace, "default");
  using empty = await connect(
    machine(variables, { ...files, [`${SERVICE_ACCOUNT}/namespace`]: "" }),
  );
  assert.equal(empty.api.defaultNamespace, "default");
});

Deno.test("in a pod a missing or broken file is an error that names it, not 'no cluster'", async () => {
  const { caPem } = await authority();
  const variables = { KUBERNETES_SERVICE_HOST: "10.0.0.1" };
  const files = {
    [`${SERVICE_ACCOUNT}/ca.crt`]: caPem,
    [`${SERVICE_ACCOUNT}/token`]: "pod-token",
  };
  const without = (name: string, content?: string) => {
    const changed: Record<string, string> = { ...files };
    delete changed[`${SERVICE_ACCOUNT}/${name}`];
    if (content !== undefined) changed[`${SERVICE_ACCOUNT}/${name}`] = content;
    return refused(machine(variables, changed));
  };
  assert.match(await without("token"), /Cannot read a token from .*\/token/);
  assert.match(await without("token", "\n"), /Cannot read a token from .*\/token/);
  assert.match(await without("ca.crt"), /Cannot read .*\/ca\.crt/);
  assert.match(await without("ca.crt", SECRET_TEXT), /certificate of .*\/ca\.crt/);
});

Deno.test("the host of a pod's environment may be an IPv6 address", async () => {
  const { caPem } = await authority();
  const variables = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT_HTTPS: "6443" };
  const options = machine(variables, {
    "/sa/ca.crt": caPem,
    "/sa/token": "t",
  });
  using cluster = await connect({ ...options, serviceAccountDirectory: "/sa" });
  assert.equal(cluster.mode, "in_cluster");
  assert.equal(inClusterHost(options.env), "fd00::1");
  assert.equal(inClusterHost(() => ""), undefined);
});

Deno.test("a kubeconfig is tried before the pod, and its context says where and who", async () => {
  await using server = await startRecording();
  const { caPem } = await authority();
  const content = kubeconfig(server.url, caPem, { context: { namespace: "team" } });
  const options = machine(
    { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBECONFIG: "/k/config" },
    { "/k/config": content },
  );
  using cluster = await connect(options);
  assert.equal(cluster.mode, "kubeconfig");
  assert.equal(cluster.api.defaultNamespace, "team");
  assert.equal(cluster.runsCommands, false);
  await cluster.api.get(LEASES, A, { signal });
  assert.deepEqual(server.callers, ["Bearer kubeconfig-token"]);
  await assert.rejects(connect({ ...options, mode: "in_cluster" }), ClusterConfigError);
});

Deno.test("another client has the same credentials and sockets of its own", async () => {
  await using server = await startRecording();
  const { caPem } = await authority();
  using cluster = await connect(
    machine({ KUBECONFIG: "/k" }, { "/k": kubeconfig(server.url, caPem) }),
  );
  await cluster.api.get(LEASES, A, { signal });
  let calls = 0;
  {
    using own = cluster.another({ maxIdleSockets: 1, onCall: () => calls++ });
    await own.api.get(LEASES, A, { signal });
    await own.api.get(LEASES, A, { signal });
  }
  using third = cluster.another();
  await third.api.get(LEASES, A, { signal });
  assert.equal(calls, 2);
  assert.equal(server.sockets(), 3);
  assert.equal(new Set(server.callers).size, 1);
});

Deno.test("~/.kube/config is read when KUBECONFIG is unset or empty", async () => {
  const { caPem } = await authority();
  const content = kubeconfig("https://127.0.0.1:1", caPem);
  for (const list of [{}, { KUBECONFIG: "" }]) {
    const variables = { HOME: "/users/me", ...list };
    using cluster = await connect(machine(variables, { "/users/me/.kube/config": content }));
    assert.equal(cluster.mode, "kubeconfig");
    assert.equal(cluster.api.defaultNamespace, "default");
  }
});

Deno.test("the files of KUBECONFIG are put together, and of two parts with one name the first counts", async () => {
  await using server = await startRecording();
  const { caPem } = await authority();
  const [one, two] = [
    {
      "current-context": "",
      contexts: [{ name: "mine", context: { cluster: "c", user: "u" } }],
      users: [{ name: "u", user: { tokenFile: "secrets/token" } }],
    },
    {
      "current-context": "mine",
      contexts: null,
      clusters: [{
        name: "c",
        cluster: { server: server.url, "certificate-authority": "ca.crt" },
      }],
      users: [{ name: "u", user: { token: "second" } }],
    },
  ].map((content) => JSON.stringify(content));
  const options = machine({ KUBECONFIG: "/one/config:/missing:/two/config" }, {
    "/one/config": one ?? "",
    "/one/secrets/token": "from-the-file",
    "/two/config": two ?? "",
    "/two/ca.crt": caPem,
  });
  using cluster = await connect(options);
  await cluster.api.get(LEASES, A, { signal });
  assert.deepEqual(server.callers, ["Bearer from-the-file"]);
  assert.deepEqual(options.warnings, [["a file of KUBECONFIG does not exist", "/missing"]]);
});

Deno.test("a KUBECONFIG that names only missing files is an error, and not 'no cluster'", async () => {
  const message = await refused(
    machine({ KUBECONFIG: "/a:/b", KUBERNETES_SERVICE_HOST: "10.0.0.1", HOME: "/users/me" }, {
      "/users/me/.kube/config": "{}",
    }),
  );
  assert.equal(
    message,
    "Cannot read a kubeconfig as KUBECONFIG must name a file that exists: current value is /a:/b",
  );
});

Deno.test("client certificates are used from texts and from files", async () => {
  const { caPem, issue } = await authority();
  const { certPem, keyPem } = await issue({ client: true });
  const users: Record<string, unknown>[] = [
    { "client-certificate-data": btoa(certPem), "client-key-data": btoa(keyPem) },
    { "client-certificate": "tls.crt", "client-key": "/elsewhere/tls.key" },
  ];
  for (const user of users) {
    using cluster = await connect(
      machine({ KUBECONFIG: "/k/config" }, {
        "/k/config": kubeconfig("https://127.0.0.1:1", caPem, { user }),
        "/k/tls.crt": certPem,
        "/elsewhere/tls.key": keyPem,
      }),
    );
    assert.equal(cluster.mode, "kubeconfig");
  }
});

Deno.test("a context without a user calls without credentials", async () => {
  await using server = await startRecording();
  const { caPem } = await authority();
  for (const context of [{ user: "" }, { user: null }]) {
    using cluster = await connect(
      machine({ KUBECONFIG: "/k" }, { "/k": kubeconfig(server.url, caPem, { context }) }),
    );
    await cluster.api.get(LEASES, A, { signal });
  }
  assert.deepEqual(server.callers, [undefined, undefined]);
});

Deno.test("a kubeconfig that cannot be used says where and what would be right", async () => {
  const { caPem, issue } = await authority();
  const { certPem, keyPem } = await issue({ client: true });
  const url = "https://127.0.0.1:1";
  const encrypted = keyPem.replaceAll("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
  const cluster = (members: Record<string, unknown>) =>
    kubeconfig(url, caPem, { cluster: members });
  const user = (members: unknown) => kubeconfig(url, caPem, { user: members });
  const cases: [string | Error, RegExp][] = [
    [new Error(SECRET_TEXT), /Cannot read the kubeconfig \/k: it must be a readable file/],
    [`token: "${SECRET_TEXT}`, /it must be valid YAML/],
    [SECRET_TEXT, /has another form than a kubeconfig at the top level/],
    [JSON.stringify({ contexts: [{ name: SECRET_TEXT.length }] }), /at contexts\.0\.name/],
    ["{}", /'current-context' must be set/],
    [JSON.stringify({ "current-context": "x" }), /Cannot find context x in the kubeconfig \/k/],
    [kubeconfig(url, caPem, { context: { cluster: "other" } }), /Cannot find cluster other/],
    [kubeconfig(url, caPem, { context: { user: "other" } }), /Cannot find user other/],
    [cluster({ server: 5 }), /at cluster c, server/],
    [cluster({ server: `http://${SECRET_TEXT}` }), /'server' must be an https URL/],
    [cluster({ server: `https://u:${SECRET_TEXT}@h` }), /'server' must be an https URL/],
    [cluster({ server: SECRET_TEXT }), /'server' must be an https URL/],
    [cluster({ "insecure-skip-tls-verify": true }), /'insecure-skip-tls-verify' must be false/],
    [cluster({ "tls-server-name": "kubernetes" }), /'tls-server-name' must be left out/],
    [
      cluster({ "proxy-url": `socks5://u:${SECRET_TEXT}@h` }),
      /'proxy-url' must be an HTTP proxy: current scheme is socks5/,
    ],
    [
      cluster({ "certificate-authority-data": "***" }),
      /certificate-authority-data of the kubeconfig \/k: it must be base64/,
    ],
    [
      cluster({ "certificate-authority-data": btoa(SECRET_TEXT) }),
      /certificate-authority-data of the kubeconfig \/k: it must be a valid/,
    ],
    [
      cluster({ "certificate-authority-data": undefined, "certificate-authority": "no.crt" }),
      /Cannot read \/no\.crt, which the kubeconfig \/k names as certificate-authority/,
    ],
    [user({ token: 5 }), /at user u, token/],
    ...[" ", `${SECRET_TEXT}\n`, `${SECRET_TEXT} ${SECRET_TEXT}`, `é${SECRET_TEXT}`].map((
      token,
    ): [string, RegExp] => [
      user({ token }),
      /Cannot use user u of the kubeconfig \/k: its token must be of visible ASCII characters/,
    ]),
    [
      user({ username: "me", password: SECRET_TEXT }),
      /user u .* username, password must be left out/,
    ],
    [user({ token: "t", "as-groups": [SECRET_TEXT] }), /as-groups must be left out/],
    [user({ "client-certificate-data": btoa(certPem) }), /must be set together/],
    [user({ "client-key-data": btoa(keyPem) }), /must be set together/],
    [
      user({ "client-certificate-data": btoa(certPem), "client-key-data": btoa(encrypted) }),
      /private key of client-key-data of the kubeconfig \/k: it is encrypted/,
    ],
  ];
  for (const [content, message] of cases) {
    assert.match(await refused(machine({ KUBECONFIG: "/k" }, { "/k": content })), message);
  }
});

Deno.test("a proxy of the environment that does not speak HTTP is refused", async () => {
  const { caPem } = await authority();
  const files = { "/k": kubeconfig("https://127.0.0.1:1", caPem) };
  for (const name of ["HTTPS_PROXY", "https_proxy"]) {
    const socks = machine({ KUBECONFIG: "/k", [name]: `socks5h://${SECRET_TEXT}` }, files);
    assert.match(
      await refused(socks),
      new RegExp(`${name} must be an HTTP proxy: current scheme is socks5h`),
    );
    for (const proxy of ["http://proxy:3128", "proxy:3128", ""]) {
      (await connect(machine({ KUBECONFIG: "/k", [name]: proxy }, files))).close();
    }
  }
  const own = kubeconfig("https://127.0.0.1:1", caPem, { cluster: { "proxy-url": "http://p:1" } });
  const options = machine({ KUBECONFIG: "/k", HTTPS_PROXY: "socks5://p" }, { "/k": own });
  (await connect(options)).close();
});

/** A command that prints credentials, and counts its runs in a file. */
async function plugin(
  status: unknown,
): Promise<AsyncDisposable & { path: string; dir: string; runs(): number }> {
  const dir = await Deno.makeTempDir();
  const credential = {
    apiVersion: "client.authentication.k8s.io/v1",
    kind: "ExecCredential",
    status,
  };
  await Deno.writeTextFile(`${dir}/credential`, JSON.stringify(credential));
  await Deno.writeTextFile(
    `${dir}/plugin`,
    `#!/bin/sh\necho run >> "${dir}/runs"\ncat "${dir}/credential"\n`,
  );
  await Deno.chmod(`${dir}/plugin`, 0o755);
  return {
    dir,
    path: `${dir}/plugin`,
    runs: () => Deno.readTextFileSync(`${dir}/runs`).trim().split("\n").length,
    [Symbol.asyncDispose]: () => Deno.remove(dir, { recursive: true }),
  };
}

/** True when the process that wrote its number to a file was there and is gone. */
async function isGone(path: string): Promise<boolean> {
  const text = await Deno.readTextFile(path).catch(() => "");
  if (!text.endsWith("\n")) return false;
  try {
    process.kill(Number(text), 0);
    return false;
  } catch {
    return true;
  }
}

const exec = (command: string) => ({
  exec: { apiVersion: "client.authentication.k8s.io/v1", command, interactiveMode: "Never" },
});

Deno.test("an exec plug-in is run once for many calls, and once more after a 401", async () => {
  await using command = await plugin({ token: "exec-token" });
  const callers: unknown[] = [];
  let refusals = 0;
  await using server = await startHttp1Server((request, response) => {
    callers.push(request.headers.authorization);
    response.statusCode = callers.length === 3 ? 401 : 200;
    if (callers.length === 3) refusals++;
    response.end(JSON.stringify(lease("a", "1")));
  });
  const { caPem } = await authority();
  // A name with a slash in it is meant from the kubeconfig's own directory.
  const content = kubeconfig(server.url, caPem, { user: exec("./plugin") });
  const path = `${command.dir}/config`;
  using cluster = await connect(machine({ KUBECONFIG: path }, { [path]: content }));
  assert.equal(cluster.runsCommands, true);
  const get = () => cluster.api.get(LEASES, A, { signal });
  await Promise.all([get(), get()]);
  assert.equal(command.runs(), 1);
  await get();
  assert.equal(refusals, 1);
  assert.equal(command.runs(), 2);
  assert.deepEqual(new Set(callers), new Set(["Bearer exec-token"]));
});

Deno.test("an exec plug-in may give a client certificate, and another one later", async () => {
  const { caPem, issue } = await authority();
  const { TLSSocket } = await import("node:tls");
  const names: string[] = [];
  const { startServer } = await import("./https_support.ts");
  await using server = await startServer((request, response) => {
    assert.ok(request.socket instanceof TLSSocket);
    names.push(String(request.socket.getPeerCertificate().subject.CN));
    response.statusCode = names.length === 1 ? 401 : 200;
    response.end(JSON.stringify(lease("a", "1")));
  }, { asksClient: true });
  const certificate = async (commonName: string) => {
    const { certPem, keyPem } = await issue({ commonName, client: true });
    return { clientCertificateData: certPem, clientKeyData: keyPem };
  };
  await using command = await plugin(await certificate("first"));
  const content = kubeconfig(server.url, caPem, { user: exec(command.path) });
  using cluster = await connect(machine({ KUBECONFIG: "/k" }, { "/k": content }));
  await Deno.writeTextFile(
    `${command.dir}/credential`,
    JSON.stringify({ status: await certificate("second") }),
  );
  await cluster.api.get(LEASES, A, { signal });
  assert.deepEqual(names, ["first", "second"]);
});

Deno.test("an exec plug-in that fails is told by a fixed text, for its own may be secret", async () => {
  const { caPem } = await authority();
  await using command = await plugin({});
  await Deno.writeTextFile(
    command.path,
    `#!/bin/sh\necho ${SECRET_TEXT}\necho ${SECRET_TEXT} >&2\nexit 1\n`,
  );
  for (const name of [command.path, "/no/such/command"]) {
    const content = kubeconfig("https://127.0.0.1:1", caPem, { user: exec(name) });
    assert.equal(
      await refused(machine({ KUBECONFIG: "/k" }, { "/k": content })),
      "Cannot get credentials for user u of the kubeconfig /k: its exec plug-in or auth provider must succeed",
    );
  }
});

Deno.test("an abort ends the wait for an exec plug-in", async () => {
  const { caPem } = await authority();
  await using command = await plugin({ token: "t" });
  const { dir, path } = command;
  await Deno.writeTextFile(
    path,
    `#!/bin/sh\necho $$ > "${dir}/process"\ncat "${dir}/credential"\n`,
  );
  const controller = new AbortController();
  const content = kubeconfig("https://127.0.0.1:1", caPem, { user: exec(path) });
  const options = machine({ KUBECONFIG: "/k" }, { "/k": content });
  controller.abort(new Error("gone home"));
  await assert.rejects(connect({ ...options, signal: controller.signal }), /gone home/);
  // The command is on its way all the same: wait until it is gone, so that it does not outlive the test.
  await eventually(() => isGone(`${dir}/process`), "the command is gone", 60_000);
  using cluster = await connect(options);
  assert.equal(cluster.runsCommands, true);
});

Deno.test("a token wins over an exec plug-in, which is then not run", async () => {
  const { caPem } = await authority();
  const user = { ...exec("/no/such/command"), token: "t" };
  const content = kubeconfig("https://127.0.0.1:1", caPem, { user });
  using cluster = await connect(machine({ KUBECONFIG: "/k" }, { "/k": content }));
  assert.equal(cluster.runsCommands, false);
});

Deno.test("files are read from the disk when nothing else is said", async () => {
  const dir = await Deno.makeTempDir();
  try {
    const { caPem } = await authority();
    await Deno.writeTextFile(`${dir}/config`, kubeconfig("https://127.0.0.1:1", caPem));
    const options: ConnectOptions = {
      ...machine({ KUBECONFIG: `${dir}/config` }, {}),
      readTextFile: undefined,
      pathSeparator: undefined,
      logger: undefined,
    };
    using cluster = await connect(options);
    assert.equal(cluster.mode, "kubeconfig");
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
