/**
 * What `holdfast run` says while it waits and works. It writes to the error output, since the output is the command's.
 *
 * For a person there is one line that counts; in a pipeline there is one plain line for each change.
 *
 * @module
 */

import { type AuthorityLostError, HeldError, type HoldfastError } from "../../../lib/client/mod.ts";
import { formatDuration } from "../../../lib/config/duration.ts";
import type { CancelTimer, Clock } from "../../../lib/runtime/clock.ts";
import type { TextOutput } from "../system.ts";

const REDRAW_MS = 1_000;
const CLEAR_LINE = "\r\x1b[K";

/** The voice of one run. */
export class RunProgress implements Disposable {
  readonly #output: TextOutput;
  readonly #clock: Clock;
  readonly #waitUntilMs: number;
  #what = "";
  #text = "";
  #sinceMs = 0;
  #cancel: CancelTimer | null = null;
  #drawn = false;

  /** @param waitMs How long the run will wait at most, from now. */
  constructor(output: TextOutput, clock: Clock, waitMs: number) {
    this.#output = output;
    this.#clock = clock;
    this.#waitUntilMs = clock.monotonic() + waitMs;
  }

  /** Says something once. */
  say(text: string): void {
    this.#clear();
    this.#output.write(`holdfast: ${text}\n`);
  }

  /** Says what is in the way. The same obstacle again is no news, except to a person, who sees it count. */
  waiting(why: HoldfastError): void {
    const what = obstacle(why);
    this.#text = why.message;
    if (what === this.#what) return;
    this.#what = what;
    this.#sinceMs = this.#clock.monotonic();
    if (this.#output.isTerminal) this.#draw();
    else this.say(`Waiting for up to ${this.#left()}: ${why.message}`);
  }

  /** The wait is over. */
  ready(): void {
    this.#clear();
    this.#what = "";
  }

  /** Says that the command is being stopped. */
  stopping(why: AuthorityLostError, killInMs: number): void {
    const seconds = (killInMs / 1_000).toFixed(1);
    this.say(`${why.message}. The command got SIGTERM, and gets SIGKILL in ${seconds} s`);
  }

  [Symbol.dispose](): void {
    this.#clear();
  }

  #draw(): void {
    this.#cancel?.();
    const seen = wholeSeconds(this.#clock.monotonic() - this.#sinceMs);
    this.#output.write(
      `${CLEAR_LINE}holdfast: Waiting, ${this.#left()} left, for ${seen} so far: ${this.#text}`,
    );
    this.#drawn = true;
    this.#cancel = this.#clock.timer(REDRAW_MS, () => this.#draw());
  }

  #clear(): void {
    this.#cancel?.();
    this.#cancel = null;
    if (this.#drawn) this.#output.write(CLEAR_LINE);
    this.#drawn = false;
  }

  #left(): string {
    return wholeSeconds(Math.max(0, this.#waitUntilMs - this.#clock.monotonic()));
  }
}

/** What makes one obstacle another one: whoever holds the lease stays the same when it renews. */
function obstacle(why: HoldfastError): string {
  if (why instanceof HeldError) return `held ${why.holder.operationId} ${why.holder.instance}`;
  return `${why.name} ${"reason" in why ? why.reason : ""}`;
}

function wholeSeconds(milliseconds: number): string {
  return formatDuration(Math.round(milliseconds / 1_000) * 1_000);
}
