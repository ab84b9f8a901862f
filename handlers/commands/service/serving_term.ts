/**
 * Serving the deployment API while this replica leads.
 *
 * @module
 */

import type { LeaderTask, Term } from "../../../lib/election/mod.ts";
import type { InFlight } from "../../../lib/host/in_flight.ts";
import type { LeaseCoordinator } from "../../../lib/lease/coordinator.ts";

/** The leader task that opens the API: from the beginning of a term to its end, and not a moment longer. */
export class ServingTerm implements LeaderTask {
  readonly name = "deployment API";
  readonly #coordinator: Pick<LeaseCoordinator, "beginTerm" | "endTerm">;
  readonly #inFlight: InFlight;
  #term: Term | null = null;

  constructor(coordinator: Pick<LeaseCoordinator, "beginTerm" | "endTerm">, inFlight: InFlight) {
    this.#coordinator = coordinator;
    this.#inFlight = inFlight;
  }

  /** True while requests may be served. It asks the clock, so that a process that slept does not believe for one call. */
  serves(): boolean {
    return this.#term !== null && !this.#term.signal.aborted && this.#term.isValid();
  }

  /** Serves for a term. The Lease is not released before the requests in flight have settled. */
  async run(term: Term): Promise<void> {
    this.#coordinator.beginTerm();
    this.#term = term;
    await ended(term.signal);
    this.#term = null;
    // Each has a deadline of its own, so this ends.
    await this.#inFlight.settled(NEVER);
    this.#coordinator.endTerm();
  }
}

const NEVER = new AbortController().signal;

function ended(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
