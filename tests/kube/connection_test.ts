import assert from "node:assert/strict";
import { TLSSocket } from "node:tls";
import { ClusterConfigError } from "../../lib/kube/connect_errors.ts";
import { Connection, type ConnectionOptions, noProxyWith } from "../../lib/kube/connection.ts";
import type { ConnectionFault } from "../../lib/kube/connection_faults.ts";
import { KubeTimeoutError, UnavailableError } from "../../lib/kube/errors.ts";
import { HttpApi, NO_CREDENTIALS } from "../../lib/kube/mod.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { seededEntropy } from "../../lib/testing/entropy.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";
import {
  authority,
  type Handle,
  startHttp1Server,
  startProxy,
  startRefusingProxy,
  startServer,
  type TestServer,
} from "./https_support.ts";
import { lease, listOf, SECRET_TEXT } from "./support.ts";

const A = { name: "a", namespace: "database" };
const { signal } = new AbortController();
const answers: Handle = (_, response) => void response.end(JSON.stringify(lease("a", "1")));

/** A client of a real server. */
interface RealClient extends Disposable {
  readonly api: HttpApi;
  readonly connection: Connection;
  readonly clock: TestClock;
}

async function clientOf(
  server: { readonly url: string },
  options: ConnectionOptions = {},
  onAnswer: () => void = () => {},
): Promise<RealClient> {
  const clock = new TestClock();
  const { caPem } = await authority();
  const connection = new Connection({ authority: { pem: caPem, from: "ca.crt" }, ...options });
  const api = new HttpApi({
    baseUrl: server.url,
    fetch: connection.fetch,
    credentials: NO_CREDENTIALS,
    clock,
    entropy: seededEntropy(1),
    defaultNamespace: "database",
    observer: onAnswer,
  });
  return { api, connection, clock, [Symbol.dispose]: () => connection.close() };
}

Deno.test("calls one after the other share one connection, with either protocol", async () => {
  for (const http2 of [false, true]) {
    await using server = await startServer(answers);
    using client = await clientOf(server, { http2 });
    for (let count = 0; count < 50; count++) await client.api.get(LEASES, A, { signal });
    assert.equal(server.sockets(), 1, `http2: ${http2}`);
  }
});

Deno.test("calls at the same time open a connection each, keep them, and do not wait", async () => {
  await using server = await startHttp1Server(answers);
  using client = await clientOf(server);
  const round = () =>
    Promise.all(Array.from({ length: 8 }, () => client.api.get(LEASES, A, { signal })));
  await round();
  const opened = server.sockets();
  assert.ok(opened <= 8);
  for (let count = 0; count < 10; count++) await round();
  assert.ok(server.sockets() <= 8, `${server.sockets()} sockets`);
});

Deno.test("calls at the same time share one connection with HTTP/2", async () => {
  await using server = await startServer(answers);
  using client = await clientOf(server, { http2: true });
  await client.api.get(LEASES, A, { signal });
  await Promise.all(Array.from({ length: 20 }, () => client.api.get(LEASES, A, { signal })));
  assert.equal(server.sockets(), 1);
});

Deno.test("no more idle connections are kept than asked for", async () => {
  await using server = await startHttp1Server(answers);
  using client = await clientOf(server, { maxIdleSockets: 1 });
  const round = () =>
    Promise.all(Array.from({ length: 4 }, () => client.api.get(LEASES, A, { signal })));
  await round();
  const opened = server.sockets();
  await round();
  assert.ok(server.sockets() > opened);
});

Deno.test("a connection that is not made says what to check, and that nothing has landed", async () => {
  await using server = await startServer(answers);
  await using named = await startServer(answers, { dnsName: "kubernetes.default.svc" });
  await using proxy = await startRefusingProxy();
  const closed = await startServer(answers);
  await closed[Symbol.asyncDispose]();
  const cases: [TestServer | { readonly url: string }, ConnectionOptions, ConnectionFault][] = [
    [server, { authority: undefined }, "certificate"],
    [named, {}, "certificate"],
    [{ url: "https://certificate.invalid" }, {}, "name"],
    [closed, {}, "refused"],
    [server, { proxyUrl: proxy.url }, "proxy"],
    [{ url: proxy.url.replace("http:", "https:") }, {}, "unreachable"],
  ];
  for (const [place, options, fault] of cases) {
    using client = await clientOf(place, options);
    await assert.rejects(client.api.replace(LEASES, lease("a", "1"), { signal }), (error) => {
      assert.ok(error instanceof UnavailableError);
      assert.equal(error.fault, fault);
      assert.equal(error.mayHaveLanded, false);
      assert.doesNotMatch(error.message, /127\.0\.0\.1|invalid|error/);
      return true;
    });
  }
});

