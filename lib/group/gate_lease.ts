/**
 * The gate of a group, as a Lease object: what was confirmed about its topology, and which planned operation was admitted.
 * State protocol 2.1.
 *
 * Whoever would change the group, or hold such a change off, ends in a conditional write of this one object. So one of two
 * always loses, and no process has to be trusted.
 *
 * @module
 */

import { z } from "zod";
import type { Stored } from "../kube/api.ts";
import type { Lease } from "../kube/resources.ts";
import { ownedBy, ownedMetadata } from "../records/lease_object.ts";
import {
  DEPLOYMENT_GATE_ANNOTATION,
  DEPLOYMENT_KIND_LABEL,
  GATE_KIND,
  gateName,
} from "../records/names.ts";
import type { GateFacts } from "./gate.ts";
import { PLANNED_OPERATIONS, type PlannedOperation } from "./phases.ts";
import type { MysqlFailoverGroup } from "./types.ts";

/** The largest `leaseTransitions`: the API stores it in 32 bits. The annotation has the true number. */
const MAX_TRANSITIONS = 2_147_483_647;

/** An operator is about to change topology, and status does not show it yet. */
export interface PendingTopology {
  /** When the mark was set or renewed, for people. Its age is judged by how long a process has seen it unchanged. */
  readonly since: string;
  /** Who set it. */
  readonly by: string;
}

/** A planned operation that was admitted and whose phase status does not show yet. */
export interface PlannedAdmission {
  readonly operation: PlannedOperation;
  /** A fresh UUID of each admission. */
  readonly id: string;
  /** Which process admitted it. */
  readonly by: string;
  /** When, for people. */
  readonly since: string;
  /** `withdrawing`: it is being taken back, so its phase must not be written any more. */
  readonly state: "admitted" | "withdrawing";
}

/**
 * What a gate says. One that was parsed also carries the members that this version does not know: change it by spreading
 * it, and they survive.
 */
export interface GateRecord {
  /** Rises with each write, so that each write gives the object a new version. See {@linkcode touched}. */
  readonly seq: number;
  /** The confirmed active site; empty when there is none. */
  readonly site: string;
  /** The effective generation. */
  readonly generation: number;
  /** `status.topologyGeneration` at the time of the last change. */
  readonly observedGeneration: number;
  /** The present restore in place has been counted. */
  readonly restoreFencing: boolean;
  readonly pending: PendingTopology | null;
  readonly planned: PlannedAdmission | null;
}

/** A gate cannot be used: 503 `unavailable`, and never "there is no gate". */
export class GateError extends Error {
  override readonly name = "GateError";
  /** Where the record differs, as paths of member names. Values are left out. */
  readonly paths: readonly string[];

  constructor(object: string, fault: string, paths: readonly string[], options?: ErrorOptions) {
    super(`Cannot use the gate ${object} as ${fault}`, options);
    this.paths = paths;
  }
}

const count = z.number().int().nonnegative();

const gateSchema = z.looseObject({
  seq: count,
  site: z.string(),
  generation: count,
  observedGeneration: count,
  restoreFencing: z.boolean(),
  pending: z.looseObject({ since: z.string(), by: z.string() }).nullable(),
  planned: z.looseObject({
    operation: z.enum(PLANNED_OPERATIONS),
    id: z.string(),
    by: z.string(),
    since: z.string(),
    state: z.enum(["admitted", "withdrawing"]),
  }).nullable(),
});

/**
 * Reads a gate.
 *
 * @throws {GateError} Another group owns it, or it does not have its form.
 */
export function parseGate(lease: Stored<Lease>, groupUid: string): GateRecord {
  const { name, annotations } = lease.metadata;
  if (!ownedBy(lease, groupUid)) {
    throw new GateError(name, "it must have exactly one owner, the group as it is now", []);
  }
  let value: unknown;
  try {
    value = JSON.parse(annotations?.[DEPLOYMENT_GATE_ANNOTATION] ?? "");
  } catch (cause) {
    throw new GateError(name, "its record must be JSON", [], { cause });
  }
  const result = gateSchema.safeParse(value);
  if (result.success) return result.data;
  const paths = result.error.issues.map((issue) => issue.path.map(String).join("."));
  const places = paths.join(", ") || "the top level";
  throw new GateError(name, `its form differs at ${places}`, paths, { cause: result.error });
}

/**
 * Builds the object that stores a gate: to be created, or, with `previous`, to replace exactly what was read. What others
 * added to the previous object stays.
 *
 * @throws {GateError} `previous` is not this group's.
 */
export function gateObject(group: Stored<MysqlFailoverGroup>, record: GateRecord): Lease;
export function gateObject(
  group: Stored<MysqlFailoverGroup>,
  record: GateRecord,
  previous: Stored<Lease>,
): Stored<Lease>;
export function gateObject(
  group: Stored<MysqlFailoverGroup>,
  record: GateRecord,
  previous?: Stored<Lease>,
): Lease {
  const { name, uid, namespace = "" } = group.metadata;
  if (previous !== undefined && !ownedBy(previous, uid)) {
    const gate = previous.metadata.name;
    throw new GateError(gate, "it must have exactly one owner, the group as it is now", []);
  }
  return {
    ...previous,
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: ownedMetadata({
      name: gateName(name),
      namespace,
      group: { name, uid },
      previous: previous?.metadata,
      labels: { [DEPLOYMENT_KIND_LABEL]: GATE_KIND },
      annotations: { [DEPLOYMENT_GATE_ANNOTATION]: encodeGate(record) },
    }),
    spec: {
      ...previous?.spec,
      holderIdentity: record.site,
      leaseTransitions: Math.min(record.generation, MAX_TRANSITIONS),
    },
  };
}

function encodeGate(record: GateRecord): string {
  const {
    seq,
    site,
    generation,
    observedGeneration,
    restoreFencing,
    pending,
    planned,
    ...unknownMembers
  } = record;
  return JSON.stringify({
    seq,
    site,
    generation,
    observedGeneration,
    restoreFencing,
    pending,
    planned,
    ...unknownMembers,
  });
}

/**
 * The same gate, to be written anew: a *touch*. `seq` changes, since the API server keeps the version of an object that is
 * written unchanged. Every change of a gate starts from it.
 */
export function touched(record: GateRecord): GateRecord {
  return { ...record, seq: record.seq + 1 };
}

/** What the generation table needs of a gate; `null` is a group without one. */
export function gateFacts(record: GateRecord | null): GateFacts {
  return {
    exists: record !== null,
    site: record?.site ?? "",
    generation: record?.generation ?? 0,
    observedGeneration: record?.observedGeneration ?? 0,
    restoreFencing: record?.restoreFencing ?? false,
  };
}
