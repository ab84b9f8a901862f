import assert from "node:assert/strict";
import fc from "fast-check";
import { addChanges, MOST_CHANGES } from "../../lib/status_page/changes.ts";
import {
  difference,
  groupIds,
  type PagePatch,
  type PageState,
  placeChange,
  type Placed,
  placeGroup,
  placeLeases,
  placeParts,
  placeProblems,
  placeSites,
  placeSource,
  placeSummary,
} from "../../lib/status_page/difference.ts";
import type { PageGroup, PageLease, PageSite } from "../../lib/status_page/model.ts";
import { summaryOf } from "../../lib/status_page/overview.ts";
import { healthyGroup } from "../group/fixtures.ts";
import { hold, leaseOf, migration } from "../status/fixtures.ts";
import { pageGroup } from "./page_fixtures.ts";

const plain = pageGroup([leaseOf(migration()), leaseOf(hold())]);
const [leaseTemplate] = plain.leases;

const sites = fc.array(
  fc.record<PageSite>({
    name: fc.constantFrom("iad", "pdx", "lhr"),
    active: fc.boolean(),
    state: fc.constantFrom("", "writable", "read-only"),
    replicating: fc.constantFrom(true, false, null),
    lagSeconds: fc.constantFrom(null, 0, 1, 2),
    trouble: fc.constantFrom("", "it is broken"),
  }),
  { maxLength: 3 },
);

const leases = fc.array(
  fc.record({
    kind: fc.constantFrom("migration" as const, "failover-hold" as const),
    operationId: fc.constantFrom("op-1", "op-2"),
    createdAt: fc.constantFrom("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"),
    expiresAt: fc.constantFrom("2026-01-01T00:00:30Z", "2026-01-01T00:00:30.5Z"),
    state: fc.constantFrom("active" as const, "released" as const),
    stored: fc.boolean(),
  }).map((change): PageLease => {
    assert.ok(leaseTemplate);
    return { ...leaseTemplate, ...change };
  }),
  { maxLength: 4 },
);

const groups = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom("a", "b", "c"),
    activeSite: fc.constantFrom("iad", "pdx"),
    topologyGeneration: fc.constantFrom(7, 8),
    closedReason: fc.constantFrom("", "NoPrimary"),
    problems: fc.constantFrom([], ["it cannot be read"]),
    lagSeconds: fc.constantFrom(null, 0, 1),
    sites,
    leases,
  }).map((change): PageGroup => ({ ...plain, ...change, key: `database-ns/${change.name}` })),
  { maxLength: 3, selector: ({ key }) => key },
);

const states = fc.record({
  groups,
  problems: fc.constantFrom([], ["one"], ["one", "two"]),
  replica: fc.constantFrom("replica-0", "replica-1"),
});

function stateOf(
  found: typeof states extends fc.Arbitrary<infer T> ? T : never,
  changes: PageState["changes"],
): PageState {
  return {
    source: { replica: found.replica, sinceMs: 0 },
    groups: new Map(found.groups.map((group) => [group.key, group])),
    summary: summaryOf(found.groups),
    changes,
    problems: found.problems,
  };
}

/** What a page shows, by id: a text for each part. */
class Shown {
  readonly parts = new Map<string, string>();

  static of(state: PageState): Shown {
    const shown = new Shown();
    const single = [
      placeSource(state.source),
      placeSummary(state.summary),
      placeProblems(state.problems),
    ];
    for (const placed of single) shown.put(placed);
    for (const group of state.groups.values()) shown.put(placeGroup(group));
    for (const change of state.changes) shown.put(placeChange(change));
    return shown;
  }

  put({ id, into, order, part }: Placed): void {
    if (part.part !== "group") {
      this.parts.set(id, JSON.stringify([into, order, part]));
      return;
    }
    this.remove(id);
    this.parts.set(id, order);
    for (const placed of placeParts(part.group)) this.put(placed);
  }

  remove(id: string): void {
    this.parts.delete(id);
    if (!id.startsWith("group:")) return;
    const key = id.slice("group:".length);
    for (const other of this.parts.keys()) {
      if (other.split(":").slice(1)[0] === key) this.parts.delete(other);
    }
  }

