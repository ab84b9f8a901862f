/**
 * WebSockets on a listener: a table of paths, each with who may connect, how many may, and what a client gets.
 *
 * Clients listen and do not speak: a message from one is not looked at. A request to switch to another protocol that is
 * none of the table is answered as if it had not asked, since some clients ask for HTTP/2 with each request.
 *
 * ```ts
 * import type { FetchHandler } from "./listener.ts";
 * import type { Clock } from "../runtime/clock.ts";
 * import type { Logger } from "../runtime/log.ts";
 * import { allowedOrigins } from "./origins.ts";
 *
 * function clocks(parts: { clock: Clock; logger: Logger; handler: FetchHandler }) {
 *   return createWebSockets({
 *     ...parts,
 *     paths: new Map([["/ws/time", {
 *       name: "ws-time",
 *       admits: allowedOrigins(["*"]),
 *       maxClients: 100,
 *       open: (client) => client.put("time", String(parts.clock.wall())),
 *     }]]),
 *   });
 * }
 * ```
 *
 * @module
 */

import type { Buffer } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
// @ts-types="@types/ws"
import { WebSocketServer } from "ws";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";
import type { ClosableSocket } from "./host_sockets.ts";
import { DEFAULT_LIMITS, type FetchHandler, type ListenerOptions } from "./listener.ts";
import type { OriginRule } from "./origins.ts";
import { answerOnSocket } from "./raw_answer.ts";
import { type RawTarget, rawTarget } from "./raw_target.ts";
import { SendTurns } from "./send_turns.ts";
import { refusalResponse } from "./refusal.ts";
import {
  DEFAULT_WEB_SOCKET_LIMITS,
  RunningClient,
  type RunningClientParts,
  type WebSocketClient,
  type WebSocketLimits,
} from "./web_socket_client.ts";
import { errorClass } from "../runtime/error_class.ts";

/** One path of the table. */
export interface WebSocketPath {
  /** Its name in log lines and figures. */
  readonly name: string;
  /** Who may connect; others get 403. */
  readonly admits: OriginRule;
  /** How many clients this path takes; further ones get 429. 0 for any number. */
  readonly maxClients: number;
  /**
   * Gives a client what there is now, and remembers it for what comes, until it is gone.
   *
   * @param target What its request asked for, as it was sent, with the query.
   */
  open(client: WebSocketClient, target: string): void;
}

/** A request for a path of the table, with what became of it. */
export interface UpgradeOutcome {
  readonly incoming: IncomingMessage;
  /** The request line. */
  readonly target: RawTarget;
  /** The name of the path. */
  readonly name: string;
  /** 101 when it is connected; 400, 403 or 429. */
  readonly status: number;
}

/** What {@linkcode createWebSockets} takes. */
export interface WebSocketsOptions {
  /** By path as it is in the request line, without the query. */
  readonly paths: ReadonlyMap<string, WebSocketPath>;
  /** Answers a request that asks for no path of the table, or for another protocol. */
  readonly handler: FetchHandler;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Stand in for single values of {@linkcode DEFAULT_WEB_SOCKET_LIMITS}. */
  readonly limits?: Partial<WebSocketLimits>;
  /** Told of every socket that is opened, so that it is closed in time: the host's `webSockets.add`. */
  readonly keep?: (socket: ClosableSocket) => void;
  /** Told of each request for a path of the table: for the access log. */
  readonly onOutcome?: (outcome: UpgradeOutcome) => void;
}

/** The WebSockets of a listener. */
export interface WebSocketTable {
  /** For the listener's options. */
  readonly onUpgrade: NonNullable<ListenerOptions["onUpgrade"]>;
  /** How many clients a path has now. @param path A path of the table. */
  clients(path: string): number;
}

/** The texts of the refusals (deploy-api 14 has the one of 429). */
const REFUSALS = {
  400: "not a websocket request",
  403: "origin not allowed",
  429: "too many websocket clients",
} as const;

/** Milliseconds for a client to answer to a close, before its connection is destroyed. */
const CLOSE_MS = 2_000;

/** Makes the WebSockets of a listener. */
export function createWebSockets(options: WebSocketsOptions): WebSocketTable {
  const table = new Table(options);
  return {
    onUpgrade: (incoming, socket, head) => table.upgrade(incoming, socket, head),
    clients: (path) => table.clients(path),
  };
}

class Table {
  readonly #options: WebSocketsOptions;
  readonly #limits: WebSocketLimits;
  readonly #server: WebSocketServer;
  readonly #turns: SendTurns;
  readonly #clients = new Map<WebSocketPath, number>();

