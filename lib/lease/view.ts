/**
 * What a group looks like to a caller: deploy-api 2.1 and 7.6.
 *
 * A look may find leases whose time is over or whose generation is past. It stores that before it answers, so that
 * everybody sees the same.
 *
 * @module
 */

import { type GroupView, groupView } from "../group/health.ts";
import type { Adoption } from "./adoption.ts";
import { blockedReason } from "../group/allowance.ts";
import { settleAll } from "./settle.ts";
import { mustBeSameGroup, type Refused, type RequestTurn, TRIES } from "./turn.ts";

/** A group as it was at one moment. */
export interface Viewed {
  readonly type: "viewed";
  readonly view: GroupView;
}

/** Serves one GET. */
export async function view(turn: RequestTurn, adoption: Adoption): Promise<Viewed | Refused> {
  for (let tries = 0; tries < TRIES; tries++) {
    const [reads, first] = await turn.round(Promise.all([
      turn.readTopology(),
      turn.listActive(),
    ]));
    const topology = await turn.confirm(reads);
    // A list by our label shows a lease of the reference only once it is adopted.
    const list = await adoption.ensure(turn, topology) ? first : await turn.listActive();
    const admission = topology.admission(turn.now());
    if (admission.topologyBlocked !== "") {
      return turn.refused({ type: "unstable", reason: admission.topologyBlocked });
    }
    const blocked = blockedReason(admission);
    if (admission.unstable === "" && blocked !== "") {
      return turn.refused({ type: "unstable", reason: blocked });
    }
    const active = await settleAll(turn, topology, list);
    if (active !== "again") {
      const again = await turn.parts.topology.readGroup(turn.namespace, turn.group, turn.options);
      mustBeSameGroup(topology, { group: again, gate: topology.gate });
      if (again.metadata.resourceVersion === topology.group.metadata.resourceVersion) {
        const records = active.map(({ record }) => record);
        turn.parts.metrics.show(turn.group, records, turn.now().earliestMs);
        return { type: "viewed", view: groupView(topology.group, admission.generation, records) };
      }
    }
    turn.parts.metrics.retried("group");
  }
  return turn.refused({ type: "unstable", reason: "TopologyObservationChanged" });
}
