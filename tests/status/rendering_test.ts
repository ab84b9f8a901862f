import assert from "node:assert/strict";
import fc from "fast-check";
import { renderLines } from "../../lib/status/lines.ts";
import { inPlainWords } from "../../lib/status/reasons.ts";
import { type GroupStatus, newsOf, type StatusReport } from "../../lib/status/report.ts";
import { fit, leaseTable, renderTable, WIDTH, wrap } from "../../lib/status/table.ts";
import { shown, span } from "../../lib/status/words.ts";
import { leaseStatus } from "./fixtures.ts";

const UUID = "0b6b2f62-8c0a-4b73-a9f2-0d4e6ad2a1b3";

const quiet: GroupStatus = {
  namespace: "database",
  name: "orders",
  readable: true,
  activeSite: "iad",
  topologyGeneration: 7,
  stable: true,
  unstableReason: "",
  closedReason: "",
  why: "",
  leases: [],
  operations: [],
  admission: null,
  pendingTopology: null,
  problems: [],
};

const busy: GroupStatus = {
  ...quiet,
  name: "billing",
  stable: false,
  unstableReason: "PlannedFailover",
  closedReason: "PlannedFailover",
  why: inPlainWords("PlannedFailover"),
  leases: [
    leaseStatus({ operationId: UUID }),
    leaseStatus({
      operationId: UUID,
      kind: "failover-hold",
      state: "expired",
      stored: false,
      leftSeconds: -3,
    }),
    leaseStatus({ operationId: "op-0", state: "revoked", reason: "operator_revoked" }),
    leaseStatus({
      operationId: "op-2",
      state: "revoked",
      reason: "topology_changed",
      stored: false,
    }),
    leaseStatus({ operationId: "op-3", kind: "failover-hold", state: "released" }),
  ],
  operations: [
    {
      operation: "PlannedFailover",
      phase: "Deferred",
      reason: "DeploymentHold",
      target: "pdx",
      ended: false,
      waitsFor: [
        `the failover hold of operation ${UUID} for orders-app, until 2026-01-01T00:00:30Z`,
      ],
    },
    {
      operation: "OrderedUpdate",
      phase: "UpdateReplica",
      reason: "",
      target: "",
      ended: false,
      waitsFor: [],
    },
  ],
  admission: {
    operation: "PlannedFailover",
    state: "withdrawing",
    by: "me",
    since: "2026-01-01T00:00:00Z",
  },
  pendingTopology: { by: "operator", since: "2026-01-01T00:00:00Z" },
  problems: ["Lease x cannot be read: its form differs at spec"],
};

const report: StatusReport = {
  source: "cluster",
  at: "2026-01-01T00:00:10Z",
  groups: [quiet, busy],
  problems: ["elsewhere: Lease y cannot be read"],
};

Deno.test("a pipe gets one whole line for each thing, with its kind and its group first", () => {
  assert.deepEqual(renderLines(report).split("\n"), [
    "group database/orders: active site iad, generation 7, stable",
    "group database/billing: active site iad, generation 7, not stable: PlannedFailover (a planned failover is under way)",
    `lease database/billing: migration of operation ${UUID} for orders-app by app-ns/deployer, age 10s, 20s left, expires 2026-01-01T00:00:30Z`,
    `lease database/billing: failover-hold of operation ${UUID} for orders-app by app-ns/deployer, age 10s, expired 3s ago, expires 2026-01-01T00:00:30Z`,
    "lease database/billing: migration of operation op-0 for orders-app by app-ns/deployer, age 10s, revoked: operator_revoked, expires 2026-01-01T00:00:30Z",
    "lease database/billing: migration of operation op-2 for orders-app by app-ns/deployer, age 10s, revoked: topology_changed, not stored yet, expires 2026-01-01T00:00:30Z",
    "lease database/billing: failover-hold of operation op-3 for orders-app by app-ns/deployer, age 10s, released, expires 2026-01-01T00:00:30Z",
    `operation database/billing: PlannedFailover to pdx: Deferred (DeploymentHold), waits for the failover hold of operation ${UUID} for orders-app, until 2026-01-01T00:00:30Z`,
    "operation database/billing: OrderedUpdate: UpdateReplica",
    "gate database/billing: PlannedFailover was admitted and is being taken back, by me since 2026-01-01T00:00:00Z",
    "gate database/billing: a change of topology is announced, by operator since 2026-01-01T00:00:00Z",
    "problem database/billing: Lease x cannot be read: its form differs at spec",
    "problem: elsewhere: Lease y cannot be read",
    "",
  ]);
});

