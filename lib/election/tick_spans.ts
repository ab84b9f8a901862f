/**
 * The ticks of an elector as spans: one for each look, renewal and release.
 *
 * @module
 */

import type { Span, Tracer } from "../tracing/tracer.ts";

/** What a tick is for: to take the Lease, to keep it, or to free it. */
export type TickPhase = "follow" | "lead" | "release";

/** Puts the ticks of one elector under spans. An elector has one tick at a time. */
export class TickSpans {
  readonly #tracer: Tracer | undefined;
  readonly #leaseName: string;
  readonly #leads: () => boolean;
  #span: Span | null = null;

  /** @param leads Says, after a tick, whether this replica leads. */
  constructor(tracer: Tracer | undefined, leaseName: string, leads: () => boolean) {
    this.#tracer = tracer;
    this.#leaseName = leaseName;
    this.#leads = leads;
  }

  /** Runs a tick. */
  run<R>(phase: TickPhase, tick: () => Promise<R>): Promise<R> {
    if (this.#tracer === undefined) return tick();
    const values = { lease: this.#leaseName, phase };
    return this.#tracer.span("elector tick", values, async (span) => {
      this.#span = span;
      try {
        return await tick();
      } finally {
        this.#span = null;
        span.set("leading", this.#leads());
      }
    });
  }

  /** A call of the tick under way failed. */
  failed(errorClass: string): void {
    this.#span?.fail(errorClass);
  }
}
