/**
 * One mechanism for every port: a server of node:http or node:https that runs a fetch handler, with limits on everything
 * that a client can leave unfinished, and an orderly end.
 *
 * node's server and not `Deno.serve`: that one has no limit on headers and no way to drop a client that stops reading
 * (design section 6).
 *
 * @module
 */

import { Buffer } from "node:buffer";
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener, RequestError } from "@hono/node-server";
import { z } from "zod";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";
import { formatListenAddress, type ListenAddress } from "../config/listen_address.ts";
import type { ListenerEnv } from "./raw_target.ts";
import { refusalResponse, refusalStatus, refusalText } from "./refusal.ts";
import { errorClass } from "../runtime/error_class.ts";

/** What answers requests; a hono application's `fetch` is one. Its signal aborts when the client goes away. */
export type FetchHandler = (request: Request, env: ListenerEnv) => Response | Promise<Response>;

/** How long a client may take, and how much it may send (deploy-api 14). */
export interface ListenerLimits {
  /** Milliseconds for the TLS handshake. @default {5000} */
  readonly handshakeMs: number;
  /** Milliseconds from the first byte of a request, or from the connection, to the end of its headers. @default {5000} */
  readonly headersMs: number;
  /** Milliseconds from there to the end of its body. At least `headersMs`. @default {15000} */
  readonly requestMs: number;
  /** Milliseconds from a complete request to the last byte of its answer; the handler's work counts. @default {15000} */
  readonly writeMs: number;
  /** Milliseconds for which a connection may wait for its next request; it ends up to 1 s later. @default {60000} */
  readonly idleMs: number;
  /** Bytes of the request line and the headers together. @default {65536} */
  readonly headerBytes: number;
}

/** The limits of the contract. */
export const DEFAULT_LIMITS: ListenerLimits = {
  handshakeMs: 5_000,
  headersMs: 5_000,
  requestMs: 15_000,
  writeMs: 15_000,
  idleMs: 60_000,
  headerBytes: 65_536,
};

