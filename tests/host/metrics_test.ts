import assert from "node:assert/strict";
import fc from "fast-check";
import {
  createMetrics,
  HttpMetrics,
  type ProcessFigures,
  runtimeFigures,
} from "../../lib/host/metrics.ts";
import { Registry } from "prom-client";
import { TEST_EPOCH_MS, TestClock } from "../../lib/testing/test_clock.ts";

const FIGURES: ProcessFigures = {
  residentMemory: () => 1_000,
  cpuSeconds: () => 2.5,
  openDescriptors: () => 7,
};

/** The value of the sample that is written as `sample`, labels included. */
async function sample(registry: Registry, sample: string): Promise<number | undefined> {
  const text = await registry.metrics();
  const line = text.split("\n").find((line) => line.startsWith(`${sample} `));
  return line === undefined ? undefined : Number(line.slice(sample.length + 1));
}

Deno.test("the process figures are read at each scrape", async () => {
  let memory = 1_000;
  let cpu = 2.5;
  using metrics = createMetrics({
    clock: new TestClock(),
    figures: { ...FIGURES, residentMemory: () => memory, cpuSeconds: () => cpu },
  });
  const { registry } = metrics;
  assert.equal(await sample(registry, "process_start_time_seconds"), TEST_EPOCH_MS / 1000);
  assert.equal(await sample(registry, "process_resident_memory_bytes"), 1_000);
  assert.equal(await sample(registry, "process_cpu_seconds_total"), 2.5);
  assert.equal(await sample(registry, "process_open_fds"), 7);
  memory = 3_000;
  cpu = 4;
  assert.equal(await sample(registry, "process_resident_memory_bytes"), 3_000);
  assert.equal(await sample(registry, "process_cpu_seconds_total"), 4);
});

Deno.test("descriptors that may not be counted have no sample, and never 0", async () => {
  using metrics = createMetrics({
    clock: new TestClock(),
    figures: { ...FIGURES, openDescriptors: () => undefined },
  });
  assert.equal(await sample(metrics.registry, "process_open_fds"), undefined);
});

Deno.test("the figures of this process are plausible", () => {
  assert(runtimeFigures.residentMemory() > 10_000_000);
  assert(runtimeFigures.cpuSeconds() > 0);
  const descriptors = runtimeFigures.openDescriptors();
  assert(descriptors === undefined || descriptors > 2);
});

Deno.test("without permissions memory and processor time are there, and descriptors are left out", async () => {
  const module = new URL("../../lib/host/metrics.ts", import.meta.url).href;
  const script = `
    import { createMetrics } from ${JSON.stringify(module)};
    const clock = { monotonic: () => 0, wall: () => 0, timer: () => () => {} };
    console.log(await createMetrics({ clock }).registry.metrics());`;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--ignore-env", "--allow-read", "-"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(script));
  await writer.close();
  const output = await child.output();
  const stdout = new TextDecoder().decode(output.stdout);
  assert.equal(output.code, 0, new TextDecoder().decode(output.stderr));
  assert.match(stdout, /\nprocess_resident_memory_bytes [1-9]\d{6,}\n/);
  assert.match(stdout, /\nprocess_cpu_seconds_total 0?\.?\d*[1-9]/);
  assert.doesNotMatch(stdout, /\nprocess_open_fds /);
});

Deno.test("a timer that fires late is counted with its lag", async () => {
  const clock = new TestClock();
  let behindMs = 0;
  using metrics = createMetrics({
    clock: {
      monotonic: () => clock.monotonic() + behindMs,
      wall: () => clock.wall(),
      timer: (delayMs, callback) => clock.timer(delayMs, callback),
    },
    figures: FIGURES,
  });
  await clock.advance(2_000);
  assert.equal(await sample(metrics.registry, "holdfast_event_loop_lag_seconds_count"), 2);
  assert.equal(await sample(metrics.registry, "holdfast_event_loop_lag_seconds_sum"), 0);
  await clock.advance(500);
  behindMs = 250;
  await clock.advance(500);
  assert.equal(await sample(metrics.registry, "holdfast_event_loop_lag_seconds_count"), 3);
  assert.equal(await sample(metrics.registry, "holdfast_event_loop_lag_seconds_sum"), 0.25);
});

Deno.test("disposed metrics measure no more", () => {
  const clock = new TestClock();
  createMetrics({ clock, figures: FIGURES })[Symbol.dispose]();
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("an answer is counted by server, handler, method and class of status, and its time is kept", async () => {
  const registry = new Registry();
  const http = new HttpMetrics(registry);
  const seen = { server: "deploy", handler: "grant", method: "POST" } as const;
  http.observe({ ...seen, status: 201, seconds: 0.02 });
  http.observe({ ...seen, status: 299, seconds: 20 });
  http.observe({ ...seen, status: 503, seconds: 0.001 });
  const labels = 'server="deploy",handler="grant",method="POST"';
  assert.equal(await sample(registry, `bloodraven_http_requests_total{${labels},status="2xx"}`), 2);
  assert.equal(await sample(registry, `bloodraven_http_requests_total{${labels},status="5xx"}`), 1);
  const bucket = (le: string) =>
    sample(registry, `bloodraven_http_request_duration_seconds_bucket{le="${le}",${labels}}`);
  assert.equal(await bucket("0.005"), 1);
  assert.equal(await bucket("0.025"), 2);
  assert.equal(await bucket("10"), 2);
  assert.equal(await bucket("+Inf"), 3);
  const text = await registry.metrics();
  const bounds = [...text.matchAll(/le="([\d.]+)"/g)].map((match) => Number(match[1]));
  assert.deepEqual(bounds, [.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10]);
});

Deno.test("a method that is not one of the seven common ones makes no series of its own", async () => {
  const common = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
  const method = fc.oneof(fc.string(), fc.constantFrom(...common, "get", "TRACE", "PROPFIND"));
  await fc.assert(fc.asyncProperty(method, async (method) => {
    const registry = new Registry();
    const seen = { server: "aux", handler: "notfound", method, status: 404, seconds: 1 } as const;
    new HttpMetrics(registry).observe(seen);
    const label = common.includes(method) ? method : "OTHER";
    const labels = `server="aux",handler="notfound",method="${label}"`;
    assert.equal(
      await sample(registry, `bloodraven_http_requests_total{${labels},status="4xx"}`),
      1,
    );
  }));
});
