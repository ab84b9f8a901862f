/**
 * The clients of {@linkcode measureSockets}: a process of their own, so that the server's event loop is measured alone.
 * Arguments: a URL, how many connect, how many messages are expected of the first look. It prints a line once all of those
 * have come, and counts on until its standard input ends.
 *
 * @module
 */

// @ts-types="@types/ws"
import { WebSocket } from "ws";
import { print } from "../checks/shell.ts";

const [url = "", clients = "", expected = ""] = Deno.args;
const started = performance.now();
let received = 0;
const sockets = Array.from({ length: Number(clients) }, () => {
  const socket = new WebSocket(url);
  socket.on("message", () => {
    received++;
    if (received === Number(expected)) print(String(performance.now() - started));
  });
  return socket;
});
for await (const _ of Deno.stdin.readable) {
  // Nothing is told on it.
}
print(String(received));
for (const socket of sockets) socket.terminate();
