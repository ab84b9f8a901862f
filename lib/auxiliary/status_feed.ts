/**
 * What `/ws/status` sends: one message for each group when a client comes, one for each change of a status, and one for
 * each group every 30 s, so that a client sees that it is still told of everything (deploy-api 14).
 *
 * @module
 */

import type { GroupKey } from "../controllers/group_board.ts";
import type { WebSocketClient } from "../host/web_socket_client.ts";
import type { CancelTimer, Clock } from "../runtime/clock.ts";
import type { GroupsView } from "./live_groups.ts";
import { statusMessage } from "./status_view.ts";

/** A step of the repetition, in milliseconds. */
const STEP_MS = 1_000;

/** Every group is repeated in one of so many steps, so that many groups do not come at once. */
const STEPS = 30;

/** What is told of a group. */
interface Told {
  readonly text: string;
  /** The step in which it is repeated, from 0. */
  readonly step: number;
}

/** What a {@linkcode StatusFeed} is made of. */
export interface StatusFeedParts {
  readonly groups: GroupsView;
  readonly clock: Clock;
}

/** The messages of all groups, made once for all clients. */
export class StatusFeed {
  readonly #parts: StatusFeedParts;
  /** What was told last of each group. */
  readonly #told = new Map<GroupKey, Told>();
  readonly #clients = new Set<WebSocketClient>();
  #unsubscribe: (() => void) | null = null;
  #cancelRepeat: CancelTimer = () => {};
  #nextStep = 0;

  constructor(parts: StatusFeedParts) {
    this.#parts = parts;
  }

  /** Sends a client what there is, and what comes until it is gone. */
  open(client: WebSocketClient): void {
    if (client.gone.aborted) return;
    // Without clients nothing is made, and no timer runs.
    if (this.#clients.size === 0) this.#begin();
    this.#clients.add(client);
    client.gone.addEventListener("abort", () => this.#close(client), { once: true });
    for (const [key, { text }] of this.#told) client.put(key, text);
  }

  #begin(): void {
    const { groups } = this.#parts;
    this.#told.clear();
    this.#hear(groups.keys());
    this.#unsubscribe = groups.subscribe((changes) => this.#hear(changes.map(({ key }) => key)));
    this.#planRepeat(0);
  }

  #close(client: WebSocketClient): void {
    this.#clients.delete(client);
    if (this.#clients.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#cancelRepeat();
  }

  #hear(keys: readonly GroupKey[]): void {
    for (const key of keys) {
      const sight = this.#parts.groups.sight(key);
      if (sight === null) {
        this.#told.delete(key);
        continue;
      }
      const text = JSON.stringify(statusMessage(sight.group));
      const before = this.#told.get(key);
      // Not every change of a group is one of what is told of it.
      if (before?.text === text) continue;
      this.#told.set(key, { text, step: before?.step ?? this.#nextStep++ % STEPS });
      for (const client of this.#clients) client.put(key, text);
    }
  }

  #planRepeat(step: number): void {
    this.#cancelRepeat = this.#parts.clock.timer(STEP_MS, () => {
      for (const [key, told] of this.#told) {
        if (told.step !== step) continue;
        for (const client of this.#clients) client.put(key, told.text);
      }
      this.#planRepeat((step + 1) % STEPS);
    });
  }
}
