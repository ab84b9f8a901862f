/**
 * The calls about one Lease, and what their failures mean for the election.
 *
 * @module
 */

import type { CallOptions, KubeApi } from "../kube/api.ts";
import { KubeError, NotFoundError } from "../kube/errors.ts";
import { LEASES } from "../kube/resources.ts";
import { decodeLease, encodeSpec, type LeaseRecord, type LeaseSpec } from "./lease_codec.ts";
import { errorClass } from "../runtime/error_class.ts";

/** One Lease on the API server. */
export class LeaseStore {
  readonly #api: KubeApi;
  readonly #address: { readonly name: string; readonly namespace: string };

  constructor(api: KubeApi, namespace: string, leaseName: string) {
    this.#api = api;
    this.#address = { name: leaseName, namespace };
  }

  /** Reads the newest state; `null` when there is no such Lease. */
  async read(call: CallOptions): Promise<LeaseRecord | null> {
    try {
      return decodeLease(await this.#api.get(LEASES, this.#address, call));
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  /** Creates the Lease by PUT, so that a Role can name it. */
  async create(spec: LeaseSpec, call: CallOptions): Promise<LeaseRecord> {
    const lease = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: this.#address,
      spec: encodeSpec(spec),
    };
    return decodeLease(await this.#api.createNamed(LEASES, lease, call));
  }

  /**
   * Writes exactly the object that was read or written last. A merge patch leaves the labels, annotations, owner
   * references and other members of `spec` as they are; the version in it makes it fail when anybody wrote meanwhile,
   * and the uid when the object is another one of the same name.
   */
  async write(spec: LeaseSpec, known: LeaseRecord, call: CallOptions): Promise<LeaseRecord> {
    const body = {
      metadata: { resourceVersion: known.version, uid: known.uid },
      spec: encodeSpec(spec),
    };
    return decodeLease(
      await this.#api.patch(LEASES, this.#address, { type: "merge", body }, call),
    );
  }
}

/** What a failed call means for the election. */
export interface Failure {
  /** `conflict`: somebody else wrote. `missing`: the Lease is gone. `other`: nothing is known. */
  readonly type: "conflict" | "missing" | "other";
  /** The write may have been stored although the call failed: read before you write again. */
  readonly mayHaveLanded: boolean;
  /** The API server refused the call for want of a rule. */
  readonly refused: boolean;
  /** Milliseconds for which the server wishes not to be asked; 0 when it said nothing. */
  readonly retryAfterMs: number;
  /** The stable name of the class of errors, for a log line. */
  readonly errorClass: string;
}

/** Judges a failed call. What is no error of the API, an abort for example, says nothing: a write may have been stored. */
export function judgeFailure(error: unknown): Failure {
  if (!(error instanceof KubeError)) {
    return {
      type: "other",
      mayHaveLanded: true,
      refused: false,
      retryAfterMs: 0,
      errorClass: errorClass(error),
    };
  }
  const base = {
    refused: error.kind === "forbidden",
    retryAfterMs: error.retryAfterMs ?? 0,
    errorClass: error.kind,
  };
  switch (error.kind) {
    case "conflict":
    case "already_exists":
      return { ...base, type: "conflict", mayHaveLanded: false };
    case "not_found":
      return { ...base, type: "missing", mayHaveLanded: false };
    default:
      return { ...base, type: "other", mayHaveLanded: error.mayHaveLanded };
  }
}
