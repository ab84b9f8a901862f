/**
 * What an elector tells of itself: the state for its handle, and a line and a count for each edge of leading.
 *
 * @module
 */

import type { Logger } from "../runtime/log.ts";
import type { LeadershipCell } from "./leadership.ts";
import type { ElectionMetrics } from "./metrics.ts";
import { clipped } from "./options.ts";
import type { HeldTerm } from "./term.ts";

/** Whom an {@linkcode Announcer} tells, and of what. */
export interface AnnouncerParts {
  readonly cell: LeadershipCell;
  readonly metrics: ElectionMetrics;
  readonly logger: Logger;
  readonly leaseName: string;
  readonly identity: string;
}

/** Tells the state of an elector. */
export class Announcer {
  readonly #parts: AnnouncerParts;

  constructor(parts: AnnouncerParts) {
    this.#parts = parts;
  }

  /**
   * Tells the state, and logs and counts the edges of leading.
   *
   * @param term The term of this process; `null` when it waits.
   * @param seenHolder Who holds the Lease, as it was seen last.
   */
  publish(term: HeldTerm | null, seenHolder: string): void {
    const { cell, metrics, logger, leaseName, identity } = this.#parts;
    const leading = term?.isLeading() ?? false;
    const before = cell.state.leading;
    cell.publish(term, {
      leading,
      holder: leading ? identity : seenHolder,
      // It counts on while the work of a stop is ending: an isolated task reads it from here.
      validUntil: term !== null && term.lost === null ? term.validUntil : null,
      draining: term !== null && term.lost !== null && !term.settled,
    });
    if (leading === before) return;
    const fields = { lease: leaseName, identity: clipped(identity) };
    if (leading) {
      metrics.acquired();
      logger.info("This replica leads", { ...fields, token: term?.token ?? "" });
    } else {
      metrics.lost();
      const reason = term?.endReason ?? "stopped";
      const write = reason === "stopped" ? logger.info : logger.warn;
      write.call(logger, "This replica does not lead any more", { ...fields, reason });
    }
  }
}
