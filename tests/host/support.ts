/** What the tests of this room share: a real clock for real sockets, a log to look at, and clients that misbehave. */

import type { Buffer } from "node:buffer";
import * as net from "node:net";
import * as tls from "node:tls";
import type { FetchHandler, Listener } from "../../lib/host/listener.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import type { LogFields, Logger } from "../../lib/runtime/log.ts";
import {
  type Authority,
  createAuthority,
  type IssuedCertificate,
} from "../../lib/testing/authority.ts";

/** The clock of this machine: sockets do not wait for a test clock. */
export const realClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  timer(delayMs, callback) {
    const id = setTimeout(callback, Math.ceil(delayMs));
    return () => clearTimeout(id);
  },
};

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

/** A logger that remembers. */
export function recordingLogger(): Logger & { readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at = (level: string) => (message: string, fields: LogFields = {}) => {
    lines.push({ level, message, fields });
  };
  return { lines, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** Polls until `condition` holds, and fails after `limitMs`. */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  what: string,
  limitMs = 5_000,
): Promise<void> {
  const end = performance.now() + limitMs;
  while (!await condition()) {
    if (performance.now() > end) throw new Error(`Not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export function testAuthority(): Promise<Authority> {
  return createAuthority({ webCrypto: crypto, nowMs: Date.now() });
}

/** A certificate for 127.0.0.1 that carries `name`. */
export function issueFor(authority: Authority, name: string): Promise<IssuedCertificate> {
  return authority.issue({ ipAddresses: ["127.0.0.1"], commonName: name });
}

/** A directory with a pair in it, as files that are not links. */
export async function writePair(pair: IssuedCertificate, dir?: string) {
  const directory = dir ?? await Deno.makeTempDir();
  const files = { certFile: `${directory}/tls.crt`, keyFile: `${directory}/tls.key` };
  await Deno.writeTextFile(files.certFile, pair.certPem);
  await Deno.writeTextFile(files.keyFile, pair.keyPem);
  return {
    ...files,
    directory,
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

/** A client that writes bytes as it is told and remembers what came back. */
export class RawClient implements AsyncDisposable {
  readonly #socket: net.Socket;
  #received = "";
  /** Settles with all that was received, when the connection is gone. */
  readonly closed: Promise<string>;
  #failed = false;

  constructor(socket: net.Socket) {
    this.#socket = socket;
    socket.on("data", (data: Buffer) => this.#received += data.toString("latin1"));
    socket.on("error", () => this.#failed = true);
    this.closed = new Promise((resolve) => socket.on("close", () => resolve(this.#received)));
  }

  get received(): string {
    return this.#received;
  }

  /** True after an error of the connection, for example a reset. */
  get failed(): boolean {
    return this.#failed;
  }

  get socket(): net.Socket {
    return this.#socket;
  }

  write(text: string): this {
    this.#socket.write(text);
    return this;
  }

  /** Stops reading, so that the server's answer piles up. */
  pause(): this {
    this.#socket.pause();
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
    await this.closed;
  }
}

/** Connects over plain TCP. */
export function connectPlain(listener: Listener): Promise<RawClient> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(listener.address.port, "127.0.0.1");
    socket.once("error", reject);
    socket.once("connect", () => resolve(new RawClient(socket)));
  });
}

/** Connects over TLS and verifies the server. */
export function connectTls(listener: Listener, ca: string, options: tls.ConnectionOptions = {}) {
  return new Promise<{ client: RawClient; commonName: string; protocol: string | null }>(
    (resolve, reject) => {
      const socket = tls.connect({
        port: listener.address.port,
        host: "127.0.0.1",
        ca,
        ...options,
      });
      socket.once("error", reject);
      socket.once("secureConnect", () => {
        const names = socket.getPeerCertificate().subject.CN;
        resolve({
          client: new RawClient(socket),
          commonName: Array.isArray(names) ? names.join() : names ?? "",
          protocol: socket.getProtocol(),
        });
      });
    },
  );
}

/** An answer of one line for every request. */
export const answerOk: FetchHandler = () => new Response("ok\n");
