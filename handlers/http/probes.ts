/**
 * The probes of the service: `/healthz` and `/readyz`, plain text (deploy-api 14).
 *
 * @module
 */

import { Hono } from "hono";

/** Says what is wrong, in words for whoever reads the probe's answer; nothing when all is well. */
export type ProbeCheck = () => string | undefined;

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
    app.get(path, (c) => {
      const problem = check();
      c.header("Cache-Control", "no-store");
      return problem === undefined ? c.text("ok") : c.text(problem, 503);
    });
  }
  return app;
}
