/**
 * The probes of the service: `/healthz` and `/readyz`, plain text (deploy-api 14).
 *
 * @module
 */

import { Hono } from "hono";
import type { Leadership } from "../../lib/election/leadership.ts";

/** Says what is wrong, in words for whoever reads the probe's answer; an empty text when all is well. */
export type ProbeCheck = () => string | Promise<string>;

/**
 * The one fault that a restart mends: this process takes itself for the leader, and has not renewed within the margin. Its
 * timers should have ended the term by then.
 *
 * @param leadership `null` before there is an election.
 */
export function stuckLeader(leadership: Pick<Leadership, "state" | "isLeader"> | null): string {
  const stuck = leadership !== null && leadership.state.leading && !leadership.isLeader();
  return stuck ? "leads and has not renewed in time" : "";
}

/** What {@linkcode createProbes} takes. */
export interface ProbesOptions {
  /**
   * Fails only when a restart would help: this process leads, and has not renewed within the margin. A cluster that cannot
   * be reached is no reason, or an outage of its API would restart every replica.
   */
  readonly live: ProbeCheck;
  /** Fails before the service can answer, and from the moment at which it stops. */
  readonly ready: ProbeCheck;
}

/** Makes the application for the port of the probes. */
export function createProbes({ live, ready }: ProbesOptions): Hono {
  const app = new Hono();
  for (const [path, check] of [["/healthz", live], ["/readyz", ready]] as const) {
    app.get(path, async (c) => {
      const problem = await check();
      c.header("Cache-Control", "no-store");
      return problem === "" ? c.text("ok") : c.text(problem, 503);
    });
  }
  return app;
}
