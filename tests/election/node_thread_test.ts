import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Worker } from "node:worker_threads";
import {
  fromNodeThread,
  type NodeThread,
  type NodeThreadPort,
  nodeThreadScope,
} from "../../lib/election/mod.ts";

/** A thread, or a port, that posts what it is handed into a list. */
class Emitter extends EventEmitter implements NodeThread, NodeThreadPort {
  readonly posted: unknown[] = [];
  terminated = false;

  postMessage(message: unknown): void {
    this.posted.push(message);
  }

  terminate(): Promise<number> {
    this.terminated = true;
    return Promise.resolve(1);
  }
}

Deno.test("a thread of Node hands on messages, and tells failures and its end as a worker of the web does", () => {
  const thread = new Emitter();
  const worker = fromNodeThread(thread);
  const heard: unknown[] = [];
  for (const type of ["message", "messageerror", "error"] as const) {
    worker.addEventListener(type, (event) => {
      event.preventDefault();
      heard.push([event.type, "data" in event ? event.data : Reflect.get(event, "message")]);
    });
  }
  thread.emit("message", { type: "done" });
  thread.emit("messageerror", "no clone");
  thread.emit("error", new Error("out of nowhere"));
  thread.emit("error", "a text");
  thread.emit("exit", 3);
  assert.deepEqual(heard, [
    ["message", { type: "done" }],
    ["messageerror", "no clone"],
    ["error", "out of nowhere"],
    ["error", "a text"],
    ["error", "it ended with 3"],
  ]);
  worker.postMessage(1);
  worker.terminate();
  assert.deepEqual([thread.posted, thread.terminated], [[1], true]);
  // Node's own class fits.
  const accepts = (real: Worker) => fromNodeThread(real);
  assert.equal(accepts.length, 1);
});

Deno.test("the scope of a thread has its name, and that of the program is none of a worker", () => {
  const port = new Emitter();
  const scope = nodeThreadScope(port, "holdfast-isolated-task:compact");
  const heard: unknown[] = [];
  const listen: unknown = Reflect.get(scope, "addEventListener");
  assert.ok(typeof listen === "function");
  listen("message", (event: MessageEvent) => heard.push(event.data));
  port.emit("message", { type: "ping" });
  assert.deepEqual(heard, [{ type: "ping" }]);
  assert.equal(Reflect.get(scope, "name"), "holdfast-isolated-task:compact");
  assert.deepEqual(nodeThreadScope(null, "holdfast-isolated-task:compact"), {});
  assert.deepEqual(nodeThreadScope(port, { else: true }), {});
});
