/**
 * What the product's own client makes of an API server's answers: the same for every target.
 *
 * @module
 */

import assert from "node:assert/strict";
import {
  type AnswerObservation,
  LEASES,
  SERVICE_ACCOUNTS,
  TOKEN_REQUESTS,
  TOKEN_REVIEWS,
} from "../../lib/kube/mod.ts";
import { createServiceAccount, requestToken } from "../cluster/access.ts";
import { type Assertion, createLease, group, GROUPS, lease, NEVER, OTHER_UID } from "./scope.ts";

const signal = NEVER;

/** Facts of `KubeApi`. */
export const CLIENT: readonly Assertion[] = [
  {
    name: "an object that was created by name can be read, replaced, patched, listed and deleted",
    async check({ api, namespace }) {
      const name = { namespace, name: "a" };
      const created = await api.createNamed(LEASES, lease("a", { namespace }), { signal });
      assert.deepEqual(await api.get(LEASES, name, { signal }), created);
      const replaced = await api.replace(LEASES, {
        ...created,
        spec: { ...created.spec, holderIdentity: "me" },
      }, { signal });
      assert.equal(replaced.spec?.holderIdentity, "me");
      const { uid, resourceVersion } = replaced.metadata;
      const patched = await api.patch(LEASES, name, {
        type: "merge",
        body: { metadata: { uid, resourceVersion }, spec: { leaseDurationSeconds: 5 } },
      }, { signal });
      assert.equal(patched.spec?.leaseDurationSeconds, 5);
      assert.equal(patched.spec?.holderIdentity, "me");
      const list = await api.list(LEASES, { namespace, signal });
      assert.deepEqual(list.items.map(({ metadata }) => metadata), [patched.metadata]);
      await api.delete(LEASES, name, patched.metadata, { signal });
      await assert.rejects(api.get(LEASES, name, { signal }), { name: "NotFoundError" });
    },
  },
  {
    name: "a list from the cache shows a write soon, and selects like any list",
    async check({ api, namespace }) {
      const selection = { namespace, fieldSelector: "metadata.name=b" };
      for (const name of ["a", "b"]) {
        await api.createNamed(LEASES, lease(name, { namespace }), { signal });
      }
      const names = async () => {
        const { items } = await api.list(LEASES, { ...selection, cached: true, signal });
        return items.map(({ metadata }) => metadata.name);
      };
      let seen = await names();
      for (let tries = 0; seen.length === 0 && tries < 100; tries++) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        seen = await names();
      }
      assert.deepEqual(seen, ["b"]);
    },
  },
  {
    name: "an object that was read is replaced and deleted as it was read, or not at all",
    async check({ api, namespace }) {
      const name = { namespace, name: "a" };
      const first = await api.createNamed(LEASES, lease("a", { namespace }), { signal });
      const edited = { ...first, spec: { leaseDurationSeconds: 99 } };
      await api.replace(LEASES, { ...first, spec: { leaseDurationSeconds: 31 } }, { signal });
      const conflict = { name: "ConflictError" };
      await assert.rejects(api.replace(LEASES, edited, { signal }), conflict);
      await assert.rejects(api.delete(LEASES, name, first.metadata, { signal }), conflict);
      const fences = [
        { resourceVersion: first.metadata.resourceVersion },
        { uid: OTHER_UID },
      ];
      for (const metadata of fences) {
        const body = { metadata, spec: { leaseDurationSeconds: 99 } };
        await assert.rejects(
          api.patch(LEASES, name, { type: "merge", body }, { signal }),
          conflict,
        );
      }
      const body = [
        { op: "test", path: "/metadata/resourceVersion", value: first.metadata.resourceVersion },
        { op: "replace", path: "/spec/leaseDurationSeconds", value: 99 },
      ];
      await assert.rejects(api.patch(LEASES, name, { type: "json", body }, { signal }), conflict);
      assert.equal((await api.get(LEASES, name, { signal })).spec?.leaseDurationSeconds, 31);
    },
  },
  {
    name: "an object that was deleted meanwhile is not created again by a replace",
    async check({ api, namespace }) {
      const name = { namespace, name: "a" };
      const gone = await api.createNamed(LEASES, lease("a", { namespace }), { signal });
      await api.delete(LEASES, name, gone.metadata, { signal });
      const edited = { ...gone, spec: { leaseDurationSeconds: 99 } };
      await assert.rejects(api.replace(LEASES, edited, { signal }), { name: "ConflictError" });
      await assert.rejects(
        api.delete(LEASES, name, gone.metadata, { signal }),
        { name: "NotFoundError" },
      );
      await assert.rejects(api.get(LEASES, name, { signal }), { name: "NotFoundError" });
      const again = await api.createNamed(LEASES, lease("a", { namespace }), { signal });
      assert.notEqual(again.metadata.uid, gone.metadata.uid);
      await assert.rejects(api.replace(LEASES, edited, { signal }), { name: "ConflictError" });
    },
  },
  {
    name: "of eight that create one name at once, one does and seven learn that it exists",
    async check({ api, namespace }) {
      const outcomes = await Promise.allSettled(
        Array.from(
          { length: 8 },
          () => api.createNamed(LEASES, lease("a", { namespace }), { signal }),
        ),
      );
      const failures = outcomes.flatMap((outcome) =>
        outcome.status === "rejected" && outcome.reason instanceof Error
          ? [outcome.reason.name]
          : []
      );
      assert.deepEqual(failures, Array.from({ length: 7 }, () => "AlreadyExistsError"));
    },
  },
  {
    name: "each refusal is the error of its kind",
    async check(scope) {
      const { api, namespace } = scope;
      await createLease(scope, "a");
      await assert.rejects(
        api.create(LEASES, lease("a", { namespace }), { signal }),
        { name: "AlreadyExistsError" },
      );
      await assert.rejects(
        api.createNamed(LEASES, lease("b", { namespace }, { leaseDurationSeconds: 0 }), { signal }),
        { name: "InvalidError", fields: ["spec.leaseDurationSeconds"] },
      );
      await assert.rejects(
        api.list(LEASES, { namespace, fieldSelector: "spec.other=x", signal }),
        { name: "InvalidError", status: 400 },
      );
      await createServiceAccount(scope.raw, namespace, "worker");
      const own = await requestToken(scope.raw, { namespace, serviceAccount: "worker" });
      const name = { namespace, name: "a" };
      await assert.rejects(
        scope.caller(own).api().get(LEASES, name, { signal }),
        { name: "ForbiddenError" },
      );
      await assert.rejects(
        scope.caller("garbage").api().get(LEASES, name, { signal }),
        { name: "UnauthorizedError" },
      );
    },
  },
  {
    name: "status is patched apart from the object, and what nobody knows survives a replace",
    async check({ api, namespace }) {
      const created = await api.create(GROUPS, group("orders", { namespace }), { signal });
      const name = { namespace, name: "orders" };
      const status = { activeSite: "iad", later: [1, { x: [] }] };
      const patch = { type: "merge", body: { status } } as const;
      await api.patch(GROUPS, name, patch, { subresource: "status", signal });
      const read = await api.get(GROUPS, name, { signal });
      const metadata = { ...read.metadata, labels: { a: "b" } };
      const replaced = await api.replace(GROUPS, { ...read, metadata }, { signal });
      assert.deepEqual(replaced.metadata.labels, { a: "b" });
      assert.deepEqual(Object(replaced).status, status);
      assert.deepEqual(Object(replaced).spec, Object(created).spec);
    },
  },
  {
    name: "a token can be asked for and reviewed",
    async check({ api, raw, namespace }) {
      await createServiceAccount(raw, namespace, "deployer");
      const request = await api.createSubresource(
        SERVICE_ACCOUNTS,
        { namespace, name: "deployer" },
        "token",
        TOKEN_REQUESTS,
        { metadata: {}, spec: { audiences: ["deploy"], expirationSeconds: 600 } },
        { signal },
      );
      const token = request.status?.token;
      const review = await api.create(
        TOKEN_REVIEWS,
        { metadata: {}, spec: { token, audiences: ["deploy"] } },
        { signal },
      );
      assert.equal(review.status?.authenticated, true);
      assert.equal(review.status?.user?.username, `system:serviceaccount:${namespace}:deployer`);
    },
  },
  {
    name:
      "the client sees the server's time in every answer, in errors and in the start of a watch",
    async check({ admin, namespace }) {
      const seen: AnswerObservation[] = [];
      const api = admin.api({ observer: (observation) => seen.push(observation) });
      await api.version({ signal });
      await assert.rejects(api.get(LEASES, { namespace, name: "a" }, { signal }));
      const ending = new AbortController();
      const events = api.watch(LEASES, { namespace, signal: ending.signal })
        [Symbol.asyncIterator]();
      await events.next();
      const pending = events.next();
      await api.createNamed(LEASES, lease("a", { namespace }), { signal });
      await pending;
      ending.abort();
      await events.return?.();
      assert.deepEqual(
        new Set(seen.map(({ verb, status }) => `${verb} ${status}`)),
        new Set(["get 200", "get 404", "list 200", "watch 200", "create 201"]),
      );
      for (const { serverDateMs, sentMs, receivedMs } of seen) {
        assert(serverDateMs !== null && serverDateMs % 1_000 === 0);
        assert(receivedMs >= sentMs);
      }
    },
  },
];
