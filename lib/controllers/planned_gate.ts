/**
 * Admissions that somebody left in a gate: state protocol 2.2. An admission never lapses by itself, so somebody has to take
 * it back when its planner died, and finish what another began to take back.
 *
 * @module
 */

import type { Planner } from "../group/admission.ts";
import { judgeLeftBehind, LEFT_BEHIND_MS } from "../group/admission_rules.ts";
import { GateError, parseGate, type PlannedAdmission } from "../group/gate_lease.ts";
import type { GroupIdentity } from "../records/store.ts";
import { DEPLOYMENT_KIND_LABEL, GATE_KIND } from "../records/names.ts";
import type { Turn } from "../lease/turn.ts";
import type { Due, GroupController, GroupSight } from "./group_controller.ts";

const OWN_PREFIX = "holdfast/";

/** What a process of this service calls itself in `planned.by`. @param identity The process, as in the election. */
export function plannerName(identity: string): string {
  return `${OWN_PREFIX}${identity}`;
}

/** True for an admission that a controller of this service made, in this process or another. */
export function isOwnPlanner(by: string | undefined): boolean {
  return by?.startsWith(OWN_PREFIX) ?? false;
}

/** The admission that the watches show in a group's gate, or `null`. */
export function plannedOf({ group, leases }: GroupSight): PlannedAdmission | null {
  const gate = leases.find(({ metadata }) =>
    metadata.labels?.[DEPLOYMENT_KIND_LABEL] === GATE_KIND
  );
  if (gate === undefined) return null;
  try {
    return parseGate(gate, group.metadata.uid).planned;
  } catch (error) {
    // Whoever needs the gate tells of it.
    if (error instanceof GateError) return null;
    throw error;
  }
}

/** What a {@linkcode LeftBehindController} is made of. */
export interface LeftBehindControllerParts {
  readonly planner: Planner;
}

/** Takes back admissions that were left behind. */
export class LeftBehindController implements GroupController {
  readonly name = "left-behind admissions";
  readonly #parts: LeftBehindControllerParts;
  /** Since when this process has seen an admission, by the group's uid. */
  readonly #seen = new Map<string, { readonly id: string; readonly sinceMs: number }>();

  constructor(parts: LeftBehindControllerParts) {
    this.#parts = parts;
  }

  async reconcile(turn: Turn, sight: GroupSight): Promise<Due | null> {
    const { group } = sight;
    const planned = plannedOf(sight);
    if (planned === null) {
      this.#seen.delete(group.metadata.uid);
      return null;
    }
    const seenForMs = this.#seenFor(group.metadata.uid, planned.id, turn.parts.clock.monotonic());
    if (judgeLeftBehind({ planned, seenForMs }) === "leave") {
      return { inMs: LEFT_BEHIND_MS - seenForMs };
    }
    turn.mustLead();
    await this.#parts.planner.withdraw(group, planned, turn.options);
    return null;
  }

  /** Forgets a group that is gone. */
  forget({ uid }: GroupIdentity): void {
    this.#seen.delete(uid);
  }

  #seenFor(uid: string, id: string, nowMs: number): number {
    const known = this.#seen.get(uid);
    if (known?.id === id) return nowMs - known.sinceMs;
    this.#seen.set(uid, { id, sinceMs: nowMs });
    return 0;
  }
}
