/**
 * Mistakes in `lib/group/gate.ts`.
 *
 * @module
 */

import type { Row } from "../planted.ts";

/** What is planted. */
export const IN_GATE: readonly Row[] = [
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
