/**
 * The figures of the keyring escrow.
 *
 * @module
 */

import { Counter, type Registry } from "prom-client";

/** What became of a request. A fixed list, so that nobody makes series by asking. */
export type EscrowResult =
  /** A new version holds the keyring. */
  | "stored"
  /** The newest version held it already. */
  | "unchanged"
  /** Without a token, or with one that is not the site's: 401, 403. */
  | "rejected"
  /** The request or the keyring is none: 400, 405, 413. */
  | "invalid"
  /** The group, its site, or its encryption is missing: 404, 409. */
  | "not_wanted"
  /** The cluster did not serve it, or too many came at once: 500, 503. */
  | "failed";

/** Counts requests. */
export interface EscrowMetrics {
  readonly counted: (result: EscrowResult) => void;
}

/** Registers `holdfast_keyring_escrow_requests_total{result}`. */
export function escrowMetrics(registry: Registry): EscrowMetrics {
  const requests = new Counter({
    name: "holdfast_keyring_escrow_requests_total",
    help: "Keyrings that were sent, by what became of them",
    labelNames: ["result"],
    registers: [registry],
  });
  return { counted: (result) => requests.inc({ result }) };
}
