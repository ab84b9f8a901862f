/**
 * When an elector acts next: the pauses between its calls, with their jitter.
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import type { CallTrouble } from "./call_trouble.ts";
import type { LeaseHold } from "./lease_hold.ts";
import type { LeaseWatch } from "./lease_watch.ts";
import type { ElectionTiming } from "./options.ts";
import { jittered } from "./policy.ts";

/** What a {@linkcode Cadence} goes by. */
export interface CadenceParts {
  readonly timing: ElectionTiming;
  readonly clock: Clock;
  readonly entropy: Entropy;
  /** Tells when the Lease may be taken. */
  readonly hold: Pick<LeaseHold, "actableAtMs">;
  /** Tells for how long it can be relied on. */
  readonly watch: Pick<LeaseWatch, "reliableUntilMs">;
  /** Tells how long the server wants to be left alone. */
  readonly trouble: Pick<CallTrouble, "waitMs">;
}

/** The times at which a waiter looks at the Lease, and a holder renews. */
export class Cadence {
  readonly #parts: CadenceParts;
  #lookedAtMs: number | null = null;
  /** Of no use before the first look, which is due at once. */
  #pauses = { retryMs: 0, leaseMs: 0 };
  #notBeforeMs = 0;

  constructor(parts: CadenceParts) {
    this.#parts = parts;
  }

  /** Makes the next look due at once, but for a rest that goes on. */
  begin(): void {
    this.#lookedAtMs = null;
    this.#pauses = this.#drawPauses();
  }

  /** Notes a look. */
  looked(nowMs: number): void {
    this.#lookedAtMs = nowMs;
    this.#pauses = this.#drawPauses();
  }

  /** Lets no look be due for one lease duration: another replica gets its turn. */
  rest(): void {
    this.#notBeforeMs = this.#nowMs() + this.#parts.timing.leaseDurationMs;
  }

  /** The pause until the next renewal, anew for each. */
  retryMs(): number {
    return this.#drawPauses().retryMs;
  }

  /**
   * When the next look at the Lease is due.
   *
   * @param urged There is something to act on before it would be.
   */
  nextLookMs(urged: boolean): number {
    if (urged || this.#lookedAtMs === null) return this.#notBeforeMs;
    const { watch, hold, trouble } = this.#parts;
    const { retryMs, leaseMs } = this.#pauses;
    const soonestMs = Math.max(
      this.#notBeforeMs,
      this.#lookedAtMs + Math.max(retryMs, trouble.waitMs),
    );
    if (this.#nowMs() >= watch.reliableUntilMs) return soonestMs;
    // The watch tells every change, so a look is worth its call only once the Lease may be taken; and now and then, so
    // that nothing rests on the watch alone.
    return Math.max(soonestMs, Math.min(this.#lookedAtMs + leaseMs, hold.actableAtMs()));
  }

  /** When to think again: the next look may come earlier once the watch is not relied on any more. */
  wakeMs(dueMs: number, nowMs: number): number {
    const { reliableUntilMs } = this.#parts.watch;
    return reliableUntilMs > nowMs ? Math.min(dueMs, reliableUntilMs) : dueMs;
  }

  #drawPauses(): { retryMs: number; leaseMs: number } {
    const { entropy, timing: { retryPeriodMs, leaseDurationMs } } = this.#parts;
    const draw = Math.floor(entropy.fraction() * 2 ** 31);
    return { retryMs: jittered(retryPeriodMs, draw), leaseMs: jittered(leaseDurationMs, draw) };
  }

  #nowMs(): number {
    return Math.floor(this.#parts.clock.monotonic());
  }
}
