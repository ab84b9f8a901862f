/**
 * Where `holdfast status` gets its reports from.
 *
 * @module
 */

import type { StatusReport } from "../../../lib/status/report.ts";

/** Milliseconds between two looks at what changes by time alone, and between two calls of the API. */
export const TICK_MS = 1_000;

/** A place that tells how groups are. */
export interface StatusSource extends Disposable {
  /** Looks once. */
  read(signal: AbortSignal): Promise<StatusReport>;
  /**
   * Tells of every change, and each second since time passes. What goes wrong is told in the report, and it goes on.
   *
   * @param signal Ends it: the promise then resolves.
   */
  follow(signal: AbortSignal, show: (report: StatusReport) => void): Promise<void>;
}
