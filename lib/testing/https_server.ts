/**
 * HTTPS in front of a fetch handler, on Node's server: it can break a connection, which is what faults are made of.
 *
 * @module
 */

import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import https from "node:https";
import { ConnectionLostError } from "./faults.ts";

/** Where to serve, and with which certificate. */
export interface HttpsOptions {
  /** The private key, in PEM form. */
  readonly key: string;
  /** The certificate, in PEM form. */
  readonly cert: string;
  /** The address to listen on. @default {"127.0.0.1"} */
  readonly hostname?: string;
  /** The port; 0 for any that is free. @default {0} */
  readonly port?: number;
}

/** A server that runs. */
export interface RunningServer {
  /** For example `https://127.0.0.1:41234`, without a slash at its end. */
  readonly url: string;
  readonly port: number;
  /** Breaks all connections and stops. */
  close(): Promise<void>;
}

/** A body is not read beyond this; the handler refuses it by its length. */
const READ_LIMIT_BYTES = 4 * 1024 * 1024;

const KEEP_ALIVE_MS = 180_000;

/** Serves a handler. When the handler rejects, the connection breaks without an answer. */
export async function listenHttps(
  handle: (request: Request) => Promise<Response>,
  options: HttpsOptions,
): Promise<RunningServer> {
  const { key, cert, hostname = "127.0.0.1", port = 0 } = options;
  const running = new Set<Promise<void>>();
  const server = https.createServer({ key, cert }, (incoming, outgoing) => {
    const work: Promise<void> = serve(handle, incoming, outgoing).then(() => {
      running.delete(work);
    });
    running.add(work);
  });
  // Longer than a client keeps a connection, so that none is closed just as the next request is sent on it.
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  // A handshake that fails is the client's to tell: tests do it on purpose.
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  server.listen(port, hostname);
  await once(server, "listening");
  const address = server.address();
  const bound = typeof address === "object" && address !== null ? address.port : port;
  return {
    url: `https://${hostname.includes(":") ? `[${hostname}]` : hostname}:${bound}`,
    port: bound,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
      await Promise.all(running);
    },
  };
}

/** Never rejects. */
async function serve(
  handle: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort(new ConnectionLostError()));
  // A client that goes away shows itself as `close`; the error event beside it has nothing to add.
  outgoing.on("error", () => {});
  try {
    const request = await toRequest(incoming, gone.signal);
    await send(await handle(request), outgoing, gone.signal);
  } catch {
    incoming.socket.destroy();
  }
}

async function toRequest(incoming: IncomingMessage, signal: AbortSignal): Promise<Request> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const method = incoming.method ?? "GET";
  const body = await readAll(incoming);
  const hasBody = method !== "GET" && method !== "HEAD" && body.length > 0;
  return new Request(`https://${incoming.headers.host ?? "localhost"}${incoming.url ?? "/"}`, {
    method,
    headers,
    signal,
    ...(hasBody ? { body } : {}),
  });
}

async function readAll(incoming: IncomingMessage): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of incoming) {
    if (!(chunk instanceof Uint8Array)) continue;
    chunks.push(chunk);
    length += chunk.length;
    if (length > READ_LIMIT_BYTES) break;
  }
  const body = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    body.set(chunk, offset);
    offset += chunk.length;
  }
  return body;
}

async function send(
  response: Response,
  outgoing: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  // Node takes no body for an answer to HEAD, and says nothing of it.
  if (response.body === null || outgoing.req.method === "HEAD") {
    await response.body?.cancel();
    outgoing.end();
    return;
  }
  // A watch without events yet has to show its head.
  outgoing.flushHeaders();
  const reader = response.body.getReader();
  const onGone = () => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener("abort", onGone, { once: true });
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) break;
      // Back-pressure: nothing is read from the body while the client does not take it.
      if (!outgoing.write(value)) await once(outgoing, "drain", { signal });
    }
    outgoing.end();
  } finally {
    signal.removeEventListener("abort", onGone);
  }
}
