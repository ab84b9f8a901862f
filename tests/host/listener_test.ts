import assert from "node:assert/strict";
import { Hono } from "hono";
import {
  type FetchHandler,
  type Listener,
  type ListenerLimits,
  type ListenerOptions,
  ListenError,
} from "../../lib/host/listener.ts";
import { startPlainListener } from "../../lib/host/plain_listener.ts";
import { type ListenerEnv, rawTarget } from "../../lib/host/raw_target.ts";
import {
  answerOk,
  connectPlain,
  eventually,
  type RawClient,
  realClock,
  recordingLogger,
} from "./support.ts";

const SHORT: Partial<ListenerLimits> = {
  headersMs: 150,
  requestMs: 300,
  writeMs: 300,
  idleMs: 200,
};
const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/** A listener for one test: its log, and an end that leaves nothing open. */
async function listen(handler: FetchHandler, options: Partial<ListenerOptions> = {}) {
  const logger = recordingLogger();
  const listener = await startPlainListener({
    name: "probes",
    address: { host: "127.0.0.1", port: 0 },
    handler,
    clock: realClock,
    logger,
    ...options,
  });
  return {
    listener,
    lines: logger.lines,
    url: `http://127.0.0.1:${listener.address.port}`,
    [Symbol.asyncDispose]: async () => void await listener.stop(0),
  };
}

async function answerTo(listener: Listener, text: string): Promise<string> {
  await using client = await connectPlain(listener);
  client.write(text);
  await eventually(() => client.received.includes("\r\n\r\n"), "an answer");
  return client.received;
}

Deno.test("a listener reports the port that it bound, and says so in the log", async () => {
  await using server = await listen(answerOk);
  assert.notEqual(server.listener.address.port, 0);
  assert.equal(await (await fetch(server.url)).text(), "ok\n");
  assert.deepEqual(server.lines[0], {
    level: "info",
    message: "listening",
    fields: { listener: "probes", addr: `127.0.0.1:${server.listener.address.port}` },
  });
});

Deno.test("a port in use is an error that names the listener and the address", async () => {
  await using server = await listen(answerOk);
  const { address } = server.listener;
  await assert.rejects(listen(answerOk, { address, name: "metrics" }), (error: unknown) => {
    assert(error instanceof ListenError);
    assert.equal(error.code, "EADDRINUSE");
    assert.equal(error.listener, "metrics");
    assert.equal(
      error.message,
      `Cannot listen for 'metrics' on '127.0.0.1:${address.port}' as the address is in use: ` +
        "give a free port, or 0 for any",
    );
    return true;
  });
});

Deno.test("an address of another machine is refused in words", async () => {
  const address = { host: "203.0.113.5", port: 0 };
  await assert.rejects(listen(answerOk, { address }), /its host is no address of this machine/);
});

Deno.test("the handler sees method and target as they were sent", async () => {
  const app = new Hono<{ Bindings: ListenerEnv }>();
  app.all("*", (c) => c.json(rawTarget(c.env, c.req.raw)));
  await using server = await listen(app.fetch);
  const answer = await answerTo(
    server.listener,
    "OPTIONS //deploy/./v1/%2e%2e/a?b HTTP/1.1\r\nHost: a\r\n\r\n",
  );
  assert.match(answer, /\{"method":"OPTIONS","target":"\/\/deploy\/\.\/v1\/%2e%2e\/a\?b"\}$/);
  // hono answers HEAD with the handler of GET; the raw method lets the application know.
  let method = "";
  await using counting = await listen((request, env) => {
    method = rawTarget(env, request).method;
    return app.fetch(request, env);
  });
  assert.equal((await fetch(counting.url, { method: "HEAD" })).status, 200);
  assert.equal(method, "HEAD");
});

Deno.test("what is not HTTP is answered once in the contract's form, logged once, and cut off", async () => {
  await using server = await listen(answerOk);
  await using client = await connectPlain(server.listener);
  client.write("GARBAGE\r\n\r\n").write("MORE GARBAGE\r\n\r\n");
  const answer = await client.closed;
  assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/);
  assert.match(answer, /\r\nContent-Type: application\/json\r\n/);
  assert.match(answer, /\r\nCache-Control: no-store\r\n/);
  assert.match(answer, /\r\n\r\n\{"error":"invalid_request"\}\n$/);
  assert.deepEqual(
    server.lines.slice(1).map(({ level, message, fields: { listener, status } }) => {
      return { level, message, listener, status };
    }),
    [{ level: "info", message: "http request refused", listener: "probes", status: 400 }],
  );
});

