/**
 * What the leader does for one group: the shape that all controllers have.
 *
 * A controller is level-triggered. It is not told what happened, but asked to look at a group: after any change of the
 * group or its Leases, when a time that it asked for has come, and after a failure. It must come to the same end however
 * often it is asked.
 *
 * @module
 */

import type { MysqlFailoverGroup } from "../group/types.ts";
import type { Stored } from "../kube/api.ts";
import type { Lease } from "../kube/resources.ts";
import type { GroupIdentity } from "../records/store.ts";
import type { Turn } from "../lease/turn.ts";

/**
 * A group as the watches showed it last: a hint, and never what a decision is made from.
 *
 * Use it to see that there is *nothing to do*, so that an idle group costs no call: whatever it does not show yet comes
 * as an event and asks anew. For everything else read through the {@linkcode Turn}.
 */
export interface GroupSight {
  readonly group: Stored<MysqlFailoverGroup>;
  /** The Leases that the group owns: leases in any state, and the gate. */
  readonly leases: readonly Stored<Lease>[];
}

/**
 * When a controller wants to be asked again although nothing changed: the first of the two counts. Any change asks it
 * anyway.
 */
export interface Due {
  /** As soon as lease time has surely *passed* this instant, in milliseconds since 1970: for expiries. */
  readonly afterMs?: number;
  /** So many milliseconds from now on the monotonic clock, 0 or more: for a pause. */
  readonly inMs?: number;
}

/** Does one kind of work for every group, while this process leads. */
export interface GroupController {
  /** Names the controller in log lines and figures. */
  readonly name: string;
  /**
   * Looks at a group and does what is to be done. It runs in the group's turn, so no request of this group is served
   * meanwhile, and it should end within a few calls; `turn.options.signal` ends it.
   *
   * What it throws is logged by its class, counted, and asked again after a pause that grows.
   *
   * @param turn Reads and writes of this group. Ask `turn.mustLead()` before each write.
   * @param sight What the watches showed when the turn began.
   * @returns When to look again, or `null` when only a change can bring work.
   */
  reconcile(turn: Turn, sight: GroupSight): Promise<Due | null>;
  /** Drops what is kept of a group that is gone: its figures, and what was remembered of it. */
  forget?(group: GroupIdentity): void;
}
