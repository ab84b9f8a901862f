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

/** Milliseconds between two messages of every group. */
const REPEAT_MS = 30_000;

/** What a {@linkcode StatusFeed} is made of. */
export interface StatusFeedParts {
  readonly groups: GroupsView;
  readonly clock: Clock;
}

/** The messages of all groups, made once for all clients. */
export class StatusFeed {
  readonly #parts: StatusFeedParts;
  /** The message of each group as it was sent last. */
  #messages = new Map<GroupKey, string>();
  readonly #clients = new Set<WebSocketClient>();
  #unsubscribe: (() => void) | null = null;
  #cancelRepeat: CancelTimer = () => {};

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
    for (const [key, text] of this.#messages) client.put(key, text);
  }

  #begin(): void {
    const { groups } = this.#parts;
    this.#messages = new Map(groups.keys().flatMap((key) => this.#messageOf(key)));
    this.#unsubscribe = groups.subscribe((changes) => this.#hear(changes.map(({ key }) => key)));
    this.#planRepeat();
  }

  #close(client: WebSocketClient): void {
    this.#clients.delete(client);
    if (this.#clients.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#cancelRepeat();
  }

  #hear(keys: readonly GroupKey[]): void {
    const messages = this.#messages;
    for (const key of keys) {
      const [found] = this.#messageOf(key);
      if (found === undefined) {
        messages.delete(key);
        continue;
      }
      const [, text] = found;
      // Not every change of a group is one of what is told of it.
      if (messages.get(key) === text) continue;
      messages.set(key, text);
      for (const client of this.#clients) client.put(key, text);
    }
  }

  #planRepeat(): void {
    this.#cancelRepeat = this.#parts.clock.timer(REPEAT_MS, () => {
      for (const client of this.#clients) {
        for (const [key, text] of this.#messages) client.put(key, text);
      }
      this.#planRepeat();
    });
  }

  #messageOf(key: GroupKey): readonly (readonly [GroupKey, string])[] {
    const sight = this.#parts.groups.sight(key);
    return sight === null ? [] : [[key, JSON.stringify(statusMessage(sight.group))]];
  }
}
