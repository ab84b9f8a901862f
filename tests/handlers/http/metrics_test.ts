import assert from "node:assert/strict";
import { Counter, Registry } from "prom-client";
import { createMetricsApp } from "../../../handlers/http/metrics.ts";
import { MetricsSources } from "../../../lib/host/host_metrics.ts";
import { silentLogger } from "../../../lib/runtime/log.ts";

Deno.test("a scrape gets what is registered, in the format of Prometheus", async () => {
  const registry = new Registry();
  new Counter({ name: "things_total", help: "Things.", registers: [registry] }).inc(3);
  const metrics = new MetricsSources(silentLogger);
  metrics.add({ name: "things", registry });
  const app = createMetricsApp({ metrics, logger: silentLogger });
  const response = await app.request("/metrics");
  assert.equal(response.status, 200);
  assert.match(response.headers.get("Content-Type") ?? "", /^text\/plain; version=0\.0\.4/);
  assert.match(await response.text(), /\nthings_total 3\n/);
});

Deno.test("a metric that cannot be collected is 500 and one log line, without the text of the error", async () => {
  const lines: unknown[] = [];
  const app = createMetricsApp({
    metrics: {
      contentType: Registry.PROMETHEUS_CONTENT_TYPE,
      render: () => Promise.reject(new TypeError("secret")),
    },
    logger: { ...silentLogger, error: (message, fields) => lines.push([message, fields]) },
  });
  const response = await app.request("/metrics");
  assert.equal(response.status, 500);
  assert.equal(await response.text(), "metrics cannot be collected");
  assert.deepEqual(lines, [["metrics cannot be collected", { error: "TypeError" }]]);
});

Deno.test("nothing else is on the port of the metrics", async () => {
  const app = createMetricsApp({ metrics: new MetricsSources(silentLogger), logger: silentLogger });
  assert.equal((await app.request("/")).status, 404);
});
