/**
 * The WebSockets of an application: an open one is no request in flight, so nothing else would end it.
 *
 * @module
 */

import type { Deadline } from "../runtime/clock.ts";

/** The part of a WebSocket that is needed here; that of the platform has it, and that of `ws`. */
export interface ClosableSocket {
  close(code?: number, reason?: string): void;
  addEventListener(type: "close", listener: () => void): void;
}

/** "Going away", as RFC 6455 names the end of a server. */
const GOING_AWAY = 1001;

/** The open WebSockets of a host. */
export class WebSockets {
  readonly #open = new Set<ClosableSocket>();
  #closing = false;
  #allClosed: (() => void) | null = null;

  /** How many are open. */
  get count(): number {
    return this.#open.size;
  }

  /** Keeps a socket until it closes. One that comes during the end is closed at once. */
  add(socket: ClosableSocket): void {
    this.#open.add(socket);
    socket.addEventListener("close", () => {
      this.#open.delete(socket);
      if (this.#open.size === 0) this.#allClosed?.();
    });
    if (this.#closing) socket.close(GOING_AWAY, "the server stops");
  }

  /** Asks all clients to go, and waits until they have, or until `deadline`. */
  async close(deadline: Pick<Deadline, "signal">): Promise<void> {
    this.#closing = true;
    if (this.#open.size === 0) return;
    const closed = new Promise<void>((resolve) => {
      this.#allClosed = resolve;
      deadline.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    for (const socket of [...this.#open]) socket.close(GOING_AWAY, "the server stops");
    await closed;
  }
}
