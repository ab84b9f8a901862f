import assert from "node:assert/strict";
import { allowedOrigins } from "../../lib/host/origins.ts";
import { eventually as within } from "./support.ts";
import { PATH, SocketsRig } from "./web_sockets_rig.ts";

/** Sockets need their time on a busy machine. */
const eventually = (condition: () => boolean | Promise<boolean>, what: string) =>
  within(condition, what, 30_000);

const MEGABYTE = "x".repeat(1_000_000);

/** A frame of a client, masked with zeros, so that its payload stands as it is. */
function frame(opcode: number, payload: string): string {
  const { length } = payload;
  const size = length < 126
    ? String.fromCharCode(0x80 | length)
    : `${String.fromCharCode(0x80 | 126)}${String.fromCharCode(length >> 8, length & 0xff)}`;
  return `${String.fromCharCode(0x80 | opcode)}${size}\0\0\0\0${payload}`;
}

Deno.test("a client gets what is put for it, in this order", async () => {
  await using rig = await new SocketsRig().start();
  const reader = await rig.connect();
  const [client] = rig.clients;
  for (const text of ["one", "two", "three"]) client?.put(text, text);
  await eventually(() => reader.messages.length === 3, "three messages");
  assert.deepEqual(reader.messages, ["one", "two", "three"]);
  assert.deepEqual(rig.outcomes.map(({ name, status, target }) => [name, status, target.target]), [
    ["news", 101, PATH],
  ]);
});

Deno.test("a path is found with its query, and as it was sent", async () => {
  await using rig = await new SocketsRig().start();
  await rig.connect({}, `${PATH}?group=orders`);
  assert.equal(rig.clients.length, 1);
  await using dotted = await rig.raw({}, "GET /ws/./news HTTP/1.1");
  assert.match(await dotted.closed, /^HTTP\/1\.1 200 OK\r\n/);
  assert.equal(rig.clients.length, 1);
});

Deno.test("a hundred clients connect and all get a message; one more is refused with 429 until one leaves", async () => {
  await using rig = await new SocketsRig().start();
  const readers = await Promise.all(Array.from({ length: 100 }, () => rig.connect()));
  assert.equal(rig.table.clients(PATH), 100);
  assert.deepEqual(await rig.refused(), [429, "too many websocket clients"]);
  for (const client of rig.clients) client.put("news", "hello");
  await eventually(() => readers.every(({ messages }) => messages.length === 1), "a message each");
  assert.equal(rig.outcomes.at(-1)?.status, 429);
  readers[0]?.socket.close();
  await eventually(() => rig.table.clients(PATH) === 99, "one left");
  assert.equal(rig.clients[0]?.gone.aborted, true);
  await rig.connect();
  assert.equal(rig.table.clients(PATH), 100);
});

Deno.test("without a cap any number of clients connects", async () => {
  await using rig = await new SocketsRig({ path: { maxClients: 0 } }).start();
  await Promise.all(Array.from({ length: 120 }, () => rig.connect()));
  assert.equal(rig.table.clients(PATH), 120);
  assert.equal(rig.table.clients("/ws/other"), 0);
});

Deno.test("a wrong origin is refused with 403, and so is a missing one when there is a list", async () => {
  const admits = allowedOrigins(["https://dashboard.example.org"]);
  await using rig = await new SocketsRig({ path: { admits } }).start();
  const refusal = [403, "origin not allowed"];
  assert.deepEqual(await rig.refused({ origin: "https://evil.example.org" }), refusal);
  assert.deepEqual(await rig.refused(), refusal);
  await rig.connect({ origin: "https://dashboard.example.org" });
  assert.deepEqual(rig.outcomes.map(({ status }) => status), [403, 403, 101]);
  assert.equal(rig.table.clients(PATH), 1);
});

