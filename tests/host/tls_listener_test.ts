import assert from "node:assert/strict";
import { Registry } from "prom-client";
import { startCertificateRotation } from "../../lib/host/certificate_rotation.ts";
import type { ListenerOptions } from "../../lib/host/listener.ts";
import { startTlsListener } from "../../lib/host/tls_listener.ts";
import {
  answerOk,
  connectPlain,
  connectTls,
  eventually,
  issueFor,
  realClock,
  recordingLogger,
  testAuthority,
  writePair,
} from "./support.ts";

const authority = await testAuthority();
const first = await issueFor(authority, "first");
const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

async function listen(options: Partial<ListenerOptions> = {}, files?: FilesOfPair) {
  const own = await writePair(first);
  const logger = recordingLogger();
  const certificate = await startCertificateRotation({
    ...(files ?? own),
    clock: realClock,
    logger,
    registry: new Registry(),
    settleMs: 10,
  });
  try {
    const listener = await startTlsListener({
      name: "tls",
      address: { host: "127.0.0.1", port: 0 },
      handler: answerOk,
      clock: realClock,
      logger,
      certificate,
      ...options,
    });
    return {
      listener,
      files: own,
      lines: logger.lines,
      url: `https://127.0.0.1:${listener.address.port}`,
      [Symbol.asyncDispose]: async () => {
        await listener.stop(0);
        await certificate[Symbol.asyncDispose]();
        await own[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await certificate[Symbol.asyncDispose]();
    await own[Symbol.asyncDispose]();
    throw error;
  }
}

interface FilesOfPair {
  readonly certFile: string;
  readonly keyFile: string;
}

/** One way to swap a pair: as plain files, or as kubelet does it. */
interface Mount extends AsyncDisposable {
  readonly files: FilesOfPair;
  swap(pair: typeof first): Promise<void>;
}

async function plainFiles(): Promise<Mount> {
  const files = await writePair(first);
  return {
    files,
    async swap(pair) {
      await writePair(pair, files.directory);
    },
    [Symbol.asyncDispose]: () => files[Symbol.asyncDispose](),
  };
}

async function mountedSecret(): Promise<Mount> {
  const directory = await Deno.makeTempDir();
  let version = 0;
  const swap = async (pair: typeof first) => {
    const name = `..v${version++}`;
    await Deno.mkdir(`${directory}/${name}`);
    await writePair(pair, `${directory}/${name}`);
    await Deno.symlink(name, `${directory}/..data_tmp`);
    await Deno.rename(`${directory}/..data_tmp`, `${directory}/..data`);
  };
  await swap(first);
  const files = { certFile: `${directory}/tls.crt`, keyFile: `${directory}/tls.key` };
  await Deno.symlink("..data/tls.crt", files.certFile);
  await Deno.symlink("..data/tls.key", files.keyFile);
  return { files, swap, [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }) };
}

for (
  const [kind, mountPair] of [["files", plainFiles], ["a mounted Secret", mountedSecret]] as const
) {
  Deno.test(`a certificate that is swapped 20 times as ${kind} under 16 connections fails no request`, async () => {
    await using mount = await mountPair();
    await using server = await listen({}, mount.files);
    let running = true;
    let served = 0;
    const failures: unknown[] = [];

    /** Half of the load keeps its connection, half makes a new one for each request. */
    async function load(keepsConnection: boolean): Promise<void> {
      using client = Deno.createHttpClient({
        caCerts: [authority.caPem],
        http2: false,
        poolMaxIdlePerHost: keepsConnection ? 1 : 0,
      });
      while (running) {
        try {
          const response = await fetch(server.url, { client });
          assert.equal(await response.text(), "ok\n");
          served++;
        } catch (error) {
          failures.push(error);
        }
      }
    }
    const loads = Array.from({ length: 16 }, (_, index) => load(index % 2 === 0));

    for (let swap = 1; swap <= 20; swap++) {
      await mount.swap(await issueFor(authority, `swap-${swap}`));
      await eventually(async () => {
        const { client, commonName } = await connectTls(server.listener, authority.caPem);
        await client[Symbol.asyncDispose]();
        return commonName === `swap-${swap}`;
      }, `a new connection sees certificate ${swap}`);
    }
    running = false;
    await Promise.all(loads);
    assert.deepEqual(failures, []);
    assert(served > 200, `only ${served} requests were served`);
  });
}

Deno.test("TLS 1.2 and 1.3 are served, older ones are not, and HTTP/1.1 is the only protocol", async () => {
  await using server = await listen();
  for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
    const { client, protocol } = await connectTls(server.listener, authority.caPem, {
      minVersion: version,
      maxVersion: version,
      ALPNProtocols: ["h2", "http/1.1"],
    });
    assert.equal(protocol, version);
    client.write(GET);
    await eventually(() => client.received.endsWith("ok\n"), "an answer in HTTP/1.1");
    assert.match(client.received, /^HTTP\/1\.1 200 /);
    await client[Symbol.asyncDispose]();
  }
  await assert.rejects(connectTls(server.listener, authority.caPem, { maxVersion: "TLSv1.1" }));
});

Deno.test("a handshake that never ends is cut off and logged while others are served", async () => {
  await using server = await listen({ limits: { handshakeMs: 150 } });
  await using silent = await connectPlain(server.listener);
  const { client } = await connectTls(server.listener, authority.caPem);
  await using other = client;
  other.write(GET);
  assert.equal(await silent.closed, "");
  await eventually(() => other.received.endsWith("ok\n"), "the other's answer");
  assert.deepEqual(server.lines.filter((line) => line.message === "tls handshake failed"), [{
    level: "info",
    message: "tls handshake failed",
    fields: { listener: "tls", code: "ERR_TIMEOUT" },
  }]);
});

Deno.test("plain HTTP on the TLS port gets no HTTP answer and one log line", async () => {
  await using server = await listen();
  await using client = await connectPlain(server.listener);
  client.write(GET);
  assert.doesNotMatch(await client.closed, /HTTP/);
  assert.equal(server.lines.filter((line) => line.message === "tls handshake failed").length, 1);
});

Deno.test("a client that leaves in the handshake is no line of the log above debug", async () => {
  await using server = await listen();
  {
    await using client = await connectPlain(server.listener);
    client.write("\x16\x03\x01");
  }
  await eventually(() => server.lines.some((line) => line.level === "debug"), "it was seen");
  assert.deepEqual(server.lines.filter((line) => line.level !== "debug").length, 1);
});

Deno.test("what is not HTTP inside TLS is refused in the contract's form", async () => {
  await using server = await listen();
  const { client } = await connectTls(server.listener, authority.caPem);
  await using garbage = client;
  garbage.write("GARBAGE\r\n\r\n");
  assert.match(await garbage.closed, /^HTTP\/1\.1 400 .*\{"error":"invalid_request"\}\n$/s);
});

Deno.test("a client that goes away aborts the handler's signal over TLS too", async () => {
  const arrived = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  await using server = await listen({
    handler: async (request) => {
      request.signal.addEventListener("abort", () => aborted.resolve());
      arrived.resolve();
      await aborted.promise;
      return new Response("late");
    },
  });
  const { client } = await connectTls(server.listener, authority.caPem);
  client.write(GET);
  await arrived.promise;
  await client[Symbol.asyncDispose]();
  await aborted.promise;
});

Deno.test("a graceful stop ends handshakes and idle connections at once, and waits for the answer in flight", async () => {
  const arrived = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Response>();
  await using server = await listen({
    handler: (request) => {
      if (request.method === "HEAD") return new Response(null);
      arrived.resolve();
      return answer.promise;
    },
  });
  await using handshake = await connectPlain(server.listener);
  const { client: idle } = await connectTls(server.listener, authority.caPem);
  idle.write("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  await eventually(() => idle.received.includes("200 OK"), "a first answer");
  const { client: busy } = await connectTls(server.listener, authority.caPem);
  busy.write(GET);
  await arrived.promise;
  const stopped = server.listener.stop(60_000);
  await handshake.closed;
  await idle.closed;
  answer.resolve(new Response("done"));
  assert.match(await busy.closed, /connection: close.*done$/si);
  assert.equal(await stopped, 0);
});

Deno.test("a busy port on a TLS listener is the same typed error", async () => {
  await using server = await listen();
  await assert.rejects(listen({ address: server.listener.address }), { code: "EADDRINUSE" });
});