Deno.test("a terminal gets a table of at most 100 columns, in which an operation id of 36 characters is whole", () => {
  assert.deepEqual(renderTable(report).split("\n"), [
    "database/orders   active site iad   generation 7   stable",
    "  No lease is held.",
    "",
    "database/billing   active site iad   generation 7   not stable: PlannedFailover (a planned failover",
    "  is under way)",
    "  KIND           OPERATION                             INSTANCE    WHO            AGE  STATE",
    `  migration      ${UUID}  orders-app  app-ns/deplo…  10s  20s left`,
    `  failover-hold  ${UUID}  orders-app  app-ns/deplo…  10s  expired 3s a…`,
    "  migration      op-0                                  orders-app  app-ns/deplo…  10s  revoked: ope…",
    "  migration      op-2                                  orders-app  app-ns/deplo…  10s  revoked: top…",
    "  failover-hold  op-3                                  orders-app  app-ns/deplo…  10s  released",
    "  PlannedFailover to pdx: Deferred (DeploymentHold), waits for the failover hold of operation",
    `    ${UUID} for orders-app, until 2026-01-01T00:00:30Z`,
    "  OrderedUpdate: UpdateReplica",
    "  Gate: PlannedFailover was admitted and is being taken back, by me since 2026-01-01T00:00:00Z",
    "  Gate: a change of topology is announced, by operator since 2026-01-01T00:00:00Z",
    "  ! Lease x cannot be read: its form differs at spec",
    "",
    "! elsewhere: Lease y cannot be read",
    "",
  ]);
});

Deno.test("what the API does not show has no column, and no empty place in a line", () => {
  const lease = leaseStatus({ holder: null, createdAt: null, ageSeconds: null });
  assert.deepEqual(leaseTable([lease], "api"), [
    "  KIND       OPERATION  INSTANCE    STATE",
    "  migration  op-1       orders-app  20s left",
  ]);
  const fromApi: StatusReport = {
    ...report,
    source: "api",
    groups: [{ ...quiet, leases: [lease] }],
    problems: [],
  };
  assert.equal(
    renderLines(fromApi).split("\n")[1],
    "lease database/orders: migration of operation op-1 for orders-app, 20s left, expires 2026-01-01T00:00:30Z",
  );
  assert.match(leaseTable([lease], "cluster")[1] ?? "", / {2}- +- {4}20s left$/);
});

Deno.test("a group of which nothing is known, and no group at all, are told as that", () => {
  const broken: GroupStatus = {
    ...quiet,
    readable: false,
    topologyGeneration: null,
    activeSite: "",
    stable: false,
    closedReason: "unavailable",
  };
  const texts = (groups: readonly GroupStatus[]) => {
    const one = { ...report, groups, problems: [] };
    return [renderLines(one), renderTable(one)];
  };
  assert.deepEqual(texts([broken]), [
    "group database/orders: unreadable\n",
    "database/orders   unreadable\n",
  ]);
  assert.deepEqual(texts([]), ["", "There is no group.\n"]);
  const nowhere = { ...quiet, activeSite: "", closedReason: "unavailable", why: "why" };
  assert.deepEqual(texts([nowhere]), [
    "group database/orders: no active site, generation 7, stable, but no lease is granted: unavailable (why)\n",
    "database/orders   no active site   generation 7   stable, but no lease is granted: unavailable (why)\n" +
    "  No lease is held.\n",
  ]);
  const ofApi = { ...quiet, namespace: "", topologyGeneration: null };
  assert.match(texts([ofApi])[1] ?? "", /^orders {3}stable\n/);
});

Deno.test("no table is wider than 100 columns, whatever stands in it", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 150 });
  fc.assert(
    fc.property(
      text,
      text,
      text,
      text,
      fc.integer({ min: 0 }),
      (operationId, instance, namespace, problem, ageSeconds) => {
        const holder = { namespace, serviceAccount: "deployer" };
        const lease = leaseStatus({
          operationId,
          instance,
          holder,
          ageSeconds,
          leftSeconds: ageSeconds,
        });
        const groups = [{ ...busy, namespace, leases: [lease], problems: [problem] }];
        for (const line of renderTable({ ...report, groups }).split("\n")) {
          assert.ok([...line].length <= WIDTH, line);
        }
      },
    ),
  );
});

