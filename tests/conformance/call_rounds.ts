/**
 * Counts rounds: sets of calls that are sent at once.
 *
 * Calls are held back until nothing more is sent and none is under way; all that wait then go together, and are one round.
 * So a call that needs the answer of another one is always in a later round.
 *
 * @module
 */

import type { SendRequest } from "../../lib/kube/exchange.ts";

/** Turns of the event loop in which the code under test may go on before a round is closed. */
const SETTLING_TURNS = 3;

/** One round: each call as `METHOD path?query`. */
export type Round = readonly string[];

/** Watches the way to the API server. */
export class CallRounds {
  #rounds: string[][] = [];
  #waiting: { readonly line: string; readonly go: () => void }[] = [];
  #underWay = 0;
  #closing = false;

  /** Wraps the way to the API server. */
  readonly wrap = (send: SendRequest): SendRequest => async (request) => {
    const { pathname, search } = new URL(request.url);
    await new Promise<void>((go) => {
      this.#waiting.push({ line: `${request.method} ${pathname}${search}`, go });
      void this.#close();
    });
    try {
      const response = await send(request);
      // Read here, so that the round is over only when its last byte is there.
      const { status, headers } = response;
      return new Response(await response.arrayBuffer(), { status, headers });
    } finally {
      this.#underWay--;
      if (this.#waiting.length > 0) void this.#close();
    }
  };

  /** Does something and returns the rounds that it took. */
  async of(work: () => Promise<unknown>): Promise<readonly Round[]> {
    this.#rounds = [];
    await work();
    return this.#rounds;
  }

  async #close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    for (let turn = 0; turn < SETTLING_TURNS; turn++) await nextTurn();
    this.#closing = false;
    if (this.#underWay > 0 || this.#waiting.length === 0) return;
    const round = this.#waiting;
    this.#waiting = [];
    this.#underWay = round.length;
    this.#rounds.push(round.map(({ line }) => line));
    for (const { go } of round) go();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
