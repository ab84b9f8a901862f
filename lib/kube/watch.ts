/**
 * The watch: the state, then what changes, and the state anew whenever a change may have been missed.
 *
 * Why it may be relied on:
 * - It goes on from the version that it told last, so a break loses nothing: the server keeps what follows.
 * - When the server does not keep it any more (410), it lists and says so.
 * - A store that went back in time (a restored backup) drops events without an error, since a watch from a version that
 *   is still to come brings nothing. So, before a stream is resumed, one list of one object asks for the store's version;
 *   and a version on the stream that is older than one before it is a sign too. Both lead to a list, and are told.
 * - A stream that is silent for longer than the server's bookmarks allow is dead, and is started anew.
 *
 * It is pulled: nothing is read from the connection that the caller did not ask for, so a slow caller slows the server
 * and does not fill the memory.
 *
 * @module
 */

import { type Clock, DeadlineExceededError, sleep, startDeadline } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import type { KubeObject, ObjectList, Watch, WatchEvent } from "./api.ts";
import { type CallIdentity, GoneError, KubeError, UnavailableError } from "./errors.ts";
import { LineSplitter } from "./lines.ts";
import { abandon, orAbort } from "./streams.ts";
import { isRewound } from "./versions.ts";
import type { WatchLine } from "./watch_lines.ts";

/** Where a watch gets its data. */
export interface WatchSource<T extends KubeObject> {
  /** The call that starts the stream, for errors. */
  readonly call: CallIdentity;
  /** Lists what is watched. */
  list(signal: AbortSignal): Promise<ObjectList<T>>;
  /** The version of the store now. */
  currentVersion(signal: AbortSignal): Promise<string>;
  /** Starts the stream of what follows `version`. */
  open(version: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** Reads one line of the stream. */
  read(line: string): WatchLine<T>;
}

/** What a watch is made of. */
export interface WatchParts {
  readonly clock: Clock;
  readonly entropy: Entropy;
  /** Ends the watch. */
  readonly signal: AbortSignal;
  /** Milliseconds without a byte after which a stream is thought dead. */
  readonly idleTimeoutMs: number;
}

const FIRST_PAUSE_MS = 800;
const LONGEST_PAUSE_MS = 30_000;
const GOOD_AFTER_MS = 120_000;
const SHORTEST_STREAM_MS = 1_000;

/**
 * The pause after a failure: 800 ms, doubled with each failure, at most 30 s; and up to a fifth more, so that many clients
 * do not come back at once (kubernetes-plugin 10, and the jitter of section 4).
 *
 * @param failures How many failures came before this one.
 * @param fraction A random number of 0 or more and below 1.
 * @returns Milliseconds.
 */
export function pauseAfter(failures: number, fraction: number): number {
  const base = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 10), LONGEST_PAUSE_MS);
  return base + Math.floor(base / 5 * fraction);
}

/** Why the state is listed. */
type ListReason = "initial" | "gone" | "rewound" | "requested";

/** The reason with which a step is ended, so that the watch lists. */
const RESTART = Symbol("restart");

/** A watch that runs while it is iterated. It is iterated once. */
export class RunningWatch<T extends KubeObject> implements Watch<T> {
  readonly #source: WatchSource<T>;
  readonly #parts: WatchParts;
  #iterated = false;
  /** Why the next step is a list; `null` when it is a stream. */
  #listReason: ListReason | null = "initial";
  /** The newest version that was told: the stream goes on from it. */
  #known = "";
  /** True when the last step was a list, so that the store cannot have gone back before the stream starts. */
  #listedLast = false;
  /** Ends what is under way: a list, a stream or a pause. */
  #step = new AbortController();
  /** Failures since it was last good for long. */
  #failures = 0;
  #pauseMs = 0;
  /** The monotonic time since which there was no failure, or `null`. */
  #goodSince: number | null = null;
  /** How often the server kept nothing, with no stream between that served. */
  #goneInARow = 0;

  constructor(source: WatchSource<T>, parts: WatchParts) {
    this.#source = source;
    this.#parts = parts;
  }

