/**
 * Records in Lease objects: the one place that reads and writes them.
 *
 * Every write is conditional: a new record goes to a name that must be free, and a changed one carries the uid and the
 * version of what was read (state protocol 2.3). What became of a write is a value, since to lose a race is no error.
 *
 * @module
 */

import type { CallOptions, KubeApi, ObjectList, Stored } from "../kube/api.ts";
import { AlreadyExistsError, ConflictError, KubeError, NotFoundError } from "../kube/errors.ts";
import { type Lease, LEASES } from "../kube/resources.ts";
import { leaseObject, ownedBy, readLease } from "./lease_object.ts";
import {
  DEPLOYMENT_GROUP_LABEL,
  DEPLOYMENT_STATE_LABEL,
  groupLabelValue,
  LEASES_OF_A_GROUP_SELECTOR,
} from "./names.ts";
import type { LeaseRecord } from "./record.ts";

/** A record, and the object that it was read from or written to. */
export interface StoredRecord {
  readonly lease: Stored<Lease>;
  readonly record: LeaseRecord;
}

/** The group that owns the records. */
export interface GroupIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** What became of a write. */
export type WriteResult =
  | { readonly type: "stored"; readonly stored: StoredRecord }
  /** Somebody else wrote, created or deleted the object: read again. */
  | { readonly type: "conflict" }
  /** No answer came. It may be stored, now or a little later: read again before anything else. */
  | { readonly type: "unknown"; readonly error: unknown };

/** Reads and writes the records of groups. */
export class LeaseStore {
  readonly #api: KubeApi;

  constructor(api: KubeApi) {
    this.#api = api;
  }

  /** Reads the object of a name; `null` when there is none. */
  async get(namespace: string, name: string, options: CallOptions): Promise<Stored<Lease> | null> {
    try {
      return await this.#api.get(LEASES, { namespace, name }, options);
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  /** Lists the objects that carry a group's label and are stored as `active`. */
  async listActive(
    namespace: string,
    group: string,
    options: CallOptions,
  ): Promise<ObjectList<Lease>> {
    return await this.#api.list(LEASES, {
      ...options,
      namespace,
      labelSelector: `${DEPLOYMENT_GROUP_LABEL}=${
        groupLabelValue(group)
      },${DEPLOYMENT_STATE_LABEL}=active`,
    });
  }

  /**
   * Gives our group label to the records that lack it (the reference wrote them), and changes nothing else: lists by
   * that label miss no record after it.
   */
  async adopt(group: GroupIdentity, options: CallOptions): Promise<void> {
    const { items } = await this.#api.list(LEASES, {
      ...options,
      namespace: group.namespace,
      labelSelector: `${LEASES_OF_A_GROUP_SELECTOR},!${DEPLOYMENT_GROUP_LABEL}`,
    });
    const labels = { [DEPLOYMENT_GROUP_LABEL]: groupLabelValue(group.name) };
    await Promise.all(
      items.filter((item) => ownedBy(item, group.uid)).map((lease) => {
        const { name, uid, resourceVersion } = lease.metadata;
        return this.#api.patch(LEASES, { namespace: group.namespace, name }, {
          type: "merge",
          body: { metadata: { uid, resourceVersion, labels } },
        }, options);
      }),
    );
  }

  /** Reads what an object says. @throws {ForeignOwnerError} @throws {RecordError} */
  parse(lease: Stored<Lease> | null, groupUid: string): StoredRecord | null {
    return lease && readLease(lease, groupUid);
  }

  /**
   * Writes a record.
   *
   * @param name The name of the object.
   * @param previous What was read: it is replaced in exactly that version. `null`: the name must be free.
   * @param nowMs The lease time that goes into the projection in `spec`.
   */
  async write(
    group: GroupIdentity,
    name: string,
    record: LeaseRecord,
    previous: StoredRecord | null,
    nowMs: number,
    options: CallOptions,
  ): Promise<WriteResult> {
    const { namespace } = group;
    try {
      const lease = previous === null
        ? await this.#api.createNamed(
          LEASES,
          leaseObject({ name, namespace, group, record, nowMs }),
          options,
        )
        : await this.#api.replace(
          LEASES,
          leaseObject({ name, namespace, group, record, nowMs, previous: previous.lease }),
          options,
        );
      return { type: "stored", stored: { lease, record } };
    } catch (error) {
      if (
        error instanceof AlreadyExistsError || error instanceof ConflictError ||
        error instanceof NotFoundError
      ) return { type: "conflict" };
      const unknown = error instanceof KubeError ? error.mayHaveLanded : options.signal.aborted;
      if (unknown) return { type: "unknown", error };
      throw error;
    }
  }
}
