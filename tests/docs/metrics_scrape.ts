/**
 * The metrics that the running service shows, and those that docs/metrics.md tells of.
 *
 * @module
 */

import { Registry } from "prom-client";
import { GROUP } from "../../handlers/commands/demo/cast.ts";
import { choosePorts } from "../../handlers/commands/demo/ports.ts";
import { buildStage, type Stage } from "../../handlers/commands/demo/stage.ts";
import { PlannedReports } from "../../lib/controllers/planned_reports.ts";
import { MYSQL_FAILOVER_GROUPS, REVOKE_ANNOTATION } from "../../lib/group/types.ts";
import { fakeSystem } from "../handlers/commands/fake_system.ts";
import { tableRowsIn } from "./markdown.ts";

/** What a page or a scrape says of a metric. */
export interface Shown {
  readonly type: string;
  /** Sorted, without `le`. */
  readonly labels: readonly string[];
}

/** The metrics that the page has in tables of four columns. */
export function documentedIn(markdown: string): Map<string, Shown> {
  const rows = tableRowsIn(markdown).filter((cells) => cells.length === 4);
  return new Map(rows.map(([name = "", type = "", labels = ""]) => [name.replaceAll("`", ""), {
    type,
    labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label).sort(),
  }]));
}

/** A metric of a scrape. */
export interface Scraped {
  readonly type: string;
  /** Sorted, without `le`; `null` for one without a sample. */
  readonly labels: readonly string[] | null;
}

/** The metrics of a scrape. One without a sample has `null` for its labels. */
export function scrapedIn(text: string): Map<string, Scraped> {
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

/** What the running service shows, after calls that give as many metrics as possible a sample. */
export async function scrapeService(): Promise<string> {
  const signal = AbortSignal.timeout(30_000);
  const system = {
    ...fakeSystem(),
    readTextFile: (path: string) => Deno.readTextFileSync(path),
  };
  await using stage = await buildStage({ system, ports: choosePorts(undefined), signal });
  return `${await liven(stage, signal)}\n${await plannedMetrics()}`;
}