Deno.test("headers of 60 KiB are served, and more than 64 KiB are refused with 431", async () => {
  await using server = await listen(answerOk);
  const withHeader = (bytes: number) =>
    `GET / HTTP/1.1\r\nHost: a\r\nX: ${"y".repeat(bytes)}\r\n\r\n`;
  assert.match(await answerTo(server.listener, withHeader(60 * 1024)), /^HTTP\/1\.1 200 /);
  const refused = await answerTo(server.listener, withHeader(64 * 1024 + 1));
  assert.match(refused, /^HTTP\/1\.1 431 .*\{"error":"invalid_request"\}\n$/s);
});

const REFUSED: [what: string, line: string][] = [
  ["a missing Host", "GET / HTTP/1.1\r\n\r\n"],
  ["a Host that is none", "GET / HTTP/1.1\r\nHost: a b/c\r\n\r\n"],
  ["a backslash in the path", "GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n"],
  ["CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"],
  [
    "two lengths",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
  ],
];
for (const [what, line] of REFUSED) {
  Deno.test(`${what} is refused with 400 and one log line`, async () => {
    await using server = await listen(answerOk);
    const answer = await answerTo(server.listener, line);
    assert.match(answer, /^HTTP\/1\.1 400 .*\{"error":"invalid_request"\}\n$/s);
    assert.match(answer, /content-type: application\/json\r\n/i);
    assert.deepEqual(server.lines.slice(1).map((l) => l.message), ["http request refused"]);
  });
}

Deno.test("slow clients are cut off while others are served", async () => {
  const app = new Hono();
  app.get("/", (c) => c.text("ok"));
  app.post("/", async (c) => c.text(await c.req.text()));
  app.onError((_error, c) => c.text("the body did not come", 400));
  await using server = await listen(app.fetch, { limits: SHORT });
  await using silent = await connectPlain(server.listener);
  await using headers = await connectPlain(server.listener);
  headers.write("GET / HTTP/1.1\r\nHost: a\r\n");
  await using body = await connectPlain(server.listener);
  body.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  await using idle = await connectPlain(server.listener);
  idle.write(GET);
  let served = 0;
  let open = true;
  const others = (async () => {
    while (open) {
      assert.equal(await (await fetch(server.url)).text(), "ok");
      served++;
    }
  })();
  for (const slow of [silent, headers, body]) {
    assert.match(await slow.closed, /^HTTP\/1\.1 408 .*\{"error":"invalid_request"\}\n$/s);
  }
  assert.match(await idle.closed, /^HTTP\/1\.1 200 .*ok$/s);
  open = false;
  await others;
  assert(served > 10, `only ${served} served`);
  const refused = server.lines.filter((line) => line.message === "http request refused");
  assert.deepEqual(refused.map((line) => line.fields.status), [408, 408, 408]);
});

Deno.test("a client that does not read its answer is cut off", async () => {
  const big = new Uint8Array(64 * 1024 * 1024);
  await using server = await listen(() => new Response(big), { limits: SHORT });
  await using client = await connectPlain(server.listener);
  client.pause().write(GET);
  await eventually(
    () => server.lines.some((line) => line.message === "http answer cut off"),
    "the answer was cut off",
  );
});

Deno.test("a handler that never answers is cut off, and its signal aborts", async () => {
  const aborted = Promise.withResolvers<void>();
  await using server = await listen((request) => {
    request.signal.addEventListener("abort", () => aborted.resolve());
    return new Promise<Response>(() => {});
  }, { limits: SHORT });
  await using client = await connectPlain(server.listener);
  client.write(GET);
  assert.equal(await client.closed, "");
  await aborted.promise;
});

