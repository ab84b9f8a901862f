/**
 * What a group allows at the moment of a read: deploy-api 5 and 7.1, and the state protocol's gate.
 *
 * @module
 */

/** What the group, its gate and the generation table allow at the time of a read. */
export interface Admission {
  /** The effective generation. */
  readonly generation: number;
  /** The revoke annotation is on the group. */
  readonly revocationRequested: boolean;
  /** The reason for which topology alone closes the API (deploy-api 7.1 steps 2 and 3), or `""`. */
  readonly topologyBlocked: string;
  /** The name of a planned operation that the gate admits, or `""` (deploy-api 7.1 step 4). */
  readonly reserved: string;
  /** The reason for which the group is unstable (deploy-api 5), or `""`. */
  readonly unstable: string;
}

/** The reason of a 423, or `""` when the runtime gate is open: deploy-api 7.1, in its order. */
export function blockedReason(admission: Admission): string {
  if (admission.revocationRequested) return "DeploymentRevocationPending";
  if (admission.topologyBlocked !== "") return admission.topologyBlocked;
  return admission.reserved;
}
