/**
 * Removes holds that ended long ago: difference 10. The reference keeps them for ever.
 *
 * A hold that expired or was released and one that was never there differ in one answer only: to a wrong token (deploy-api
 * 17.7). What was revoked is kept for the life of the group, and so is the slot of the mutex.
 *
 * @module
 */

import type { KubeApi, Stored } from "../kube/api.ts";
import { ConflictError, NotFoundError } from "../kube/errors.ts";
import { type Lease, LEASES } from "../kube/resources.ts";
import type { LeaseTimeReading } from "../lease_time/estimator.ts";
import { DEPLOYMENT_KIND_LABEL, DEPLOYMENT_STATE_LABEL } from "../records/names.ts";
import type { Turn } from "../lease/turn.ts";
import type { Due, GroupController, GroupSight } from "./group_controller.ts";

/** What a {@linkcode Retention} is made of. */
export interface RetentionParts {
  readonly api: KubeApi;
  /** Milliseconds for which a hold that ended is kept: `deploy_api.terminal_hold_retention`; 0 = for ever. */
  readonly terminalHoldRetentionMs: number;
}

/** How many holds are removed in one turn: requests of the group wait meanwhile. */
const MOST_AT_ONCE = 20;

/** Removes old holds. */
export class Retention implements GroupController {
  readonly name = "retention";
  readonly #parts: RetentionParts;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
  }

  async reconcile(turn: Turn, { leases }: GroupSight): Promise<Due | null> {
    const reading = turn.parts.time.reading();
    const { terminalHoldRetentionMs } = this.#parts;
    // Without a time, the list of every ten minutes brings one, and asks again.
    if (terminalHoldRetentionMs === 0 || reading === null) return null;
    const { old, nextMs } = oldHolds(leases, reading, terminalHoldRetentionMs);
    // Each removal comes back as an event, which asks for the rest.
    for (const hold of old.slice(0, MOST_AT_ONCE)) await this.#remove(turn, hold);
    return nextMs === null ? null : { afterMs: nextMs };
  }

  /** Removes exactly what the watch showed: a hold that was granted anew has another version. */
  async #remove(turn: Turn, { metadata }: Stored<Lease>): Promise<void> {
    const { name, uid, resourceVersion } = metadata;
    turn.mustLead();
    try {
      await this.#parts.api.delete(
        LEASES,
        { namespace: turn.namespace, name },
        { uid, resourceVersion },
        turn.options,
      );
    } catch (error) {
      if (!(error instanceof ConflictError) && !(error instanceof NotFoundError)) throw error;
    }
  }
}

/** The holds whose time of being kept is over, and when the next one's will be. */
function oldHolds(
  leases: readonly Stored<Lease>[],
  reading: LeaseTimeReading,
  retentionMs: number,
): { readonly old: readonly Stored<Lease>[]; readonly nextMs: number | null } {
  const old: Stored<Lease>[] = [];
  let nextMs: number | null = null;
  for (const lease of leases) {
    const { labels } = lease.metadata;
    const state = labels?.[DEPLOYMENT_STATE_LABEL];
    if (labels?.[DEPLOYMENT_KIND_LABEL] !== "failover-hold") continue;
    if (state !== "expired" && state !== "released") continue;
    // The time of the last write: that of its end. Without one it is kept.
    const endedMs = Date.parse(lease.spec?.renewTime ?? "");
    if (Number.isNaN(endedMs)) continue;
    const untilMs = endedMs + retentionMs;
    if (reading.earliestMs > untilMs) old.push(lease);
    else nextMs = Math.min(nextMs ?? untilMs, untilMs);
  }
  return { old, nextMs };
}
