/**
 * The figures of lease time: state protocol 2.5.
 *
 * @module
 */

import { Gauge, type Registry } from "prom-client";
import type { LeaseTime } from "./lease_time.ts";

/**
 * Registers `holdfast_clock_offset_seconds` (this machine's wall clock minus lease time) and
 * `holdfast_clock_uncertainty_seconds`. Neither has a sample while the API server's time is not known.
 */
export function leaseTimeMetrics(registry: Registry, time: LeaseTime): void {
  const figures = [
    [
      "holdfast_clock_offset_seconds",
      "This machine's wall clock minus lease time",
      () => time.offsetSeconds(),
    ],
    [
      "holdfast_clock_uncertainty_seconds",
      "Half the span in which lease time is known to be",
      () => time.uncertaintySeconds(),
    ],
  ] as const;
  for (const [name, help, read] of figures) {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        const value = read();
        if (value === null) this.remove();
        else this.set(value);
      },
    });
  }
}
