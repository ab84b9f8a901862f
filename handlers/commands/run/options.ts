/**
 * What the command line hands to `holdfast run` and to its guard.
 *
 * @module
 */

import type { ClientSettings } from "../../../lib/client/mod.ts";
import type { System } from "../system.ts";

/** What `holdfast run` is given. */
export interface RunOptions {
  /** What was given on the command line; the rest comes from the environment. */
  readonly settings: ClientSettings;
  /** The program and its arguments, at least one. */
  readonly command: readonly string[];
  /** @default {a fresh UUID} */
  readonly operationId: string | undefined;
  /** Milliseconds. */
  readonly ttlMs: number;
  /** Milliseconds. */
  readonly waitMs: number;
  /** Milliseconds that a replica may lag; `null` for any. */
  readonly maxLagMs: number | null;
  /** Takes a hold on planned failovers too. */
  readonly hold: boolean;
  /** Releases the migration lease also when the command failed after DDL began. */
  readonly releaseOnFailure: boolean;
  /** The machine. */
  readonly system: System;
}

/** What the hidden command of the guard is given. */
export interface RunGuardOptions {
  /** Where the supervisor listens. */
  readonly socketPath: string;
  /** The machine. */
  readonly system: System;
}
