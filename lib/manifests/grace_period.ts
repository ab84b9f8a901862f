/**
 * How long Kubernetes must wait between the request to stop a pod and the kill.
 *
 * PROVEN, like the rules of election: a proof reads the syntax tree of this very file and shows item 13 of
 * kubernetes-plugin 17 for every input in range, and that no step leaves the safe integers. So this file keeps to the
 * provable subset that `lib/election/policy.ts` describes.
 *
 * @module
 */

/**
 * The longest grace period, in seconds. Kubernetes stores 64 bits; a number of JavaScript is exact up to this, and it
 * is 285 million years.
 */
export const MAX_GRACE_SECONDS = 9_007_199_254_740_991;

/** What a pod needs from the request to stop to its end, one after the other. Each is 0 to {@linkcode MAX_GRACE_SECONDS}. */
export interface GraceParts {
  /** The sleep of the preStop hook, before SIGTERM. It uses the same grace period. */
  readonly preStopSeconds: number;
  /** From SIGTERM to the end of listening. */
  readonly prestopGraceSeconds: number;
  /** For requests in flight and shutdown hooks together, so it counts once. */
  readonly shutdownTimeoutSeconds: number;
  /** What the kubelet and the runtime may take. */
  readonly bufferSeconds: number;
}

/**
 * Adds two durations and stops at {@linkcode MAX_GRACE_SECONDS}.
 *
 * @param one 0 to {@linkcode MAX_GRACE_SECONDS}.
 * @param other 0 to {@linkcode MAX_GRACE_SECONDS}.
 */
export function saturatingSum(one: number, other: number): number {
  // Asked before the addition, so that no sum leaves the safe integers.
  return other > MAX_GRACE_SECONDS - one ? MAX_GRACE_SECONDS : one + other;
}

/**
 * The `terminationGracePeriodSeconds` of a pod: kubernetes-plugin 13, "Grace period formula". It is never below one of
 * its parts; the API server refuses a preStop sleep that is longer than it.
 */
export function gracePeriodSeconds(parts: GraceParts): number {
  return saturatingSum(
    saturatingSum(parts.preStopSeconds, parts.prestopGraceSeconds),
    saturatingSum(parts.shutdownTimeoutSeconds, parts.bufferSeconds),
  );
}
