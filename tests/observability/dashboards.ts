/**
 * The dashboards and the alert rules, as far as tests look at them.
 *
 * @module
 */

import { parse } from "yaml";
import { z } from "zod";
import { ROOT } from "../../deploy/commands.ts";

const gridForm = z.strictObject({
  x: z.int().min(0).max(23),
  y: z.int().min(0),
  w: z.int().min(1).max(24),
  h: z.int().min(1),
});

const panelForm = z.looseObject({
  id: z.int().positive(),
  title: z.string().min(1),
  description: z.string().min(1),
  type: z.enum(["timeseries", "stat"]),
  datasource: z.strictObject({ type: z.literal("prometheus"), uid: z.literal("${datasource}") }),
  gridPos: gridForm,
  targets: z.array(z.looseObject({ refId: z.string(), expr: z.string() })).min(1),
});

const dashboardForm = z.looseObject({
  uid: z.string().regex(/^[a-z][\w-]{0,39}$/),
  title: z.string().min(1),
  schemaVersion: z.int(),
  templating: z.strictObject({
    list: z.array(z.looseObject({ name: z.string(), type: z.string(), query: z.unknown() })),
  }),
  panels: z.array(panelForm).min(1),
});

/** A dashboard. */
export type Dashboard = z.infer<typeof dashboardForm>;
/** A panel of a dashboard. */
export type Panel = z.infer<typeof panelForm>;

/** The dashboards by the names of their files. */
export async function readDashboards(): Promise<ReadonlyMap<string, Dashboard>> {
  const files = await filesIn("deploy/dashboards", ".json");
  return new Map(
    [...files].map(([name, text]) => [name, dashboardForm.parse(JSON.parse(text))]),
  );
}

const ruleForm = z.strictObject({
  alert: z.string(),
  expr: z.string(),
  for: z.string(),
  labels: z.strictObject({ severity: z.enum(["critical", "warning"]) }),
  annotations: z.strictObject({
    summary: z.string().min(1),
    description: z.string().min(1),
    runbook_url: z.string(),
  }),
});

/** A rule that raises an alert. */
export type Rule = z.infer<typeof ruleForm>;

const rulesForm = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), rules: z.array(ruleForm).min(1) })).min(1),
});

/** The alert rules of all files. */
export async function readRules(): Promise<readonly Rule[]> {
  const files = await filesIn("deploy/alerts", ".yaml");
  return [...files.values()].flatMap((text) =>
    rulesForm.parse(parse(text)).groups.flatMap(({ rules }) => rules)
  );
}

async function filesIn(folder: string, ending: string): Promise<ReadonlyMap<string, string>> {
  const names = await Array.fromAsync(Deno.readDir(`${ROOT}${folder}`), ({ name }) => name);
  const read = names.sort().filter((name) => name.endsWith(ending)).map(async (name) =>
    [name, await Deno.readTextFile(`${ROOT}${folder}/${name}`)] as const
  );
  return new Map(await Promise.all(read));
}

/** What is wrong with the panels of a dashboard: ids and places that two of them share, and panels out of the grid. */
export function panelFaults(panels: readonly Panel[]): string[] {
  return panels.flatMap((panel, at) => {
    const { x, w } = panel.gridPos;
    const others = panels.slice(at + 1);
    return [
      ...(x + w > 24 ? [`'${panel.title}' is wider than the page`] : []),
      ...others.filter(({ id }) => id === panel.id)
        .map(({ title }) => `'${panel.title}' and '${title}' have one id`),
      ...others.filter((other) => overlap(panel, other))
        .map(({ title }) => `'${panel.title}' and '${title}' overlap`),
    ];
  });
}

function overlap({ gridPos: a }: Panel, { gridPos: b }: Panel): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}
