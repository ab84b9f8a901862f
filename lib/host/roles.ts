/**
 * What a process of each role does: kubernetes-plugin 14.
 *
 * @module
 */

import type { ProcessRole } from "../config/schema.ts";

/** Says whether a process of this role answers the application's own requests. Probes are answered by every role. */
export function servesRequests(role: ProcessRole): boolean {
  return role !== "worker";
}

/** Says whether a process of this role does the work that nobody waits for with a request. */
export function worksInBackground(role: ProcessRole): boolean {
  return role !== "web";
}
