/**
 * Mistakes in `lib/manifests/grace_period.ts`.
 *
 * @module
 */

import type { Row } from "../planted.ts";

/** What is planted. */
export const IN_GRACE_PERIOD: readonly Row[] = [
  [
    "the sum is made before it is known to be small",
    "return other > MAX_GRACE_SECONDS - one ? MAX_GRACE_SECONDS : one + other;",
    "return Math.min(one + other, MAX_GRACE_SECONDS);",
    "everyStepOf_saturatingSum",
  ],
  [
    "the preStop sleep is counted as a part of the grace before the end of listening",
    "saturatingSum(parts.preStopSeconds, parts.prestopGraceSeconds)",
    "Math.max(parts.preStopSeconds, parts.prestopGraceSeconds)",
    "theGracePeriodIsTheSumOfItsParts",
  ],
  [
    "the shutdown timeout is counted twice",
    "saturatingSum(parts.shutdownTimeoutSeconds, parts.bufferSeconds)",
    "saturatingSum(parts.shutdownTimeoutSeconds, parts.shutdownTimeoutSeconds)",
    "theGracePeriodIsTheSumOfItsParts",
  ],
  [
    "the preStop sleep is left out",
    "saturatingSum(parts.preStopSeconds, parts.prestopGraceSeconds)",
    "parts.prestopGraceSeconds",
    "theGracePeriodHoldsEachPart",
  ],
  [
    "the highest is that of 32 bits",
    "MAX_GRACE_SECONDS = 9_007_199_254_740_991",
    "MAX_GRACE_SECONDS = 2_147_483_647",
    "theGracePeriodHoldsEachPart",
  ],
  [
    "a sum that is too large begins anew",
    "? MAX_GRACE_SECONDS : one + other",
    "? 0 : one + other",
    "aLongerPartShortensNothing",
  ],
  [
    "what does not fit leaves the first",
    "? MAX_GRACE_SECONDS : one + other",
    "? one : one + other",
    "aSumOfTwoStaysInRange",
  ],
];