for (const request of [GET, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab"]) {
  Deno.test(`a client that goes away aborts the signal of its ${request.slice(0, 3)}`, async () => {
    const arrived = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    await using server = await listen(async (request) => {
      if (request.method === "PUT") await request.text();
      request.signal.addEventListener("abort", () => aborted.resolve());
      arrived.resolve();
      await aborted.promise;
      return new Response("too late");
    });
    await using client = await connectPlain(server.listener);
    client.write(request);
    await arrived.promise;
    client.socket.destroy();
    await aborted.promise;
    // A client may leave: that is nothing to report.
    await server.listener.stop(1_000);
    assert(server.lines.slice(1).every((line) => line.level === "debug"));
  });
}

Deno.test("a request that is answered in full does not abort its signal", async () => {
  let signal: AbortSignal | undefined;
  await using server = await listen(async (request) => {
    signal = request.signal;
    return await Promise.resolve(new Response("ok"));
  });
  assert.equal(await (await fetch(server.url)).text(), "ok");
  await server.listener.stop(1_000);
  assert.equal(signal?.aborted, false);
});

Deno.test("a broken body after the answer began ends the connection and adds nothing to the answer", async () => {
  await using server = await listen(() => {
    return new Response(
      new ReadableStream({
        async pull(controller) {
          controller.enqueue(new TextEncoder().encode("part"));
          await new Promise<void>(() => {});
        },
      }),
    );
  });
  await using client = await connectPlain(server.listener);
  client.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  await eventually(() => client.received.includes("part"), "the answer began");
  client.write("ZZ\r\n");
  assert.doesNotMatch(await client.closed, /400/);
  // The adapter looks after the rest of the body two turns of the event loop later.
  await new Promise((resolve) => setTimeout(resolve, 10));
});

Deno.test("garbage behind a request in flight is not taken for the answer to it", async () => {
  const answer = Promise.withResolvers<Response>();
  await using server = await listen(() => answer.promise);
  await using client = await connectPlain(server.listener);
  client.write(`${GET}GARBAGE\r\n\r\n`);
  assert.equal(await client.closed, "");
  answer.resolve(new Response("late"));
});

Deno.test("a handler that throws is answered with 503, and the log names only the class", async () => {
  await using server = await listen(() => {
    throw new RangeError("secret");
  });
  const response = await fetch(server.url);
  assert.equal(response.status, 503);
  assert.equal(await response.text(), '{"error":"unavailable"}\n');
  assert.deepEqual(server.lines[1], {
    level: "error",
    message: "http handler failed",
    fields: { listener: "probes", error: "RangeError" },
  });
});

/** Starts a request that the test answers when it wants to. */
async function requestInFlight(handler?: FetchHandler) {
  const arrived = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Response>();
  const server = await listen(async (request, env) => {
    if (new URL(request.url).pathname === "/quick") return new Response("quick");
    arrived.resolve();
    return handler === undefined ? await answer.promise : await handler(request, env);
  });
  const busy = await connectPlain(server.listener);
  busy.write(GET);
  await arrived.promise;
  return { server, busy, answer };
}

async function keepAliveClient(listener: Listener): Promise<RawClient> {
  const client = await connectPlain(listener);
  client.write("GET /quick HTTP/1.1\r\nHost: a\r\n\r\n");
  await eventually(() => client.received.endsWith("quick"), "a first answer");
  return client;
}

Deno.test("a graceful stop ends idle connections at once and lets the request in flight finish", async () => {
  const { server, busy, answer } = await requestInFlight();
  await using idle = await keepAliveClient(server.listener);
  await using fresh = await connectPlain(server.listener);
  let over = false;
  const stopped = server.listener.stop(60_000).then((cutOff) => (over = true, cutOff));
  await idle.closed;
  await fresh.closed;
  await assert.rejects(connectPlain(server.listener));
  assert.equal(over, false);
  answer.resolve(new Response("done"));
  const text = await busy.closed;
  assert.match(text, /^HTTP\/1\.1 200 .*\r\nconnection: close\r\n.*done$/si);
  assert.equal(await stopped, 0);
  assert.equal(server.listener.stop(0), server.listener.stop(1));
});

Deno.test("a graceful stop lets an answer that has begun end, and then its connection", async () => {
  const rest = Promise.withResolvers<void>();
  const { server, busy } = await requestInFlight(() => {
    const encoder = new TextEncoder();
    return new Response(
      new ReadableStream({
        async start(controller) {
          controller.enqueue(encoder.encode("first"));
          await rest.promise;
          controller.enqueue(encoder.encode("last"));
          controller.close();
        },
      }),
    );
  });
  await eventually(() => busy.received.includes("first"), "the answer began");
  const stopped = server.listener.stop(60_000);
  rest.resolve();
  assert.match(await busy.closed, /first.*last/s);
  assert.equal(await stopped, 0);
});

Deno.test("what is in flight after the grace is cut off and counted", async () => {
  const { server, busy, answer } = await requestInFlight();
  assert.equal(await server.listener.stop(50), 1);
  assert.equal(await busy.closed, "");
  answer.resolve(new Response("late"));
});

Deno.test("a request that comes behind one in flight during a stop goes with the connection", async () => {
  const { server, busy, answer } = await requestInFlight();
  const stopped = server.listener.stop(60_000);
  busy.write("GET /quick HTTP/1.1\r\nHost: a\r\n\r\n");
  answer.resolve(new Response("done"));
  const text = await busy.closed;
  assert.equal(text.match(/HTTP\/1\.1 200/g)?.length, 1);
  assert.match(text, /connection: close\r\n.*done$/si);
  assert.equal(await stopped, 0);
});
