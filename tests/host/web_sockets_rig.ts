/** A listener with WebSockets, and clients of both kinds: those of the package, and bare sockets that misbehave. */

import { once } from "node:events";
// @ts-types="@types/ws"
import { type ClientOptions, type RawData, WebSocket } from "ws";
import { WebSockets } from "../../lib/host/host_sockets.ts";
import type { Listener } from "../../lib/host/listener.ts";
import { allowedOrigins } from "../../lib/host/origins.ts";
import { startPlainListener } from "../../lib/host/plain_listener.ts";
import type { WebSocketClient, WebSocketLimits } from "../../lib/host/web_socket_client.ts";
import {
  createWebSockets,
  type UpgradeOutcome,
  type WebSocketPath,
  type WebSocketTable,
} from "../../lib/host/web_sockets.ts";
import { connectPlain, type RawClient, realClock, recordingLogger } from "./support.ts";

/** The path of the tests. */
export const PATH = "/ws/news";

/** What a rig is made with. */
export interface SocketsRigOptions {
  readonly path?: Partial<WebSocketPath>;
  readonly limits?: Partial<WebSocketLimits>;
}

/** A running listener. Its clients are those that connected, in this order. */
export class SocketsRig implements AsyncDisposable {
  readonly logger = recordingLogger();
  readonly outcomes: UpgradeOutcome[] = [];
  readonly clients: WebSocketClient[] = [];
  readonly kept = new WebSockets();
  readonly table: WebSocketTable;
  readonly #sockets = new Set<WebSocket>();
  #listener: Listener | null = null;

  constructor({ path = {}, limits = {} }: SocketsRigOptions = {}) {
    const entry: WebSocketPath = {
      name: "news",
      admits: allowedOrigins(["*"]),
      maxClients: 100,
      open: (client) => void this.clients.push(client),
      ...path,
    };
    this.table = createWebSockets({
      paths: new Map([[PATH, entry]]),
      handler: this.handler,
      clock: realClock,
      logger: this.logger,
      limits,
      keep: (socket) => this.kept.add(socket),
      onOutcome: (outcome) => void this.outcomes.push(outcome),
    });
  }

  /** Answers plain requests with what it was asked. */
  readonly handler = (request: Request): Response => {
    const { pathname, search } = new URL(request.url);
    if (pathname === "/broken") throw new TypeError("broken");
    if (pathname === "/large") return new Response("x".repeat(12_000_000));
    const body = `${request.method} ${pathname}${search} ${request.headers.get("x-test") ?? ""}`;
    return new Response(body, { status: pathname === "/nothing" ? 404 : 200 });
  };

  get listener(): Listener {
    if (this.#listener === null) throw new Error("Cannot connect as the rig is not started");
    return this.#listener;
  }

  /** The URL of the path. */
  get url(): string {
    return `ws://127.0.0.1:${this.listener.address.port}${PATH}`;
  }

  async start(): Promise<this> {
    this.#listener = await startPlainListener({
      name: "news",
      address: { host: "127.0.0.1", port: 0 },
      handler: this.handler,
      clock: realClock,
      logger: this.logger,
      onUpgrade: this.table.onUpgrade,
    });
    return this;
  }

  /** Connects a client, which notes what it gets. */
  async connect(options: ClientOptions = {}, path = PATH): Promise<Reader> {
    const socket = new WebSocket(`ws://127.0.0.1:${this.listener.address.port}${path}`, options);
    this.#sockets.add(socket);
    const reader = new Reader(socket);
    await once(socket, "open");
    return reader;
  }

  /** Tries to connect. @returns The status and the body of the refusal. */
  async refused(options: ClientOptions = {}): Promise<readonly [number | undefined, string]> {
    const socket = new WebSocket(this.url, options);
    const [, response] = await once(socket, "unexpected-response");
    let body = "";
    for await (const chunk of response) body += String(chunk);
    return [response.statusCode, body];
  }

  /** A bare socket that has asked to switch. @param fields Stand in for single headers; `null` leaves one out. */
  async raw(
    fields: Readonly<Record<string, string | null>> = {},
    line = `GET ${PATH} HTTP/1.1`,
  ): Promise<RawClient> {
    const headers = {
      "Host": "127.0.0.1",
      "Connection": "Upgrade",
      "Upgrade": "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      ...fields,
    };
    const lines = Object.entries(headers).flatMap(([name, value]) =>
      value === null ? [] : [`${name}: ${value}\r\n`]
    );
    return (await connectPlain(this.listener)).write(`${line}\r\n${lines.join("")}\r\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.terminate();
    await this.#listener?.stop(0);
  }
}

/** A client that reads. */
export class Reader {
  readonly socket: WebSocket;
  readonly messages: string[] = [];
  /** Settles with the code, when the connection is gone. */
  readonly closed: Promise<number>;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data: RawData) => void this.messages.push(String(data)));
    socket.on("error", () => {});
    this.closed = new Promise((resolve) => socket.on("close", resolve));
  }
}
