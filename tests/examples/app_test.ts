/** The example application: on the test clock, and as a process. */

import assert from "node:assert/strict";
import { z } from "zod";
import { createEmbedded } from "../../deploy/examples/app/embedded.ts";
import { seededEntropy, TestClock, TestSystem } from "../../lib/testing/mod.ts";
import { eventually } from "../host/support.ts";
import { ExampleProcess } from "./example_process.ts";

const AUTUMN_MANIFEST_DIR = new URL("../../deploy/examples/app", import.meta.url).pathname;

const Page = z.object({
  greeting: z.string(),
  pod: z.string(),
  mode: z.string(),
  leads: z.boolean(),
  leader: z.string(),
  progress: z.object({ done: z.number(), state: z.string(), token: z.string().nullable() }),
});

/** Both replicas on a test clock. */
async function start(items: number) {
  const clock = new TestClock();
  const configFile = `${AUTUMN_MANIFEST_DIR}/holdfast.yaml`;
  const system = new TestSystem({
    clock,
    entropy: seededEntropy(4),
    env: { AUTUMN_MANIFEST_DIR },
    files: { [configFile]: await Deno.readTextFile(configFile) },
  });
  const embedded = createEmbedded({ system, port: null, items });
  const [a, b] = embedded.replicas;
  assert.ok(a !== undefined && b !== undefined);
  await a.host.start();
  await clock.advance(100);
  await b.host.start();
  await clock.advance(100);
  const look = async ({ host }: typeof a) => Page.parse(await (await host.request("/")).json());
  return { ...embedded, clock, a, b, look };
}

Deno.test("one replica imports and the other waits; it takes over when the first one stops, under a greater token", async () => {
  const { cluster, clock, a, b, look } = await start(20_000);
  await clock.advance(60_000);
  const leader = await look(a);
  assert.deepEqual([leader.leads, leader.progress.state], [true, "running"]);
  assert.ok(leader.progress.done >= 590, String(leader.progress.done));
  const waiting = await look(b);
  assert.deepEqual([waiting.leads, waiting.progress.state], [false, "idle"]);
  assert.match(waiting.leader, /^example-a-[0-9a-f]{8}$/);

  const stopped = a.host.stop("test");
  await clock.advance(2_000);
  assert.equal(await stopped, 0);
  assert.equal(a.importer.progress.state, "stopped");
  const next = await look(b);
  assert.deepEqual([next.leads, next.progress.state], [true, "running"]);
  assert.ok(BigInt(next.progress.token ?? 0) > BigInt(leader.progress.token ?? 0));
  const end = b.host.stop("test");
  await clock.advance(2_000);
  assert.equal(await end, 0);
  await cluster.close();
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("a change of the ConfigMap is seen at once, and a bad one fails the page that wants it", async () => {
  const { cluster, clock, a, b, look, setSettings } = await start(1_000_000);
  assert.equal((await look(b)).greeting, "hello from the ConfigMap");
  setSettings({ greeting: "good day", pauseMs: 10 });
  await clock.advance(1);
  assert.equal((await look(b)).greeting, "good day");
  const before = a.importer.progress.done;
  await clock.advance(10_000);
  assert.ok(a.importer.progress.done - before >= 980, "it is faster now");

  setSettings({ pauseMs: "soon" });
  await clock.advance(1);
  const answer = await b.host.request("/");
  assert.equal(answer.status, 500);
  assert.deepEqual(await answer.json(), {
    error:
      'Cannot read the key "settings.json" of the ConfigMap example-settings: its value has another form at pauseMs',
  });
  // The task cannot read them either, and gives the lead up.
  await clock.advance(1_000);
  assert.notEqual(a.importer.progress.state, "running");
  for (const { host } of [a, b]) void host.stop("test");
  await clock.advance(20_000);
  await Promise.all([a.host.done, b.host.done]);
  await cluster.close();
});

Deno.test("the work ends when all is done, and the pages of health and metrics tell of it", async () => {
  const { cluster, clock, a, b } = await start(5);
  await clock.advance(10_000);
  assert.equal(a.importer.progress.state, "finished");
  const health = await (await a.host.request("/health")).text();
  assert.match(
    health,
    /"importer":\{"status":"UP","details":\{"state":"finished","done":5,"total":5\}\}/,
  );
  const metrics = await (await a.host.request("/metrics")).text();
  assert.match(metrics, /^example_items_imported_total 5$/m);
  assert.match(metrics, /^kubernetes_leader\{lease="example-app"\} 1$/m);
  for (const { host } of [a, b]) void host.stop("test");
  await clock.advance(5_000);
  assert.deepEqual(await Promise.all([a.host.done, b.host.done]), [0, 0]);
  await cluster.close();
});

Deno.test("one command runs it without a cluster, and a signal ends both replicas in order", async () => {
  await using example = new ExampleProcess(["--embedded", "--port", "0"]);
  const [a = "", b = ""] = await example.ready(2);
  const look = async (url: string) => Page.parse(await (await fetch(url)).json());
  await eventually(async () => (await look(a)).leads || (await look(b)).leads, "one leads");
  assert.notEqual((await look(a)).leads, (await look(b)).leads);
  for (const url of [a, b]) {
    const ready = await fetch(`${url}/ready`);
    assert.equal(ready.status, 200);
    await ready.body?.cancel();
  }
  assert.equal(await example.stop(), 0);
});
