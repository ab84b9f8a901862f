import assert from "node:assert/strict";
import fc from "fast-check";
import {
  failurePauseMs,
  GroupSchedule,
  type PassOutcome,
} from "../../lib/controllers/group_schedule.ts";
import { exactLeaseTime } from "../../lib/lease_time/lease_time.ts";
import { seededEntropy, TestClock } from "../../lib/testing/mod.ts";

function scheduleOf(pass: (key: string, begun: () => void) => Promise<PassOutcome>) {
  const clock = new TestClock();
  const entropy = seededEntropy(1);
  const schedule = new GroupSchedule({ clock, entropy, time: exactLeaseTime(clock), pass });
  return { clock, schedule };
}

const done: PassOutcome = { type: "done", dues: [] };

Deno.test("sixteen groups are looked at at once, and the others in the order of their wake-ups", async () => {
  const begun: string[] = [];
  const waiting: (() => void)[] = [];
  const { clock, schedule } = scheduleOf((key) => {
    begun.push(key);
    return new Promise((resolve) => waiting.push(() => resolve(done)));
  });
  const keys = Array.from({ length: 40 }, (_, index) => `ns/${index}`);
  for (const key of keys) schedule.wake(key);
  assert.equal(begun.length, 16);
  while (waiting.length > 0) {
    waiting.shift()?.();
    await clock.advance(0);
  }
  assert.deepEqual(begun, keys);
  await schedule.stop();
});

Deno.test("a group is never looked at twice at the same time, and no wake-up is lost", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ key: fc.integer({ min: 0, max: 3 }), pauseMs: fc.nat(20) }), {
        maxLength: 40,
      }),
      async (wakes) => {
        const running = new Set<string>();
        const version = new Map<string, number>();
        const seen = new Map<string, number>();
        const { clock, schedule } = scheduleOf(async (key, begun) => {
          assert.ok(!running.has(key));
          running.add(key);
          await new Promise<void>((resolve) => clock.timer(3, resolve));
          begun();
          seen.set(key, version.get(key) ?? 0);
          await new Promise<void>((resolve) => clock.timer(7, resolve));
          running.delete(key);
          return done;
        });
        for (const { key, pauseMs } of wakes) {
          const name = `ns/${key}`;
          version.set(name, (version.get(name) ?? 0) + 1);
          schedule.wake(name);
          await clock.advance(pauseMs);
        }
        await clock.advance(1_000);
        assert.deepEqual([...seen].toSorted(), [...version].toSorted());
        await schedule.stop();
        assert.equal(clock.pendingTimers, 0);
      },
    ),
    { numRuns: 50 },
  );
});

Deno.test("after a stop nothing begins, and what runs is waited for", async () => {
  let passes = 0;
  const running = Promise.withResolvers<PassOutcome>();
  const { clock, schedule } = scheduleOf(() => {
    passes++;
    return running.promise;
  });
  schedule.wake("ns/a");
  let stopped = false;
  const stopping = schedule.stop().then(() => stopped = true);
  schedule.wake("ns/b");
  await clock.advance(0);
  assert.deepEqual([passes, stopped], [1, false]);
  running.resolve({ type: "done", dues: [{ inMs: 5 }] });
  await stopping;
  await clock.advance(10);
  assert.equal(passes, 1);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a failing group pauses for 1 s, doubled to 30 s, and a fifth at most is added", () => {
  fc.assert(fc.property(fc.nat(100), fc.double({ min: 0, max: 0.999, noNaN: true }), (n, f) => {
    const pause = failurePauseMs(n, f);
    const base = Math.min(1_000 * 2 ** n, 30_000);
    assert.ok(pause >= base && pause <= base * 1.2);
  }));
});
