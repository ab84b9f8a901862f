/**
 * Which arguments of the grace period are in range: for each exported function of `lib/manifests/grace_period.ts` the
 * predicate of the same name. What makes manifests checks them before it calls.
 *
 * @module
 */

import type { GraceParts } from "../../../lib/manifests/grace_period.ts";
import { isSeconds } from "./logic.ts";

export function saturatingSum(one: number, other: number): boolean {
  return isSeconds(one) && isSeconds(other);
}

export function gracePeriodSeconds(parts: GraceParts): boolean {
  return isSeconds(parts.preStopSeconds) && isSeconds(parts.prestopGraceSeconds) &&
    isSeconds(parts.shutdownTimeoutSeconds) && isSeconds(parts.bufferSeconds);
}