  apply(patch: PagePatch): void {
    if (patch.type === "remove") this.remove(patch.id);
    else this.put(patch);
  }

  sorted(): readonly (readonly [string, string])[] {
    return [...this.parts].sort(([a], [b]) => a < b ? -1 : 1);
  }
}

Deno.test("what differs between two states turns a page of the one into a page of the other", () => {
  fc.assert(fc.property(
    states,
    states,
    fc.integer({ min: 0, max: 5 }),
    (first, second, news) => {
      const before = stateOf(first, []);
      const happened = Array.from({ length: news }, () => ({
        kind: "granted" as const,
        group: "database-ns/a",
        text: "a lease",
      }));
      const after = stateOf(second, addChanges([], happened, 5));
      const page = Shown.of(before);
      for (const patch of difference(before, after)) page.apply(patch);
      assert.deepEqual(page.sorted(), Shown.of(after).sorted());
    },
  ));
});

Deno.test("nothing is put between two states that show the same", () => {
  fc.assert(fc.property(states, (found) => {
    const again: typeof found = structuredClone(found);
    assert.deepEqual(difference(stateOf(found, []), stateOf(again, [])), []);
  }));
});

Deno.test("all ids of a group differ, also where two of its sites have one name", () => {
  fc.assert(fc.property(groups, (found) => {
    const ids = found.flatMap((group) => [
      ...Object.values(groupIds(group)),
      ...[...placeSites(group), ...placeLeases(group)].map(({ id }) => id),
    ]);
    assert.equal(new Set(ids).size, ids.length);
  }));
});

Deno.test("a lag that changes puts one row and the head, and nothing else", () => {
  const at = (seconds: number) => {
    const [active, standby] = [
      healthyGroup().status?.sites?.[0],
      healthyGroup().status?.sites?.[1],
    ];
    const status = { sites: [active, { ...standby, secondsBehindSource: seconds }] };
    const group = pageGroup([leaseOf(migration())], healthyGroup({ status }));
    return stateOf({ groups: [group], problems: [], replica: "replica-0" }, []);
  };
  const patches = difference(at(1), at(2));
  assert.deepEqual(patches.map((patch) => patch.type === "put" && patch.id), [
    "head:database-ns/orders",
    "site:database-ns/orders:pdx",
  ]);
});

Deno.test("a renewal puts one row and the head", () => {
  const until = (expiresAt: string) => {
    const group = pageGroup([leaseOf(migration({ expiresAt })), leaseOf(hold())]);
    return stateOf({ groups: [group], problems: [], replica: "replica-0" }, []);
  };
  const patches = difference(until("2026-01-01T00:00:20Z"), until("2026-01-01T00:00:25Z"));
  assert.deepEqual(patches.map((patch) => patch.type === "put" && patch.part.part), [
    "head",
    "lease",
  ]);
});

Deno.test("the mutex stands before the holds, these in the order of their expiry, and what ended is last", () => {
  const early = hold({ operationId: "op-0", expiresAt: "2026-01-01T00:00:20Z" });
  const group = pageGroup([
    leaseOf(hold({ operationId: "op-9", state: "released" })),
    leaseOf(hold({ expiresAt: "2026-01-01T00:00:20.5Z" })),
    leaseOf(early),
    leaseOf(migration()),
  ]);
  const order = placeLeases(group).toSorted((a, b) => a.order < b.order ? -1 : 1)
    .map(({ part }) => part.part === "lease" && `${part.lease.kind} ${part.lease.operationId}`);
  assert.deepEqual(order, [
    "migration op-1",
    "failover-hold op-0",
    "failover-hold op-1",
    "failover-hold op-9",
  ]);
});

Deno.test("lines of the time line stand with the newest first", () => {
  const happened = { kind: "granted", group: "a/b", text: "x" } as const;
  const changes = addChanges([], Array.from({ length: MOST_CHANGES }, () => happened), 0);
  const orders = changes.map((change) => placeChange(change).order);
  assert.deepEqual(orders, orders.toSorted());
});
