import assert from "node:assert/strict";
import { type Dashboard, type Panel, panelFaults, readDashboards } from "./dashboards.ts";
import { readQuery } from "./queries.ts";

/** deploy-api 10: the titles that the reference's dashboard has. */
const TITLES = [
  "Active deployment leases",
  "Deployment lease revocations per hour",
  "Planned failover deferrals per hour",
];

const dashboards = await readDashboards();

Deno.test("item 66: the dashboard has the contract's three panels, each with one target that is scoped by the group and by no namespace, unique ids, and no overlap", () => {
  const failover: Dashboard | undefined = dashboards.get("failover.json");
  assert.ok(failover !== undefined);
  for (const title of TITLES) {
    const found: readonly Panel[] = failover.panels.filter((panel) => panel.title === title);
    assert.equal(found.length, 1, title);
    const targets = found.flatMap((panel) => panel.targets);
    assert.equal(targets.length, 1, title);
    const { series } = readQuery(targets[0]?.expr ?? "");
    assert.equal(series.length, 1, title);
    assert.deepEqual(series[0]?.matchers, [{ label: "group", operator: "=~", value: "$group" }]);
  }
  assert.ok(
    failover.templating.list.some(({ name, type }) => name === "group" && type === "query"),
  );
  assert.deepEqual(panelFaults(failover.panels), []);
});

Deno.test("every dashboard has ids of its own, panels that do not overlap, and the variables that its queries use", () => {
  assert.deepEqual([...dashboards.keys()], ["failover.json", "service.json"]);
  const uids = [...dashboards.values()].map(({ uid }) => uid);
  assert.equal(new Set(uids).size, uids.length);
  for (const [name, { panels, templating }] of dashboards) {
    assert.deepEqual(panelFaults(panels), [], name);
    const used = panels.flatMap(({ targets }) =>
      targets.flatMap(({ expr }) => [...expr.matchAll(/\$(?!__)(\w+)/g)].map(([, name]) => name))
    );
    const own = templating.list.map((variable) => variable.name);
    assert.deepEqual(own.toSorted(), [...new Set([...used, "datasource"])].sort(), name);
    for (const { title, targets } of panels) {
      const refs = targets.map(({ refId }) => refId);
      assert.equal(new Set(refs).size, refs.length, title);
    }
  }
});

Deno.test("the dashboard of the service shows requests and latency, leadership, hand-overs, revocations, deferrals, the clock and the calls", () => {
  const shown = dashboards.get("service.json")?.panels.flatMap(({ targets }) =>
    targets.flatMap(({ expr }) => readQuery(expr).series.map(({ name }) => name))
  );
  const wanted = [
    "bloodraven_http_requests_total",
    "bloodraven_http_request_duration_seconds_bucket",
    "kubernetes_leader",
    "kubernetes_leader_acquired_total",
    "kubernetes_leader_lost_total",
    "bloodraven_deploy_lease_revocations_total",
    "bloodraven_planned_failovers_deferred_total",
    "holdfast_clock_offset_seconds",
    "holdfast_kube_calls_total",
  ];
  assert.deepEqual(wanted.filter((name) => shown?.includes(name) !== true), []);
});

Deno.test("planted panels with one id, one place, or no room are seen", () => {
  const panel = (id: number, title: string, x: number, y: number, w = 12): Panel => ({
    id,
    title,
    description: title,
    type: "stat",
    datasource: { type: "prometheus", uid: "${datasource}" },
    gridPos: { x, y, w, h: 8 },
    targets: [{ refId: "A", expr: "up" }],
  });
  assert.deepEqual(
    panelFaults([panel(1, "a", 0, 0), panel(2, "b", 12, 0), panel(3, "c", 0, 8)]),
    [],
  );
  assert.deepEqual(
    panelFaults([panel(1, "a", 0, 0), panel(1, "b", 11, 7), panel(3, "c", 13, 20)]),
    [
      "'a' and 'b' have one id",
      "'a' and 'b' overlap",
      "'c' is wider than the page",
    ],
  );
});
