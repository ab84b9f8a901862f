/**
 * Housekeeping of a group: storage shows what time and topology have done, whether or not anybody asks. State protocol
 * 2.4, deploy-api 7.9 and 9.
 *
 * - The gate is made and kept in step with status, and a generation that rises ends the leases below it.
 * - Leases whose time is over become `expired`.
 * - Leases of the reference are adopted.
 * - The gauges show what is there, and the series of a group that is gone are dropped.
 *
 * What the watches show is enough to see that there is nothing to do; then no call is made. Everything else is read.
 *
 * @module
 */

import type { Adoption } from "../lease/adoption.ts";
import { expiresAtMs, type LeaseRecord } from "../records/record.ts";
import { settleAll } from "../lease/settle.ts";
import type { GroupIdentity } from "../records/store.ts";
import { ContendedError, type CoordinatorParts, TRIES, type Turn } from "../lease/turn.ts";
import { glance } from "./glance.ts";
import type { Due, GroupController, GroupSight } from "./group_controller.ts";

/** What a {@linkcode Housekeeping} is made of. */
export interface HousekeepingParts {
  readonly coordinator: Pick<CoordinatorParts, "metrics" | "topology">;
  /** Of the coordinator. */
  readonly adoption: Adoption;
}

/** Milliseconds until time is asked for again, when it is too uncertain to end a lease by it. */
const UNCERTAIN_PAUSE_MS = 1_000;

/** Keeps a group's storage in step with time and topology. */
export class Housekeeping implements GroupController {
  readonly name = "housekeeping";
  readonly #parts: HousekeepingParts;

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
  }

  /** @throws {ContendedError} Others wrote in between each time. */
  async reconcile(turn: Turn, sight: GroupSight): Promise<Due | null> {
    const reading = turn.parts.time.reading();
    const seen = glance(sight, reading);
    if (seen.type === "look") return await this.#look(turn, sight, seen.unlabelled);
    if (reading !== null) turn.parts.metrics.show(turn.group, seen.active, reading.earliestMs);
    return firstExpiry(seen.active);
  }

  /** Drops the figures of a group, and what was remembered of it. */
  forget({ name, uid }: GroupIdentity): void {
    const { metrics, topology } = this.#parts.coordinator;
    metrics.forget(name);
    topology.forget(uid);
    this.#parts.adoption.reset(uid);
  }

  async #look(turn: Turn, sight: GroupSight, unlabelled: boolean): Promise<Due | null> {
    if (unlabelled) this.#parts.adoption.reset(sight.group.metadata.uid);
    for (let tries = 0; tries < TRIES; tries++) {
      const topology = await turn.confirm(await turn.readTopology());
      await this.#parts.adoption.ensure(turn, topology);
      const list = await turn.listActive();
      const active = await settleAll(turn, topology, list);
      if (active === "again") {
        turn.parts.metrics.retried("housekeeping");
        continue;
      }
      const time = turn.now();
      const records = active.map(({ record }) => record);
      turn.parts.metrics.show(turn.group, records, time.earliestMs);
      const unsettled = !time.certain && list.items.length > active.length;
      const inMs = unsettled ? UNCERTAIN_PAUSE_MS : topology.lookAgainInMs;
      return { ...firstExpiry(records), ...(inMs !== null && { inMs }) };
    }
    throw new ContendedError("keep the group in step");
  }
}

/** The first instant at which one of the leases may be over. */
function firstExpiry(active: readonly LeaseRecord[]): Due | null {
  return active.length === 0 ? null : { afterMs: Math.min(...active.map(expiresAtMs)) };
}
