/**
 * Promises that nobody waits for, one of each kind. The check of promises must find exactly the marked lines: an unmarked
 * one that it finds, or a marked one that it does not, means that it no longer sees the types.
 *
 * Nothing runs this file.
 *
 * @module
 */

import { readFile } from "node:fs/promises";
import { Hono } from "hono";
import type { KubeApi } from "../../../lib/kube/api.ts";
import { type Clock, sleep } from "../../../lib/runtime/clock.ts";

async function own(): Promise<void> {
  await Promise.resolve();
}

/** Leaves promises alone, in every way that a type can tell. */
export function plant(api: KubeApi, clock: Clock, signal: AbortSignal, maybe?: Promise<void>) {
  own(); // no-floating-promises
  own().then(() => {}); // no-floating-promises
  own().finally(() => {}); // no-floating-promises
  own().then(() => {}, () => {});
  own().catch(() => {});
  maybe; // no-floating-promises
  new Promise((resolve) => resolve(1)); // no-floating-promises
  [1, 2].map(() => own()); // no-floating-promises
  Promise.all([own()]); // no-floating-promises
  signal.aborted ? own() : undefined; // no-floating-promises
  signal.aborted && own(); // no-floating-promises
  (async () => await own())(); // no-floating-promises
  Deno.readTextFile("a type of the runtime"); // no-floating-promises
  fetch("https://example.com/", { signal }); // no-floating-promises
  readFile("a type of a node module"); // no-floating-promises
  new Hono().request("a type of a package"); // no-floating-promises
  sleep(clock, 1, signal); // no-floating-promises
  api.version({ signal }); // no-floating-promises
}
