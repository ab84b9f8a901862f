import assert from "node:assert/strict";
import { Registry } from "prom-client";
import { buildStage, type Stage } from "../../handlers/commands/demo/stage.ts";
import { GROUP } from "../../handlers/commands/demo/cast.ts";
import { choosePorts } from "../../handlers/commands/demo/ports.ts";
import { PlannedReports } from "../../lib/controllers/planned_reports.ts";
import { MYSQL_FAILOVER_GROUPS, REVOKE_ANNOTATION } from "../../lib/group/types.ts";
import { fakeSystem } from "../handlers/commands/fake_system.ts";
import { readDocument, tableRowsIn } from "./markdown.ts";

/** What a page or a scrape says of a metric. */
interface Shown {
  readonly type: string;
  /** Sorted, without `le`. */
  readonly labels: readonly string[];
}

/** The metrics that the page has in tables of four columns. */
function documentedIn(markdown: string): Map<string, Shown> {
  const rows = tableRowsIn(markdown).filter((cells) => cells.length === 4);
  return new Map(rows.map(([name = "", type = "", labels = ""]) => [name.replaceAll("`", ""), {
    type,
    labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label).sort(),
  }]));
}

/** The metrics of a scrape. One without a sample has `null` for its labels. */
function scrapedIn(text: string): Map<string, { type: string; labels: readonly string[] | null }> {
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Map(types.map(([, name = "", type = ""]) => {
    const found = new Set<string>();
    const samples = [
      ...text.matchAll(new RegExp(`^${name}(?:_bucket)?(?:\\{(.*)\\})? \\S+$`, "gm")),
    ];
    for (const [, labels = ""] of samples) {
      for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) {
        if (label !== "le") found.add(label);
      }
    }
    return [name, { type, labels: samples.length === 0 ? null : [...found].sort() }];
  }));
}

/** Calls that give as many metrics as possible a sample. */
async function liven({ orders, billing, cluster, service }: Stage, signal: AbortSignal) {
  await orders.take("an-operation", 30);
  await billing.take("another-operation", 30);
  await cluster.api.patch(MYSQL_FAILOVER_GROUPS, GROUP, {
    type: "merge",
    body: { metadata: { annotations: { [REVOKE_ANNOTATION]: "" } } },
  }, { signal });
  for (;;) {
    const text = await (await fetch(service.metricsUrl, { signal })).text();
    const isThere = (series: string) => text.includes(`\n${series}`);
    if (isThere("bloodraven_deploy_lease_revocations_total{") && isThere("holdfast_groups 1")) {
      return text;
    }
  }
}

/** What the service shows besides when it serves the annotation of planned failovers. */
async function plannedMetrics(): Promise<string> {
  const registry = new Registry();
  const reports = new PlannedReports({ registry, events: { report: () => {} } });
  reports.deferred({ ...GROUP, uid: "" }, "DeploymentHold");
  reports.ended("pdx", "rejected");
  reports.took("pdx", 1);
  return await registry.metrics();
}

Deno.test("docs/metrics.md has every metric that the service shows, with its type and labels, and no other", async () => {
  const signal = AbortSignal.timeout(30_000);
  const system = {
    ...fakeSystem(),
    readTextFile: (path: string) => Deno.readTextFileSync(path),
  };
  await using stage = await buildStage({ system, ports: choosePorts(undefined), signal });
  const scraped = new Map([
    ...scrapedIn(await liven(stage, signal)),
    ...scrapedIn(await plannedMetrics()),
  ]);
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
