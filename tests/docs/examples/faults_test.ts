import assert from "node:assert/strict";
import {
  CONFIG_MAPS,
  ConflictError,
  HttpApi,
  type KubeApi,
  KubeError,
  KubeTimeoutError,
  staticToken,
} from "@holdfast/holdfast/kube";
import { FakeCluster, seededEntropy, TestClock } from "@holdfast/holdfast/testing";

const COUNTER = { namespace: "default", name: "counter" };

/** What is under test: counts in a ConfigMap that others count in too. */
async function countUp(api: KubeApi, signal: AbortSignal): Promise<void> {
  for (;;) {
    const counter = await api.get(CONFIG_MAPS, COUNTER, { signal, timeoutMs: 5_000 });
    const count = Number(counter.data?.count) + 1;
    try {
      await api.replace(CONFIG_MAPS, { ...counter, data: { count: String(count) } }, { signal });
      return;
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
    }
  }
}

/** A cluster with the counter at 1, and a client of it. */
function openCluster() {
  const clock = new TestClock();
  const entropy = seededEntropy(1);
  const fake = new FakeCluster({ clock, entropy });
  fake.seed(CONFIG_MAPS, { metadata: COUNTER, data: { count: "1" } });
  const api = new HttpApi({
    baseUrl: "https://fake",
    fetch: fake.fetch,
    credentials: staticToken(fake.adminToken),
    defaultNamespace: "default",
    clock,
    entropy,
  });
  const { signal } = new AbortController();
  return { clock, fake, api, signal, count: () => fake.read(CONFIG_MAPS, COUNTER)?.data?.count };
}

Deno.test("who loses a race counts again", async () => {
  const { fake, api, signal, count } = openCluster();
  await using _cluster = fake;
  const conflict = fake.faults.add({
    verb: "update",
    resource: "configmaps",
    count: 1,
    fault: { type: "status", code: 409 },
  });
  await countUp(api, signal);
  assert.equal(conflict.hits, 1);
  assert.equal(count(), "2");
  assert.equal(fake.calls.count({ verb: "update", resource: "configmaps" }), 2);
});

Deno.test("an answer that is lost is told, and the write may be there", async () => {
  const { fake, api, signal, count } = openCluster();
  await using _cluster = fake;
  fake.faults.add({ verb: "update", fault: { type: "lost-answer", as: "reset" } });
  await assert.rejects(
    countUp(api, signal),
    (error) => error instanceof KubeError && error.mayHaveLanded,
  );
  assert.equal(count(), "2");
});

Deno.test("a server that hangs is given up after 5 s, and the test does not wait for them", async () => {
  const { clock, fake, api, signal, count } = openCluster();
  await using _cluster = fake;
  fake.faults.add({ verb: "get", fault: { type: "hang" } });
  const counting = assert.rejects(countUp(api, signal), KubeTimeoutError);
  await clock.advance(5_000);
  await counting;
  assert.equal(count(), "1");
});
