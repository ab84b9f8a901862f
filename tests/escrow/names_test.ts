import assert from "node:assert/strict";
import fc from "fast-check";
import {
  canExist,
  keyringSecret,
  keyringSecretName,
  keyringSelector,
  mayBeOf,
  tokenSecretName,
  versionOf,
} from "../../lib/escrow/names.ts";
import { SITE } from "./support.ts";

const metadata = { name: "mysql-orders-iad-keyring-token", uid: "u", resourceVersion: "1" };

Deno.test("the Secrets of a site have the contract's names", () => {
  assert.equal(tokenSecretName(SITE), "mysql-orders-iad-keyring-token");
  assert.equal(keyringSecretName(SITE, 12), "mysql-orders-iad-keyring-v12");
});

Deno.test("a version is an immutable Opaque Secret with the contract's labels, annotation and controller", () => {
  const parts = { site: SITE, groupUid: "uid-1", version: 3, keyring: "a2V5", digest: "sha256:0" };
  assert.deepEqual(keyringSecret(parts), {
    apiVersion: "v1",
    kind: "Secret",
    type: "Opaque",
    immutable: true,
    metadata: {
      name: "mysql-orders-iad-keyring-v3",
      namespace: "database-ns",
      labels: {
        "app.kubernetes.io/name": "mysql-keyring",
        "app.kubernetes.io/instance": "orders",
        "app.kubernetes.io/managed-by": "bloodraven",
        "shipstream.io/failover-group": "orders",
        "shipstream.io/site": "iad",
        "shipstream.io/keyring-version": "3",
      },
      annotations: { "shipstream.io/keyring-digest": "sha256:0" },
      ownerReferences: [{
        apiVersion: "shipstream.io/v1alpha1",
        kind: "MysqlFailoverGroup",
        name: "orders",
        uid: "uid-1",
        controller: true,
      }],
    },
    data: { keyring: "a2V5" },
  });
});

Deno.test("the name of a version says its number, and no other name says one", () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 999_999_999 }), (version) => {
    assert.equal(versionOf(SITE, keyringSecretName(SITE, version)), version);
  }));
  const strange = ["v0", "v01", "v-1", "v1.5", "v", "v1000000000", "v1e3", "v 1", "token"];
  for (const end of strange) assert.equal(versionOf(SITE, `mysql-orders-iad-keyring-${end}`), null);
  assert.equal(versionOf(SITE, "mysql-orders-pdx-keyring-v1"), null);
});

Deno.test("long names of groups and sites fit into labels, and stay apart", () => {
  const long = (end: string) => ({ ...SITE, group: `${"g".repeat(70)}${end}` });
  const value = /failover-group=([^,]+)/.exec(keyringSelector(long("a")))?.[1] ?? "";
  assert(value.length <= 63);
  assert.notEqual(keyringSelector(long("a")), keyringSelector(long("b")));
});

for (
  const [what, site] of [
    ["a namespace with a slash", { ...SITE, namespace: "a/b" }],
    ["a namespace that is a path", { ...SITE, namespace: ".." }],
    ["a group in capitals", { ...SITE, group: "Orders" }],
    ["a site with a space", { ...SITE, site: "i ad" }],
    ["names that are together too long for a Secret", { ...SITE, group: "g".repeat(240) }],
  ] as const
) {
  Deno.test(`${what} is of no site that can exist, and never becomes a path of the API server`, () => {
    assert.equal(canExist(site), false);
  });
}

Deno.test("a token's Secret that says it is of another site is not believed, and one that says nothing is", () => {
  const one = { namespace: "n", group: "a-b", site: "c" };
  const other = { namespace: "n", group: "a", site: "b-c" };
  assert.equal(tokenSecretName(one), tokenSecretName(other));
  assert.equal(mayBeOf(one, { metadata }), true);
  const labels = { "shipstream.io/failover-group": "a-b", "shipstream.io/site": "c" };
  assert.equal(mayBeOf(one, { metadata: { ...metadata, labels } }), true);
  assert.equal(mayBeOf(other, { metadata: { ...metadata, labels } }), false);
  const owner = { apiVersion: "x", kind: "MysqlFailoverGroup", name: "a-b", uid: "u" };
  const ownerReferences = [{ ...owner, controller: true }];
  assert.equal(mayBeOf(one, { metadata: { ...metadata, ownerReferences } }), true);
  assert.equal(mayBeOf(other, { metadata: { ...metadata, ownerReferences } }), false);
  assert.equal(mayBeOf(other, { metadata: { ...metadata, ownerReferences: [owner] } }), true);
});
