import assert from "node:assert/strict";
import { Registry } from "prom-client";
import { Elector } from "@holdfast/holdfast/election";
import { HttpApi, staticToken } from "@holdfast/holdfast/kube";
import { FakeCluster, seededEntropy, TestClock } from "@holdfast/holdfast/testing";

Deno.test("another replica leads within 20 s of a crash", async () => {
  const clock = new TestClock();
  await using fake = new FakeCluster({ clock, entropy: seededEntropy(1) });
  const ignore = () => {};
  const electors = ["first", "second"].map((identity, at) => {
    const entropy = seededEntropy(at + 2);
    const elector = new Elector({
      api: new HttpApi({
        baseUrl: "https://fake",
        fetch: fake.fetch,
        // A user of its own, so that a fault can hit this replica alone.
        credentials: staticToken(fake.userToken(identity)),
        defaultNamespace: "default",
        clock,
        entropy,
      }),
      clock,
      entropy,
      logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
      metrics: new Registry(),
      namespace: "default",
      leaseName: "my-app",
      identity,
    });
    elector.start();
    return elector;
  });
  const leads = () => electors.map(({ leadership }) => leadership.isLeader());
  await clock.advance(0);
  assert.deepEqual(leads().sort(), [false, true]);

  const leader = electors.find(({ leadership }) => leadership.isLeader());
  fake.faults.add({ user: leader?.leadership.identity, fault: { type: "reset" } });
  const before = leads();
  // 20 simulated seconds in some milliseconds: no test waits for a clock.
  await clock.advance(20_000);
  assert.deepEqual(leads(), before.map((led) => !led));

  fake.faults.clear();
  const stopped = Promise.all(
    electors.map((elector) => elector.stop(new AbortController().signal)),
  );
  await clock.advance(60_000);
  await stopped;
  assert.equal(clock.pendingTimers, 0);
});