  restart(): void {
    this.#listReason ??= "requested";
    this.#step.abort(RESTART);
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchEvent<T>> {
    if (this.#iterated) {
      throw new TypeError("Cannot iterate a watch that was iterated before: start another one");
    }
    this.#iterated = true;
    return this.#run();
  }

  async *#run(): AsyncGenerator<WatchEvent<T>, void> {
    const { signal } = this.#parts;
    const onAbort = () => this.#step.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      while (!signal.aborted) {
        this.#step = new AbortController();
        const failure = yield* this.#runStep(this.#step.signal);
        if (failure !== null) yield { type: "failed", error: failure };
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#step.abort();
    }
  }

  /** Runs one step, and says what failed in a way that the caller is to know. */
  async *#runStep(step: AbortSignal): AsyncGenerator<WatchEvent<T>, KubeError | null> {
    try {
      await this.#pause(step);
      if (this.#listReason !== null) yield* this.#list(this.#listReason, step);
      else yield* this.#stream(step);
      return null;
    } catch (error) {
      if (step.aborted) return null;
      if (!(error instanceof KubeError)) throw error;
      if (error instanceof GoneError) {
        this.#listReason = "gone";
        this.#goneInARow++;
        if (this.#goneInARow === 1) return null;
      }
      this.#planPause();
      return error;
    }
  }

  /** Lists the state and tells it. */
  async *#list(reason: ListReason, step: AbortSignal): AsyncGenerator<WatchEvent<T>, void> {
    const known = this.#known;
    const list = await orAbort(this.#source.list(step), step);
    this.#listReason = null;
    this.#listedLast = true;
    this.#known = list.resourceVersion;
    if (reason === "initial") {
      yield { type: "initial", list };
    } else {
      const rewound = isRewound(list.resourceVersion, known);
      yield { type: "restarted", reason: rewound ? "rewound" : reason, list };
    }
  }

  /** Tells what follows the version told last, until the stream ends. */
  async *#stream(step: AbortSignal): AsyncGenerator<WatchEvent<T>, void> {
    const { clock } = this.#parts;
    if (!this.#listedLast && await this.#wentBack(step)) return;
    this.#listedLast = false;
    const end = new AbortController();
    const body = await this.#source.open(this.#known, AbortSignal.any([step, end.signal]));
    const openedMs = clock.monotonic();
    this.#goodSince ??= openedMs;
    const reader = body.getReader();
    const splitter = new LineSplitter();
    let served = false;
    try {
      for (;;) {
        const chunk = await this.#nextChunk(reader, step, end);
        served ||= chunk !== null || clock.monotonic() - openedMs >= SHORTEST_STREAM_MS;
        if (served) this.#goneInARow = 0;
        if (chunk === null) break;
        for (const text of splitter.push(chunk)) {
          const line = this.#source.read(text);
          if (line.type === "error") throw line.error;
          if (isRewound(line.version, this.#known)) {
            this.#listReason = "rewound";
            return;
          }
          this.#known = line.version;
          if (line.type === "bookmark") continue;
          yield line.type === "undecodable"
            ? { type: "undecodable", object: line.object }
            : { type: line.type, object: line.object };
          step.throwIfAborted();
        }
      }
    } finally {
      abandon(reader);
      end.abort();
    }
    if (!served) throw new UnavailableError(this.#source.call);
  }

  /** Asks whether the store has an older version than the one that was told. */
  async #wentBack(step: AbortSignal): Promise<boolean> {
    const known = this.#known;
    const current = await orAbort(this.#source.currentVersion(step), step);
    if (!isRewound(current, known)) return false;
    this.#listReason = "rewound";
    return true;
  }

  /** The next bytes, or `null` when the stream ended or was silent for too long. */
  async #nextChunk(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    step: AbortSignal,
    end: AbortController,
  ): Promise<Uint8Array | null> {
    using idle = startDeadline(this.#parts.clock, this.#parts.idleTimeoutMs, step);
    try {
      const { value } = await orAbort(reader.read(), idle.signal);
      return value ?? null;
    } catch (cause) {
      if (idle.expired) {
        // The reason tells the connection below that it is not to be used again.
        end.abort(new DeadlineExceededError(this.#parts.idleTimeoutMs));
        return null;
      }
      step.throwIfAborted();
      throw new UnavailableError(this.#source.call, { cause, fault: "lost" });
    }
  }

  async #pause(step: AbortSignal): Promise<void> {
    const pauseMs = this.#pauseMs;
    this.#pauseMs = 0;
    if (pauseMs > 0) await sleep(this.#parts.clock, pauseMs, step);
  }

  #planPause(): void {
    const { clock, entropy } = this.#parts;
    const good = this.#goodSince;
    if (good !== null && clock.monotonic() - good >= GOOD_AFTER_MS) this.#failures = 0;
    this.#goodSince = null;
    this.#pauseMs = pauseAfter(this.#failures, entropy.fraction());
    this.#failures++;
  }
}
