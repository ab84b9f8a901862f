/**
 * One client of a WebSocket that only listens: what waits for it, how it shows that it lives, and when it is cut off.
 *
 * @module
 */

// @ts-types="@types/ws"
import type { WebSocket } from "ws";
import type { Duplex } from "node:stream";
import type { CancelTimer, Clock } from "../runtime/clock.ts";
import type { Sender, SendTurns } from "./send_turns.ts";

/** What a client may take, and what it may send. */
export interface WebSocketLimits {
  /** Milliseconds between two pings. A client that has not answered one when the next is due is cut off. @default {30000} */
  readonly pingMs: number;
  /** Milliseconds in which what was begun must leave for the client, or it is cut off. @default {10000} */
  readonly sendMs: number;
  /** How many messages may wait for a client that reads too slowly, before it is cut off. @default {20000} */
  readonly waitingMessages: number;
  /** Bytes of a message that a client may send. A larger one closes the connection with 1009. @default {4096} */
  readonly messageBytes: number;
}

/** The limits of a service. */
export const DEFAULT_WEB_SOCKET_LIMITS: WebSocketLimits = {
  pingMs: 30_000,
  sendMs: 10_000,
  waitingMessages: 20_000,
  messageBytes: 4_096,
};

/** A client as the source of its messages sees it. */
export interface WebSocketClient {
  /**
   * Puts a message in line. It never waits, and never fails: a client that is gone gets nothing.
   *
   * A message that has not left yet is replaced by a newer one with the same key, at its place in the line. So a client
   * that reads slowly gets less, and what waits for it never grows beyond one message for each key. A message must
   * therefore stand for itself: it says how something is, not what became of it.
   *
   * @param key What the message is about, for example a group.
   * @param text The message.
   * @param place `last`: it leaves behind all that waits, also when it takes the place of another. @default {"kept"}
   */
  put(key: string, text: string, place?: "kept" | "last"): void;
  /** Aborts when the client is gone, whoever ended it. */
  readonly gone: AbortSignal;
}

/** Why a client was cut off: it did not take its messages in time, or did not answer a ping. */
export type CutReason = "slow" | "silent";

/** What a {@linkcode RunningClient} is made of. */
export interface RunningClientParts {
  readonly socket: WebSocket;
  /** The connection below it. */
  readonly connection: Duplex;
  /** Shared by all clients. */
  readonly turns: SendTurns;
  readonly clock: Clock;
  readonly limits: WebSocketLimits;
  /** Told when the client is cut off. */
  readonly onCut: (reason: CutReason) => void;
}

/** How many messages, and about how many bytes, are handed over at once: they leave in one write. */
const BATCH = { messages: 32, bytes: 65_536 };

/** A connected client. What it sends is not looked at. */
export class RunningClient implements WebSocketClient, Sender {
  readonly #parts: RunningClientParts;
  readonly #gone = new AbortController();
  /** Messages by key, in the order in which they leave. */
  readonly #waiting = new Map<string, string>();
  #sending = false;
  /** Between that and the end of the socket nothing is taken any more. */
  #wasCut = false;
  #answered = true;
  #cancelSend: CancelTimer = () => {};
  #cancelPing: CancelTimer = () => {};

  constructor(parts: RunningClientParts) {
    this.#parts = parts;
    const { socket } = parts;
    socket.on("pong", () => {
      this.#answered = true;
    });
    // Answered only when nothing waits: who sends pings and does not read would fill the memory with answers.
    socket.on("ping", (data) => {
      if (socket.bufferedAmount === 0) socket.pong(data);
    });
    // A frame that breaks the rules closes the connection by itself, and the end is told by `close`.
    socket.on("error", () => {});
    socket.on("close", () => this.#end());
    this.#planPing();
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  put(key: string, text: string, place: "kept" | "last" = "kept"): void {
    if (this.#wasCut || this.gone.aborted) return;
    if (place === "last") this.#waiting.delete(key);
    this.#waiting.set(key, text);
    if (this.#waiting.size > this.#parts.limits.waitingMessages) return this.#cut("slow");
    if (!this.#sending) this.#parts.turns.add(this);
  }

  /** Hands over what waits, as far as it fits into one write; the rest when that has left. */
  send(): void {
    const texts = this.#takeBatch();
    if (texts.length === 0) return;
    const { socket, connection, clock, limits, turns } = this.#parts;
    this.#sending = true;
    this.#cancelSend = clock.timer(limits.sendMs, () => this.#cut("slow"));
    let left = texts.length;
    connection.cork();
    for (const text of texts) {
      socket.send(text, (error) => {
        left--;
        // After an error comes `close`.
        if (left > 0 || error) return;
        this.#cancelSend();
        this.#sending = false;
        if (this.#waiting.size > 0) turns.add(this);
      });
    }
    connection.uncork();
  }

  #takeBatch(): readonly string[] {
    const texts: string[] = [];
    let bytes = 0;
    for (const [key, text] of this.#waiting) {
      this.#waiting.delete(key);
      texts.push(text);
      bytes += text.length;
      if (texts.length >= BATCH.messages || bytes >= BATCH.bytes) break;
    }
    return texts;
  }

  #planPing(): void {
    const { socket, clock, limits } = this.#parts;
    this.#cancelPing = clock.timer(limits.pingMs, () => {
      if (!this.#answered) return this.#cut("silent");
      this.#answered = false;
      if (socket.readyState === socket.OPEN) socket.ping();
      this.#planPing();
    });
  }

  #cut(reason: CutReason): void {
    this.#wasCut = true;
    this.#waiting.clear();
    this.#parts.onCut(reason);
    this.#parts.socket.terminate();
  }

  #end(): void {
    this.#cancelSend();
    this.#cancelPing();
    this.#parts.turns.remove(this);
    this.#waiting.clear();
    this.#gone.abort();
  }
}
