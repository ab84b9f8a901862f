/**
 * Mistakes in `lib/election/policy.ts`.
 *
 * @module
 */

import type { Row } from "../planted.ts";

/** What is planted. */
export const IN_POLICY: readonly Row[] = [
  [
    "a remainder of 0 becomes the divisor",
    "return rest < 0 ? rest + divisor : rest;",
    "return rest <= 0 ? rest + divisor : rest;",
    "aRemainderIsBelowItsDivisor",
  ],
  [
    "a quotient is rounded towards zero",
    "? towardsZero - 1 : towardsZero",
    "? towardsZero : towardsZero",
    "aQuotientIsRoundedDown",
  ],
  [
    "a quotient divides what is no multiple",
    "(dividend - rest) / divisor",
    "dividend / divisor",
    "everyStepOf_quotient",
  ],
  [
    "the highest lease is two hours",
    "MAX_LEASE_MS = 3_600_000",
    "MAX_LEASE_MS = 7_200_000",
    "timingIsValidExactlyWhenItsRulesHold",
  ],
  [
    "a lease may be as short as the deadline",
    "timing.leaseMs <= timing.renewMs",
    "timing.leaseMs < timing.renewMs",
    "tasksStopBeforeATakeOver",
  ],
  [
    "a lease of one hour is refused",
    "timing.leaseMs > MAX_LEASE_MS",
    "timing.leaseMs >= MAX_LEASE_MS",
    "timingIsValidExactlyWhenItsRulesHold",
  ],
  [
    "a deadline of 1.2 retries is enough",
    "timing.renewMs * 5 <= timing.retryMs * 6",
    "timing.renewMs * 5 < timing.retryMs * 6",
    "theLongestRetryIsShorterThanTheDeadline",
  ],
  [
    "the products are made before the values are known to be small",
    `  if (timing.retryMs >= timing.renewMs) return "renew_not_above_retry";\n`,
    "",
    "everyStepOf_timingProblem",
  ],
  [
    "the wrong rule is named",
    `return "lease_not_above_renew"`,
    `return "lease_above_maximum"`,
    "aNamedTimingProblemIsThere",
  ],
  [
    "jitter goes one above a fifth",
    "quotient(baseMs, JITTER_DIVISOR) + 1",
    "quotient(baseMs, JITTER_DIVISOR) + 2",
    "jitterAddsAtMostAFifth",
  ],
  [
    "jitter never reaches a fifth, and of a short pause it divides by 0",
    "quotient(baseMs, JITTER_DIVISOR) + 1",
    "quotient(baseMs, JITTER_DIVISOR)",
    "everyStepOf_jittered",
  ],
  [
    "jitter is a fourth",
    "JITTER_DIVISOR = 5",
    "JITTER_DIVISOR = 4",
    "jitterAddsAtMostAFifth",
  ],
  [
    "jitter is a tenth",
    "JITTER_DIVISOR = 5",
    "JITTER_DIVISOR = 10",
    "jitterReachesEveryPause",
  ],
  [
    "a claim that was never made counts",
    "claim.made && record.holder",
    "record.holder",
    "mineIsWhatThisProcessWrote",
  ],
  [
    "the identity alone makes a record mine",
    " &&\n    record.acquiredMicros === claim.acquiredMicros",
    "",
    "twoProcessesNeverHoldTheSameRecord",
  ],
  [
    "a Lease is taken one millisecond late",
    "lease.ageMs >= lease.durationMs",
    "lease.ageMs > lease.durationMs",
    "theDecisionIsThatOfTheTable",
  ],
  [
    "a Lease is taken one millisecond early",
    "lease.ageMs >= lease.durationMs",
    "lease.ageMs + 1 >= lease.durationMs",
    "theDecisionIsThatOfTheTable",
  ],
  [
    "a holder whose Lease vanished is waited for half as long",
    "vanished.ageMs < vanished.durationMs",
    "vanished.ageMs * 2 < vanished.durationMs",
    "nobodyTakesOverFromAVanishedBeliever",
  ],
  [
    "a holder that nobody saw is waited for",
    "vanished.seen && vanished.ageMs",
    "vanished.ageMs",
    "aVanishedHolderIsWaitedForItsDuration",
  ],
  [
    "a duration of 0 seconds counts",
    "if (recordSeconds <= 0)",
    "if (recordSeconds < 0)",
    "theDurationOfARecordCountsUpToOneHour",
  ],
  [
    "a duration has no upper bound",
    "  if (recordSeconds >= quotient(MAX_LEASE_MS, 1000)) return MAX_LEASE_MS;\n",
    "",
    "everyStepOf_effectiveDurationMs",
  ],
  [
    "a second has 600 milliseconds",
    "recordSeconds * 1000",
    "recordSeconds * 600",
    "validTimesAreSafe",
  ],
  [
    "transitions go past what can be stored",
    "current >= MAX_TRANSITIONS",
    "current > MAX_TRANSITIONS",
    "transitionsCanBeStored",
  ],
  [
    "the same holder counts as another",
    "if (mine || current",
    "if (current",
    "transitionsCountOtherHolders",
  ],
  [
    "a change is not observed",
    "!earlier.seen || changed ? nowMs",
    "!earlier.seen ? nowMs",
    "aLeaseThatJustChangedIsNotTaken",
  ],
  [
    "a first look is not observed",
    "!earlier.seen || changed ? nowMs",
    "changed ? nowMs",
    "aChangeIsObservedNow",
  ],
  [
    "a clock that is behind makes a negative age",
    "nowMs >= changedAtMs ? nowMs - changedAtMs : 0",
    "nowMs - changedAtMs",
    "anAgeIsNeverNegative",
  ],
  [
    "belief lasts through the deadline",
    "nowMs < belief.sentMs + renewMs",
    "nowMs <= belief.sentMs + renewMs",
    "beliefEndsAtExactlyTheDeadline",
  ],
  [
    "belief ends a millisecond early",
    "nowMs < belief.sentMs + renewMs",
    "nowMs < belief.sentMs + renewMs - 1",
    "beliefIsExactlyItsThreeConditions",
  ],
  [
    "belief lasts twice as long",
    "nowMs < belief.sentMs + renewMs",
    "nowMs < belief.sentMs + renewMs * 2",
    "beliefAndTakeOverNeverHoldAtOnce",
  ],
  [
    "a write without an answer is enough",
    "belief.holderIsMe && belief.acknowledged && nowMs",
    "belief.holderIsMe && nowMs",
    "withoutAnAnswerNobodyBelieves",
  ],
  [
    "another holder does not end belief",
    "belief.holderIsMe && belief.acknowledged && nowMs",
    "belief.acknowledged && nowMs",
    "anotherHolderIsNotBelieved",
  ],
  [
    "belief is there again after the deadline",
    "nowMs < belief.sentMs + renewMs",
    "nowMs !== belief.sentMs + renewMs",
    "timeAloneNeverBringsBeliefBack",
  ],
  [
    "a jump backwards is not seen",
    "Math.max(offsetBeforeMs - offsetNowMs, offsetNowMs - offsetBeforeMs)",
    "offsetNowMs - offsetBeforeMs",
    "aJumpIsMoreThanASecondEitherWay",
  ],
  [
    "two requests fill the deadline",
    "quotient(renewMs, 3)",
    "quotient(renewMs, 2)",
    "threeRequestsFitIntoADeadline",
  ],
  [
    "tasks may outlast the gap",
    "gapMs - quotient(gapMs, 5)",
    "gapMs + quotient(gapMs, 5)",
    "tasksStopBeforeATakeOver",
  ],
  [
    "tasks get three fifths of the gap",
    "gapMs - quotient(gapMs, 5)",
    "gapMs - quotient(gapMs * 2, 5)",
    "tasksGetFourFifthsOfTheGap",
  ],
];