  constructor(options: WebSocketsOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_WEB_SOCKET_LIMITS, ...options.limits };
    this.#turns = new SendTurns(options.clock);
    const settings = {
      noServer: true,
      clientTracking: false,
      maxPayload: this.#limits.messageBytes,
      // Compression costs memory for each client, and its messages are short.
      perMessageDeflate: false,
      // A client decides when it pings. What is answered, and when, is decided here.
      autoPong: false,
      // For a client that does not answer to the end of its connection. The package's types do not have it yet.
      closeTimeout: CLOSE_MS,
    };
    this.#server = new WebSocketServer(settings);
    this.#server.on("wsClientError", (_error, socket, incoming) => {
      const path = this.#pathOf(incoming);
      if (path !== undefined) this.#refuse(path, incoming, socket, 400);
    });
  }

  clients(path: string): number {
    const entry = this.#options.paths.get(path);
    return entry === undefined ? 0 : this.#count(entry);
  }

  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Nobody listens to errors of a socket that was handed over. Its end is told by `close`.
    socket.on("error", () => {});
    const path = this.#pathOf(incoming);
    if (path === undefined || incoming.headers.upgrade?.toLowerCase() !== "websocket") {
      this.#answerPlainly(incoming, socket);
      return;
    }
    const { origin = null, host = null } = incoming.headers;
    if (!path.admits({ origin, host })) return this.#refuse(path, incoming, socket, 403);
    const { maxClients } = path;
    if (maxClients > 0 && this.#count(path) >= maxClients) {
      return this.#refuse(path, incoming, socket, 429);
    }
    this.#server.handleUpgrade(incoming, socket, head, (webSocket) => {
      this.#report(path, incoming, 101);
      this.#open(path, incoming, { socket: webSocket, connection: socket });
    });
  }

  #open(
    path: WebSocketPath,
    incoming: IncomingMessage,
    { socket, connection }: Pick<RunningClientParts, "socket" | "connection">,
  ): void {
    const { clock, logger, keep } = this.#options;
    this.#clients.set(path, this.#count(path) + 1);
    socket.once("close", () => this.#clients.set(path, this.#count(path) - 1));
    const client = new RunningClient({
      socket,
      connection,
      turns: this.#turns,
      clock,
      limits: this.#limits,
      onCut: (reason) => logger.info("websocket client cut off", { handler: path.name, reason }),
    });
    keep?.(socket);
    try {
      path.open(client, targetOf(incoming).target);
    } catch (error) {
      logger.error("websocket not opened", { handler: path.name, error: errorClass(error) });
      socket.terminate();
    }
  }

  #refuse(
    path: WebSocketPath,
    incoming: IncomingMessage,
    socket: Duplex,
    status: keyof typeof REFUSALS,
  ): void {
    this.#report(path, incoming, status);
    const headers = {
      "Content-Type": "text/plain; charset=utf-8",
      "Cache-Control": "no-store",
    };
    this.#answer(socket, incoming, () => new Response(REFUSALS[status], { status, headers }));
  }

  /** As if the request did not ask for another protocol. */
  #answerPlainly(incoming: IncomingMessage, socket: Duplex): void {
    this.#answer(socket, incoming, () => {
      const request = plainRequest(incoming);
      return request === null ? refusalResponse(400) : this.#options.handler(request, { incoming });
    });
  }

  #answer(
    socket: Duplex,
    incoming: IncomingMessage,
    make: () => Response | Promise<Response>,
  ): void {
    const { clock, logger } = this.#options;
    const answering = async () => {
      const withBody = incoming.method !== "HEAD";
      await answerOnSocket(socket, await make(), clock, DEFAULT_LIMITS.writeMs, withBody);
    };
    answering().catch((error: unknown) => {
      logger.error("http handler failed", {
        listener: "upgrade",
        error: errorClass(error),
      });
      socket.destroy();
    });
  }

  #report(path: WebSocketPath, incoming: IncomingMessage, status: number): void {
    this.#options.onOutcome?.({ incoming, target: targetOf(incoming), name: path.name, status });
  }

  #pathOf(incoming: IncomingMessage): WebSocketPath | undefined {
    return this.#options.paths.get(targetOf(incoming).target.split("?", 1)[0] ?? "");
  }

  #count(path: WebSocketPath): number {
    return this.#clients.get(path) ?? 0;
  }
}

function targetOf(incoming: IncomingMessage): RawTarget {
  return rawTarget({ incoming }, NO_REQUEST);
}

/** Never looked at, as there is always what node read. */
const NO_REQUEST = new Request("http://localhost/");

/** The request without its wish for another protocol, and without a body. `null` when it cannot be served at all. */
function plainRequest(incoming: IncomingMessage): Request | null {
  const headers = new Headers();
  try {
    for (const [name, value] of Object.entries(incoming.headers)) {
      if (typeof value === "string" && !SWITCHING.includes(name)) headers.append(name, value);
    }
    const url = new URL(incoming.url ?? "/", "http://localhost");
    return new Request(url, { method: incoming.method ?? "GET", headers });
  } catch {
    return null;
  }
}

/** Headers that belong to the switch. */
const SWITCHING = [
  "connection",
  "upgrade",
  "http2-settings",
  "content-length",
  "transfer-encoding",
];
