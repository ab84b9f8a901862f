import assert from "node:assert/strict";
import fc from "fast-check";
import type { Stored } from "../../lib/kube/api.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import {
  ForeignOwnerError,
  leaseObject,
  ownedBy,
  readLease,
} from "../../lib/records/lease_object.ts";
import { formatTime, hashToken, type LeaseRecord, RecordError } from "../../lib/records/record.ts";

const NOW = Date.UTC(2026, 0, 1);
const GROUP = { name: "orders", uid: "uid-1" };
const NAME = "bloodraven-deploy-orders-migration";

const RECORD: LeaseRecord = {
  kind: "migration",
  operationId: "op-1",
  instance: "orders-app",
  expiresAt: formatTime(NOW + 30_000),
  topologyGeneration: 7,
  namespace: "app",
  serviceAccount: "deployer",
  tokenHash: hashToken("token"),
  createdAt: formatTime(NOW),
  state: "active",
};

const parts = { name: NAME, namespace: "database", group: GROUP, record: RECORD, nowMs: NOW };

function store(lease: Lease, changes: Partial<Lease["metadata"]> = {}): Stored<Lease> {
  const metadata = { ...lease.metadata, ...changes, name: NAME, uid: "l-1", resourceVersion: "5" };
  return { ...lease, metadata };
}

Deno.test("a new Lease has exactly what the contract gives it, and our group label", () => {
  assert.deepEqual(leaseObject(parts), {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: NAME,
      namespace: "database",
      labels: {
        "bloodraven.shipstream.io/deployment-kind": "migration",
        "bloodraven.shipstream.io/deployment-state": "active",
        "bloodraven.shipstream.io/deployment-group": "orders",
      },
      annotations: { "bloodraven.shipstream.io/deployment-lease": JSON.stringify(RECORD) },
      ownerReferences: [{
        apiVersion: "shipstream.io/v1alpha1",
        kind: "MysqlFailoverGroup",
        name: "orders",
        uid: "uid-1",
      }],
    },
    spec: {
      holderIdentity: "op-1",
      renewTime: "2026-01-01T00:00:00.000000Z",
      leaseDurationSeconds: 30,
    },
  });
});

Deno.test("a replaced Lease keeps its version and all that others added to it", () => {
  const first = leaseObject(parts);
  const previous = store({
    ...first,
    spec: { ...first.spec, preferredHolder: "x" },
  }, {
    labels: { ...first.metadata.labels, team: "blue" },
    annotations: { ...first.metadata.annotations, note: "mine" },
    finalizers: ["x/y"],
  });
  const record: LeaseRecord = { ...RECORD, state: "revoked", reason: "operator_revoked" };
  const next = leaseObject({ ...parts, record, nowMs: NOW + 1_000.25, previous });
  assert.equal(next.metadata.uid, "l-1");
  assert.equal(next.metadata.resourceVersion, "5");
  assert.deepEqual(next.metadata.finalizers, ["x/y"]);
  assert.equal(next.metadata.labels?.["team"], "blue");
  assert.equal(next.metadata.labels?.["bloodraven.shipstream.io/deployment-state"], "revoked");
  assert.equal(next.metadata.annotations?.["note"], "mine");
  assert.equal(next.spec?.["preferredHolder"], "x");
  assert.equal(next.spec?.renewTime, "2026-01-01T00:00:01.000250Z");
  assert.deepEqual(readLease(next, GROUP.uid).record, record);
});

Deno.test("the group label of a Lease that the reference wrote is added when we write it", () => {
  const first = leaseObject(parts);
  const { ["bloodraven.shipstream.io/deployment-group"]: _ours, ...labels } =
    first.metadata.labels ?? {};
  const next = leaseObject({ ...parts, previous: store(first, { labels }) });
  assert.equal(next.metadata.labels?.["bloodraven.shipstream.io/deployment-group"], "orders");
});

Deno.test("deploy-api 16 item 61: the duration of a Lease that has ended is exactly 1", () => {
  const duration = (nowMs: number) => leaseObject({ ...parts, nowMs }).spec?.leaseDurationSeconds;
  assert.equal(duration(NOW), 30);
  assert.equal(duration(NOW + 1), 29);
  assert.equal(duration(NOW + 28_000), 2);
  assert.equal(duration(NOW + 28_001), 1);
  assert.equal(duration(NOW + 29_999), 1);
  assert.equal(duration(NOW + 30_000), 1);
  assert.equal(duration(NOW + 24 * 3_600_000), 1);
});

Deno.test("every Lease that is written is one that the API server takes", () => {
  const instant = fc.double({ min: 0, max: Date.UTC(2100, 0, 1), noNaN: true });
  fc.assert(fc.property(instant, instant, (nowMs, expiresMs) => {
    const lease = leaseObject({
      ...parts,
      nowMs,
      record: { ...RECORD, expiresAt: formatTime(expiresMs) },
    });
    LEASES.parse(lease);
    const seconds = lease.spec?.leaseDurationSeconds ?? 0;
    assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 2 ** 31 - 1);
    assert.match(lease.spec?.renewTime ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    assert.equal(lease.spec?.acquireTime, undefined);
    assert.equal(lease.spec?.leaseTransitions, undefined);
  }));
});

Deno.test("a Lease of another owner, of two, or of none is not this group's", () => {
  const [owner] = leaseObject(parts).metadata.ownerReferences ?? [];
  assert.ok(owner);
  const foreign = [
    undefined,
    [],
    [{ ...owner, uid: "uid-2" }],
    [owner, { ...owner, uid: "uid-2" }],
    [owner, owner],
  ];
  for (const ownerReferences of foreign) {
    const lease = store(leaseObject(parts), { ownerReferences });
    assert.equal(ownedBy(lease, GROUP.uid), false);
    assert.throws(() => readLease(lease, GROUP.uid), ForeignOwnerError);
    assert.throws(() => leaseObject({ ...parts, previous: lease }), {
      name: "ForeignOwnerError",
      object: NAME,
    });
  }
  assert.equal(ownedBy(store(leaseObject(parts)), GROUP.uid), true);
});

Deno.test("a Lease without a record, or with one that cannot be read, is an error", () => {
  const annotation = "bloodraven.shipstream.io/deployment-lease";
  const cases: readonly (Record<string, string> | undefined)[] = [
    undefined,
    {},
    { [annotation]: "" },
    { [annotation]: "{}" },
  ];
  for (const annotations of cases) {
    const lease = store(leaseObject(parts), { annotations });
    assert.throws(() => readLease(lease, GROUP.uid), RecordError);
  }
});
