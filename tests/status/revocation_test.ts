import assert from "node:assert/strict";
import { clusterReport } from "../../lib/status/cluster_report.ts";
import type { GroupStatus, LeaseStatus } from "../../lib/status/report.ts";
import {
  isTombstone,
  newcomers,
  progressOf,
  revocationRequested,
  targetsOf,
} from "../../lib/status/revocation.ts";
import { healthyGroup } from "../group/fixtures.ts";
import { leaseStatus, NOW, snapshotOf } from "./fixtures.ts";

const [empty] = clusterReport(snapshotOf([healthyGroup()], []), NOW, { all: true }).groups;

function groupWith(...leases: LeaseStatus[]): GroupStatus {
  assert.ok(empty);
  return { ...empty, leases };
}

const migration = leaseStatus();
const hold = leaseStatus({ kind: "failover-hold" });
const other = leaseStatus({ kind: "failover-hold", operationId: "op-2" });
const ended = leaseStatus({ kind: "failover-hold", operationId: "op-0", state: "released" });
const unstored = leaseStatus({
  kind: "failover-hold",
  operationId: "op-3",
  state: "expired",
  stored: false,
});

const revoked = (lease: LeaseStatus): LeaseStatus => ({
  ...lease,
  state: "revoked",
  reason: "operator_revoked",
});

Deno.test("a revocation hits what storage shows as active, of the group or of one operation", () => {
  const group = groupWith(migration, hold, other, ended, unstored);
  assert.deepEqual(targetsOf(group), [migration, hold, other, unstored]);
  assert.deepEqual(targetsOf(group, "op-1"), [migration, hold]);
  assert.deepEqual(targetsOf(group, "op-0"), []);
});

Deno.test("a grant that is newer than the list is a newcomer, a renewal of one on it is not", () => {
  const renewed = { ...migration, expiresAt: "2026-01-01T00:01:00Z" };
  const again = { ...migration, createdAt: "2026-01-01T00:00:09Z" };
  assert.deepEqual(newcomers([migration], [renewed, again, hold]), [again, hold]);
});

Deno.test("the progress tells what was revoked, what ended by itself, and what stands", () => {
  const before = groupWith(migration, hold, other, revoked({ ...ended, operationId: "op-9" }));
  const now = groupWith(
    revoked(migration),
    hold,
    { ...other, state: "released" },
    revoked({ ...ended, operationId: "op-9" }),
  );
  assert.deepEqual(progressOf(before, now), {
    revoked: [revoked(migration)],
    standing: [hold],
    endedOtherwise: [other],
  });
});

Deno.test("what was granted after the list and revoked with it is told; what stands of it is not on the list", () => {
  const late = leaseStatus({ operationId: "op-5", createdAt: "2026-01-01T00:00:09Z" });
  const before = groupWith(migration);
  assert.deepEqual(progressOf(before, groupWith(revoked(migration), revoked(late))).revoked, [
    revoked(migration),
    revoked(late),
  ]);
  assert.deepEqual(progressOf(before, groupWith(revoked(migration), late)).standing, []);
});

Deno.test("a record that is in the slot and under its own name counts once", () => {
  const now = groupWith(revoked(migration), revoked(migration));
  assert.equal(progressOf(groupWith(migration), now).revoked.length, 1);
});

Deno.test("a record that is to be revoked and not stored so yet is no success", () => {
  const now = groupWith({ ...revoked(migration), stored: false });
  assert.deepEqual(progressOf(groupWith(migration), now), {
    revoked: [],
    standing: [{ ...revoked(migration), stored: false }],
    endedOtherwise: [],
  });
});

Deno.test("only a stored revocation of the migration keeps an operation from coming back", () => {
  assert.equal(isTombstone(revoked(migration)), true);
  assert.equal(isTombstone({ ...revoked(migration), stored: false }), false);
  assert.equal(isTombstone(revoked(hold)), false);
  assert.equal(isTombstone(migration), false);
});

Deno.test("the Event says who asked, for what, and why", () => {
  const group = { namespace: "database-ns", name: "orders", uid: "uid-1" };
  const report = revocationRequested(group, {
    user: "alice",
    operationId: "op-1",
    reason: "stuck",
  });
  assert.deepEqual(report, {
    regarding: { apiVersion: "shipstream.io/v1alpha1", kind: "MysqlFailoverGroup", ...group },
    type: "Warning",
    reason: "DeploymentRevocationRequested",
    action: "Revoke",
    note: "alice asked to revoke operation op-1: stuck",
  });
  assert.equal(
    revocationRequested(group, { user: "alice" }).note,
    "alice asked to revoke all leases: no reason was given",
  );
});