/** What every listener takes. */
export interface ListenerOptions {
  /** Its name in log lines and errors: the key of the configuration's `listen` section. */
  readonly name: string;
  /** Where to listen. */
  readonly address: ListenAddress;
  readonly handler: FetchHandler;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Stand in for single values of {@linkcode DEFAULT_LIMITS}. */
  readonly limits?: Partial<ListenerLimits>;
  /**
   * Takes a request to switch to another protocol, WebSocket for one. From then on its socket is the taker's: it has no
   * limits, and a stop destroys it. Without it such a request is answered as if it did not ask.
   */
  readonly onUpgrade?: (incoming: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

/** A bound port. */
export interface Listener {
  /** The address that was bound; its port is never 0. */
  readonly address: ListenAddress;
  /**
   * Stops accepting, ends idle connections at once, and lets the requests in flight finish, each with
   * `Connection: close` on its answer. A second call gives the first one's promise.
   *
   * @param graceMs Milliseconds after which what is still in flight is cut off. 0 or more.
   * @returns How many requests were cut off, when no connection is left.
   */
  stop(graceMs: number): Promise<number>;
}

/** A port cannot be bound. */
export class ListenError extends Error {
  override readonly name = "ListenError";
  /** The listener's name. */
  readonly listener: string;
  /** The system's error code, for example `EADDRINUSE`. */
  readonly code: string;

  constructor(listener: string, address: ListenAddress, code: string) {
    const reason = BIND_FAILURES[code] ?? `the system refuses it (${code}): give another address`;
    super(`Cannot listen for '${listener}' on '${formatListenAddress(address)}' as ${reason}`);
    this.listener = listener;
    this.code = code;
  }
}

const NOT_OURS = "its host is no address of this machine: give ':port' for every interface";

const BIND_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE: "the address is in use: give a free port, or 0 for any",
  EACCES: "this process may not use the port: give one above 1023",
  EADDRNOTAVAIL: NOT_OURS,
  EINVAL: NOT_OURS,
  ENOTFOUND: NOT_OURS,
};

/** Milliseconds for which a refused client may still read the answer before its connection is destroyed. */
const LINGER_MS = 500;

/** Errors of sockets and parsers carry a code; nothing else of them is used. */
const CodedError = z.object({ code: z.string() });

/** node's names for the limits that its server keeps by itself. */
export function serverOptions(limits: ListenerLimits): ServerOptions {
  return {
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    // node looks for overdue requests at this interval; its own default of 30 s would make the limits meaningless.
    connectionsCheckingInterval: Math.ceil(limits.headersMs / 10),
    keepAliveTimeout: limits.idleMs,
    maxHeaderSize: limits.headerBytes,
    // A missing Host is refused by the request adapter, in the form of all refusals.
    requireHostHeader: false,
  };
}

/**
 * Runs a fetch handler on a server that does not listen yet.
 *
 * @param server Made with {@linkcode serverOptions}.
 * @param usable The server's event that brings a connection which can carry requests.
 * @throws {ListenError} When the address cannot be bound.
 */
export async function runListener(
  server: Server,
  usable: "connection" | "secureConnection",
  options: ListenerOptions,
): Promise<Listener> {
  const connections = new Connections(server, usable, options);
  const address = await bind(server, options);
  options.logger.info("listening", { listener: options.name, addr: formatListenAddress(address) });
  let stopped: Promise<number> | undefined;
  return { address, stop: (graceMs) => stopped ??= connections.stop(graceMs) };
}

function bind(server: Server, options: ListenerOptions): Promise<ListenAddress> {
  const { name, address, logger } = options;
  return new Promise((resolve, reject) => {
    const onError = (error: unknown) => reject(new ListenError(name, address, codeOf(error)));
    server.once("error", onError);
    server.listen(address.port, address.host, () => {
      server.off("error", onError);
      // A connection that cannot be accepted, for want of descriptors for example, must not end the process.
      server.on("error", (error: unknown) => {
        logger.error("connection not accepted", { listener: name, code: codeOf(error) });
      });
      const bound = server.address();
      resolve(
        typeof bound === "object" && bound !== null
          ? { host: bound.address, port: bound.port }
          : address,
      );
    });
  });
}

/** A request that has no complete answer yet. */
interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/** The connections of one server and what is in flight on them. */
class Connections {
  readonly #server: Server;
  readonly #options: ListenerOptions;
  readonly #limits: ListenerLimits;
  readonly #answer: ReturnType<typeof getRequestListener>;
  /** Connections in the TLS handshake, by the client's end: the event that ends it brings another object. */
  readonly #handshaking = new Map<string, Socket>();
  readonly #usable = new Set<Duplex>();
  readonly #refused = new WeakSet<Duplex>();
  readonly #exchanges = new Set<Exchange>();
  #stopping = false;

