/**
 * What holds for the rules of election, for every input: the items of kubernetes-plugin 17 that concern the election, by
 * their numbers there, and more. Assumed are one time line for all processes, and that a take-over has seen the latest
 * write, which the version of the Lease ensures.
 *
 * @module
 */

import {
  type Belief,
  believes,
  type Claim,
  clockJumped,
  decide,
  effectiveDurationMs,
  type HolderView,
  isMine,
  jittered,
  type LeaseView,
  nextTransitions,
  type Observation,
  observedAgeMs,
  observedAtMs,
  quotient,
  remainder,
  requestTimeoutMs,
  taskStopTimeoutMs,
  type Timing,
  timingProblem,
  timingValid,
  type VanishedHolder,
  vanishedHolderMayBelieve,
} from "../../../lib/election/policy.ts";
import { implies, isOffset, isTime } from "./logic.ts";
import {
  believes as beliefInRange,
  jittered as jitterInRange,
  observedAgeMs as ageInRange,
} from "./policy_ranges.ts";

// The limits of the contract, in words of our own: a wrong constant in the shipped file shows.
const AN_HOUR_MS = 3_600_000;
const A_SECOND_MS = 1_000;
const TEN_SECONDS_MS = 10_000;
const HIGHEST_COUNT = 2_147_483_647;

/** Item 1. Times are valid exactly when the four rules hold. */
export function timingIsValidExactlyWhenItsRulesHold(timing: Timing): boolean {
  return timingValid(timing) ===
    (timing.retryMs > 0 && 5 * timing.renewMs > 6 * timing.retryMs &&
      timing.leaseMs > timing.renewMs && timing.leaseMs <= AN_HOUR_MS);
}

/** A problem that is named is there. */
export function aNamedTimingProblemIsThere(timing: Timing): boolean {
  const problem = timingProblem(timing);
  return implies(problem === "retry_not_positive", timing.retryMs <= 0) &&
    implies(problem === "lease_above_maximum", timing.leaseMs > AN_HOUR_MS) &&
    implies(problem === "lease_not_above_renew", timing.leaseMs <= timing.renewMs) &&
    implies(problem === "renew_not_above_retry", 5 * timing.renewMs <= 6 * timing.retryMs);
}

/** A remainder is 0 or more, and below its divisor. */
export function aRemainderIsBelowItsDivisor(dividend: number, divisor: number): boolean {
  const rest = remainder(dividend, divisor);
  return implies(divisor >= 1, rest >= 0 && rest < divisor);
}

/** A quotient is rounded down, and with the remainder it makes the dividend. */
export function aQuotientIsRoundedDown(dividend: number, divisor: number): boolean {
  const times = divisor * quotient(dividend, divisor);
  return implies(divisor >= 1, times + remainder(dividend, divisor) === dividend);
}

/** Item 2. Jitter adds nothing below 0 and nothing above a fifth. */
export function jitterAddsAtMostAFifth(baseMs: number, random: number): boolean {
  const pauseMs = jittered(baseMs, random);
  return implies(
    jitterInRange(baseMs, random),
    pauseMs >= baseMs && 5 * (pauseMs - baseMs) <= baseMs,
  );
}

/** Jitter reaches each pause from the base to a fifth above it, so that replicas do not ask in step. */
export function jitterReachesEveryPause(baseMs: number, extraMs: number): boolean {
  return implies(
    jitterInRange(baseMs, extraMs) && 5 * extraMs <= baseMs,
    jittered(baseMs, extraMs) === baseMs + extraMs,
  );
}

/** Item 3. With valid times, the longest jittered retry is shorter than the renew deadline. */
export function theLongestRetryIsShorterThanTheDeadline(timing: Timing, random: number): boolean {
  return implies(
    timingValid(timing) && random >= 0,
    jittered(timing.retryMs, random) < timing.renewMs,
  );
}

/** Item 4. The decision: mine renews; free or old enough is taken; anything else waits. */
export function theDecisionIsThatOfTheTable(lease: LeaseView): boolean {
  const decision = decide(lease);
  const open = lease.free || lease.ageMs >= lease.durationMs;
  return (decision === "renew") === lease.mine &&
    (decision === "acquire") === (!lease.mine && open) &&
    (decision === "wait") === (!lease.mine && !open);
}

/** Item 5. A record's own duration counts, up to one hour; else the fallback. */
export function theDurationOfARecordCountsUpToOneHour(
  recordSeconds: number,
  fallbackMs: number,
): boolean {
  return effectiveDurationMs(recordSeconds, fallbackMs) ===
    (recordSeconds > 0 ? Math.min(1000 * recordSeconds, AN_HOUR_MS) : fallbackMs);
}

