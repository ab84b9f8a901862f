/**
 * What holds for the effective generation of a group, for every gate, every status and every history: state protocol 2.1.
 *
 * To settle a gate is what its caller does: judge, store a result that is to be written, judge again.
 *
 * @module
 */

import {
  type EffectiveGeneration,
  effectiveGeneration,
  type GateFacts,
  type SeenFacts,
  type StatusFacts,
} from "../../../lib/group/gate.ts";
import { implies } from "./logic.ts";

/** A status that stays behind for this long is a change. */
const REWOUND_AFTER_MS = 60_000;

function stored(result: EffectiveGeneration): GateFacts {
  return {
    exists: true,
    site: result.site,
    generation: result.generation,
    observedGeneration: result.observedGeneration,
    restoreFencing: result.restoreFencing,
  };
}

/** Stores a result that is to be written and judges again. What the caller knows by then may be anything. */
function judgedAgain(
  result: EffectiveGeneration,
  status: StatusFacts,
  later: SeenFacts,
): EffectiveGeneration {
  return result.outcome === "write" ? effectiveGeneration(stored(result), status, later) : result;
}

function settled(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
  later: SeenFacts,
): EffectiveGeneration {
  const first = effectiveGeneration(gate, status, seen);
  return judgedAgain(judgedAgain(first, status, later), status, later);
}

function same(one: GateFacts, other: GateFacts): boolean {
  return one.exists === other.exists && one.site === other.site &&
    one.generation === other.generation &&
    one.observedGeneration === other.observedGeneration &&
    one.restoreFencing === other.restoreFencing;
}

function takesStatus(result: EffectiveGeneration, status: StatusFacts): boolean {
  return result.outcome === "write" && result.site === status.site &&
    result.observedGeneration === status.generation &&
    result.restoreFencing === status.restoreInFlight;
}

/** The number of the first row of the table whose condition holds, as the design words it. */
function firstRow(gate: GateFacts, status: StatusFacts): number {
  const equal = status.generation === gate.observedGeneration;
  const sameOrEmpty = status.site === gate.site || status.site === "";
  if (!gate.exists) return 1;
  if (status.generation < gate.observedGeneration) return 2;
  if (status.generation > gate.observedGeneration) return 3;
  if (equal && sameOrEmpty && status.restoreInFlight && !gate.restoreFencing) return 4;
  if (equal && gate.restoreFencing && !status.restoreInFlight) return 5;
  if (status.site === "") return 6;
  if (equal && gate.site === "") return 7;
  if (equal && status.site !== gate.site) return 8;
  if (equal && status.site === gate.site) return 9;
  return 0;
}

/** The table is total, and the first row that matches wins. */
export function theFirstRowThatMatchesWins(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const row = effectiveGeneration(gate, status, seen).row;
  return row === firstRow(gate, status) && row >= 1 && row <= 9;
}

/** Row 1 takes status, above all records, and one more for a gate that was deleted under a lease. */
export function row1MakesAGateAboveAllRecords(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const result = effectiveGeneration(gate, status, seen);
  const known = status.generation > seen.highestRecordGeneration
    ? status.generation
    : seen.highestRecordGeneration;
  return implies(
    result.row === 1,
    takesStatus(result, status) &&
      result.generation === (seen.activeRecordCarriesLabel ? known + 1 : known),
  );
}

/** Row 2 keeps the gate for 60 s, and then takes status as one change. */
export function row2BelievesARewoundStatusAfterAMinute(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const result = effectiveGeneration(gate, status, seen);
  const late = seen.unchangedForMs >= REWOUND_AFTER_MS;
  return implies(
    result.row === 2 && late,
    takesStatus(result, status) && result.generation === gate.generation + 1,
  ) && implies(
    result.row === 2 && !late,
    result.outcome === "pending" && same(stored(result), gate),
  );
}

/** Row 3 adds what the operator counted. */
export function row3AddsWhatTheOperatorCounted(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const result = effectiveGeneration(gate, status, seen);
  return implies(
    result.row === 3,
    takesStatus(result, status) &&
      result.generation - gate.generation === status.generation - gate.observedGeneration,
  );
}

/** Row 4 counts a restore in place and keeps the site. */
export function row4CountsARestore(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const result = effectiveGeneration(gate, status, seen);
  return implies(
    result.row === 4,
    result.outcome === "write" && result.restoreFencing && result.site === gate.site &&
      result.observedGeneration === gate.observedGeneration &&
      result.generation === gate.generation + 1,
  );
}

/** Row 5 notes the end of a restore and counts nothing. */
export function row5CountsNothing(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const result = effectiveGeneration(gate, status, seen);
  return implies(
    result.row === 5,
    result.outcome === "write" && !result.restoreFencing && result.site === gate.site &&
      result.observedGeneration === gate.observedGeneration &&
      result.generation === gate.generation,
  );
}

/** Rows 7 and 8 take the site: the first one is not counted, another one is. */
export function rows7And8TakeTheSite(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const result = effectiveGeneration(gate, status, seen);
  return implies(
    result.row === 7,
    takesStatus(result, status) && result.generation === gate.generation,
  ) && implies(
    result.row === 8,
    takesStatus(result, status) && result.generation === gate.generation + 1,
  );
}

/** Rows 6 and 9 write nothing, and say which of the two it is. */
export function rows6And9LeaveTheGate(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const result = effectiveGeneration(gate, status, seen);
  return (result.row === 6) === (result.outcome === "unchanged") &&
    (result.row === 9) === (result.outcome === "confirmed");
}

