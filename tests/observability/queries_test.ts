import assert from "node:assert/strict";
import { readDocument, tableRowsIn } from "../docs/markdown.ts";
import { documentedIn, scrapedIn, scrapeService } from "../docs/metrics_scrape.ts";
import { readDashboards, readRules } from "./dashboards.ts";
import { type Known, queryFaults, readQuery } from "./queries.ts";

/**
 * What the running service shows. A value of a label is known when it was scraped, or when the documentation has it in code
 * marks, at a metric with that label.
 */
async function knownMetrics(): Promise<ReadonlyMap<string, Known>> {
  const scrape = await scrapeService();
  const page = await readDocument("docs/metrics.md");
  const documented = documentedIn(page);
  const rows = tableRowsIn(page).filter((cells) => cells.length === 4);
  const told = (label: string, value: string) =>
    rows.some(([, , labels, meaning]) =>
      labels?.includes(`\`${label}\``) && meaning?.includes(`\`${value}\``)
    );
  return new Map(
    [...scrapedIn(scrape)].map(([name, { type, labels }]) => [name, {
      type,
      // One without a sample has no labels to read. The page has them, and a test holds it to the scrapes that have.
      labels: labels ?? documented.get(name)?.labels ?? [],
      has: (label, value) =>
        new RegExp(`^${name}\\w*\\{[^}]*\\b${label}="${RegExp.escape(value)}"`, "m").test(scrape) ||
        told(label, value),
    }]),
  );
}

Deno.test("each query of the dashboards and of the rules asks for series that the running service shows, by labels and values that they have", async () => {
  const known = await knownMetrics();
  const queries = [
    ...[...await readDashboards()].flatMap(([file, { panels }]) =>
      panels.flatMap(({ title, targets }) =>
        targets.map(({ expr }) => [`${file}: ${title}`, expr] as const)
      )
    ),
    ...(await readRules()).map(({ alert, expr }) => [alert, expr] as const),
  ];
  assert.ok(queries.length > 30);
  const faults = queries.flatMap(([where, expr]) =>
    queryFaults(expr, known).map((fault) => `${where}: ${fault}`)
  );
  assert.deepEqual(faults, []);
});

Deno.test("the variables of the dashboards are read from series and labels that there are", async () => {
  const known = await knownMetrics();
  for (const { templating } of (await readDashboards()).values()) {
    for (const { name, type, query } of templating.list) {
      if (type !== "query") continue;
      const [, metric = "", label = ""] =
        /"label_values\((\w+), (\w+)\)"/.exec(JSON.stringify(query)) ?? [];
      const labels = known.get(metric)?.labels ?? [];
      assert.ok(known.has(metric) && [...labels, "job"].includes(label), name);
    }
  }
});

Deno.test("each query that docs/metrics.md tells people to watch asks for series that there are", async () => {
  const known = await knownMetrics();
  const [, section = ""] = (await readDocument("docs/metrics.md")).split("\n## What to watch\n");
  const queries = tableRowsIn(section).map(([cell = ""]) => /`([^`]+)`/.exec(cell)?.[1] ?? "");
  assert.ok(queries.length >= 8);
  for (const query of queries) assert.deepEqual(queryFaults(query, known), [], query);
});

Deno.test("the summary and the description of each rule use labels that its query leaves", async () => {
  const known = await knownMetrics();
  for (const { alert, expr, annotations } of await readRules()) {
    const { series, grouping } = readQuery(expr);
    const own = grouping.length > 0
      ? grouping
      : [...series.flatMap(({ name }) => known.get(name)?.labels ?? []), "instance"];
    const used = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)];
    const lost = used.map(([, label = ""]) => label).filter((label) => !own.includes(label));
    assert.deepEqual(lost, [], alert);
  }
});

const known: ReadonlyMap<string, Known> = new Map([
  ["a_total", {
    type: "counter",
    labels: ["result"],
    has: (_: string, value: string) => value === "good",
  }],
  ["b_seconds", { type: "histogram", labels: ["verb"], has: () => false }],
]);

Deno.test("a query is read for its series, filters and groups", () => {
  assert.deepEqual(
    readQuery('sum by (x) (rate(a_total{y="1",z!~"$g"}[$__rate_interval])) > 0 and on (w) b'),
    {
      series: [
        {
          name: "a_total",
          matchers: [
            { label: "y", operator: "=", value: "1" },
            { label: "z", operator: "!~", value: "$g" },
          ],
        },
        { name: "b", matchers: [] },
      ],
      grouping: ["x", "w"],
    },
  );
  assert.throws(() => readQuery("sum by (x (a)"), { name: "SyntaxError" });
});

Deno.test("planted faults of queries are seen: names, labels, values, groups, a histogram that is none", () => {
  const planted: readonly (readonly [string, string])[] = [
    ["rate(a_totals[5m])", "there is no metric a_totals"],
    ['a_total{outcome="good"}', "a_total has no label outcome"],
    ['a_total{result=~"good|fine"}', 'a_total never has result="fine"'],
    ["sum by (verb) (a_total)", "nothing in it has the label verb"],
    ["b_seconds", "b_seconds is a histogram"],
    ["a_total_bucket", "there is no metric a_total_bucket"],
    ["sum by (le) (b_seconds_sum)", "nothing in it has the label le"],
    ["vector(1)", "it asks for no series"],
  ];
  for (const [text, fault] of planted) assert.deepEqual(queryFaults(text, known), [fault], text);
  for (
    const text of [
      'sum by (le, verb) (rate(b_seconds_bucket{verb=~"$verb",le!~"x"}[5m]))',
      'a_total{result="good",instance="a"} or b_seconds_count',
    ]
  ) assert.deepEqual(queryFaults(text, known), [], text);
});
