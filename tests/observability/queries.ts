/**
 * What a query of Prometheus asks for: its series, the labels that it filters by, and those that it groups by.
 *
 * @module
 */

import { parser } from "@prometheus-io/lezer-promql";

/** One filter of a series. */
export interface Matcher {
  readonly label: string;
  /** `=`, `!=`, `=~` or `!~`. */
  readonly operator: string;
  readonly value: string;
}

/** One series of a query. */
export interface Series {
  readonly name: string;
  readonly matchers: readonly Matcher[];
}

/** What a query asks for. */
export interface Query {
  readonly series: readonly Series[];
  /** The labels of `by`, `without`, `on` and `ignoring`. */
  readonly grouping: readonly string[];
}

/**
 * Reads a query. The variables of Grafana for durations stand for five minutes.
 *
 * @throws {SyntaxError} It is no query.
 */
export function readQuery(text: string): Query {
  const query = text.replaceAll(/\$__(rate_)?interval|\$__range/g, "5m");
  const series: { name: string; matchers: Matcher[] }[] = [];
  const grouping = new Set<string>();
  let inGrouping = false;
  parser.parse(query).iterate({
    enter({ name, from, to, node, type }) {
      const part = query.slice(from, to);
      if (type.isError) throw new SyntaxError(`Cannot read the query at ${from}: ${query}`);
      if (name === "VectorSelector") series.push({ name: "", matchers: [] });
      else if (name === "Identifier") Object.assign(series.at(-1) ?? {}, { name: part });
      else if (name === "GroupingLabels") inGrouping = true;
      else if (name === "LabelName" && inGrouping) grouping.add(part);
      else if (name === "UnquotedLabelMatcher") {
        const of = (kind: string) => {
          const child = node.getChild(kind);
          return child === null ? "" : query.slice(child.from, child.to);
        };
        const value = of("StringLiteral").slice(1, -1);
        series.at(-1)?.matchers.push({ label: of("LabelName"), operator: of("MatchOp"), value });
      }
    },
    leave({ name }) {
      if (name === "GroupingLabels") inGrouping = false;
    },
  });
  return { series, grouping: [...grouping] };
}

/** A metric, as a scrape shows it. */
export interface Known {
  readonly type: string;
  /** Without `le`. */
  readonly labels: readonly string[];
  /** Says whether a label may have a value. */
  readonly has: (label: string, value: string) => boolean;
}

/** The labels that Prometheus gives to each series of a target. */
const TARGET = ["instance", "job", "namespace", "pod"];

/** What is wrong with a query, given the metrics that there are. */
export function queryFaults(text: string, known: ReadonlyMap<string, Known>): string[] {
  const { series, grouping } = readQuery(text);
  const labels = new Set(TARGET);
  const faults = series.flatMap(({ name, matchers }) => {
    const base = name.replace(/_(bucket|sum|count)$/, "");
    const histogram = known.get(base)?.type === "histogram" ? known.get(base) : undefined;
    const metric = known.get(name) ?? histogram;
    if (metric === undefined) return [`there is no metric ${name}`];
    if (name === base && metric.type === "histogram") return [`${name} is a histogram`];
    const own = name.endsWith("_bucket") ? [...metric.labels, "le"] : metric.labels;
    for (const label of own) labels.add(label);
    return matchers.flatMap(({ label, operator, value }) => {
      if (![...own, ...TARGET].includes(label)) return [`${name} has no label ${label}`];
      const values = value.startsWith("$") || operator === "!~" ? [] : value.split("|");
      return values.filter((one) => metric.labels.includes(label) && !metric.has(label, one))
        .map((one) => `${name} never has ${label}="${one}"`);
    });
  });
  if (series.length === 0) faults.push("it asks for no series");
  const lost = grouping.filter((label) => !labels.has(label));
  return [...faults, ...lost.map((label) => `nothing in it has the label ${label}`)];
}
