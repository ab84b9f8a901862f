/**
 * The Lease object around a record: deploy-api 6.1 and 6.3.
 *
 * @module
 */

import type { ObjectMeta, Stored } from "../kube/api.ts";
import { microTime } from "../kube/micro_time.ts";
import type { Lease } from "../kube/resources.ts";
import {
  DEPLOYMENT_GROUP_LABEL,
  DEPLOYMENT_KIND_LABEL,
  DEPLOYMENT_LEASE_ANNOTATION,
  DEPLOYMENT_STATE_LABEL,
  GROUP_API_VERSION,
  GROUP_KIND,
  groupLabelValue,
} from "./names.ts";
import { encodeRecord, expiresAtMs, type LeaseRecord, parseRecord, RecordError } from "./record.ts";

/** The largest `leaseDurationSeconds`: the API stores it in 32 bits. */
const MAX_DURATION_SECONDS = 2_147_483_647;

/** The group that owns an object. */
export interface OwnerGroup {
  readonly name: string;
  readonly uid: string;
}

/** An object belongs to another group, or to more than one owner: 503 `unavailable` (deploy-api 6.3). */
export class ForeignOwnerError extends Error {
  override readonly name = "ForeignOwnerError";
  /** The name of the object. */
  readonly object: string;

  constructor(object: string) {
    super(
      `Cannot use Lease ${object} as it must have exactly one owner, the group as it is now: it has another`,
    );
    this.object = object;
  }
}

/** What a {@linkcode leaseObject} is made of. */
export interface LeaseObjectParts {
  /** The name of the object, from `names.ts`. */
  readonly name: string;
  /** The namespace of the group. */
  readonly namespace: string;
  readonly group: OwnerGroup;
  readonly record: LeaseRecord;
  /** Lease time, in milliseconds since 1970: `renewTime` shows it, and `leaseDurationSeconds` counts from it. */
  readonly nowMs: number;
}

/**
 * Builds the object that stores a record: to be created, or, with `previous`, to replace exactly what was read. What others
 * added to the previous object stays.
 *
 * `spec` is a projection for people: `leaseDurationSeconds` is at least 1, since the API refuses less, and gives no grace.
 *
 * @throws {ForeignOwnerError} `previous` is not this group's.
 */
export function leaseObject(parts: LeaseObjectParts & { readonly previous?: undefined }): Lease;
export function leaseObject(
  parts: LeaseObjectParts & { readonly previous: Stored<Lease> },
): Stored<Lease>;
export function leaseObject(
  { name, namespace, group, record, nowMs, previous }: LeaseObjectParts & {
    readonly previous?: Stored<Lease>;
  },
): Lease {
  if (previous !== undefined && !ownedBy(previous, group.uid)) throw new ForeignOwnerError(name);
  const remainingSeconds = (expiresAtMs(record) - nowMs) / 1000;
  return {
    ...previous,
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: ownedMetadata({
      name,
      namespace,
      group,
      previous: previous?.metadata,
      labels: {
        [DEPLOYMENT_KIND_LABEL]: record.kind,
        [DEPLOYMENT_STATE_LABEL]: record.state,
      },
      annotations: { [DEPLOYMENT_LEASE_ANNOTATION]: encodeRecord(record) },
    }),
    spec: {
      ...previous?.spec,
      holderIdentity: record.operationId,
      renewTime: microTime(nowMs),
      leaseDurationSeconds: Math.min(
        Math.floor(Math.max(1, remainingSeconds)),
        MAX_DURATION_SECONDS,
      ),
    },
  };
}

/**
 * The metadata of an object of a group: its name, its one owner and our group label, over what is there already. For
 * leases and for the gate.
 */
export function ownedMetadata(
  { name, namespace, group, previous, labels, annotations }: {
    readonly name: string;
    readonly namespace: string;
    readonly group: OwnerGroup;
    readonly previous: Lease["metadata"] | undefined;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  },
): Lease["metadata"] {
  return {
    ...previous,
    name,
    namespace,
    labels: {
      ...previous?.labels,
      ...labels,
      [DEPLOYMENT_GROUP_LABEL]: groupLabelValue(group.name),
    },
    annotations: { ...previous?.annotations, ...annotations },
    ownerReferences: previous?.ownerReferences ?? [{
      apiVersion: GROUP_API_VERSION,
      kind: GROUP_KIND,
      name: group.name,
      uid: group.uid,
    }],
  };
}

/** True when the object has exactly one owner: the group with this uid. A group that was made anew has another uid. */
export function ownedBy(object: { readonly metadata: ObjectMeta }, groupUid: string): boolean {
  const owners = object.metadata.ownerReferences ?? [];
  return owners.length === 1 && owners[0]?.uid === groupUid;
}

/**
 * Reads the record of a Lease.
 *
 * @throws {ForeignOwnerError} The Lease is not this group's.
 * @throws {RecordError} It has no record, or one that does not have its form.
 */
export function readLease(
  lease: Stored<Lease>,
  groupUid: string,
): { readonly lease: Stored<Lease>; readonly record: LeaseRecord } {
  if (!ownedBy(lease, groupUid)) throw new ForeignOwnerError(lease.metadata.name);
  const annotation = lease.metadata.annotations?.[DEPLOYMENT_LEASE_ANNOTATION];
  if (annotation === undefined) throw new RecordError([]);
  return { lease, record: parseRecord(annotation) };
}
