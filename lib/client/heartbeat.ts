/**
 * Renews a lease at a third of its ttl, for as long as it is there.
 *
 * @module
 */

import { type Clock, sleep } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import type { AuthorityLostError } from "./errors.ts";
import { type OwnDeadline, pauseMs, renewalPauseMs } from "./rules.ts";

/** What came of one renewal. */
export type RenewalOutcome =
  | { readonly type: "renewed" }
  | { readonly type: "lost"; readonly error: AuthorityLostError }
  /** `answer` is its kind, for example `unstable`; `retryAfterMs` what the service asked for. */
  | { readonly type: "not_renewed"; readonly answer: string; readonly retryAfterMs: number };

/** What a heartbeat keeps alive. */
export interface Renewable {
  /** Aborts when there is nothing to renew any more. */
  readonly signal: AbortSignal;
  readonly deadline: OwnDeadline;
  /** When the next renewal is due, in milliseconds on the monotonic clock. */
  readonly renewalDueMs: number;
  /** Renews once. It waits for a renewal that is under way, and never throws. */
  renewOnce(): Promise<RenewalOutcome>;
}

/**
 * Renews until the lease ends.
 *
 * @returns When the lease's signal has aborted.
 */
export async function keepAlive(
  lease: Renewable,
  { clock, entropy }: { readonly clock: Clock; readonly entropy: Entropy },
): Promise<void> {
  let failures = 0;
  let pause = 0;
  while (!lease.signal.aborted) {
    const now = clock.monotonic();
    const delay = failures === 0 ? lease.renewalDueMs - now : pause;
    try {
      await sleep(clock, Math.max(0, delay), lease.signal);
    } catch {
      return;
    }
    // A renewal that was asked for by hand moved the next one.
    if (failures === 0 && clock.monotonic() < lease.renewalDueMs) continue;
    const outcome = await lease.renewOnce();
    if (outcome.type === "renewed") failures = 0;
    if (outcome.type !== "not_renewed") continue;
    failures++;
    const wished = pauseMs(failures, outcome.retryAfterMs, entropy.fraction());
    pause = renewalPauseMs(wished, lease.deadline.stopAtMs, clock.monotonic());
  }
}
