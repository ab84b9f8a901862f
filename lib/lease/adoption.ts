/**
 * Leases that the reference wrote: they lack our group label, and lists by it would not show them.
 *
 * @module
 */

import type { Topology } from "../group/topology.ts";
import { identity, type Turn } from "./turn.ts";

/** Which groups' leases all carry the group label by now. A new term of leadership begins anew. */
export class Adoption {
  readonly #adopted = new Set<string>();

  /** True when nothing had to be done: a list that was read before is complete. */
  async ensure(turn: Turn, topology: Topology): Promise<boolean> {
    const group = identity(topology);
    if (this.#adopted.has(group.uid)) return true;
    await turn.parts.store.adopt(group, turn.options);
    this.#adopted.add(group.uid);
    return false;
  }

  /**
   * Forgets a group whose lease was seen without our label, or is gone; or all, at the start of a term, since another
   * leader served in between.
   */
  reset(uid?: string): void {
    if (uid === undefined) this.#adopted.clear();
    else this.#adopted.delete(uid);
  }
}