/** Item 6. Transitions stay with the same holder, grow by one with another, and stop at the highest count. */
export function transitionsCountOtherHolders(mine: boolean, current: number): boolean {
  return implies(
    current <= HIGHEST_COUNT,
    nextTransitions(mine, current) ===
      (mine || current === HIGHEST_COUNT ? current : current + 1),
  );
}

/** What is written as transitions can be stored, and never falls. */
export function transitionsCanBeStored(mine: boolean, current: number): boolean {
  const next = nextTransitions(mine, current);
  return implies(
    current >= 0 && current <= HIGHEST_COUNT,
    next >= current && next <= HIGHEST_COUNT,
  );
}

/** Item 7. A change or a first look is observed now, anything else when it was. */
export function aChangeIsObservedNow(
  earlier: Observation,
  changed: boolean,
  nowMs: number,
): boolean {
  const atMs = observedAtMs(earlier, changed, nowMs);
  return atMs === (changed || !earlier.seen ? nowMs : earlier.changedAtMs);
}

/** Item 8. An age is the time that passed, and 0 when the clock is behind. */
export function anAgeIsNeverNegative(nowMs: number, changedAtMs: number): boolean {
  return implies(
    ageInRange(nowMs, changedAtMs),
    observedAgeMs(nowMs, changedAtMs) === Math.max(0, nowMs - changedAtMs),
  );
}

/** Item 9. Belief needs the hold, an acknowledged write, and a time before the deadline. */
export function beliefIsExactlyItsThreeConditions(
  belief: Belief,
  renewMs: number,
  nowMs: number,
): boolean {
  return believes(belief, renewMs, nowMs) ===
    (belief.holderIsMe && belief.acknowledged && nowMs - renewMs < belief.sentMs);
}

/** Item 10. Sent, written, observed, in this order, and a deadline below the duration: nobody takes over from a believer. */
export function beliefAndTakeOverNeverHoldAtOnce(
  sentMs: number,
  writtenMs: number,
  observedMs: number,
  renewMs: number,
  durationMs: number,
  nowMs: number,
): boolean {
  const belief = believes({ holderIsMe: true, acknowledged: true, sentMs }, renewMs, nowMs);
  const ageMs = observedAgeMs(nowMs, observedMs);
  const decision = decide({ mine: false, free: false, ageMs, durationMs });
  return implies(
    sentMs <= writtenMs && writtenMs <= observedMs && renewMs < durationMs && durationMs > 0,
    !(belief && decision === "acquire"),
  );
}

/** Item 11. Valid times give item 10 for the Lease that this replica writes: its duration in seconds, rounded up. */
export function validTimesAreSafe(
  timing: Timing,
  sentMs: number,
  observedMs: number,
  nowMs: number,
  fallbackMs: number,
): boolean {
  const seconds = -quotient(-timing.leaseMs, 1000);
  const durationMs = effectiveDurationMs(seconds, fallbackMs);
  const belief = believes({ holderIsMe: true, acknowledged: true, sentMs }, timing.renewMs, nowMs);
  const ageMs = observedAgeMs(nowMs, observedMs);
  const decision = decide({ mine: false, free: false, ageMs, durationMs });
  return implies(
    timingValid(timing) && sentMs <= observedMs,
    !(belief && decision === "acquire"),
  );
}

/** Item 12. Who does not hold the Lease does not believe. */
export function anotherHolderIsNotBelieved(
  acknowledged: boolean,
  sentMs: number,
  renewMs: number,
  nowMs: number,
): boolean {
  return !believes({ holderIsMe: false, acknowledged, sentMs }, renewMs, nowMs);
}

/** A lost answer is no success: without an acknowledged write nobody believes. */
export function withoutAnAnswerNobodyBelieves(
  holderIsMe: boolean,
  sentMs: number,
  renewMs: number,
  nowMs: number,
): boolean {
  return !believes({ holderIsMe, acknowledged: false, sentMs }, renewMs, nowMs);
}

/** At exactly the deadline belief is over, and one millisecond earlier it is not. */
export function beliefEndsAtExactlyTheDeadline(sentMs: number, renewMs: number): boolean {
  const belief: Belief = { holderIsMe: true, acknowledged: true, sentMs };
  return !believes(belief, renewMs, sentMs + renewMs) &&
    believes(belief, renewMs, sentMs + renewMs - 1);
}