Deno.test("a connection that breaks after the request was sent says that a write may have landed", async () => {
  await using server = await startHttp1Server((request) => request.socket.destroy());
  using client = await clientOf(server);
  await assert.rejects(client.api.replace(LEASES, lease("a", "1"), { signal }), (error) => {
    assert.ok(error instanceof UnavailableError);
    assert.equal(error.fault, "lost");
    assert.equal(error.mayHaveLanded, true);
    return true;
  });
});

Deno.test("a client certificate is shown, and another one from the next request on", async () => {
  const names: string[] = [];
  await using server = await startServer((request, response) => {
    assert.ok(request.socket instanceof TLSSocket);
    names.push(String(request.socket.getPeerCertificate().subject.CN));
    answers(request, response);
  }, { asksClient: true });
  const { issue } = await authority();
  const certificate = async (commonName: string) => {
    const { certPem, keyPem } = await issue({ commonName, client: true });
    return {
      certificate: { pem: certPem, from: "tls.crt" },
      key: { pem: keyPem, from: "tls.key" },
    };
  };
  using client = await clientOf(server, { clientCertificate: await certificate("first") });
  await client.api.get(LEASES, A, { signal });
  client.connection.useClientCertificate(await certificate("second"));
  await client.api.get(LEASES, A, { signal });
  const broken = { pem: SECRET_TEXT, from: "tls.crt" };
  assert.throws(
    () => client.connection.useClientCertificate({ certificate: broken, key: broken }),
    ClusterConfigError,
  );
  await client.api.get(LEASES, A, { signal });
  assert.deepEqual(names, ["first", "second", "second"]);
});

Deno.test("certificates and keys that cannot be used are refused with the file's name alone", async () => {
  const { caPem, issue } = await authority();
  const { certPem, keyPem } = await issue({ client: true });
  const { keyPem: otherKey } = await issue({ client: true });
  const body = keyPem.replace(/-----.*-----/g, "");
  const ca = (pem: string): ConnectionOptions => ({ authority: { pem, from: "ca.crt" } });
  const pair = (cert: string, key: string): ConnectionOptions => ({
    clientCertificate: {
      certificate: { pem: cert, from: "tls.crt" },
      key: { pem: key, from: "tls.key" },
    },
  });
  const cases: [ConnectionOptions, RegExp][] = [
    [ca(SECRET_TEXT), /Cannot use the certificate of ca\.crt: it must be a valid certificate/],
    [ca(""), /Cannot use the certificate of ca\.crt/],
    [ca(keyPem), /Cannot use the certificate of ca\.crt/],
    [
      ca("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"),
      /Cannot trust the certificate of ca\.crt/,
    ],
    [pair(SECRET_TEXT, keyPem), /Cannot use the certificate of tls\.crt/],
    [pair(certPem, SECRET_TEXT), /private key of tls\.key: it must be a private key in PEM form/],
    [
      pair(
        certPem,
        `-----BEGIN ENCRYPTED PRIVATE KEY-----${body}-----END ENCRYPTED PRIVATE KEY-----`,
      ),
      /private key of tls\.key: it is encrypted/,
    ],
    [
      pair(
        certPem,
        `-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n${body}`,
      ),
      /private key of tls\.key: it is encrypted/,
    ],
    [pair(certPem, otherKey), /client certificate of tls\.crt with the key of tls\.key: .* pair/],
    [
      pair(certPem, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"),
      /client certificate of tls\.crt with the key of tls\.key/,
    ],
  ];
  for (const [options, message] of cases) {
    assert.throws(() => new Connection(options), (error) => {
      assert.ok(error instanceof ClusterConfigError);
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, new RegExp(SECRET_TEXT));
      assert.equal(error.cause, undefined);
      return true;
    });
  }
  for (const proxyUrl of [SECRET_TEXT, `http://u:%${SECRET_TEXT}@h`, `socks5://${SECRET_TEXT}`]) {
    assert.throws(() => new Connection({ proxyUrl }), {
      name: "ClusterConfigError",
      message: "Cannot use the proxy: it must be an http or https URL",
    });
  }
  for (const options of [ca(`${caPem}\n${caPem}`), pair(certPem, keyPem)]) {
    new Connection(options).close();
  }
});

