import assert from "node:assert/strict";
import { InFlight } from "../../lib/host/in_flight.ts";

Deno.test("a stop waits until all work in flight has settled, also the work that fails", async () => {
  const inFlight = new InFlight();
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<string>();
  const tracked = [inFlight.track(() => first.promise), inFlight.track(() => second.promise)];
  assert.equal(inFlight.count, 2);
  let settled = false;
  const waiting = inFlight.settled(new AbortController().signal).then(() => settled = true);
  first.resolve("done");
  assert.equal(await tracked[0], "done");
  assert.equal(settled, false);
  second.reject(new Error("failed"));
  await assert.rejects(tracked[1] ?? Promise.resolve(), /failed/);
  await waiting;
  assert.equal(inFlight.count, 0);
});

Deno.test("a stop that may wait no longer goes on without the work", async () => {
  const inFlight = new InFlight();
  const work = Promise.withResolvers<void>();
  const tracked = inFlight.track(() => work.promise);
  const budget = new AbortController();
  const waiting = inFlight.settled(budget.signal);
  budget.abort();
  await waiting;
  await inFlight.settled(budget.signal);
  assert.equal(inFlight.count, 1);
  work.resolve();
  await tracked;
  await inFlight.settled(new AbortController().signal);
});
