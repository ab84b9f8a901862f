import assert from "node:assert/strict";
import { UnavailableError } from "../../lib/kube/errors.ts";
import { Shelf } from "../../lib/status/shelf.ts";
import type { Lease } from "../../lib/kube/resources.ts";
import { leaseOf, migration } from "./fixtures.ts";

const lease = leaseOf(migration());
const { namespace = "", name } = lease.metadata;
const broken = { namespace, name, paths: ["spec"] };
const list = { items: [lease], undecodable: [], resourceVersion: "1" };

function seen(shelf: Shelf<Lease>) {
  const { items, undecodable } = shelf.list();
  return [items.length, undecodable.length];
}

Deno.test("what a watch tells is there until it is told otherwise", () => {
  const shelf = new Shelf<Lease>();
  shelf.apply({ type: "added", object: lease });
  assert.deepEqual(seen(shelf), [1, 0]);
  shelf.apply({ type: "undecodable", object: broken });
  assert.deepEqual(seen(shelf), [0, 1]);
  shelf.apply({ type: "modified", object: lease });
  assert.deepEqual(seen(shelf), [1, 0]);
  shelf.apply({ type: "undecodable", object: broken });
  shelf.apply({ type: "deleted", object: lease });
  assert.deepEqual(seen(shelf), [0, 0]);
});

Deno.test("a list takes the place of all that was known", () => {
  const shelf = new Shelf<Lease>();
  shelf.apply({ type: "undecodable", object: broken });
  shelf.apply({ type: "initial", list });
  assert.deepEqual(seen(shelf), [1, 0]);
  const nothing = { items: [], undecodable: [broken], resourceVersion: "2" };
  shelf.apply({ type: "restarted", reason: "gone", list: nothing });
  assert.deepEqual(seen(shelf), [0, 1]);
});

Deno.test("a watch that fails is told until it works again, and what was known stays", () => {
  const shelf = new Shelf<Lease>();
  shelf.apply({ type: "initial", list });
  const call = { verb: "watch", resource: "leases", target: "" };
  shelf.apply({ type: "failed", error: new UnavailableError(call) });
  assert.equal(shelf.trouble, "unavailable");
  assert.deepEqual(seen(shelf), [1, 0]);
  shelf.apply({ type: "added", object: lease });
  assert.equal(shelf.trouble, "");
});
