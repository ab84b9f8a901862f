import assert from "node:assert/strict";
import fc from "fast-check";
import { CallSlots, MAX_CONCURRENT_CALLS } from "../../lib/kube/call_slots.ts";
import { LEASES } from "../../lib/kube/mod.ts";
import { KubeTimeoutError } from "../../lib/kube/errors.ts";
import { type Answerer, hangs, json, lease, setup, Stream } from "./support.ts";

const A = { name: "a", namespace: "database" };
const OK: Answerer = json(lease("a", "1"));

/** Lets what is due run. */
const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
};

Deno.test("a limit that is no positive integer is refused", () => {
  for (const most of [0, -1, 1.5, NaN, Infinity]) {
    assert.throws(() => new CallSlots(most), (error) =>
      error instanceof RangeError &&
      error.message ===
        `Cannot limit calls as 'most' must be a positive integer: current value is ${most}`);
  }
});

Deno.test("whatever is taken, given back and given up, no more than the limit are under way and whoever waits longest is next", async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("enter" as const) }),
    fc.record({ do: fc.constant("leave" as const), which: fc.nat() }),
    fc.record({ do: fc.constant("give up" as const), which: fc.nat() }),
  );
  const steps = fc.array(step, { maxLength: 60 });
  await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: 4 }), steps, async (most, all) => {
    const slots = new CallSlots(most);
    const inside = new Map<number, Disposable>();
    const waiting = new Map<number, AbortController>();
    const expected: number[] = [];
    for (const [id, now] of all.entries()) {
      if (now.do === "enter") {
        const control = new AbortController();
        waiting.set(id, control);
        expected.push(id);
        slots.enter(control.signal).then((place) => {
          waiting.delete(id);
          inside.set(id, place);
        }, (reason) => assert.equal(reason, "over"));
      } else if (now.do === "leave") {
        const [id, place] = [...inside][now.which % inside.size] ?? [];
        if (id !== undefined) {
          inside.delete(id);
          expected.splice(expected.indexOf(id), 1);
          place?.[Symbol.dispose]();
          place?.[Symbol.dispose]();
        }
      } else {
        const [id, control] = [...waiting][now.which % waiting.size] ?? [];
        if (id !== undefined) {
          waiting.delete(id);
          expected.splice(expected.indexOf(id), 1);
          control?.abort("over");
        }
      }
      await settle();
      assert.deepEqual([...inside.keys()].sort(), expected.slice(0, most).sort());
    }
  }));
});

Deno.test("calls beyond the limit wait, and go on one by one as others end", async () => {
  const streams = Array.from({ length: 3 }, () => new Stream());
  const made = setup(streams.map(({ answer }) => answer), { maxConcurrentCalls: 2 });
  const { api, signal, seen } = made;
  const reads = streams.map(() => api.get(LEASES, A, { signal }));
  await settle();
  assert.equal(seen.length, 2);
  // The head of an answer is not its end.
  streams[0]?.write(JSON.stringify(lease("a", "1")));
  await made.clock.advance(0);
  assert.equal(seen.length, 2);
  streams[0]?.end();
  await reads[0];
  await made.clock.advance(0);
  assert.equal(seen.length, 3);
  for (const stream of streams.slice(1)) {
    stream.write(JSON.stringify(lease("a", "1")));
    stream.end();
  }
  await Promise.all(reads);
});

Deno.test("a call that runs out of time in the line was not sent, and is no call for a metric", async () => {
  const made = setup([hangs, OK], { maxConcurrentCalls: 1 });
  const { api, signal, seen, calls, clock } = made;
  const first = assert.rejects(api.get(LEASES, A, { signal, timeoutMs: 100 }), KubeTimeoutError);
  const second = assert.rejects(
    api.replace(LEASES, lease("a", "1"), { signal, timeoutMs: 50 }),
    (error) => error instanceof KubeTimeoutError && !error.mayHaveLanded,
  );
  await clock.advance(50);
  await second;
  assert.equal(seen.length, 1);
  assert.equal(calls.length, 0);
  await clock.advance(50);
  await first;
  assert.equal((await api.get(LEASES, A, { signal })).metadata.name, "a");
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a caller that gives up leaves the line with its own reason", async () => {
  const made = setup([hangs], { maxConcurrentCalls: 1 });
  const { api, clock } = made;
  const first = assert.rejects(api.get(LEASES, A, { signal: made.signal }));
  const control = new AbortController();
  const second = assert.rejects(
    api.get(LEASES, A, { signal: control.signal }),
    (error) => error === "gone",
  );
  await settle();
  control.abort("gone");
  await second;
  made.abort("over");
  await first;
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("watches take no place", async () => {
  const streams = Array.from({ length: 3 }, () => new Stream());
  const list = json({
    kind: "List",
    apiVersion: "v1",
    metadata: { resourceVersion: "1" },
    items: [],
  });
  const answers = streams.flatMap(({ answer }) => [list, answer]);
  const made = setup([...answers, OK], { maxConcurrentCalls: 1 });
  const { api, signal } = made;
  const watches = [];
  for (const _ of streams) {
    const watch = api.watch(LEASES, { namespace: "database", signal })[Symbol.asyncIterator]();
    await watch.next();
    void watch.next().catch(() => {});
    await made.clock.advance(0);
    watches.push(watch);
  }
  assert.equal(made.seen.length, 6);
  assert.equal((await api.get(LEASES, A, { signal })).metadata.name, "a");
  made.abort("over");
  await made.clock.advance(0);
});

Deno.test("as many calls are under way as sockets are kept", async () => {
  const made = setup(Array.from({ length: MAX_CONCURRENT_CALLS + 1 }, () => hangs));
  const { api, signal } = made;
  const reads = Array.from(
    { length: MAX_CONCURRENT_CALLS + 1 },
    () => assert.rejects(api.get(LEASES, A, { signal })),
  );
  await made.clock.advance(0);
  assert.equal(made.seen.length, MAX_CONCURRENT_CALLS);
  made.abort("over");
  await Promise.all(reads);
});