Deno.test("columns become narrower, the widest first, and none below what it needs", () => {
  assert.deepEqual(fit([10, 20, 30], [null, 5, 5], 60), [10, 20, 30]);
  assert.deepEqual(fit([10, 20, 30], [null, 5, 5], 40), [10, 15, 15]);
  assert.deepEqual(fit([10, 20, 30], [null, 18, 5], 40), [10, 18, 12]);
  assert.deepEqual(fit([10, 20, 30], [null, 18, 5], 1), [10, 18, 5]);
  fc.assert(fc.property(
    fc.array(fc.tuple(fc.nat(60), fc.option(fc.nat(60))), { maxLength: 6 }),
    fc.nat(200),
    (columns, room) => {
      const widths = columns.map(([width]) => width);
      const fitted = fit(widths, columns.map(([, least]) => least), room);
      const sum = fitted.reduce((total, width) => total + width, 0);
      fitted.forEach((width, at) => {
        const [natural = 0, least = null] = columns[at] ?? [];
        assert.ok(width <= natural && width >= Math.min(natural, least ?? natural));
      });
      const atLeast = columns.reduce(
        (total, [width, least]) => total + Math.min(width, least ?? width),
        0,
      );
      assert.ok(sum <= Math.max(room, atLeast));
    },
  ));
});

Deno.test("a wrapped text keeps its words, and breaks only one that has no room", () => {
  assert.deepEqual(wrap("a b", "  "), ["  a b"]);
  const long = "x".repeat(150);
  assert.deepEqual(wrap(`a ${long} b`, "").map((line) => line.length), [1, 100, 56]);
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom("a", "b", "é"), minLength: 1, maxLength: 90 }), {
        minLength: 1,
      }),
      (words) => {
        const lines = wrap(words.join(" "), "  ");
        assert.deepEqual(lines.join(" ").trim().split(/ +/), words);
        assert.ok(lines.every((line) => line.length <= WIDTH));
      },
    ),
  );
});

Deno.test("a span of time has two units at most", () => {
  const table: readonly (readonly [number, string])[] = [
    [0, "0s"],
    [59, "59s"],
    [60, "1m"],
    [123, "2m 3s"],
    [3_600, "1h"],
    [3_661, "1h 1m"],
    [86_400, "1d"],
    [90_000, "1d 1h"],
  ];
  for (const [seconds, text] of table) assert.equal(span(seconds), text);
});

Deno.test("control characters and marks of direction become a sign that does nothing", () => {
  assert.equal(shown("a\x1b[2Jb\u202ec\nd"), "a\uFFFD[2Jb\uFFFDc\uFFFDd");
});

Deno.test("only what does not pass by itself is news", () => {
  const later = {
    ...report,
    at: "2026-01-01T00:00:11Z",
    groups: [quiet, {
      ...busy,
      leases: busy.leases.map((lease) => ({ ...lease, ageSeconds: 11, leftSeconds: 19 })),
    }],
  };
  assert.equal(newsOf(later), newsOf(report));
  assert.notEqual(newsOf({ ...report, groups: [quiet] }), newsOf(report));
  const renewed = busy.leases.map((lease) => ({ ...lease, expiresAt: "2026-01-01T00:00:40Z" }));
  assert.notEqual(
    newsOf({ ...report, groups: [quiet, { ...busy, leases: renewed }] }),
    newsOf(report),
  );
});

Deno.test("every reason of the contract has words, and one that is not known is told as it is", () => {
  const reasons = [
    "DeploymentRevocationPending TopologyPersistencePending TopologyNotObserved TopologyObservationChanged",
    "NoPrimary PlannedFailover OrderedUpdate Restore RestoreInPlace DragonflyUpgrade DragonflyReconciling",
    "DragonflyConfiguringReplication DragonflyDegraded DragonflyPromoting SplitBrain TotalLoss Alert Degraded",
    "ReplicationSourceMismatch ReplicationBroken ReplicationError RecoveryInProgress DivergentTransactions",
    "RecoveryPending RecoveryBlocked Cloning WaitingForRestart SetupReplication Bootstrapping NotReady",
    "SiteNotObserved SiteNotReady SourceConvergencePending SourceConvergenceBlocked ReplicationNotRunning",
  ].join(" ").split(" ");
  for (const reason of reasons) assert.doesNotMatch(inPlainWords(reason), /the operator reports/);
  assert.equal(inPlainWords("SomethingNew"), "the operator reports SomethingNew");
});