/** A server that hangs on some paths until it is told to answer. */
async function startHanging(): Promise<
  TestServer & { arrived(path: string): Promise<void>; release(): void }
> {
  const waiting = new Map<string, () => void>();
  const held: (() => void)[] = [];
  const server = await startServer((request, response) => {
    const name = request.url?.split("/").at(-1) ?? "";
    if (name.startsWith("hang")) held.push(() => answers(request, response));
    else answers(request, response);
    waiting.get(name)?.();
  });
  return {
    ...server,
    arrived: (name) => new Promise((resolve) => waiting.set(name, resolve)),
    release: () => held.forEach((answer) => answer()),
  };
}

for (const http2 of [false, true]) {
  Deno.test(`a connection on which a call timed out is not used again (http2: ${http2})`, async () => {
    await using server = await startHanging();
    using client = await clientOf(server, { http2 });
    await client.api.get(LEASES, A, { signal });
    const slow = server.arrived("hang-slow");
    const slowCall = client.api.get(LEASES, { ...A, name: "hang-slow" }, {
      signal,
      timeoutMs: 60_000,
    });
    await slow;
    const before = server.sockets();
    const arrived = server.arrived("hang");
    const timedOut = assert.rejects(
      client.api.get(LEASES, { ...A, name: "hang" }, { signal, timeoutMs: 1_000 }),
      KubeTimeoutError,
    );
    await arrived;
    const opened = server.sockets() - before;
    assert.equal(opened, http2 ? 0 : 1);
    await client.clock.advance(1_000);
    await timedOut;
    await client.api.get(LEASES, A, { signal });
    assert.equal(server.sockets(), before + opened + 1, "the next call has a new connection");
    server.release();
    assert.equal((await slowCall).metadata.name, "a", "the call that was under way is not broken");
    await client.api.get(LEASES, A, { signal });
    assert.equal(server.sockets(), before + opened + 1);
  });
}

