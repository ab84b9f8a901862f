/**
 * An answer on a bare socket: for a request whose socket node has handed over, since it asked for another protocol.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";

/** Milliseconds for which the client may still read a sent answer before its connection is destroyed. */
const LINGER_MS = 500;

/** Headers that say how the body is framed on this connection: they are ours to say. */
const FRAMING = ["connection", "content-length", "keep-alive", "transfer-encoding"];

/**
 * Writes a whole answer and ends the connection.
 *
 * @param response Its body is read whole first.
 * @param limitMs Milliseconds in which the answer must leave.
 * @param withBody False for the answer to HEAD.
 */
export async function answerOnSocket(
  socket: Duplex,
  response: Response,
  clock: Clock,
  limitMs: number,
  withBody: boolean,
): Promise<void> {
  const body = Buffer.from(await response.arrayBuffer());
  if (socket.destroyed) return;
  const headers = [...response.headers].filter(([name]) => !FRAMING.includes(name));
  headers.push(["content-length", String(body.length)], ["connection", "close"]);
  const { status } = response;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ].join("\r\n");
  socket.write(Buffer.from(`${head}\r\n\r\n`, "latin1"));
  let cancel = clock.timer(limitMs, () => socket.destroy());
  socket.once("finish", () => {
    cancel();
    cancel = clock.timer(LINGER_MS, () => socket.destroy());
  });
  socket.once("close", () => cancel());
  socket.end(withBody ? body : undefined);
}
