/**
 * What is counted and logged of calls that fail: kubernetes-plugin 5, "Failures".
 *
 * @module
 */

import type { Logger } from "../runtime/log.ts";
import type { Failure } from "./lease_store.ts";
import type { ElectionMetrics } from "./metrics.ts";

/** What a {@linkcode CallTrouble} is made of. */
export interface CallTroubleOptions {
  readonly logger: Logger;
  readonly metrics: ElectionMetrics;
  readonly leaseName: string;
  /** The longest time, in milliseconds, for which the server is left alone at its wish. */
  readonly longestWaitMs: number;
}

/** Follows runs of failures: the first one of a run is a warning, its end is told, and the rest is for debugging. */
export class CallTrouble {
  readonly #options: CallTroubleOptions;
  #failing = false;
  #waitMs = 0;

  constructor(options: CallTroubleOptions) {
    this.#options = options;
  }

  /** Milliseconds for which the server wished not to be asked, with its last refusal; 0 when it had no wish. */
  get waitMs(): number {
    return this.#waitMs;
  }

  /** A call failed. A race that was lost is no failure of the election. */
  failed(failure: Failure): void {
    const { logger, metrics, leaseName, longestWaitMs } = this.#options;
    if (failure.type === "conflict") {
      metrics.conflict();
      logger.debug("A write of the election Lease lost a race", { lease: leaseName });
      return;
    }
    metrics.error();
    this.#waitMs = Math.min(failure.retryAfterMs, longestWaitMs);
    const fields = { lease: leaseName, error: failure.errorClass };
    if (this.#failing) logger.debug("Calls about the election Lease still fail", fields);
    else logger.warn("A call about the election Lease failed", fields);
    this.#failing = true;
  }

  /** Calls work. */
  recovered(): void {
    this.#waitMs = 0;
    if (!this.#failing) return;
    this.#failing = false;
    const { logger, leaseName } = this.#options;
    logger.info("Calls about the election Lease work again", { lease: leaseName });
  }
}