Deno.test("a body that never ends is given up on time, or when the caller gives up, and its socket is closed", async () => {
  let gone = Promise.withResolvers<void>();
  let begun = Promise.withResolvers<void>();
  await using server = await startHttp1Server((_request, response) => {
    response.writeHead(200, { "content-type": "application/json" }).write('{"metadata":');
    response.on("close", () => gone.resolve());
  });
  for (const how of ["its time is over", "its caller gives up"] as const) {
    [gone, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    using client = await clientOf(server, {}, () => begun.resolve());
    const controller = new AbortController();
    const call = client.api.get(LEASES, A, { signal: controller.signal, timeoutMs: 1_000 });
    const left = how === "its time is over"
      ? assert.rejects(call, KubeTimeoutError)
      : assert.rejects(call, /gone home/);
    await begun.promise;
    if (how === "its time is over") await client.clock.advance(1_000);
    else controller.abort(new Error("gone home"));
    await left;
    await gone.promise;
  }
});

Deno.test("many calls that time out together replace the connection once", async () => {
  await using server = await startHanging();
  using client = await clientOf(server, { http2: true });
  await client.api.get(LEASES, A, { signal });
  const names = Array.from({ length: 20 }, (_, index) => `hang-${index}`);
  const arrived = names.map((name) => server.arrived(name));
  const failing = names.map((name) =>
    assert.rejects(
      client.api.get(LEASES, { ...A, name }, { signal, timeoutMs: 500 }),
      KubeTimeoutError,
    )
  );
  await Promise.all(arrived);
  await client.clock.advance(500);
  await Promise.all(failing);
  await client.api.get(LEASES, A, { signal });
  assert.equal(server.sockets(), 2);
});

Deno.test("a caller that gives up does not cost the others their connection", async () => {
  await using server = await startHanging();
  using client = await clientOf(server, { http2: true });
  await client.api.get(LEASES, A, { signal });
  const controller = new AbortController();
  const arrived = server.arrived("hang");
  const given = assert.rejects(
    client.api.get(LEASES, { ...A, name: "hang" }, { signal: controller.signal }),
    /gone home/,
  );
  await arrived;
  controller.abort(new Error("gone home"));
  await given;
  await client.api.get(LEASES, A, { signal });
  assert.equal(server.sockets(), 1);
});

Deno.test("a watch over real sockets follows the server, and its end closes the stream", async () => {
  let closed = () => {};
  const ended = new Promise<void>((resolve) => closed = resolve);
  await using server = await startHttp1Server((request, response) => {
    if (!request.url?.includes("watch=true")) {
      response.end(JSON.stringify(listOf("10")));
      return;
    }
    response.on("close", closed);
    const line = `${JSON.stringify({ type: "ADDED", object: lease("a", "11") })}\n`;
    response.write(line.slice(0, 20));
    setTimeout(() => response.write(line.slice(20)), 5);
  });
  using client = await clientOf(server);
  const controller = new AbortController();
  const seen: string[] = [];
  for await (const event of client.api.watch(LEASES, { signal: controller.signal })) {
    seen.push(event.type);
    if (event.type === "added") controller.abort();
  }
  assert.deepEqual(seen, ["initial", "added"]);
  await ended;
  assert.equal(client.clock.pendingTimers, 0);
});

Deno.test("a read that the server's end of an idle connection broke is sent once more", async () => {
  let requests = 0;
  await using server = await startHttp1Server((request, response) => {
    requests++;
    // The second request meets a connection that the server closes under it.
    if (requests === 2) request.socket.destroy();
    else answers(request, response);
  });
  using client = await clientOf(server);
  await client.api.get(LEASES, A, { signal });
  await client.api.get(LEASES, A, { signal });
  assert.equal(requests, 3);
});

Deno.test("a proxy is asked for the server, with its user and password", async () => {
  const asked: string[] = [];
  await using server = await startServer(answers);
  await using proxy = await startProxy((target, authorization) => {
    asked.push(`${target} ${authorization && atob(authorization.replace("Basic ", ""))}`);
  });
  using plain = await clientOf(server, { proxyUrl: proxy.url });
  await plain.api.get(LEASES, A, { signal });
  using named = await clientOf(server, {
    proxyUrl: proxy.url.replace("http://", "http://me:p%40ss@"),
  });
  await named.api.get(LEASES, A, { signal });
  assert.deepEqual(asked, [
    `127.0.0.1:${server.port} undefined`,
    `127.0.0.1:${server.port} me:p@ss`,
  ]);
});

Deno.test("a closed connection sends nothing more, and is closed once", async () => {
  await using server = await startServer(answers);
  const client = await clientOf(server);
  client.connection.close();
  client.connection.close();
  client.connection.useClientCertificate(undefined);
  await assert.rejects(client.api.get(LEASES, A, { signal }), UnavailableError);
  assert.equal(server.sockets(), 0);
});

Deno.test("NO_PROXY gets the host once, and keeps what it had", () => {
  assert.equal(noProxyWith("10.0.0.1", undefined), "10.0.0.1");
  assert.equal(noProxyWith("10.0.0.1", ""), "10.0.0.1");
  assert.equal(noProxyWith("10.0.0.1", " a.test , .b.test"), "a.test,.b.test,10.0.0.1");
  assert.equal(noProxyWith("10.0.0.1", "10.0.0.1,a"), "10.0.0.1,a");
  assert.equal(noProxyWith("[fd00::1]", "a"), "a,fd00::1");
  assert.equal(noProxyWith("10.0.0.1", "*"), "*");
});

Deno.test("NO_PROXY keeps the server's host off the proxy that the environment names", async () => {
  const asked: string[] = [];
  await using server = await startServer(answers);
  await using proxy = await startProxy((target) => asked.push(target));
  const { caPem } = await authority();
  const program = `
    import { Connection } from ${
    JSON.stringify(import.meta.resolve("../../lib/kube/connection.ts"))
  };
    using connection = new Connection({ authority: ${JSON.stringify({ pem: caPem, from: "ca" })} });
    await (await connection.fetch(new Request(${JSON.stringify(server.url)}))).text();
  `;
  const run = async (noProxy: string) => {
    const { success } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", program],
      env: { HTTPS_PROXY: proxy.url, NO_PROXY: noProxy },
      stdout: "null",
      stderr: "null",
    }).output();
    assert.ok(success);
  };
  await run("");
  assert.deepEqual(asked, [`127.0.0.1:${server.port}`]);
  await run(noProxyWith("127.0.0.1", undefined));
  assert.equal(asked.length, 1);
});
