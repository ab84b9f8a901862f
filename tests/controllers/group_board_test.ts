import assert from "node:assert/strict";
import { GroupBoard, groupKey } from "../../lib/controllers/group_board.ts";
import { leaseRevoked } from "../../lib/controllers/group_events.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import type { Stored } from "../../lib/kube/api.ts";
import { CONFIG_MAPS, type Lease, LEASES } from "../../lib/kube/resources.ts";
import { formatTime, hashToken } from "../../lib/records/record.ts";
import { healthyGroup } from "../group/fixtures.ts";

const KEY = "database-ns/orders";

/** A Lease that a group of a name and a uid owns. */
function leaseOf(
  name: string,
  { owner = "orders", uid = "uid-1", version = "20", kind = "MysqlFailoverGroup", owners = 1 } = {},
): Stored<Lease> {
  return {
    metadata: {
      name,
      namespace: "database-ns",
      uid: `uid-of-${name}`,
      resourceVersion: version,
      ownerReferences: Array.from(
        { length: owners },
        () => ({ apiVersion: "shipstream.io/v1alpha1", kind, name: owner, uid }),
      ),
    },
  };
}

Deno.test("a group is shown with the Leases that it owns, and without those of a former group of its name", () => {
  const board = new GroupBoard();
  board.setLeases({ items: [leaseOf("a")], resourceVersion: "30", undecodable: [] });
  assert.equal(board.sight(KEY), null);
  assert.equal(board.setGroup(healthyGroup()), KEY);
  assert.deepEqual(board.setLease(leaseOf("old", { uid: "uid-0" })), [KEY]);
  assert.deepEqual(board.sight(KEY)?.leases.map(({ metadata }) => metadata.name), ["a"]);
  assert.equal(board.removeGroup(healthyGroup()), KEY);
  assert.equal(board.sight(KEY), null);
  assert.deepEqual([board.size, [...board.keys()]], [0, [KEY]]);
});

Deno.test("a Lease without exactly one owner, or with one of another kind, is nobody's", () => {
  const board = new GroupBoard();
  for (const owners of [0, 2]) assert.deepEqual(board.setLease(leaseOf("a", { owners })), []);
  assert.deepEqual(board.setLease(leaseOf("a", { kind: "Pod" })), []);
  assert.deepEqual(board.removeLease(leaseOf("a")), []);
  const { ownerReferences: _, ...metadata } = leaseOf("a").metadata;
  assert.deepEqual(board.setLease({ metadata }), []);
});

Deno.test("a Lease that changes hands is a change for both groups", () => {
  const board = new GroupBoard();
  assert.deepEqual(board.setLease(leaseOf("a")), [KEY]);
  const moved = board.setLease(leaseOf("a", { owner: "other" }));
  assert.deepEqual(moved, [KEY, "database-ns/other"]);
  assert.deepEqual(board.removeLease(leaseOf("a")), ["database-ns/other"]);
  assert.equal(board.keys().size, 0);
});

Deno.test("a list replaces all that was known of its kind", () => {
  const board = new GroupBoard();
  board.setGroup(healthyGroup());
  board.setLease(leaseOf("a"));
  board.setLeases({ items: [], resourceVersion: "30", undecodable: [] });
  assert.deepEqual(board.sight(KEY)?.leases, []);
  board.setGroups({ items: [], resourceVersion: "31", undecodable: [] });
  assert.equal(board.sight(KEY), null);
});

Deno.test("the newest version of a kind rises with what is told, and a list sets it", () => {
  const board = new GroupBoard();
  board.setGroup(healthyGroup());
  board.setLease(leaseOf("a", { version: "100" }));
  board.setLease(leaseOf("b", { version: "99" }));
  assert.equal(board.newest(MYSQL_FAILOVER_GROUPS), "10");
  assert.equal(board.newest(LEASES), "100");
  assert.equal(board.newest(CONFIG_MAPS), "");
  board.setLeases({ items: [leaseOf("a")], resourceVersion: "50", undecodable: [] });
  assert.equal(board.newest(LEASES), "50");
});

Deno.test("what was shown under a name is known by its uid and version", () => {
  const board = new GroupBoard();
  board.setGroup(healthyGroup());
  board.setLease(leaseOf("a"));
  const shown = (resource: typeof LEASES | typeof MYSQL_FAILOVER_GROUPS, name: string) =>
    board.shown(resource, { namespace: "database-ns", name });
  assert.equal(shown(LEASES, "a")?.uid, "uid-of-a");
  assert.equal(shown(LEASES, "b"), null);
  assert.equal(shown(MYSQL_FAILOVER_GROUPS, "orders")?.resourceVersion, "10");
  assert.equal(shown(MYSQL_FAILOVER_GROUPS, "other"), null);
  assert.equal(board.shown(CONFIG_MAPS, { name: "a" }), null);
  assert.equal(groupKey({ metadata: {} }), "/");
});

Deno.test("deploy-api 12: the note of a revocation gives kind, operation, instance and reason in this order", () => {
  const now = formatTime(0);
  const { note, regarding } = leaseRevoked({ namespace: "ns", name: "orders", uid: "u" }, {
    kind: "failover-hold",
    operationId: "op-1",
    instance: "tenant",
    expiresAt: now,
    topologyGeneration: 7,
    namespace: "app-ns",
    serviceAccount: "deployer",
    tokenHash: hashToken("token"),
    createdAt: now,
    state: "revoked",
  });
  assert.match(note, /failover-hold.*op-1.*tenant.*operator_revoked/);
  assert.deepEqual([regarding.namespace, regarding.uid], ["ns", "u"]);
});