Deno.test("what asks for a WebSocket and is none is refused with 400", async () => {
  await using rig = await new SocketsRig().start();
  const wrong: readonly Record<string, string | null>[] = [
    { "Sec-WebSocket-Key": null },
    { "Sec-WebSocket-Key": "short" },
    { "Sec-WebSocket-Version": "12" },
  ];
  for (const fields of wrong) {
    await using client = await rig.raw(fields);
    const answer = await client.closed;
    assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.match(answer, /\r\n\r\nnot a websocket request$/);
  }
  await using post = await rig.raw({}, `POST ${PATH} HTTP/1.1`);
  assert.match(await post.closed, /^HTTP\/1\.1 400 Bad Request\r\n/);
  assert.deepEqual(rig.outcomes.map(({ status }) => status), [400, 400, 400, 400]);
  assert.equal(rig.table.clients(PATH), 0);
});

Deno.test("a request for another protocol, or for another path, is answered as if it did not ask", async () => {
  await using rig = await new SocketsRig().start();
  const h2c = { "Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "X-Test": "kept" };
  await using java = await rig.raw(h2c, "GET /status?a=b HTTP/1.1");
  const answer = await java.closed;
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(answer, /\r\nconnection: close\r\n\r\nGET \/status\?a=b kept$/);
  await using elsewhere = await rig.raw({}, "GET /nothing HTTP/1.1");
  assert.match(await elsewhere.closed, /^HTTP\/1\.1 404 Not Found\r\n[^]*GET \/nothing $/);
  await using head = await rig.raw({}, "HEAD /status HTTP/1.1");
  assert.match(await head.closed, /^HTTP\/1\.1 200 OK\r\n[^]*content-length: 13\r\n[^]*\r\n\r\n$/);
  await using same = await rig.raw(h2c);
  assert.match(await same.closed, /GET \/ws\/news kept$/);
  assert.deepEqual([rig.clients.length, rig.outcomes.length], [0, 0]);
});

Deno.test("a large answer to a request that asked for another protocol is read to its end, however slowly", async () => {
  await using rig = await new SocketsRig().start();
  await using slow = await rig.raw({ "Upgrade": "h2c" }, "GET /large HTTP/1.1");
  await eventually(() => slow.received.length > 0, "it begins");
  slow.pause();
  // Longer than a client may linger once all is sent.
  await new Promise((resolve) => setTimeout(resolve, 700));
  slow.socket.resume();
  const answer = await slow.closed;
  assert.ok(answer.endsWith("x".repeat(1_000)));
  assert.equal(answer.length - answer.indexOf("\r\n\r\n") - 4, 12_000_000);
});

Deno.test("a request that cannot be served is refused, and a handler that throws ends its connection alone", async () => {
  await using rig = await new SocketsRig().start();
  await using trace = await rig.raw({}, "TRACE /status HTTP/1.1");
  assert.match(
    await trace.closed,
    /^HTTP\/1\.1 400 Bad Request\r\n[^]*\{"error":"invalid_request"\}\n$/,
  );
  await using broken = await rig.raw({}, "GET /broken HTTP/1.1");
  assert.equal(await broken.closed, "");
  assert.deepEqual(rig.logger.lines.filter(({ level }) => level === "error"), [
    {
      level: "error",
      message: "http handler failed",
      fields: { listener: "upgrade", error: "TypeError" },
    },
  ]);
  await rig.connect();
});

Deno.test("what a client sends is not looked at, and a message over the limit closes its connection with 1009", async () => {
  await using rig = await new SocketsRig({ limits: { messageBytes: 64 } }).start();
  const [talker, large] = [await rig.connect(), await rig.connect()];
  for (let count = 0; count < 100; count++) talker.socket.send("is anybody there?");
  large.socket.send("x".repeat(65));
  assert.equal(await large.closed, 1009);
  await eventually(() => rig.table.clients(PATH) === 1, "the one is gone");
  rig.clients[0]?.put("news", "hello");
  rig.clients[1]?.put("news", "nobody gets this");
  await eventually(() => talker.messages.length === 1, "the other still listens");
  assert.deepEqual([talker.messages, large.messages], [["hello"], []]);
});

Deno.test("a message in pieces counts as one, and a frame that breaks the rules ends its connection alone", async () => {
  await using rig = await new SocketsRig({ limits: { messageBytes: 64 } }).start();
  const other = await rig.connect();
  await using pieces = await rig.raw();
  await eventually(() => pieces.received.includes("101 Switching Protocols"), "connected");
  const first = frame(1, "x".repeat(40)).replace("\x81", "\x01");
  pieces.socket.write(first, "latin1");
  pieces.socket.write(frame(0, "x".repeat(40)), "latin1");
  // 1009 in the frame of the close.
  await eventually(() => pieces.received.includes("\x88\x02\x03\xf1"), "closed with 1009");
  await using unmasked = await rig.raw();
  await eventually(() => unmasked.received.includes("101 Switching Protocols"), "connected");
  unmasked.socket.write("\x81\x02hi", "latin1");
  await eventually(() => unmasked.received.includes("\x88\x02\x03\xea"), "closed with 1002");
  rig.clients[0]?.put("news", "hello");
  await eventually(() => other.messages.length === 1, "the other still listens");
});

Deno.test("a client that stops reading is cut off, and the others get everything without delay", async () => {
  await using rig = await new SocketsRig({ limits: { sendMs: 300, pingMs: 60_000 } }).start();
  const reader = await rig.connect();
  await using stuck = await rig.raw();
  stuck.pause();
  await eventually(() => rig.clients.length === 2, "both are connected");
  const [healthy, slow] = rig.clients;
  let count = 0;
  await eventually(() => {
    count++;
    // Each stands for itself, so that the line grows.
    slow?.put(String(count), MEGABYTE);
    healthy?.put(String(count), `news ${count}`);
    return slow?.gone.aborted === true;
  }, "the slow one is cut off");
  assert.equal(rig.table.clients(PATH), 1);
  await eventually(() => reader.messages.length === count, "the other one has all");
  const cuts = rig.logger.lines.filter(({ message }) => message === "websocket client cut off");
  assert.deepEqual(cuts.map(({ fields }) => fields), [{ handler: "news", reason: "slow" }]);
});

Deno.test("of what waits for a slow client only the newest of each key is kept", async () => {
  await using rig = await new SocketsRig({ limits: { sendMs: 10_000 } }).start();
  const reader = await rig.connect();
  reader.socket.pause();
  const [client] = rig.clients;
  // More than the buffers of both ends take.
  for (let count = 0; count < 12; count++) client?.put(`filler ${count}`, MEGABYTE);
  for (let count = 0; count < 1_000; count++) {
    client?.put("a", `a is ${count}`);
    client?.put("b", `b is ${count}`);
  }
  reader.socket.resume();
  await eventually(() => reader.messages.includes("b is 999"), "the newest has come");
  const news = reader.messages.filter((text) => text !== MEGABYTE);
  assert.deepEqual(news, ["a is 999", "b is 999"]);
  assert.equal(reader.messages.length, 14);
});

Deno.test("what is to be last leaves behind all that waits, also when it takes the place of another", async () => {
  await using rig = await new SocketsRig().start();
  const reader = await rig.connect();
  const [client] = rig.clients;
  client?.put("filler", MEGABYTE);
  client?.put("a", "a is 1");
  client?.put("as of", "as of 1", "last");
  client?.put("a", "a is 2");
  client?.put("b", "b is 2");
  client?.put("as of", "as of 2", "last");
  await eventually(() => reader.messages.includes("as of 2"), "the last has come");
  assert.deepEqual(reader.messages.slice(1), ["a is 2", "b is 2", "as of 2"]);
});

Deno.test("a client for which too many messages wait is cut off, and told of once", async () => {
  await using rig = await new SocketsRig({ limits: { waitingMessages: 10 } }).start();
  await rig.connect();
  const [client] = rig.clients;
  for (let count = 0; count < 100; count++) client?.put(`filler ${count}`, MEGABYTE);
  await eventually(() => client?.gone.aborted === true, "it is gone");
  const cuts = rig.logger.lines.filter(({ message }) => message === "websocket client cut off");
  assert.deepEqual(cuts.map(({ fields }) => fields), [{ handler: "news", reason: "slow" }]);
});

Deno.test("whoever opens a path is told what the request asked for, with its query", async () => {
  const targets: string[] = [];
  const path = { open: (_client: unknown, target: string) => void targets.push(target) };
  await using rig = await new SocketsRig({ path }).start();
  await rig.connect({}, `${PATH}?has=a.1.2`);
  assert.deepEqual(targets, [`${PATH}?has=a.1.2`]);
});

Deno.test("a client that answers pings stays, and one that does not is cut off", async () => {
  await using rig = await new SocketsRig({ limits: { pingMs: 1_000 } }).start();
  const alive = await rig.connect();
  await using silent = await rig.raw();
  await eventually(() => rig.table.clients(PATH) === 2, "both are connected");
  await silent.closed;
  await eventually(() => rig.table.clients(PATH) === 1, "one is gone");
  let pings = 0;
  alive.socket.on("ping", () => pings++);
  await eventually(() => pings >= 2, "two pings");
  assert.equal(rig.clients[0]?.gone.aborted, false);
  const cuts = rig.logger.lines.filter(({ message }) => message === "websocket client cut off");
  assert.deepEqual(cuts.map(({ fields }) => fields), [{ handler: "news", reason: "silent" }]);
});

Deno.test("a client that pings is answered, and one that pings and does not read fills no memory", async () => {
  await using rig = await new SocketsRig({ limits: { sendMs: 10_000 } }).start();
  const polite = await rig.connect();
  const answered = new Promise<string>((resolve) =>
    polite.socket.once("pong", (data) => resolve(String(data)))
  );
  polite.socket.ping("are you there?");
  assert.equal(await answered, "are you there?");
  const stuck = await rig.connect();
  stuck.socket.pause();
  for (let count = 0; count < 12; count++) rig.clients[1]?.put(String(count), MEGABYTE);
  // Until the buffers of both ends are full.
  await new Promise((resolve) => setTimeout(resolve, 200));
  let pongs = 0;
  stuck.socket.on("pong", () => pongs++);
  for (let count = 0; count < 500; count++) stuck.socket.ping("x".repeat(100));
  // What the polite one gets is read by the server after those pings.
  await new Promise((resolve) => stuck.socket.ping("last", undefined, resolve));
  const again = new Promise((resolve) => polite.socket.once("pong", resolve));
  polite.socket.ping();
  await again;
  stuck.socket.resume();
  await eventually(() => stuck.messages.length === 12, "all messages came");
  assert.equal(pongs, 0);
});

Deno.test("the end of the process asks all clients to go", async () => {
  await using rig = await new SocketsRig().start();
  const readers = [await rig.connect(), await rig.connect()];
  assert.equal(rig.kept.count, 2);
  await rig.kept.close({ signal: new AbortController().signal });
  assert.deepEqual(await Promise.all(readers.map(({ closed }) => closed)), [1001, 1001]);
  assert.equal(rig.table.clients(PATH), 0);
});

Deno.test("a path that cannot serve a client ends the connection, and the process stays up", async () => {
  const open = () => {
    throw new RangeError("broken");
  };
  await using rig = await new SocketsRig({ path: { open } }).start();
  const reader = await rig.connect();
  assert.equal(await reader.closed, 1006);
  assert.deepEqual(rig.logger.lines.filter(({ level }) => level === "error"), [
    {
      level: "error",
      message: "websocket not opened",
      fields: { handler: "news", error: "RangeError" },
    },
  ]);
  assert.equal(rig.table.clients(PATH), 0);
});
