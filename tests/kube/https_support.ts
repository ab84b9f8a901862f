/**
 * A real HTTPS server on 127.0.0.1, and the authority that signs for it.
 *
 * @module
 */

import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { type Authority, createAuthority } from "../../lib/testing/authority.ts";

/** Handles a request of either protocol. */
export type Handle = (
  request: http.IncomingMessage | http2.Http2ServerRequest,
  response: http.ServerResponse | http2.Http2ServerResponse,
) => void;

/** A server that runs. */
export interface TestServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** How many sockets clients have opened. */
  sockets(): number;
}

let shared: Promise<Authority> | undefined;

/** One throw-away authority for all tests of a process. */
export function authority(): Promise<Authority> {
  shared ??= createAuthority({ webCrypto: crypto, nowMs: Date.now() });
  return shared;
}

/** Whom a server says it is, and whether it asks that of its clients. */
export interface ServerIdentity {
  /** The name in its certificate; 127.0.0.1 when it is left out. */
  readonly dnsName?: string;
  readonly asksClient?: boolean;
}

/** Starts a server that speaks HTTP/2, and HTTP/1.1 to those who wish. */
export async function startServer(
  handle: Handle,
  identity: ServerIdentity = {},
): Promise<TestServer> {
  const tls = { ...await tlsOf(identity), allowHTTP1: true };
  return await listening(http2.createSecureServer(tls, handle), "secureConnection", "https");
}

/** Starts a server that speaks HTTP/1.1 alone. */
export async function startHttp1Server(
  handle: http.RequestListener,
  identity: ServerIdentity = {},
): Promise<TestServer> {
  const server = https.createServer(await tlsOf(identity), handle);
  return await listening(server, "secureConnection", "https");
}

async function tlsOf({ dnsName, asksClient }: ServerIdentity) {
  const { caPem, issue } = await authority();
  const names = dnsName === undefined ? { ipAddresses: ["127.0.0.1"] } : { dnsNames: [dnsName] };
  const { certPem, keyPem } = await issue(names);
  return { cert: certPem, key: keyPem, ca: caPem, requestCert: asksClient ?? false };
}

/** A proxy that takes CONNECT, and tells what it was asked for. */
export async function startProxy(
  asked: (target: string, authorization: string | undefined) => void,
): Promise<TestServer> {
  const { connect } = await import("node:net");
  const server = http.createServer();
  server.on("connect", (request, socket, head) => {
    const target = request.url ?? "";
    asked(target, request.headers["proxy-authorization"]);
    const [host, port] = target.split(":");
    const upstream = connect(Number(port), host, () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      upstream.write(head);
      upstream.pipe(socket);
      socket.pipe(upstream);
    });
    const drop = () => {
      upstream.destroy();
      socket.destroy();
    };
    for (const end of [upstream, socket]) end.on("error", drop).on("close", drop);
  });
  return await listening(server, "connection", "http");
}

/** A proxy that lets nobody through. */
export async function startRefusingProxy(): Promise<TestServer> {
  const server = http.createServer();
  server.on("connect", (_, socket) => {
    socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
  });
  return await listening(server, "connection", "http");
}

/** What the servers of the platform have in common. */
interface ListeningServer {
  on(
    event: string,
    listener: (socket: { destroy(): void; on(event: string, listener: () => void): void }) => void,
  ): unknown;
  listen(port: number, host: string, listening: () => void): unknown;
  address(): AddressInfo | string | null;
  close(closed: () => void): unknown;
}

async function listening(
  server: ListeningServer,
  event: string,
  scheme: string,
): Promise<TestServer> {
  const open = new Set<{ destroy(): void }>();
  let sockets = 0;
  server.on(event, (socket) => {
    sockets++;
    open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    port,
    url: `${scheme}://127.0.0.1:${port}`,
    sockets: () => sockets,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