/** Time alone never brings belief back. */
export function timeAloneNeverBringsBeliefBack(
  belief: Belief,
  renewMs: number,
  earlierMs: number,
  laterMs: number,
): boolean {
  return implies(
    beliefInRange(belief, renewMs, laterMs) && earlierMs <= laterMs &&
      believes(belief, renewMs, laterMs),
    believes(belief, renewMs, earlierMs),
  );
}

/** A record is mine exactly when the identity and the acquire time are those of my claim. */
export function mineIsWhatThisProcessWrote(record: HolderView, claim: Claim): boolean {
  return isMine(record, claim) ===
    (claim.made && record.holder === claim.identity &&
      record.acquiredMicros === claim.acquiredMicros);
}

/** Two processes with one identity never both take a record for theirs, for their claims differ in the acquire time. */
export function twoProcessesNeverHoldTheSameRecord(
  record: HolderView,
  one: Claim,
  other: Claim,
): boolean {
  return implies(
    one.acquiredMicros !== other.acquiredMicros,
    !(isMine(record, one) && isMine(record, other)),
  );
}

/** A vanished holder is waited for exactly as long as its Lease would have been, and an unseen one is not. */
export function aVanishedHolderIsWaitedForItsDuration(vanished: VanishedHolder): boolean {
  return vanishedHolderMayBelieve(vanished) ===
    (vanished.seen && vanished.durationMs > vanished.ageMs);
}

/** A holder whose Lease vanished, and who is no longer waited for, does not believe. */
export function nobodyTakesOverFromAVanishedBeliever(
  timing: Timing,
  sentMs: number,
  goneMs: number,
  nowMs: number,
  fallbackMs: number,
): boolean {
  const durationMs = effectiveDurationMs(-quotient(-timing.leaseMs, 1000), fallbackMs);
  const belief = believes({ holderIsMe: true, acknowledged: true, sentMs }, timing.renewMs, nowMs);
  const ageMs = observedAgeMs(nowMs, goneMs);
  return implies(
    timingValid(timing) && sentMs <= goneMs && belief,
    vanishedHolderMayBelieve({ seen: true, ageMs, durationMs }),
  );
}

/** A Lease that was just seen to change is left alone by all others. */
export function aLeaseThatJustChangedIsNotTaken(
  earlier: Observation,
  nowMs: number,
  durationMs: number,
): boolean {
  const ageMs = observedAgeMs(nowMs, observedAtMs(earlier, true, nowMs));
  return implies(
    isTime(nowMs) && durationMs > 0,
    decide({ mine: false, free: false, ageMs, durationMs }) === "wait",
  );
}

/** A wall clock that moves by more than a second against the monotonic clock has jumped, in either direction. */
export function aJumpIsMoreThanASecondEitherWay(beforeMs: number, nowMs: number): boolean {
  return implies(
    isOffset(beforeMs) && isOffset(nowMs),
    clockJumped(beforeMs, nowMs) ===
      (beforeMs - nowMs > A_SECOND_MS || nowMs - beforeMs > A_SECOND_MS),
  );
}

/** Three requests in a row that hang fit into a renew deadline, and each gets a millisecond at least. */
export function threeRequestsFitIntoADeadline(timing: Timing): boolean {
  const limitMs = requestTimeoutMs(timing.renewMs);
  return implies(
    timingValid(timing),
    limitMs >= 1 && limitMs < timing.renewMs &&
      (timing.renewMs < 3 || 3 * limitMs <= timing.renewMs),
  );
}

/** The tasks of an ended term are told to stop before anybody can take over, and get a millisecond at least. */
export function tasksStopBeforeATakeOver(timing: Timing): boolean {
  const limitMs = taskStopTimeoutMs(timing.leaseMs, timing.renewMs);
  return implies(
    timingValid(timing),
    limitMs >= 1 && limitMs <= timing.leaseMs - timing.renewMs && limitMs <= TEN_SECONDS_MS,
  );
}

/** Tasks get four fifths of the gap, as far as it and the highest value allow. */
export function tasksGetFourFifthsOfTheGap(timing: Timing): boolean {
  const gapMs = timing.leaseMs - timing.renewMs;
  const limitMs = taskStopTimeoutMs(timing.leaseMs, timing.renewMs);
  return implies(
    timingValid(timing),
    limitMs === TEN_SECONDS_MS ? 4 * gapMs >= 5 * (TEN_SECONDS_MS - 1) : 5 * limitMs >= 4 * gapMs,
  );
}
