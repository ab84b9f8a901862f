/**
 * Which arguments of the generation table are in range: for each exported function of `lib/group/gate.ts` the predicate
 * of the same name.
 *
 * @module
 */

import type {
  GateFacts,
  SeenFacts,
  StatusFacts,
  TopologyOutcome,
} from "../../../lib/group/gate.ts";
import { isGeneration } from "./logic.ts";

export function effectiveGeneration(
  gate: GateFacts,
  status: StatusFacts,
  seen: SeenFacts,
): boolean {
  return isGeneration(gate.generation) && isGeneration(gate.observedGeneration) &&
    isGeneration(status.generation) && isGeneration(seen.highestRecordGeneration);
}

export function takeStatus(_row: number, _status: StatusFacts, _generation: number): boolean {
  return true;
}

export function keepGate(
  _row: number,
  _outcome: TopologyOutcome,
  _gate: GateFacts,
  _generation: number,
  _restoreFencing: boolean,
): boolean {
  return true;
}
