/**
 * Mistakes that are planted into the shipped files, each with the theorem that must fail for it.
 *
 * @module
 */

/** One mistake. */
export interface Planted {
  /** What is wrong, in a sentence. */
  readonly name: string;
  /** The shipped file. */
  readonly file: string;
  /** A text that stands there once. */
  readonly find: string;
  /** What stands there instead. */
  readonly replace: string;
  /** The theorem that must be refuted. */
  readonly breaks: string;
}

/** A change after which every function answers as before for every argument in range. */
export interface Equivalent extends Omit<Planted, "breaks"> {
  /** The function that was changed. */
  readonly changes: string;
  /** Why nobody can tell. */
  readonly reason: string;
}

const POLICY = "lib/election/policy.ts";
const GATE = "lib/group/gate.ts";

type Row = readonly [name: string, find: string, replace: string, breaks: string];

const IN_POLICY: readonly Row[] = [
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

const IN_GATE: readonly Row[] = [
  [
    "row 1: records do not lift a new gate",
    "Math.max(status.generation, seen.highestRecordGeneration)",
    "status.generation",
    "theGenerationNeverFalls",
  ],
  [
    "row 1: a gate that was deleted under a lease is not counted",
    "seen.activeRecordCarriesLabel ? 1 : 0",
    "seen.activeRecordCarriesLabel ? 0 : 0",
    "aDeletedGateEndsItsLeases",
  ],
  [
    "row 1: every new gate is counted",
    "seen.activeRecordCarriesLabel ? 1 : 0",
    "seen.activeRecordCarriesLabel ? 1 : 1",
    "row1MakesAGateAboveAllRecords",
  ],
  [
    "row 2 matches a status that is equal",
    "status.generation < gate.observedGeneration",
    "status.generation <= gate.observedGeneration",
    "theFirstRowThatMatchesWins",
  ],
  [
    "row 2 waits a millisecond too long",
    "seen.unchangedForMs >= 60_000",
    "seen.unchangedForMs > 60_000",
    "row2BelievesARewoundStatusAfterAMinute",
  ],
  [
    "row 2 believes at once",
    "seen.unchangedForMs >= 60_000",
    "seen.unchangedForMs >= 0",
    "pendingIsAStatusThatWentBackwards",
  ],
  [
    "row 2 does not count",
    "takeStatus(2, status, gate.generation + 1)",
    "takeStatus(2, status, gate.generation)",
    "oneGenerationNeverNamesTwoSites",
  ],
  [
    "row 3 takes the operator's number",
    "gate.generation + (status.generation - gate.observedGeneration)",
    "status.generation",
    "theGenerationNeverFalls",
  ],
  [
    "row 3 counts one for many",
    "gate.generation + (status.generation - gate.observedGeneration)",
    "gate.generation + 1",
    "anOperatorThatCountsKeepsItsNumber",
  ],
  [
    "row 3 counts twice",
    "(status.generation - gate.observedGeneration)",
    "(status.generation - gate.observedGeneration) * 2",
    "row3AddsWhatTheOperatorCounted",
  ],
  [
    "row 3 adds before it subtracts three times, and leaves the safe integers",
    "gate.generation + (status.generation - gate.observedGeneration)",
    "gate.generation + status.generation + status.generation + status.generation - gate.observedGeneration * 3",
    "everyStepOf_effectiveGeneration",
  ],
  [
    "row 4 leaves out a group without a site",
    `(status.site === gate.site || status.site === "") &&`,
    "status.site === gate.site &&",
    "theFirstRowThatMatchesWins",
  ],
  [
    "row 4 counts the same restore for ever",
    "status.restoreInFlight && !gate.restoreFencing",
    "status.restoreInFlight",
    "twoWritesSettleAGate",
  ],
  [
    "row 4 does not count",
    `keepGate(4, "write", gate, gate.generation + 1, true)`,
    `keepGate(4, "write", gate, gate.generation, true)`,
    "theGenerationRisesExactlyWhenSomethingMoved",
  ],
  [
    "row 4 does not remember",
    `keepGate(4, "write", gate, gate.generation + 1, true)`,
    `keepGate(4, "write", gate, gate.generation + 1, false)`,
    "row4CountsARestore",
  ],
  [
    "row 5 counts the end of a restore",
    `keepGate(5, "write", gate, gate.generation, false)`,
    `keepGate(5, "write", gate, gate.generation + 1, false)`,
    "row5CountsNothing",
  ],
  [
    "row 5 matches while the restore runs",
    "gate.restoreFencing && !status.restoreInFlight",
    "gate.restoreFencing",
    "aSettledGateSaysWhatStatusSays",
  ],
  [
    "row 6 confirms a group without a site",
    `keepGate(6, "unchanged"`,
    `keepGate(6, "confirmed"`,
    "confirmedMeansThatGateAndStatusAgree",
  ],
  [
    "row 6 leaves an empty site to row 7, which writes what is there already",
    `if (status.site === "") {`,
    `if (status.site === "" && gate.site !== "") {`,
    "exactlyAWriteChangesTheGate",
  ],
  [
    "row 7 counts the first site",
    "takeStatus(7, status, gate.generation)",
    "takeStatus(7, status, gate.generation + 1)",
    "rows7And8TakeTheSite",
  ],
  [
    "row 8 does not count",
    "takeStatus(8, status, gate.generation + 1)",
    "takeStatus(8, status, gate.generation)",
    "aChangedSiteRaisesTheGeneration",
  ],
  [
    "row 8 goes backwards",
    "takeStatus(8, status, gate.generation + 1)",
    "takeStatus(8, status, gate.generation - 1)",
    "theGenerationNeverFalls",
  ],
  [
    "row 9 writes what is there already",
    `keepGate(9, "confirmed"`,
    `keepGate(9, "write"`,
    "rows6And9LeaveTheGate",
  ],
  [
    "what takes status forgets a restore",
    "restoreFencing: status.restoreInFlight",
    "restoreFencing: false",
    "whatWasNotCountedIsCountedOnce",
  ],
  [
    "what takes status observes the wrong number",
    "observedGeneration: status.generation",
    "observedGeneration: generation",
    "twoWritesSettleAGate",
  ],
  [
    "time matters for an equal status",
    "if (gate.restoreFencing && !status.restoreInFlight) {",
    "if (gate.restoreFencing && !status.restoreInFlight && seen.unchangedForMs > 5) {",
    "timeMattersForARewoundStatusAlone",
  ],
];

/** Mistakes that a theorem must catch. */
export const PLANTED: readonly Planted[] = [
  ...IN_POLICY.map((row) => mistakeIn(POLICY, row)),
  ...IN_GATE.map((row) => mistakeIn(GATE, row)),
];

/** Changes that nobody can tell, as the prover shows for each. */
export const EQUIVALENT: readonly Equivalent[] = [
  {
    name: "one hour exactly is multiplied instead of capped",
    file: POLICY,
    find: "recordSeconds >= quotient(MAX_LEASE_MS, 1000)",
    replace: "recordSeconds > quotient(MAX_LEASE_MS, 1000)",
    changes: "effectiveDurationMs",
    reason: "3,600 seconds times 1,000 is the cap",
  },
  {
    name: "an age of 0 comes from the other branch",
    file: POLICY,
    find: "nowMs >= changedAtMs ?",
    replace: "nowMs > changedAtMs ?",
    changes: "observedAgeMs",
    reason: "a difference of equal times is 0",
  },
  {
    name: "the count at the limit is compared for equality",
    file: POLICY,
    find: "mine || current >= MAX_TRANSITIONS",
    replace: "mine || current > MAX_TRANSITIONS - 1",
    changes: "nextTransitions",
    reason: "counts are integers",
  },
  {
    name: "row 3 asks for a difference only",
    file: GATE,
    find: "status.generation > gate.observedGeneration",
    replace: "status.generation !== gate.observedGeneration",
    changes: "effectiveGeneration",
    reason: "row 2 has dealt with every smaller one",
  },
];

function mistakeIn(file: string, [name, find, replace, breaks]: Row): Planted {
  return { name, file, find, replace, breaks };
}

/**
 * Plants a mistake.
 *
 * @throws {Error} What is to be replaced does not stand in the text exactly once.
 */
export function plant(text: string, { name, find, replace }: Planted | Equivalent): string {
  const parts = text.split(find);
  if (parts.length !== 2) {
    throw new Error(`Cannot plant '${name}' as '${find}' stands ${parts.length - 1} times there`);
  }
  return parts.join(replace);
}
