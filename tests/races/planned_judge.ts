/**
 * The rules between holds, the gate and the phases of planned operations, over the whole history of what was stored.
 *
 * They are the invariants of the gate protocol (state protocol 2.2), told in versions. The versions of leases and of the
 * group come from one store, so they have one order.
 *
 * @module
 */

/** One thing that happened, with its place in the order of all versions. */
export type PlannedEvent =
  & { readonly version: bigint }
  & (
    /** The hold under a name, as it is from now on: the hash of its token while it is active, else `null`. */
    | { readonly type: "hold"; readonly name: string; readonly tokenHash: string | null }
    /** The admission that the gate carries from now on. */
    | { readonly type: "gate"; readonly planned: Admission | null }
    /** The admission whose phase the group's status shows from now on. */
    | { readonly type: "group"; readonly phaseOf: string | null }
    /** A caller has been told that this token holds: at this version at the latest. */
    | { readonly type: "answer"; readonly tokenHash: string }
  );

/** An admission in the gate. */
export interface Admission {
  readonly id: string;
  readonly state: string;
}

/**
 * Judges events, told in the order of their versions:
 *
 * 1. Never is a hold active that was answered as granted while status shows the phase of an admission. (A hold that is
 *    written and not answered yet may be beside one: its grant finds the phase, and takes the hold back.)
 * 2. Never is a phase written over the phase of another admission.
 * 3. A phase is written only while the gate carries its admission: one that was withdrawn writes none.
 * 4. No admission is written over another, none comes back from its withdrawal, and none is beside a phase or beside a
 *    hold that was answered.
 */
export class PlannedJudge {
  readonly #found: string[] = [];
  readonly #holds = new Map<string, string | null>();
  readonly #answered = new Set<string>();
  #planned: Admission | null = null;
  #phaseOf: string | null = null;

  /** What is wrong so far; empty when nothing is. */
  get violations(): readonly string[] {
    return this.#found;
  }

  /** Takes the next event. */
  take(event: PlannedEvent): void {
    for (const what of this.#change(event)) this.#found.push(`${event.version}: ${what}`);
    if (!this.#someHold()) return;
    if (this.#phaseOf !== null) {
      this.#found.push(`${event.version}: an answered hold is active beside a phase`);
    }
    if (this.#planned !== null) {
      this.#found.push(`${event.version}: an answered hold is active beside an admission`);
    }
  }

  *#change(event: PlannedEvent): Iterable<string> {
    switch (event.type) {
      case "hold":
        this.#holds.set(event.name, event.tokenHash);
        return;
      case "answer":
        this.#answered.add(event.tokenHash);
        return;
      case "group": {
        const before = this.#phaseOf;
        this.#phaseOf = event.phaseOf;
        if (event.phaseOf === null || event.phaseOf === before) return;
        if (before !== null) yield "a phase was written over another";
        if (this.#planned?.id !== event.phaseOf) yield "a phase was written without its admission";
        return;
      }
      case "gate": {
        const before = this.#planned;
        const after = this.#planned = event.planned;
        if (after === null) return;
        if (before?.id === after.id) {
          const cameBack = before.state === "withdrawing" && after.state !== "withdrawing";
          if (cameBack) yield "an admission came back from its withdrawal";
          return;
        }
        if (before !== null) yield "an admission was written over another";
        if (this.#phaseOf !== null) yield "an admission was written beside a phase";
      }
    }
  }

  #someHold(): boolean {
    return [...this.#holds.values()].some((hash) => hash !== null && this.#answered.has(hash));
  }
}
