/**
 * What `holdfast status` tells: plain values, made from a snapshot by pure functions and drawn by others.
 *
 * A report is also the documented JSON form (`--json`), so members are added and never renamed or removed.
 *
 * @module
 */

import type { LeaseKind, LeaseState } from "../records/record.ts";

/** All that was found. */
export interface StatusReport {
  /** Where it is from: the deployment API, or the cluster itself. */
  readonly source: "api" | "cluster";
  /** When it was so, by the time of the server: RFC 3339. */
  readonly at: string;
  /** By namespace and name. */
  readonly groups: readonly GroupStatus[];
  /** What could not be read and belongs to no group that is shown; one sentence each. */
  readonly problems: readonly string[];
}

/** One group. */
export interface GroupStatus {
  readonly namespace: string;
  readonly name: string;
  /** False when the group's own object has another form than a group: what follows is then empty. */
  readonly readable: boolean;
  /** Empty when there is none. */
  readonly activeSite: string;
  /** The effective generation; `null` when it is not known. */
  readonly topologyGeneration: number | null;
  /** What the API shows as `stable`. */
  readonly stable: boolean;
  /** What the API shows as `unstableReason`; empty when the group is stable. */
  readonly unstableReason: string;
  /**
   * Why the API grants no lease now, also to a stable group: the reason of its 423, or `unavailable`. Empty when it grants.
   */
  readonly closedReason: string;
  /** The closed reason in plain words; empty when there is none. */
  readonly why: string;
  /** The migration lease first, then the holds by expiry, then those that ended. */
  readonly leases: readonly LeaseStatus[];
  /** What is asked for or under way; ended operations too where all was asked for. */
  readonly operations: readonly OperationStatus[];
  /** The planned operation that the gate admits; `null` when there is none, and where the gate is not shown. */
  readonly admission: AdmissionStatus | null;
  /** An operator announced a change of topology; `null` when none did, and where the gate is not shown. */
  readonly pendingTopology: { readonly by: string; readonly since: string } | null;
  /** What of the group could not be read; one sentence each. */
  readonly problems: readonly string[];
}

/** One lease. */
export interface LeaseStatus {
  readonly kind: LeaseKind;
  readonly operationId: string;
  readonly instance: string;
  /** The service account that holds it; `null` where only its own deployment may know. */
  readonly holder: { readonly namespace: string; readonly serviceAccount: string } | null;
  /** What it is worth now. */
  readonly state: LeaseState;
  /** False while storage still says `active`: its end is known and not written yet. */
  readonly stored: boolean;
  /** Why it was revoked; empty for other states. */
  readonly reason: string;
  readonly topologyGeneration: number;
  /** When it was granted first, RFC 3339; `null` where that is not shown. */
  readonly createdAt: string | null;
  /** RFC 3339. */
  readonly expiresAt: string;
  /** Whole seconds since it was granted first; `null` where that is not shown. */
  readonly ageSeconds: number | null;
  /** Whole seconds until it expires; negative when that is past. */
  readonly leftSeconds: number;
}

/** An operation on a group. */
export interface OperationStatus {
  readonly operation: "PlannedFailover" | "OrderedUpdate" | "RestoreInPlace" | "DragonflyUpgrade";
  /** The operator's word, or `Requested` while the request is there and nobody has taken it up. */
  readonly phase: string;
  /** The operator's word for why, or empty. */
  readonly reason: string;
  /** The site that is to become active, or empty. */
  readonly target: string;
  /** True once it has ended. */
  readonly ended: boolean;
  /** What it waits for, in plain words, one for each; empty when it waits for nothing that can be seen. */
  readonly waitsFor: readonly string[];
}

/** What the gate admits. */
export interface AdmissionStatus {
  readonly operation: string;
  /** `withdrawing`: it is being taken back. */
  readonly state: "admitted" | "withdrawing";
  readonly by: string;
  /** RFC 3339, as its writer believed. */
  readonly since: string;
}

/** What of a report is news when it differs: all but the times that only pass. */
export function newsOf(report: StatusReport): string {
  return JSON.stringify(
    report,
    (key, value) => PASSING.has(key) ? undefined : value,
  );
}

const PASSING: ReadonlySet<string> = new Set(["at", "ageSeconds", "leftSeconds"]);

/** True when all that was looked for could be read. */
export function isComplete({ groups, problems }: StatusReport): boolean {
  return problems.length === 0 && groups.every((group) => group.problems.length === 0);
}
