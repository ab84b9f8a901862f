import assert from "node:assert/strict";
import fc from "fast-check";
import { type Health, HealthIndicators, statusOf } from "../../lib/host/health.ts";
import { sleep } from "../../lib/runtime/clock.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";

Deno.test("an indicator that takes longer than its limit says unknown, and its signal aborts", async () => {
  const clock = new TestClock();
  const indicators = new HealthIndicators(clock);
  let aborted = false;
  indicators.add({
    name: "slow",
    group: "health",
    check: async (signal) => {
      signal.addEventListener("abort", () => aborted = true);
      await sleep(clock, 60_000, signal);
      return { status: "up" };
    },
  });
  const report = indicators.check("health");
  await clock.advance(1_999);
  assert.equal(aborted, false);
  await clock.advance(1);
  assert.equal(aborted, true);
  assert.deepEqual((await report).components.get("slow"), {
    status: "unknown",
    details: { error: "timeout" },
  });
  assert.equal((await report).status, "unknown");
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("an indicator may have a limit of its own, and one that never ends holds nobody up", async () => {
  const clock = new TestClock();
  const indicators = new HealthIndicators(clock);
  indicators.add({
    name: "stuck",
    group: "readiness",
    limitMs: 50,
    check: () => new Promise(() => {}),
  });
  const report = indicators.check("readiness");
  await clock.advance(50);
  assert.equal((await report).status, "unknown");
});

Deno.test("an indicator that throws is down, with the class of the error and not its text", async () => {
  const indicators = new HealthIndicators(new TestClock());
  indicators.add({
    name: "broken",
    group: "health",
    check: () => Promise.reject(new TypeError("secret")),
  });
  indicators.add({
    name: "odd",
    group: "health",
    check: () => {
      throw Object.create(null);
    },
  });
  const { status, components } = await indicators.check("health");
  assert.equal(status, "down");
  assert.deepEqual([...components.values()].map(({ details }) => details), [
    { error: "TypeError" },
    { error: "unknown" },
  ]);
});

Deno.test("the group readiness leaves out what belongs to the health page alone", async () => {
  const indicators = new HealthIndicators(new TestClock());
  indicators.add({ name: "shared", group: "health", check: () => ({ status: "down" }) });
  indicators.add({ name: "own", group: "readiness", check: () => ({ status: "up" }) });
  const ready = await indicators.check("readiness");
  assert.deepEqual([ready.status, [...ready.components.keys()]], ["up", ["own"]]);
  const health = await indicators.check("health");
  assert.deepEqual([health.status, [...health.components.keys()]], ["down", ["shared", "own"]]);
});

Deno.test("a name that is blank or taken, and a limit that is not above 0, are refused", () => {
  const indicators = new HealthIndicators(new TestClock());
  const check = () => ({ status: "up" }) as const;
  indicators.add({ name: "a", group: "health", check });
  for (const name of ["a", "", " "]) {
    assert.throws(() => indicators.add({ name, group: "health", check }), {
      name: "RangeError",
      message:
        `Cannot add a health indicator as 'name' must be its own and not blank: current value is "${name}"`,
    });
  }
  assert.throws(
    () => indicators.add({ name: "b", group: "health", limitMs: 0, check }),
    /'limitMs' must be above 0: current value is 0/,
  );
});

Deno.test("together they are as the worst of them", () => {
  const health = fc.constantFrom<Health["status"]>("up", "down", "unknown");
  fc.assert(fc.property(fc.array(health), (statuses) => {
    const worst = statuses.includes("down")
      ? "down"
      : statuses.includes("unknown")
      ? "unknown"
      : "up";
    assert.equal(statusOf(statuses.map((status) => ({ status }))), worst);
  }));
});