  constructor(
    server: Server,
    usable: "connection" | "secureConnection",
    options: ListenerOptions,
  ) {
    this.#server = server;
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#answer = getRequestListener(options.handler, {
      // The handlers' own Request and Response stay those of the platform.
      overrideGlobalObjects: false,
      errorHandler: (error) => this.#answerError(error),
    });
    if (usable === "secureConnection") {
      server.on("connection", (socket) => this.#trackHandshake(socket));
    }
    server.on(usable, (socket: Socket) => this.#trackConnection(socket));
    server.on("request", (incoming, outgoing) => this.#serve(incoming, outgoing));
    server.on("clientError", (error: unknown, socket) => this.#onClientError(error, socket));
    server.on("connect", (_incoming, socket) => this.#refuse("CONNECT", socket));
    if (options.onUpgrade !== undefined) server.on("upgrade", options.onUpgrade);
  }

  /** Ends everything: see {@linkcode Listener.stop}. */
  async stop(graceMs: number): Promise<number> {
    this.#stopping = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#handshaking.values()) socket.destroy();
    const busy = new Set<Duplex>();
    for (const exchange of this.#exchanges) {
      busy.add(exchange.incoming.socket);
      closeAfter(exchange.outgoing);
    }
    for (const socket of this.#usable) if (!busy.has(socket)) socket.destroy();
    let cutOff = 0;
    const cancel = this.#options.clock.timer(graceMs, () => {
      cutOff = this.#exchanges.size;
      for (const socket of this.#usable) socket.destroy();
    });
    await closed;
    cancel();
    return cutOff;
  }

  #trackHandshake(socket: Socket): void {
    const end = clientEnd(socket);
    this.#handshaking.set(end, socket);
    socket.once("close", () => {
      if (this.#handshaking.get(end) === socket) this.#handshaking.delete(end);
    });
  }

  #trackConnection(socket: Socket): void {
    this.#handshaking.delete(clientEnd(socket));
    if (this.#stopping) {
      socket.destroy();
      return;
    }
    this.#usable.add(socket);
    socket.once("close", () => this.#usable.delete(socket));
  }

  #serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const exchange = { incoming, outgoing };
    this.#exchanges.add(exchange);
    if (this.#stopping) closeAfter(outgoing);
    const cancelLimit = this.#limitAnswer(exchange);
    outgoing.once("close", () => {
      this.#exchanges.delete(exchange);
      cancelLimit();
      // Nothing comes any more. The adapter would wait for the rest of the body.
      if (incoming.socket.destroyed) incoming.destroy();
    });
    this.#answer(incoming, outgoing).catch((error: unknown) => {
      this.#logFailure(error);
      incoming.socket.destroy();
    });
  }

  #limitAnswer({ incoming }: Exchange): () => void {
    const { clock, logger, name } = this.#options;
    const { writeMs } = this.#limits;
    let cancel = clock.timer(writeMs, onLimit);
    function onLimit() {
      // A request that is not complete has its own limit, and its client is to get the 408 of that.
      if (!incoming.complete) {
        cancel = clock.timer(writeMs, onLimit);
        return;
      }
      logger.warn("http answer cut off", { listener: name, limitMs: writeMs });
      incoming.socket.destroy();
    }
    return () => cancel();
  }

  #answerError(error: unknown): Response {
    if (error instanceof RequestError) {
      this.#logRefusal("ERR_REQUEST_LINE", 400);
      return refusalResponse(400);
    }
    this.#logFailure(error);
    return refusalResponse(503);
  }

  /** The parser gave up on a connection, a limit ran out, the handshake failed, or the client is gone. */
  #onClientError(error: unknown, socket: Duplex): void {
    const code = codeOf(error);
    const { logger, name } = this.#options;
    if (code !== "ECONNRESET" && !this.#usable.has(socket)) {
      logger.info("tls handshake failed", { listener: name, code });
      // Without this the handshake's limit has no effect.
      socket.destroy();
    } else if (code === "ECONNRESET" || !socket.writable) {
      logger.debug("connection lost", { listener: name, code });
      socket.destroy();
    } else {
      this.#refuse(code, socket);
    }
  }

  /** Answers on the bare socket and ends it; the rest of what the client sends brings no second answer. */
  #refuse(code: string, socket: Duplex): void {
    if (this.#refused.has(socket)) return;
    this.#refused.add(socket);
    const status = refusalStatus(code);
    this.#logRefusal(code, status);
    if (this.#answerWouldMislead(socket)) {
      socket.destroy();
      return;
    }
    socket.end(Buffer.from(refusalText(status)));
    const cancel = this.#options.clock.timer(LINGER_MS, () => socket.destroy());
    socket.once("close", cancel);
  }

  /** True when the client would take the refusal for the answer to an earlier request, or as part of one. */
  #answerWouldMislead(socket: Duplex): boolean {
    for (const { incoming, outgoing } of this.#exchanges) {
      if (incoming.socket === socket && (incoming.complete || outgoing.headersSent)) return true;
    }
    return false;
  }

  #logRefusal(code: string, status: number): void {
    this.#options.logger.info("http request refused", {
      listener: this.#options.name,
      code,
      status,
    });
  }

  /** The error's own text may come from anywhere, so its class is all that is said. */
  #logFailure(error: unknown): void {
    this.#options.logger.error("http handler failed", {
      listener: this.#options.name,
      error: errorClass(error),
    });
  }
}

/** Says in the answer that the connection ends, or ends it after an answer that has already begun. */
function closeAfter(outgoing: ServerResponse): void {
  if (!outgoing.headersSent) outgoing.setHeader("Connection", "close");
  else outgoing.once("finish", () => outgoing.socket?.end());
}

function clientEnd(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}

function codeOf(error: unknown): string {
  const parsed = CodedError.safeParse(error);
  return parsed.success ? parsed.data.code : "ERR_TIMEOUT";
}
