/**
 * Trying again: while another one holds the lease, while the group is unstable, and while the service cannot be reached.
 *
 * @module
 */

import { type Clock, sleep } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import type { Answer, Holder } from "./answers.ts";
import {
  HeldError,
  type HoldfastError,
  InvalidRequestError,
  NotAuthorizedError,
  OperationRevokedError,
  UnknownGroupError,
  UnreachableError,
  UnstableError,
} from "./errors.ts";
import { heldPauseMs, pauseMs } from "./rules.ts";

/** How long a fault of the service or of the way to it is borne without any wish to wait: a change of leader takes less. */
export const PATIENCE_MS = 10_000;

/** What one try came to. */
export type Step<T> =
  | { readonly type: "done"; readonly value: T }
  | Blocked;

/** Something is in the way that may go. */
export interface Blocked {
  readonly type: "blocked";
  /** What the caller gets when there is no time left. */
  readonly error: HoldfastError;
  /** A fault, and not a state of the group: it gets {@linkcode PATIENCE_MS} also without a wish to wait. */
  readonly transient: boolean;
  /** What the service asked for; 0 for nothing. */
  readonly retryAfterMs: number;
  /** Until the lease that is in the way ends; `null` when that is not known, or something else is in the way. */
  readonly endsInMs: number | null;
}

/** How long to go on. */
export interface Patience {
  /** Milliseconds for a state that another one must end. */
  readonly waitMs: number;
  readonly signal?: AbortSignal;
  /** Is told what is in the way, at each try. */
  readonly onWaiting?: (why: HoldfastError) => void;
}

/**
 * Tries until a step is done. It ends when the time is over and not later than the step that it began before.
 *
 * @param step One try. It gets the milliseconds that are left for a look, at least 1000.
 * @throws The error of the last step, when the time is over. @throws What a step throws. @throws The signal's reason.
 */
export async function tryUntilDone<T>(
  { clock, entropy }: { readonly clock: Clock; readonly entropy: Entropy },
  { waitMs, signal = NEVER, onWaiting }: Patience,
  step: (leftMs: number) => Promise<Step<T>>,
): Promise<T> {
  const startMs = clock.monotonic();
  const waitUntilMs = startMs + waitMs;
  const faultUntilMs = startMs + Math.max(waitMs, PATIENCE_MS);
  let failures = 0;
  let before = "";
  for (;;) {
    signal.throwIfAborted();
    const result = await step(Math.max(1_000, faultUntilMs - clock.monotonic()));
    if (result.type === "done") return result.value;
    const leftMs = (result.transient ? faultUntilMs : waitUntilMs) - clock.monotonic();
    if (leftMs <= 0) throw result.error;
    onWaiting?.(result.error);
    failures = result.error.name === before ? failures + 1 : 1;
    before = result.error.name;
    const own = pauseMs(failures, result.retryAfterMs, entropy.fraction());
    const pause = heldPauseMs(own, result.endsInMs);
    await sleep(clock, Math.min(pause, leftMs), signal);
  }
}

const NEVER = new AbortController().signal;

/** What was asked, for the texts of errors. */
export interface Asked {
  readonly group: string;
  readonly instance: string;
  readonly operationId: string;
  /** A grant was sent before, and its answer got lost. */
  readonly grantLost: boolean;
}

/**
 * What an answer that is no success means to who wants something new.
 *
 * @throws {NotAuthorizedError} @throws {UnknownGroupError} @throws {InvalidRequestError} @throws {OperationRevokedError}
 * Trying again would change nothing.
 */
export function blockedBy<T>(
  answer: Exclude<Answer<T>, { readonly type: "success" }>,
  asked: Asked,
): Blocked {
  const { group, grantLost, instance, operationId } = asked;
  switch (answer.type) {
    case "held":
      // Here the wish for patience is the time that is left.
      return blockedByHolder(group, answer.holder, answer.retryAfterMs || null);
    case "unstable":
      return blocked(new UnstableError(group, answer.reason), false, answer.retryAfterMs);
    case "not_leader":
    case "unavailable":
      return blocked(
        new UnreachableError(answer.type, "", grantLost),
        true,
        answer.retryAfterMs,
      );
    case "no_answer":
      return blocked(new UnreachableError(answer.why, answer.code, grantLost), true);
    case "unexpected":
      return blocked(
        new UnreachableError("unexpected", `status ${answer.status}`, grantLost),
        true,
      );
    case "revoked":
      throw new OperationRevokedError(operationId, answer.reason);
    case "unauthorized":
      throw new NotAuthorizedError("unauthorized", group, instance);
    case "forbidden":
    case "token_mismatch":
      throw new NotAuthorizedError("forbidden", group, instance);
    case "not_found":
      throw new UnknownGroupError(group);
    case "invalid_request":
      throw new InvalidRequestError(operationId, instance);
  }
}

/** Puts an obstacle into a step's form. */
export function blocked(error: HoldfastError, transient: boolean, retryAfterMs = 0): Blocked {
  return { type: "blocked", error, transient, retryAfterMs, endsInMs: null };
}

/**
 * Another one has the lease.
 *
 * @param endsInMs Until its end; `null` when that is not known.
 */
export function blockedByHolder(group: string, holder: Holder, endsInMs: number | null): Blocked {
  return { ...blocked(new HeldError(group, holder), false), endsInMs };
}
