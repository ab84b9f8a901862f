/**
 * What a group looks like to a caller: deploy-api 2.1 and 7.6.
 *
 * A look may find leases whose time is over or whose generation is past. It stores that before it answers, so that
 * everybody sees the same.
 *
 * @module
 */

import { type GroupView, groupView } from "../group/health.ts";
import type { ConfirmedTopology } from "../group/topology.ts";
import type { ObjectList } from "../kube/api.ts";
import type { Lease } from "../kube/resources.ts";
import { ownedBy } from "./lease_object.ts";
import { expiresAtMs, RecordError } from "./record.ts";
import { blockedReason, settled, standing } from "./rules.ts";
import type { StoredRecord } from "./store.ts";
import { identity, mustBeSameGroup, type Refused, TRIES, type Turn } from "./turn.ts";

/** A group as it was at one moment. */
export interface Viewed {
  readonly type: "viewed";
  readonly view: GroupView;
}

/** Which groups' leases all carry the group label by now. A new term of leadership begins anew. */
export class Adoption {
  readonly #adopted = new Set<string>();

  /** True when nothing had to be done: a list that was read before is complete. */
  async ensure(turn: Turn, topology: ConfirmedTopology): Promise<boolean> {
    const group = identity(topology);
    if (this.#adopted.has(group.uid)) return true;
    await turn.parts.store.adopt(group, turn.options);
    this.#adopted.add(group.uid);
    return false;
  }

  /** Forgets all: at the start of a term, since another leader served in between. */
  reset(): void {
    this.#adopted.clear();
  }
}

/** Serves one GET. */
export async function view(turn: Turn, adoption: Adoption): Promise<Viewed | Refused> {
  for (let tries = 0; tries < TRIES; tries++) {
    const { read: [reads, first] } = await turn.round(Promise.all([
      turn.readTopology(),
      turn.parts.store.listActive(turn.namespace, turn.group, turn.options),
    ]));
    const topology = await turn.confirm(reads);
    // A list by our label shows a lease of the reference only once it is adopted.
    const list = await adoption.ensure(turn, topology)
      ? first
      : await turn.parts.store.listActive(turn.namespace, turn.group, turn.options);
    const admission = topology.admission(turn.now());
    if (admission.topologyBlocked !== "" && !admission.revocationRequested) {
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

/** Stores what the look found, the mutex first, and returns the leases that are active; `again` after a lost race. */
async function settleAll(
  turn: Turn,
  topology: ConfirmedTopology,
  list: ObjectList<Lease>,
): Promise<readonly StoredRecord[] | "again"> {
  const { uid } = topology.group.metadata;
  if (list.undecodable.length > 0) {
    throw new RecordError(list.undecodable.flatMap(({ paths }) => paths));
  }
  const found = list.items.filter((lease) => ownedBy(lease, uid))
    .map((lease) => turn.parse(lease, topology)).filter((stored) => stored !== null)
    .sort(inOrder);
  const active: StoredRecord[] = [];
  for (const stored of found) {
    const time = turn.now();
    const state = standing(stored.record, topology.admission(time), time);
    if (state.type === "ahead") return "again";
    if (state.type === "active") active.push(stored);
    const next = settled(stored.record, state, time);
    if (next === null) continue;
    turn.mustLead();
    const { name } = stored.lease.metadata;
    if ((await turn.write(topology, name, next, stored)).type !== "stored") return "again";
  }
  return active;
}

/** The migration first, then holds by expiry, ties by operation: deploy-api 2.1. */
function inOrder({ record: a }: StoredRecord, { record: b }: StoredRecord): number {
  if (a.kind !== b.kind) return a.kind === "migration" ? -1 : 1;
  return expiresAtMs(a) - expiresAtMs(b) || (a.operationId < b.operationId ? -1 : 1);
}
