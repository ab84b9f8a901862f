import assert from "node:assert/strict";
import fc from "fast-check";
import { KeyedQueue } from "../../lib/lease/queue.ts";

const { signal: never } = new AbortController();

Deno.test("requests of one group take turns in the order in which they came", async () => {
  const queue = new KeyedQueue();
  const order: number[] = [];
  const first = await queue.enter("a", never);
  const others = [1, 2, 3].map(async (number) => {
    using turn = await queue.enter("a", never);
    order.push(number);
    assert.equal(turn.waited, true);
  });
  assert.equal(first.waited, false);
  first[Symbol.dispose]();
  await Promise.all(others);
  assert.deepEqual(order, [1, 2, 3]);
  assert.equal(queue.size, 0);
});

Deno.test("groups never wait for one another", async () => {
  const queue = new KeyedQueue();
  using _a = await queue.enter("a", never);
  using b = await queue.enter("b", never);
  assert.equal(b.waited, false);
});

Deno.test("a waiter that gives up leaves the line, and the next one gets the turn", async () => {
  const queue = new KeyedQueue();
  const first = await queue.enter("a", never);
  const impatient = new AbortController();
  const second = queue.enter("a", impatient.signal);
  const third = queue.enter("a", never);
  const reason = new Error("deadline");
  impatient.abort(reason);
  await assert.rejects(second, reason);
  first[Symbol.dispose]();
  (await third)[Symbol.dispose]();
  assert.equal(queue.size, 0);
});

Deno.test("a request whose time is over before it asks does not enter", async () => {
  const reason = new Error("late");
  const queue = new KeyedQueue();
  await assert.rejects(queue.enter("a", AbortSignal.abort(reason)), reason);
  assert.equal(queue.size, 0);
});

Deno.test("to give a turn back twice gives nobody a second turn", async () => {
  const queue = new KeyedQueue();
  const first = await queue.enter("a", never);
  const second = queue.enter("a", never);
  const third = queue.enter("a", never);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  const turn = await second;
  let thirdRuns = false;
  void third.then(() => thirdRuns = true);
  await Promise.resolve();
  assert.equal(thirdRuns, false);
  turn[Symbol.dispose]();
  (await third)[Symbol.dispose]();
});

Deno.test("property: at most one turn per group at any time, and none is lost", async () => {
  await fc.assert(fc.asyncProperty(
    fc.scheduler(),
    fc.array(fc.record({ key: fc.constantFrom("a", "b"), gaveUp: fc.boolean() }), {
      maxLength: 20,
    }),
    async (scheduler, requests) => {
      const queue = new KeyedQueue();
      const running = new Map<string, number>();
      let served = 0;
      await Promise.all(
        requests.map(async ({ key, gaveUp }) => {
          const controller = new AbortController();
          const entered = queue.enter(key, controller.signal);
          if (gaveUp) controller.abort(new Error("gave up"));
          try {
            using _turn = await entered;
            running.set(key, (running.get(key) ?? 0) + 1);
            assert.equal(running.get(key), 1);
            await scheduler.schedule(Promise.resolve());
            running.set(key, 0);
            served++;
          } catch (error) {
            assert.ok(gaveUp, String(error));
          }
        }).concat(scheduler.waitIdle()),
      );
      assert.ok(served >= requests.filter(({ gaveUp }) => !gaveUp).length);
      assert.equal(queue.size, 0);
    },
  ));
});
