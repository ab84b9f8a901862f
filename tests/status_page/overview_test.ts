import assert from "node:assert/strict";
import { headOf, notesOf, summaryOf } from "../../lib/status_page/overview.ts";
import { healthyGroup } from "../group/fixtures.ts";
import { hold, leaseOf, migration } from "../status/fixtures.ts";
import { pageGroup } from "./page_fixtures.ts";

const quiet = pageGroup();
const held = pageGroup([leaseOf(migration()), leaseOf(hold())]);
const ended = pageGroup([leaseOf(migration({ state: "released" }))]);
const closed = pageGroup([], healthyGroup({ status: { conditions: [] } }));
const asked = pageGroup(
  [],
  healthyGroup({ annotations: { "bloodraven.shipstream.io/planned-failover": "pdx" } }),
);

Deno.test("the numbers count groups, those that grant nothing, leases that count, and operations", () => {
  assert.deepEqual(summaryOf([quiet, held, ended, closed, asked]), {
    groups: 5,
    closed: 1,
    migrations: 1,
    holds: 1,
    operations: 1,
  });
  assert.deepEqual(summaryOf([]), { groups: 0, closed: 0, migrations: 0, holds: 0, operations: 0 });
});

Deno.test("a group that grants nothing comes before one with an operation, and that before one with a lease", () => {
  assert.equal(headOf(closed).attention, "closed");
  assert.equal(headOf(asked).attention, "busy");
  assert.equal(headOf({ ...held, problems: ["it cannot be read"] }).attention, "busy");
  assert.equal(headOf(held).attention, "held");
  assert.equal(headOf(ended).attention, "quiet");
});

Deno.test("a head tells when the first of the leases ends", () => {
  assert.equal(headOf(quiet).nextExpiryMs, null);
  assert.equal(headOf(ended).nextExpiryMs, null);
  const both = pageGroup([
    leaseOf(migration()),
    leaseOf(hold({ expiresAt: "2026-01-01T00:00:20Z" })),
  ]);
  assert.equal(headOf(both).nextExpiryMs, Date.parse("2026-01-01T00:00:20Z"));
});

Deno.test("what is to be said beside the tables is told in sentences, without what would move the text", () => {
  const told = notesOf({
    ...asked,
    admission: { operation: "PlannedFailover", state: "admitted", by: "op", since: "then" },
    problems: ["a\u0007b until 2026-01-01T00:00:30.123456789Z"],
  });
  assert.equal(told.length, 3);
  assert.match(told[0] ?? "", /^PlannedFailover to pdx: Requested, waits for the operator/);
  assert.match(told[1] ?? "", /^Gate: PlannedFailover is admitted/);
  assert.equal(told[2], "a\uFFFDb until 2026-01-01T00:00:30Z");
});
