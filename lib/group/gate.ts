/**
 * The effective topology generation of a group: what its gate remembers, judged against what its status says now. State
 * protocol 2.1.
 *
 * ==================================================================================================================
 * PROVABLE SUBSET. A proof reads the syntax tree of this file. Only: top-level exported functions; parameters and results
 * of integer numbers, booleans, string unions, or flat readonly objects of these; other strings compared with `===` and
 * `!==` alone; `const`, `if`, `return`, conditional expressions, comparisons, `&&`, `||`, `!`, `+`, `-`, `Math.min`,
 * `Math.max`; calls within this file. No loops, no mutation, no imports.
 * ==================================================================================================================
 *
 * Why there is a generation of our own: the status of a group is written by an operator that may crash between moving the
 * primary and counting it, that may be restored from a backup, or that counts late. A lease is worth nothing after any of
 * these, so each raises the number here, and the number never falls.
 *
 * A result `write` must be stored in the gate before its generation is used, and then judged again: row 5 may leave
 * another site to row 8. At most two writes follow one another.
 *
 * @module
 */

/** What the gate of a group remembers. With `exists` false the other members mean nothing. */
export interface GateFacts {
  readonly exists: boolean;
  /** The confirmed active site; empty when none was. */
  readonly site: string;
  /** The effective generation. */
  readonly generation: number;
  /** `status.topologyGeneration` at the time of the last change. */
  readonly observedGeneration: number;
  /** The present restore in place has been counted. */
  readonly restoreFencing: boolean;
}

/** What the status of a group says. */
export interface StatusFacts {
  /** `status.activeSite`, or empty. */
  readonly site: string;
  /** `status.topologyGeneration`, or 0. */
  readonly generation: number;
  /** A restore in place is in `Fencing`, `Restoring` or `Resuming`. */
  readonly restoreInFlight: boolean;
}

/** What this process knows beside the two. */
export interface SeenFacts {
  /** Milliseconds, on its monotonic clock, for which this process has seen these same values. Row 2 uses it. */
  readonly unchangedForMs: number;
  /** The highest `topologyGeneration` in the group's lease records, or 0. Row 1 uses it. */
  readonly highestRecordGeneration: number;
  /** An active record carries our group label, so a gate was there and was deleted. Row 1 uses it. */
  readonly activeRecordCarriesLabel: boolean;
}

/**
 * What follows.
 *
 * - `confirmed`: gate and status agree.
 * - `write`: the values must be stored in the gate before they are used.
 * - `unchanged`: the group has no active site; the gate stands, and stability says `NoPrimary`.
 * - `pending`: status went backwards, and it is not known yet whether that is a change: 423
 *   `TopologyPersistencePending`.
 */
export type TopologyOutcome = "confirmed" | "write" | "unchanged" | "pending";

/** The values that hold, or that are to be stored. */
export interface EffectiveGeneration {
  /** The row of the table that matched, 1 to 9. */
  readonly row: number;
  readonly outcome: TopologyOutcome;
  readonly site: string;
  readonly generation: number;
  readonly observedGeneration: number;
  readonly restoreFencing: boolean;
}

/**
 * Judges a gate against a status. The first row that matches wins.
 *
 * @param seen `unchangedForMs` counts from the first look at the same six values; it begins anew with each process.
 */
export function effectiveGeneration(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): EffectiveGeneration {
  // Row 1. A gate that was deleted under active leases may have counted changes that no status shows: they all end.
  if (!gate.exists) {
    const known = Math.max(status.generation, seen.highestRecordGeneration);
    return takeStatus(1, status, known + (seen.activeRecordCarriesLabel ? 1 : 0));
  }
  // Row 2. A single stale read looks the same as a restored backup; only time tells them apart.
  if (status.generation < gate.observedGeneration) {
    return seen.unchangedForMs >= 60_000
      ? takeStatus(2, status, gate.generation + 1)
      : keepGate(2, "pending", gate, gate.generation, gate.restoreFencing);
  }
  // Row 3.
  if (status.generation > gate.observedGeneration) {
    return takeStatus(3, status, gate.generation + (status.generation - gate.observedGeneration));
  }
  // Row 4. The data is about to change under the same number.
  if (
    (status.site === gate.site || status.site === "") &&
    status.restoreInFlight && !gate.restoreFencing
  ) {
    return keepGate(4, "write", gate, gate.generation + 1, true);
  }
  // Row 5.
  if (gate.restoreFencing && !status.restoreInFlight) {
    return keepGate(5, "write", gate, gate.generation, false);
  }
  // Row 6.
  if (status.site === "") {
    return keepGate(6, "unchanged", gate, gate.generation, gate.restoreFencing);
  }
  // Row 7. No lease can have been granted without a site, so there is nothing to count.
  if (gate.site === "") return takeStatus(7, status, gate.generation);
  // Row 8. The primary moved and the operator did not count it.
  if (status.site !== gate.site) return takeStatus(8, status, gate.generation + 1);
  // Row 9.
  return keepGate(9, "confirmed", gate, gate.generation, gate.restoreFencing);
}

/** A result that stores what status says, under a generation. */
export function takeStatus(
  row: number,
  status: StatusFacts,
  generation: number,
): EffectiveGeneration {
  return {
    row,
    outcome: "write",
    site: status.site,
    generation,
    observedGeneration: status.generation,
    restoreFencing: status.restoreInFlight,
  };
}

/** A result that keeps the gate's site and observed generation. */
export function keepGate(
  row: number,
  outcome: TopologyOutcome,
  gate: GateFacts,
  generation: number,
  restoreFencing: boolean,
): EffectiveGeneration {
  return {
    row,
    outcome,
    site: gate.site,
    generation,
    observedGeneration: gate.observedGeneration,
    restoreFencing,
  };
}