/** What is not to be written is what the gate has, and a write changes something. */
export function exactlyAWriteChangesTheGate(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const result = effectiveGeneration(gate, status, seen);
  return implies(result.outcome === "write", !same(stored(result), gate)) &&
    implies(result.outcome !== "write", same(stored(result), gate));
}

/** The effective generation never falls: not below the gate, and without one not below status and records. */
export function theGenerationNeverFalls(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const generation = effectiveGeneration(gate, status, seen).generation;
  return implies(gate.exists, generation >= gate.generation) &&
    implies(
      !gate.exists,
      generation >= status.generation && generation >= seen.highestRecordGeneration,
    );
}

/** A gate that was deleted under an active lease comes back above that lease, which ends it. */
export function aDeletedGateEndsItsLeases(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  return implies(
    !gate.exists && seen.activeRecordCarriesLabel,
    effectiveGeneration(gate, status, seen).generation > seen.highestRecordGeneration,
  );
}

/** A confirmed result is the gate itself; its site is the one of status and not empty, and what was observed is status. */
export function confirmedMeansThatGateAndStatusAgree(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const result = effectiveGeneration(gate, status, seen);
  return implies(
    result.outcome === "confirmed",
    same(stored(result), gate) && status.site !== "" && result.site === status.site &&
      result.observedGeneration === status.generation &&
      result.restoreFencing === status.restoreInFlight,
  );
}

/** After at most two writes nothing is left to write. */
export function twoWritesSettleAGate(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
  later: SeenFacts,
): boolean {
  return settled(gate, status, seen, later).outcome !== "write";
}

/** Unless it is pending, a settled gate says of the generation, the restore and a known site what status says. */
export function aSettledGateSaysWhatStatusSays(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
  later: SeenFacts,
): boolean {
  const last = settled(gate, status, seen, later);
  return implies(
    last.outcome !== "pending",
    last.observedGeneration === status.generation &&
      last.restoreFencing === status.restoreInFlight &&
      (last.outcome === "unchanged") === (status.site === "") &&
      (status.site === "" || last.site === status.site),
  );
}

/** Pending comes of a status that went backwards alone: never of a write, and never after a minute. */
export function pendingIsAStatusThatWentBackwards(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
  later: SeenFacts,
): boolean {
  const backwards = gate.exists && status.generation < gate.observedGeneration;
  return (settled(gate, status, seen, later).outcome === "pending") ===
    (backwards && seen.unchangedForMs < REWOUND_AFTER_MS);
}

/** A change from one known site to another raises the generation. */
export function aChangedSiteRaisesTheGeneration(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
  later: SeenFacts,
): boolean {
  const last = settled(gate, status, seen, later);
  return implies(
    gate.exists && gate.site !== "" && last.site !== "" && last.site !== gate.site,
    last.generation > gate.generation,
  );
}

/**
 * One generation never names two known sites, however many looks lie between and whatever they saw: each look keeps that
 * the generation rose above the first one or the site is still the first one.
 */
export function oneGenerationNeverNamesTwoSites(
  firstSite: string,
  firstGeneration: number,
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  const next = effectiveGeneration(gate, status, seen);
  return implies(
    firstSite !== "" && gate.exists && gate.generation >= firstGeneration &&
      (gate.generation > firstGeneration || gate.site === firstSite),
    next.generation >= firstGeneration &&
      (next.generation > firstGeneration || next.site === firstSite),
  );
}

/** Of a group with a known site the generation rises exactly when the site moved, the operator counted, or a restore began. */
export function theGenerationRisesExactlyWhenSomethingMoved(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
  later: SeenFacts,
): boolean {
  const last = settled(gate, status, seen, later);
  const moved = status.site !== "" && status.site !== gate.site;
  const counted = status.generation !== gate.observedGeneration;
  const restored = status.restoreInFlight && !gate.restoreFencing;
  return implies(
    gate.exists && gate.site !== "" && last.outcome !== "pending",
    (last.generation > gate.generation) === (moved || counted || restored),
  );
}

/** A change that the operator did not count, of the site or by a restore or of both, is counted once. */
export function whatWasNotCountedIsCountedOnce(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
  later: SeenFacts,
): boolean {
  const last = settled(gate, status, seen, later);
  return implies(
    gate.exists && status.generation === gate.observedGeneration,
    last.generation === gate.generation || last.generation === gate.generation + 1,
  );
}

/** While the operator counts each move and each restore, the effective generation is the operator's own number. */
export function anOperatorThatCountsKeepsItsNumber(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
  later: SeenFacts,
): boolean {
  const moved = status.site !== "" && status.site !== gate.site && gate.site !== "";
  const restored = status.restoreInFlight && !gate.restoreFencing && gate.site !== "";
  const counts = status.generation > gate.observedGeneration ||
    (status.generation === gate.observedGeneration && !moved && !restored);
  // A gate without a site whose restore begins while status has no site either is counted by row 4 all the same.
  const siteless = gate.site === "" && status.site === "";
  return implies(
    gate.exists && gate.generation === gate.observedGeneration && counts && !siteless,
    settled(gate, status, seen, later).generation === status.generation,
  );
}

/** The answer for the same gate and status is the same at any time, but for a status that went backwards. */
export function timeMattersForARewoundStatusAlone(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
  later: SeenFacts,
): boolean {
  const one = effectiveGeneration(gate, status, seen);
  const other = effectiveGeneration(gate, status, later);
  return implies(
    gate.exists && status.generation >= gate.observedGeneration,
    one.outcome === other.outcome && same(stored(one), stored(other)),
  );
}
