/**
 * The form in which the reference operator stores leases: a writer and a strict reader of it, made from deploy-api 6 alone.
 *
 * Nothing of lib is used for names, hashes and texts: if both sides shared code, both could be wrong together.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { z } from "zod";
import type { Lease } from "../../lib/kube/resources.ts";

const PREFIX = "bloodraven.shipstream.io";
/** The one label that we add to the reference's own: it does not know it, and does not mind it. */
export const OUR_LABEL = `${PREFIX}/deployment-group`;

function hex(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The name of an object: deploy-api 6.1. */
export function referenceName(group: string, kind: string, operationId?: string): string {
  const base = `bloodraven-deploy-${group}-${kind}`;
  const full = operationId === undefined ? base : `${base}-${hex(operationId).slice(0, 32)}`;
  if (full.length <= 63) return full;
  return `${full.slice(0, 38).replace(/[-.]+$/, "")}-${hex(full).slice(0, 24)}`;
}

/** A record in the reference's members. */
export interface ReferenceRecord {
  readonly kind: "migration" | "failover-hold";
  readonly operationId: string;
  readonly instance: string;
  readonly expiresAt: string;
  readonly topologyGeneration: number;
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly tokenHash: string;
  readonly createdAt: string;
  readonly state: "active" | "expired" | "released" | "revoked";
  readonly reason?: "topology_changed" | "operator_revoked";
}

/** Where a record is stored, and when it was written. */
export interface ReferencePlace {
  readonly namespace: string;
  readonly group: string;
  readonly uid: string;
  /** RFC 3339 with six fraction digits. */
  readonly renewTime: string;
  readonly leaseDurationSeconds: number;
  /** True for the tombstone of a migration. */
  readonly tombstone?: boolean;
}

/** The hash in which the reference stores a token. */
export function referenceHash(token: string): string {
  return hex(token);
}

/** The Lease object that the reference stores: every field, and no other. */
export function referenceLease(record: ReferenceRecord, place: ReferencePlace): Lease {
  const own = record.kind === "failover-hold" || place.tombstone === true;
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: referenceName(place.group, record.kind, own ? record.operationId : undefined),
      namespace: place.namespace,
      labels: {
        [`${PREFIX}/deployment-kind`]: record.kind,
        [`${PREFIX}/deployment-state`]: record.state,
      },
      annotations: {
        // Go's encoder escapes these three.
        [`${PREFIX}/deployment-lease`]: JSON.stringify(record)
          .replaceAll("<", "\\u003c").replaceAll(">", "\\u003e").replaceAll("&", "\\u0026"),
      },
      ownerReferences: [{
        apiVersion: "shipstream.io/v1alpha1",
        kind: "MysqlFailoverGroup",
        name: place.group,
        uid: place.uid,
      }],
    },
    spec: {
      holderIdentity: record.operationId,
      renewTime: place.renewTime,
      leaseDurationSeconds: place.leaseDurationSeconds,
    },
  };
}

const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?Z$/);

const recordForm = z.strictObject({
  kind: z.enum(["migration", "failover-hold"]),
  operationId: z.string().min(1),
  instance: z.string().min(1),
  expiresAt: time,
  topologyGeneration: z.number().int().nonnegative(),
  namespace: z.string().min(1),
  serviceAccount: z.string().min(1),
  tokenHash: z.string().regex(/^[0-9a-f]{64}$/),
  createdAt: time,
  state: z.enum(["active", "expired", "released", "revoked"]),
  reason: z.enum(["topology_changed", "operator_revoked"]).optional(),
});

const ORDER = Object.keys(recordForm.shape);

/**
 * Reads an object as the reference would, and insists on every field of its form.
 *
 * @throws {Error} Anything is missing, of another form, or more than there should be.
 */
export function readAsReference(
  lease: Lease,
  group: { readonly name: string; readonly uid: string },
): ReferenceRecord {
  const { name, labels = {}, annotations = {}, ownerReferences } = lease.metadata;
  assert.deepEqual(ownerReferences, [{
    apiVersion: "shipstream.io/v1alpha1",
    kind: "MysqlFailoverGroup",
    name: group.name,
    uid: group.uid,
  }]);
  assert.deepEqual(Object.keys(annotations), [`${PREFIX}/deployment-lease`]);
  const value: unknown = JSON.parse(annotations[`${PREFIX}/deployment-lease`] ?? "");
  const record = recordForm.parse(value);
  const members = Object.keys(Object(value));
  assert.deepEqual(members, ORDER.filter((member) => members.includes(member)), "member order");
  assert.equal(record.reason !== undefined, record.state === "revoked", "reason only if revoked");

  const { [OUR_LABEL]: _, ...theirs } = labels;
  assert.deepEqual(theirs, {
    [`${PREFIX}/deployment-kind`]: record.kind,
    [`${PREFIX}/deployment-state`]: record.state,
  });
  const own = referenceName(group.name, record.kind, record.operationId);
  const allowed = record.kind === "failover-hold"
    ? [own]
    : record.state === "revoked"
    ? [referenceName(group.name, "migration"), own]
    : [referenceName(group.name, "migration")];
  assert.ok(name !== undefined && allowed.includes(name), `${name} is one of ${allowed.join()}`);

  const spec = z.strictObject({
    holderIdentity: z.literal(record.operationId),
    renewTime: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    leaseDurationSeconds: z.number().int().positive(),
  }).parse(lease.spec);
  const remaining = (Date.parse(record.expiresAt) - Date.parse(spec.renewTime)) / 1000;
  assert.equal(spec.leaseDurationSeconds, Math.floor(Math.max(1, remaining)));
  return record;
}
