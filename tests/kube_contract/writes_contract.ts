/**
 * How an API server stores: versions, uids, preconditions, patches. Shown on Leases, which hold all state.
 *
 * @module
 */

import assert from "node:assert/strict";
import { member } from "../cluster/raw_client.ts";
import {
  type Assertion,
  BAD_REQUEST,
  CONFLICT,
  createLease,
  invalid,
  JSON_PATCH,
  lease,
  MERGE,
  NOT_FOUND,
  OTHER_UID,
  refusal,
  uidOf,
  versionOf,
  withQuery,
} from "./scope.ts";

const FAILED_PATCH = { status: 422, reason: "Invalid", fields: [] };

/** Facts of creating, replacing, patching and deleting. */
export const WRITES: readonly Assertion[] = [
  {
    name:
      "a PUT of a missing Lease creates it, and the server gives it a uid, a version and a time",
    async check({ raw, leases, namespace }) {
      const answer = await raw("PUT", `${leases}/a`, { body: lease("a", { labels: { x: "y" } }) });
      assert.equal(answer.status, 201);
      assert.match(
        uidOf(answer),
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
      assert.match(versionOf(answer), /^[1-9][0-9]*$/);
      const created = String(member(answer.body, "metadata", "creationTimestamp"));
      assert.match(created, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      assert.equal(member(answer.body, "metadata", "namespace"), namespace);
      assert.deepEqual(member(answer.body, "metadata", "labels"), { x: "y" });
      assert.equal(member(answer.body, "kind"), "Lease");
      assert.equal(member(answer.body, "apiVersion"), "coordination.k8s.io/v1");
    },
  },
  {
    name: "a PUT without a version of a Lease that exists is refused, and the version is named",
    async check(scope) {
      await createLease(scope, "a");
      const answer = await scope.raw("PUT", `${scope.leases}/a`, { body: lease("a") });
      assert.deepEqual(refusal(answer), invalid("metadata.resourceVersion"));
      assert.match(String(member(answer.body, "message")), /must be specified for an update/);
    },
  },
  {
    name: "a PUT under the version that was read is stored, and the version rises",
    async check(scope) {
      const first = await createLease(scope, "a");
      const body = lease("a", { resourceVersion: versionOf(first), uid: uidOf(first) }, {
        leaseDurationSeconds: 31,
      });
      const second = await scope.raw("PUT", `${scope.leases}/a`, { body });
      assert.equal(second.status, 200);
      assert(BigInt(versionOf(second)) > BigInt(versionOf(first)));
      assert.equal(uidOf(second), uidOf(first));
      assert.equal(
        member(second.body, "metadata", "creationTimestamp"),
        member(first.body, "metadata", "creationTimestamp"),
      );
    },
  },
  {
    name: "a PUT under a stale version or another uid is a conflict",
    async check(scope) {
      const first = await createLease(scope, "a");
      const path = `${scope.leases}/a`;
      const second = await scope.raw("PATCH", path, {
        body: { spec: { leaseDurationSeconds: 31 } },
        contentType: MERGE,
      });
      const write = (metadata: Record<string, string>) =>
        scope.raw("PUT", path, { body: lease("a", metadata, { leaseDurationSeconds: 32 }) });
      const uid = uidOf(first);
      assert.deepEqual(refusal(await write({ resourceVersion: versionOf(first) })), CONFLICT);
      assert.deepEqual(refusal(await write({ resourceVersion: versionOf(first), uid })), CONFLICT);
      assert.deepEqual(refusal(await write({ uid: OTHER_UID })), CONFLICT);
      assert.deepEqual(
        refusal(await write({ resourceVersion: versionOf(second), uid: OTHER_UID })),
        CONFLICT,
      );
      assert.equal(versionOf(await scope.raw("GET", path)), versionOf(second));
    },
  },
  {
    name:
      "a PUT of a missing Lease with a stale version creates it, and with its uid as well it does not",
    async check(scope) {
      const gone = await createLease(scope, "a");
      const path = `${scope.leases}/a`;
      await scope.raw("DELETE", path);
      const fenced = await scope.raw("PUT", path, {
        body: lease("a", { resourceVersion: versionOf(gone), uid: uidOf(gone) }),
      });
      assert.deepEqual(refusal(fenced), CONFLICT);
      assert.deepEqual(
        refusal(await scope.raw("PUT", path, { body: lease("a", { uid: uidOf(gone) }) })),
        CONFLICT,
      );
      const unfenced = await scope.raw("PUT", path, {
        body: lease("a", { resourceVersion: versionOf(gone) }),
      });
      assert.equal(unfenced.status, 201);
      assert.notEqual(uidOf(unfenced), uidOf(gone));
    },
  },
  {
    name: "of eight PUTs at once that create a Lease exactly one does",
    async check({ raw, leases }) {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => raw("PUT", `${leases}/a`, { body: lease("a") })),
      );
      const statuses = answers.map(({ status }) => status);
      assert.equal(statuses.filter((status) => status === 201).length, 1);
      assert(statuses.every((status) => [201, 409, 422].includes(status)), String(statuses));
    },
  },
  {
    name: "a POST of a Lease that exists is refused as one that exists",
    async check(scope) {
      await createLease(scope, "a");
      const answer = await scope.raw("POST", scope.leases, { body: lease("a") });
      assert.deepEqual(refusal(answer), { status: 409, reason: "AlreadyExists", fields: [] });
    },
  },
  {
    name: "a POST with a name that is to be made gets one that begins with it, another each time",
    async check({ raw, leases }) {
      const names = new Set<string>();
      for (let count = 0; count < 3; count++) {
        const answer = await raw("POST", leases, { body: { metadata: { generateName: "x-" } } });
        assert.equal(answer.status, 201);
        const name = String(member(answer.body, "metadata", "name"));
        assert.match(name, /^x-[a-z0-9]{5}$/);
        assert.equal(member(answer.body, "metadata", "generateName"), "x-");
        names.add(name);
      }
      assert.equal(names.size, 3);
      const nameless = await raw("POST", leases, { body: { metadata: {} } });
      assert.deepEqual(refusal(nameless), invalid("metadata.name"));
    },
  },
  {
    name: "a write that changes nothing keeps the version",
    async check(scope) {
      const path = `${scope.leases}/a`;
      const stored = await createLease(scope, "a");
      const put = await scope.raw("PUT", path, { body: stored.body });
      assert.equal(put.status, 200);
      assert.equal(versionOf(put), versionOf(stored));
      const patch = await scope.raw("PATCH", path, {
        body: { spec: { leaseDurationSeconds: 30 } },
        contentType: MERGE,
      });
      assert.equal(patch.status, 200);
      assert.equal(versionOf(patch), versionOf(stored));
    },
  },
  {
    name: "a merge patch changes what it names, removes what it names as null and keeps the rest",
    async check(scope) {
      await createLease(scope, "a", {
        labels: { one: "1", two: "2" },
        annotations: { kept: "yes" },
      });
      const answer = await scope.raw("PATCH", `${scope.leases}/a`, {
        body: {
          metadata: { labels: { one: null, three: "3" } },
          spec: { holderIdentity: "me", renewTime: "2026-01-01T00:00:00.123456Z" },
        },
        contentType: MERGE,
      });
      assert.equal(answer.status, 200);
      assert.deepEqual(member(answer.body, "metadata", "labels"), { two: "2", three: "3" });
      assert.deepEqual(member(answer.body, "metadata", "annotations"), { kept: "yes" });
      assert.deepEqual(member(answer.body, "spec"), {
        holderIdentity: "me",
        leaseDurationSeconds: 30,
        renewTime: "2026-01-01T00:00:00.123456Z",
      });
    },
  },
  {
    name:
      "a merge patch with a stale version is a conflict, and with another uid alone an invalid value",
    async check(scope) {
      const path = `${scope.leases}/a`;
      const first = await createLease(scope, "a");
      const patch = (metadata: Record<string, string>, duration: number) =>
        scope.raw("PATCH", path, {
          body: { metadata, spec: { leaseDurationSeconds: duration } },
          contentType: MERGE,
        });
      const second = await patch({ resourceVersion: versionOf(first), uid: uidOf(first) }, 31);
      assert.equal(second.status, 200);
      const stale = { resourceVersion: versionOf(first) };
      assert.deepEqual(refusal(await patch(stale, 32)), CONFLICT);
      assert.deepEqual(refusal(await patch({ ...stale, uid: OTHER_UID }, 32)), CONFLICT);
      assert.deepEqual(refusal(await patch({ uid: OTHER_UID }, 32)), invalid("metadata.uid"));
      assert.equal(versionOf(await scope.raw("GET", path)), versionOf(second));
    },
  },
  {
    name: "a merge patch of a missing Lease finds nothing, whatever it carries",
    async check({ raw, leases }) {
      for (
        const metadata of [{}, { resourceVersion: "1" }, { resourceVersion: "1", uid: OTHER_UID }]
      ) {
        const answer = await raw("PATCH", `${leases}/a`, {
          body: { metadata, spec: { leaseDurationSeconds: 30 } },
          contentType: MERGE,
        });
        assert.deepEqual(refusal(answer), NOT_FOUND);
      }
    },
  },
  {
    name: "a JSON patch is applied whole or not at all, and its test fences it",
    async check(scope) {
      const path = `${scope.leases}/a`;
      const first = await createLease(scope, "a", { labels: { "x/y": "1" } });
      const patch = (...body: readonly Record<string, unknown>[]) =>
        scope.raw("PATCH", path, { body, contentType: JSON_PATCH });
      const second = await patch(
        { op: "test", path: "/metadata/resourceVersion", value: versionOf(first) },
        { op: "add", path: "/metadata/labels/new", value: "2" },
        { op: "remove", path: "/metadata/labels/x~1y" },
        { op: "replace", path: "/spec/leaseDurationSeconds", value: 40 },
      );
      assert.equal(second.status, 200);
      assert.deepEqual(member(second.body, "metadata", "labels"), { new: "2" });
      assert.equal(member(second.body, "spec", "leaseDurationSeconds"), 40);
      const stale = await patch(
        { op: "replace", path: "/spec/leaseDurationSeconds", value: 50 },
        { op: "test", path: "/metadata/resourceVersion", value: versionOf(first) },
      );
      assert.deepEqual(refusal(stale), FAILED_PATCH);
      const missing = await patch({ op: "remove", path: "/metadata/labels/none" });
      assert.deepEqual(refusal(missing), FAILED_PATCH);
      const replaced = await patch({ op: "replace", path: "/metadata/annotations/a", value: "x" });
      assert.deepEqual(refusal(replaced), FAILED_PATCH);
      const noList = await scope.raw("PATCH", path, { body: {}, contentType: JSON_PATCH });
      assert.deepEqual(refusal(noList), BAD_REQUEST);
      assert.equal(versionOf(await scope.raw("GET", path)), versionOf(second));
    },
  },
  {
    name: "a DELETE holds its preconditions, and tells what it deleted",
    async check(scope) {
      const path = `${scope.leases}/a`;
      const stored = await createLease(scope, "a");
      const remove = (preconditions: Record<string, string>) =>
        scope.raw("DELETE", path, {
          body: { apiVersion: "v1", kind: "DeleteOptions", preconditions },
        });
      const uid = uidOf(stored);
      const resourceVersion = versionOf(stored);
      assert.deepEqual(refusal(await remove({ uid, resourceVersion: "1" })), CONFLICT);
      assert.deepEqual(refusal(await remove({ uid: OTHER_UID })), CONFLICT);
      assert.equal((await scope.raw("GET", path)).status, 200);
      const removed = await remove({ uid, resourceVersion });
      assert.equal(removed.status, 200);
      assert.equal(member(removed.body, "status"), "Success");
      assert.equal(member(removed.body, "details", "uid"), uid);
      assert.deepEqual(refusal(await remove({ uid, resourceVersion })), NOT_FOUND);
      assert.deepEqual(refusal(await scope.raw("GET", path)), NOT_FOUND);
    },
  },
  {
    name: "values that a Lease cannot have are refused, and the field is named",
    async check(scope) {
      await createLease(scope, "a");
      const path = `${scope.leases}/a`;
      const patch = (spec: Record<string, unknown>) =>
        scope.raw("PATCH", path, { body: { spec }, contentType: MERGE });
      assert.deepEqual(
        refusal(await patch({ leaseDurationSeconds: 0 })),
        invalid("spec.leaseDurationSeconds"),
      );
      assert.deepEqual(
        refusal(await patch({ leaseTransitions: -1 })),
        invalid("spec.leaseTransitions"),
      );
      assert.equal((await patch({ leaseTransitions: 2_147_483_647 })).status, 200);
      assert.equal((await patch({ leaseTransitions: 2_147_483_648 })).status, 422);
      assert.equal((await patch({ renewTime: "yesterday" })).status, 422);
      // Kubernetes has two kinds of times; those of a Lease have six digits of a second.
      assert.equal((await patch({ renewTime: "2026-01-01T00:00:00Z" })).status, 422);
    },
  },
  {
    name:
      "a PUT with a number that the field cannot hold is refused as a request that makes no sense",
    async check({ raw, leases }) {
      for (const spec of [{ leaseTransitions: 2_147_483_648 }, { leaseDurationSeconds: "30" }]) {
        const answer = await raw("PUT", `${leases}/a`, { body: lease("a", {}, spec) });
        assert.deepEqual(refusal(answer), BAD_REQUEST);
      }
    },
  },
  {
    name: "an unknown field of a Lease is dropped, and a warning says so",
    async check({ raw, leases }) {
      const answer = await raw("PUT", `${leases}/a`, {
        body: lease("a", {}, { leaseDurationSeconds: 30, surprise: 1 }),
      });
      assert.equal(answer.status, 201);
      assert.deepEqual(member(answer.body, "spec"), { leaseDurationSeconds: 30 });
      assert.match(answer.headers.get("warning") ?? "", /^299 .*unknown field .*spec\.surprise/);
    },
  },
  {
    name: "names, labels and owners that no object can have are refused, and the field is named",
    async check({ raw, leases }) {
      const post = async (metadata: Record<string, unknown>) =>
        refusal(await raw("POST", leases, { body: lease("a", metadata) }));
      assert.deepEqual(await post({ name: "Bad_Name" }), invalid("metadata.name"));
      assert.deepEqual(await post({ labels: { "a b": "c" } }), invalid("metadata.labels"));
      assert.deepEqual(await post({ labels: { a: "c d" } }), invalid("metadata.labels"));
      assert.deepEqual(await post({ labels: { a: "c".repeat(64) } }), invalid("metadata.labels"));
      assert.deepEqual(await post({ annotations: { a: 1 } }), BAD_REQUEST);
      const owner = { apiVersion: "v1", kind: "X", name: "y" };
      const refused = await post({ ownerReferences: [owner] });
      // Kubernetes 1.37 says which of the owners it means.
      const fields = refused.fields.map((field) => field.replace("[0]", ""));
      assert.deepEqual({ ...refused, fields }, invalid("metadata.ownerReferences.uid"));
    },
  },
  {
    name: "what the path says and what the object says must agree",
    async check({ raw, leases }) {
      const put = async (body: unknown) => refusal(await raw("PUT", `${leases}/a`, { body }));
      assert.deepEqual(await put(lease("b")), BAD_REQUEST);
      assert.deepEqual(await put(lease("a", { namespace: "other" })), BAD_REQUEST);
      assert.deepEqual(await put({ metadata: {} }), BAD_REQUEST);
      assert.deepEqual(await put({ ...lease("a"), kind: "Pod" }), BAD_REQUEST);
      const bare = await raw("PUT", `${leases}/a`, { body: { metadata: { name: "a" } } });
      assert.equal(bare.status, 201);
      assert.equal(member(bare.body, "kind"), "Lease");
    },
  },
  {
    name: "owner references are kept, and an owner that is not there takes nothing with it",
    async check(scope) {
      const ownerReferences = [{
        apiVersion: "shipstream.io/v1alpha1",
        kind: "MysqlFailoverGroup",
        name: "orders",
        uid: OTHER_UID,
      }];
      const created = await createLease(scope, "a", { ownerReferences });
      assert.deepEqual(member(created.body, "metadata", "ownerReferences"), ownerReferences);
      const read = await scope.raw("GET", `${scope.leases}/a`);
      assert.deepEqual(member(read.body, "metadata", "ownerReferences"), ownerReferences);
    },
  },
  {
    name: "a dry run answers like the write and stores nothing",
    async check(scope) {
      const dry = await scope.raw("PUT", withQuery(`${scope.leases}/a`, { dryRun: "All" }), {
        body: lease("a"),
      });
      assert.equal(dry.status, 201);
      assert.equal((await scope.raw("GET", `${scope.leases}/a`)).status, 404);
      const stored = await createLease(scope, "a");
      const changed = await scope.raw("PATCH", withQuery(`${scope.leases}/a`, { dryRun: "All" }), {
        body: { spec: { leaseDurationSeconds: 99 } },
        contentType: MERGE,
      });
      assert.equal(member(changed.body, "spec", "leaseDurationSeconds"), 99);
      assert.equal(versionOf(await scope.raw("GET", `${scope.leases}/a`)), versionOf(stored));
    },
  },
  {
    name: "what cannot be read, or is not served, is refused",
    async check(scope) {
      const { raw, leases } = scope;
      await createLease(scope, "a");
      const nowhere = leases.replace(scope.namespace, "no-such-namespace");
      assert.deepEqual(refusal(await raw("POST", nowhere, { body: lease("a") })), NOT_FOUND);
      assert.deepEqual(
        refusal(await raw("PUT", `${nowhere}/a`, { body: lease("a") })),
        NOT_FOUND,
      );
      assert.equal((await raw("GET", `${leases}x`)).status, 404);
      assert.equal((await raw("GET", "/apis/none.example.com/v1/leases")).status, 404);
      assert.equal((await raw("POST", `${leases}/a`, { body: lease("a") })).status, 405);
      const unread = { body: {}, contentType: "application/json" };
      assert.equal((await raw("PATCH", `${leases}/a`, unread)).status, 415);
      const text = { body: lease("a"), contentType: "text/plain" };
      assert.equal((await raw("PUT", `${leases}/a`, text)).status, 415);
      assert.equal((await raw("PUT", `${leases}/a`, { body: "no object" })).status, 400);
    },
  },
];
