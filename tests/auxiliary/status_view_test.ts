import assert from "node:assert/strict";
import fc from "fast-check";
import {
  pollTime,
  servingHealthy,
  statusMessage,
  statusView,
} from "../../lib/auxiliary/status_view.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { healthyGroup } from "../group/fixtures.ts";
import { bareGroup } from "./support.ts";

const PLAIN = {
  role: "",
  sourceHost: "",
  sourceConvergenceState: "",
  sourceConvergenceReason: "",
  recoveryState: "",
  divergentGtid: "",
  divergentTransactionCount: 0,
};

const WHOLE = healthyGroup({
  status: {
    sites: [
      { name: "iad", state: "writable", replicating: false, lastSeen: "2026-01-01T00:00:05Z" },
      {
        name: "pdx",
        state: "read-only",
        replicating: true,
        lastSeen: "2026-01-01T00:00:06Z",
        sourceHost: "iad.example",
        sourceConvergenceState: "Blocked",
        sourceConvergenceReason: "Divergent",
        recoveryState: "RecoveryBlocked",
        divergentGtid: "uuid:1-3",
        divergentTransactionCount: 3,
        secondsBehindSource: 4,
      },
    ],
    promotionGtidExecuted: "uuid:1-9",
    lastFailover: "2025-12-31T23:00:00Z",
    lastFailoverTarget: "iad",
    updatePhase: "UpdatingReplicas",
    conditions: [{
      type: "Degraded",
      status: "True",
      reason: "Alert",
      message: "pdx has diverged",
    }],
  },
});

const SITES = [
  { ...PLAIN, name: "iad", role: "primary-candidate", state: "writable", servingHealthy: true },
  {
    name: "pdx",
    role: "dr-only",
    state: "read-only",
    sourceHost: "iad.example",
    sourceConvergenceState: "Blocked",
    sourceConvergenceReason: "Divergent",
    servingHealthy: false,
    recoveryState: "RecoveryBlocked",
    divergentGtid: "uuid:1-3",
    divergentTransactionCount: 3,
  },
];

Deno.test("a status is shown with its members, in the order of the contract", () => {
  const view = statusView(WHOLE);
  assert.deepEqual(view, {
    activeSite: "iad",
    sites: SITES,
    pollTime: "2026-01-01T00:00:06Z",
    promotionGtidExecuted: "uuid:1-9",
  });
  assert.deepEqual(Object.keys(view), ["activeSite", "sites", "pollTime", "promotionGtidExecuted"]);
  assert.deepEqual(Object.keys(view.sites[0] ?? {}), [
    "name",
    "role",
    "state",
    "sourceHost",
    "sourceConvergenceState",
    "sourceConvergenceReason",
    "servingHealthy",
    "recoveryState",
    "divergentGtid",
    "divergentTransactionCount",
  ]);
});

Deno.test("a message has all of it and the operations, in the order of the contract", () => {
  const message = statusMessage(WHOLE);
  assert.deepEqual(message, {
    namespace: "database-ns",
    group: "orders",
    activeSite: "iad",
    sites: SITES,
    lastFailover: "2025-12-31T23:00:00Z",
    lastFailoverTarget: "iad",
    alert: "pdx has diverged",
    updatePhase: "UpdatingReplicas",
    pollTime: "2026-01-01T00:00:06Z",
    promotionGtidExecuted: "uuid:1-9",
  });
  assert.deepEqual(Object.keys(message), [
    "namespace",
    "group",
    "activeSite",
    "sites",
    "lastFailover",
    "lastFailoverTarget",
    "alert",
    "updatePhase",
    "pollTime",
    "promotionGtidExecuted",
  ]);
});

Deno.test("a group whose status lacks everything is shown with what there is, and nothing is made up", () => {
  assert.deepEqual(statusView(bareGroup()), {
    activeSite: "",
    sites: [],
    promotionGtidExecuted: "",
  });
  assert.deepEqual(statusMessage(bareGroup()), {
    namespace: "database-ns",
    group: "bare",
    activeSite: "",
    sites: [],
  });
});

Deno.test("a site that is declared and was never observed is unknown, and one that is not declared has no role", () => {
  const group = healthyGroup({ status: { sites: [{ name: "sfo", state: "unreachable" }] } });
  assert.deepEqual(statusView(group).sites, [
    { ...PLAIN, name: "iad", role: "primary-candidate", state: "unknown" },
    { ...PLAIN, name: "pdx", role: "dr-only", state: "unknown" },
    { ...PLAIN, name: "sfo", state: "unreachable", servingHealthy: false },
  ]);
});

