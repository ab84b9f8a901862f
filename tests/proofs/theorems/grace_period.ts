/**
 * What holds for the grace period of a pod, for every input: item 13 of kubernetes-plugin 17, and more.
 *
 * @module
 */

import {
  type GraceParts,
  gracePeriodSeconds,
  saturatingSum,
} from "../../../lib/manifests/grace_period.ts";
import {
  gracePeriodSeconds as partsInRange,
  saturatingSum as summandsInRange,
} from "./grace_period_ranges.ts";
import { HIGHEST_SECONDS, implies } from "./logic.ts";

/** Item 13. The grace period is the sum of its four parts, or the highest that can be told. */
export function theGracePeriodIsTheSumOfItsParts(parts: GraceParts): boolean {
  const sum = parts.preStopSeconds + parts.prestopGraceSeconds + parts.shutdownTimeoutSeconds +
    parts.bufferSeconds;
  return implies(partsInRange(parts), gracePeriodSeconds(parts) === Math.min(sum, HIGHEST_SECONDS));
}

/** Item 13. The grace period is never below one of its parts: a preStop sleep always fits. */
export function theGracePeriodHoldsEachPart(parts: GraceParts): boolean {
  const seconds = gracePeriodSeconds(parts);
  return implies(
    partsInRange(parts),
    seconds >= parts.preStopSeconds && seconds >= parts.prestopGraceSeconds &&
      seconds >= parts.shutdownTimeoutSeconds && seconds >= parts.bufferSeconds,
  );
}

/** A part that grows never makes the grace period shorter. */
export function aLongerPartShortensNothing(parts: GraceParts, longer: GraceParts): boolean {
  return implies(
    partsInRange(parts) && partsInRange(longer) &&
      longer.preStopSeconds >= parts.preStopSeconds &&
      longer.prestopGraceSeconds >= parts.prestopGraceSeconds &&
      longer.shutdownTimeoutSeconds >= parts.shutdownTimeoutSeconds &&
      longer.bufferSeconds >= parts.bufferSeconds,
    gracePeriodSeconds(longer) >= gracePeriodSeconds(parts),
  );
}

/** A sum of two does not depend on their order, and stays in range. */
export function aSumOfTwoStaysInRange(one: number, other: number): boolean {
  const sum = saturatingSum(one, other);
  return implies(
    summandsInRange(one, other),
    sum === saturatingSum(other, one) && summandsInRange(sum, other),
  );
}
