import assert from "node:assert/strict";
import fc from "fast-check";
import {
  addChanges,
  happenedBetween,
  MOST_CHANGES,
  type PageChange,
  revocationInWords,
} from "../../lib/status_page/changes.ts";
import type { LeaseRecord } from "../../lib/records/record.ts";
import { healthyGroup } from "../group/fixtures.ts";
import { hold, leaseOf, migration } from "../status/fixtures.ts";
import { pageGroup } from "./page_fixtures.ts";

const free = pageGroup();
const held = pageGroup([leaseOf(migration())]);

/** The kinds of what happened, with the first words of each. */
function kinds(...given: Parameters<typeof happenedBetween>): readonly string[] {
  return happenedBetween(...given).map(({ kind, text }) => `${kind} ${text.split(" for ")[0]}`);
}

function withMutex(change: Partial<LeaseRecord>) {
  return pageGroup([leaseOf(migration(change))]);
}

Deno.test("a grant is told with kind, operation, instance and who", () => {
  assert.deepEqual(happenedBetween(free, held), [{
    kind: "granted",
    group: "database-ns/orders",
    text: "migration lease of op-1 for orders-app, by app-ns/deployer",
  }]);
});

for (
  const [state, reason, end] of [
    ["released", undefined, ""],
    ["expired", undefined, ""],
    ["revoked", "topology_changed", ": the primary moved, or its data changed under it"],
    ["revoked", "operator_revoked", ": somebody took it back"],
  ] as const
) {
  Deno.test(`a lease that is ${state} ${reason ?? ""} is told once`, () => {
    const ended = withMutex({ state, ...(reason && { reason }) });
    assert.deepEqual(happenedBetween(held, ended), [{
      kind: state,
      group: "database-ns/orders",
      text: `migration lease of op-1 for orders-app, by app-ns/deployer${end}`,
    }]);
    assert.deepEqual(happenedBetween(ended, ended), []);
    assert.deepEqual(happenedBetween(ended, free), [], "it is shown no longer");
  });
}

Deno.test("a renewal is no news", () => {
  assert.deepEqual(happenedBetween(held, withMutex({ expiresAt: "2026-01-01T00:01:30Z" })), []);
});

Deno.test("a grant that ended between two looks is told as both", () => {
  assert.deepEqual(kinds(free, withMutex({ state: "released" })), [
    "granted migration lease of op-1",
    "released migration lease of op-1",
  ]);
});

Deno.test("the same operation that is granted anew is told as a grant", () => {
  const again = withMutex({ createdAt: "2026-01-01T00:00:09Z" });
  assert.deepEqual(kinds(withMutex({ state: "released" }), again), [
    "granted migration lease of op-1",
  ]);
});

Deno.test("a lease that was overwritten ended before, and one whose object is gone was removed", () => {
  const next = withMutex({ operationId: "op-2", createdAt: "2026-01-01T00:00:09Z" });
  assert.deepEqual(kinds(held, next), [
    "released migration lease of op-1",
    "granted migration lease of op-2",
  ]);
  assert.deepEqual(kinds(held, free), ["removed migration lease of op-1"]);
  assert.deepEqual(kinds(pageGroup([leaseOf(hold())]), held), [
    "removed failover-hold lease of op-1",
    "granted migration lease of op-1",
  ]);
});

Deno.test("a switch of the active site is told with the generation, before what it revokes", () => {
  const moved = pageGroup(
    [leaseOf(migration())],
    healthyGroup({ status: { activeSite: "pdx", topologyGeneration: 8 } }),
  );
  assert.deepEqual(happenedBetween(held, moved).map(({ kind, text }) => [kind, text]), [
    ["switched", "the active site from iad to pdx, generation 8"],
    [
      "revoked",
      "migration lease of op-1 for orders-app, by app-ns/deployer: the primary moved, or its data changed under it",
    ],
  ]);
  const lost = pageGroup([], healthyGroup({ status: { activeSite: "" } }));
  assert.match(happenedBetween(free, lost)[0]?.text ?? "", /from iad to no site/);
  assert.match(happenedBetween(lost, free)[0]?.text ?? "", /from no site to iad/);
});

Deno.test("a group that comes, or cannot be read, brings no news", () => {
  assert.deepEqual(happenedBetween(null, held), []);
  assert.deepEqual(happenedBetween({ ...free, readable: false }, held), []);
  assert.deepEqual(happenedBetween(held, { ...free, readable: false }), []);
});

Deno.test("what others wrote does not leave its line", () => {
  const text = happenedBetween(free, withMutex({ operationId: "a\nb\u202e" }))[0]?.text ?? "";
  assert.doesNotMatch(text, /[\n\u202e]/);
});

Deno.test("a reason that is not known is told as it is", () => {
  assert.equal(revocationInWords("something_else"), "something_else");
});

Deno.test("the time line counts without a gap, has the newest first, and never grows beyond its bound", () => {
  const one = { kind: "granted", group: "a/b", text: "x" } as const;
  fc.assert(fc.property(
    fc.array(fc.integer({ min: 0, max: 90 }), { maxLength: 12 }),
    (amounts) => {
      let known: readonly PageChange[] = [];
      amounts.forEach((amount, at) => {
        known = addChanges(known, Array.from({ length: amount }, () => one), at);
      });
      const total = amounts.reduce((sum, amount) => sum + amount, 0);
      assert.equal(known.length, Math.min(total, MOST_CHANGES));
      known.forEach(({ number }, at) => assert.equal(number, total - at));
    },
  ));
});