Deno.test("a site serves well when it does what its place asks, and nothing is said of one that was not observed", () => {
  const site = (state: string | null, more: Record<string, unknown> = {}) => ({
    name: "iad",
    state,
    ...more,
  });
  const table: readonly [ReturnType<typeof site>, string, boolean | null][] = [
    [site("writable"), "iad", true],
    [site("writable"), "pdx", false],
    [site("writable"), "", false],
    [site("read-only", { replicating: true }), "pdx", true],
    [site("read-only", { replicating: true, recoveryState: "" }), "pdx", true],
    [site("read-only", { replicating: true }), "iad", false],
    [site("read-only", { replicating: false }), "pdx", false],
    [site("read-only"), "pdx", false],
    [site("read-only", { replicating: true, recoveryState: "RecoveryBlocked" }), "pdx", false],
    [site("unreachable"), "iad", false],
    [site("unknown"), "iad", null],
    [site("something new"), "iad", null],
    [site(""), "iad", null],
    [site(null), "iad", null],
  ];
  for (const [observed, active, expected] of table) {
    assert.equal(servingHealthy(observed, active), expected, JSON.stringify([observed, active]));
  }
});

Deno.test("the time of the poll is the newest that a site was seen at, as it stands there", () => {
  const withTimes = (...times: readonly (string | null | undefined)[]) =>
    pollTime(healthyGroup({
      status: { sites: times.map((lastSeen, index) => ({ name: `s${index}`, lastSeen })) },
    }));
  assert.equal(withTimes(), null);
  assert.equal(withTimes("", null, undefined), null);
  assert.equal(withTimes("yesterday", "2026-01-01T00:00:00Z"), "2026-01-01T00:00:00Z");
  // Texts do not sort as instants do.
  assert.equal(
    withTimes("2026-01-01T00:30:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:29:59.9Z"),
    "2026-01-01T00:30:00Z",
  );
});

Deno.test("an alert is the message of what degrades the group, or its reason, and none without", () => {
  const alert = (...conditions: readonly Record<string, unknown>[]) =>
    statusMessage(healthyGroup({ status: { conditions } })).alert;
  const degraded = { type: "Degraded", status: "True", reason: "SplitBrain" };
  assert.equal(alert(degraded), "SplitBrain");
  assert.equal(alert({ ...degraded, message: "" }), "SplitBrain");
  assert.equal(alert({ ...degraded, message: 5 }), "SplitBrain");
  assert.equal(alert({ ...degraded, message: "two sites are writable" }), "two sites are writable");
  assert.equal(alert({ ...degraded, status: "False", message: "all is well" }), undefined);
  assert.equal(alert({ ...degraded, reason: "" }), undefined);
  assert.equal(alert(), undefined);
});

Deno.test("whatever status a group can have, it is shown, and no text of it is lost or changed", () => {
  const text = fc.option(fc.string(), { nil: null });
  const status = fc.record({
    activeSite: text,
    sites: fc.option(
      fc.array(fc.record({
        name: fc.string(),
        state: fc.option(
          fc.constantFrom("writable", "read-only", "unreachable", "unknown", "", "odd"),
          { nil: null },
        ),
        lastSeen: text,
        replicating: fc.option(fc.boolean(), { nil: null }),
        recoveryState: text,
        divergentTransactionCount: fc.option(fc.nat(), { nil: null }),
      })),
      { nil: null },
    ),
    conditions: fc.option(
      fc.array(fc.record({
        type: fc.constantFrom("Degraded", "Ready"),
        status: fc.constantFrom("True", "False"),
        reason: text,
        message: fc.anything().filter((value) => value !== undefined),
      })),
      { nil: null },
    ),
    lastFailover: text,
    promotionGtidExecuted: text,
  }, { requiredKeys: [] });
  fc.assert(fc.property(fc.option(status, { nil: null }), (value) => {
    const group = MYSQL_FAILOVER_GROUPS.parse({
      metadata: { name: "orders", namespace: "database-ns" },
      spec: { sites: [{ name: "iad" }] },
      status: value,
    });
    const [view, message] = [statusView(group), statusMessage(group)];
    assert.equal(view.activeSite, value?.activeSite ?? "");
    assert.deepEqual(message.sites, view.sites);
    const names = new Set(["iad", ...(value?.sites ?? []).map(({ name }) => name)]);
    assert.deepEqual(new Set(view.sites.map(({ name }) => name)), names);
    assert.equal(view.sites.length, names.size);
    for (const member of Object.values(message)) assert.notEqual(member, undefined);
    assert.equal(message.lastFailover ?? "", value?.lastFailover ?? "");
    assert.equal(view.promotionGtidExecuted, value?.promotionGtidExecuted ?? "");
  }));
});
