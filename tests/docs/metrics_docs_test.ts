import assert from "node:assert/strict";
import { readDocument } from "./markdown.ts";
import { documentedIn, scrapedIn, scrapeService } from "./metrics_scrape.ts";

Deno.test("docs/metrics.md has every metric that the service shows, with its type and labels, and no other", async () => {
  const scraped = scrapedIn(await scrapeService());
  const documented = documentedIn(await readDocument("docs/metrics.md"));
  assert.deepEqual([...documented.keys()].sort(), [...scraped.keys()].sort());
  for (const [name, { type, labels }] of scraped) {
    const shown = documented.get(name);
    assert.equal(shown?.type, type, name);
    if (labels !== null) assert.deepEqual(shown?.labels, labels, name);
  }
  const sampled = [...scraped.values()].filter(({ labels }) => labels !== null).length;
  assert.ok(sampled >= 25, `most metrics must have a sample: ${sampled} have`);
});

Deno.test("docs/metrics.md names no metric as missing that is there", async () => {
  const page = await readDocument("docs/metrics.md");
  const documented = documentedIn(page);
  const [, missing = ""] = page.split("## Metrics of the reference that are not ours");
  const [section = ""] = missing.split("\n## ");
  const names = [...section.matchAll(/`(bloodraven_\w+)`/g)].map(([, name = ""]) => name);
  assert.ok(names.length >= 4);
  assert.deepEqual(names.filter((name) => documented.has(name)), []);
});

Deno.test("a scrape and a table are read for what they say", () => {
  const scrape = [
    "# HELP a_total A",
    "# TYPE a_total counter",
    'a_total{x="1",y="}"} 2',
    "# TYPE b_seconds histogram",
    'b_seconds_bucket{le="1",z="q"} 0',
    "# TYPE c gauge",
  ].join("\n");
  assert.deepEqual([...scrapedIn(scrape)], [
    ["a_total", { type: "counter", labels: ["x", "y"] }],
    ["b_seconds", { type: "histogram", labels: ["z"] }],
    ["c", { type: "gauge", labels: null }],
  ]);
  const page = "| N | T | L | M |\n| --- | --- | --- | --- |\n| `a` | gauge | `y`, `x` | Is a |\n";
  assert.deepEqual([...documentedIn(page)], [["a", { type: "gauge", labels: ["x", "y"] }]]);
});
