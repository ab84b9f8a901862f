/**
 * Kubernetes Events: what happened to an object, for whoever looks at it with `kubectl describe`. deploy-api 12,
 * kubernetes-plugin 11.
 *
 * An Event is a courtesy. Writing one never fails the work that it tells of: failures are counted and logged at debug. They
 * are written in the background, one after the other, so that a repeat finds the Event that it repeats.
 *
 * @module
 */

import type { KubeApi } from "../kube/api.ts";
import { KubeError, NotFoundError } from "../kube/errors.ts";
import { microTime } from "../kube/micro_time.ts";
import { type Event, EVENTS } from "../kube/resources.ts";
import { type Clock, DeadlineExceededError, startDeadline } from "../runtime/clock.ts";
import { type Entropy, toHex } from "../runtime/entropy.ts";
import type { Logger } from "../runtime/log.ts";

/** The object that an Event is about. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** The Event is written into this namespace. */
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
}

/** What happened. */
export interface EventReport {
  readonly regarding: EventSubject;
  readonly type: "Normal" | "Warning";
  /** Why, in one word: `LeaderElected`. Cut to 128 characters. */
  readonly reason: string;
  /** What was done, in one word: `Elect`. Cut to 128 characters. */
  readonly action: string;
  /** A sentence for people. Cut to 1,024 bytes. No token, no hash, no text of an upstream error. */
  readonly note: string;
}

/** Counts what becomes of Events. */
export interface EventFigures {
  published(): void;
  failed(): void;
}

/** What an {@linkcode EventWriter} is made of. */
export interface EventWriterParts {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly logger: Logger;
  readonly figures: EventFigures;
  /** The program that reports: a qualified name such as `holdfast`. */
  readonly reportingController: string;
  /** The process that reports, for example the pod. Cut to 128 characters. */
  readonly reportingInstance: string;
}

/** The longest reason, action and reporting instance, in characters: the API server refuses more. */
const MAX_WORD = 128;
/** The longest note, in bytes: the API server refuses more. */
const MAX_NOTE_BYTES = 1_024;
/** The longest name of an object. */
const MAX_NAME = 253;
/** A repeat that comes later than this after the last one is told as a new Event. */
const SERIES_MS = 6 * 60_000;
/** How many Events wait at most. Beyond it the new one is dropped and counted as failed. */
const MAX_WAITING = 1_000;
/** Milliseconds for one write. */
const WRITE_LIMIT_MS = 5_000;

/** An Event that was written, and how often it came. */
interface Series {
  readonly event: Event;
  readonly count: number;
  readonly atMs: number;
}

/** Writes Events. */
export class EventWriter {
  readonly #parts: EventWriterParts;
  readonly #waiting: EventReport[] = [];
  readonly #series = new Map<string, Series>();
  readonly #stopped = new AbortController();
  #writing: Promise<void> | null = null;

  constructor(parts: EventWriterParts) {
    this.#parts = parts;
  }

  /** Writes an Event, in the background. It never throws. */
  report(report: EventReport): void {
    if (this.#stopped.signal.aborted || this.#waiting.length >= MAX_WAITING) {
      this.#fail(report, "dropped");
      return;
    }
    this.#waiting.push(report);
    this.#writing ??= this.#writeAll();
  }

  /**
   * Ends the writer: what waits is written, as far as the time allows, and nothing more is taken.
   *
   * @param limitMs Milliseconds. kubernetes-plugin 11 allows 2000 for the last Event of a process.
   */
  async stop(limitMs: number): Promise<void> {
    using limit = startDeadline(this.#parts.clock, limitMs);
    const over = () => this.#stopped.abort(new DeadlineExceededError(limitMs));
    limit.signal.addEventListener("abort", over, { once: true });
    await this.#writing;
    this.#stopped.abort();
  }

  async #writeAll(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        await this.#write(next);
        this.#parts.figures.published();
      } catch (error) {
        this.#fail(next, error instanceof KubeError ? error.kind : "unknown");
      }
    }
    this.#writing = null;
  }

  async #write(report: EventReport): Promise<void> {
    this.#stopped.signal.throwIfAborted();
    const { clock } = this.#parts;
    this.#forgetOldSeries();
    const key = seriesKey(report);
    const known = this.#series.get(key);
    const repeated = known && await this.#repeat(known);
    const series = repeated ??
      { event: await this.#create(report), count: 1, atMs: clock.monotonic() };
    // Put at the end, so that the oldest come first.
    this.#series.delete(key);
    this.#series.set(key, series);
  }

  /** Counts a repeat in the Event that is there; `null` when that one is gone: Events live for an hour or so. */
  async #repeat({ event, count }: Series): Promise<Series | null> {
    const { api, clock } = this.#parts;
    const { name = "", namespace } = event.metadata;
    const series = { count: count + 1, lastObservedTime: microTime(clock.wall()) };
    try {
      await api.patch(EVENTS, { namespace, name }, { type: "merge", body: { series } }, {
        signal: this.#stopped.signal,
        timeoutMs: WRITE_LIMIT_MS,
      });
      return { event, count: count + 1, atMs: clock.monotonic() };
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  async #create(report: EventReport): Promise<Event> {
    const { api, clock, entropy, reportingController, reportingInstance } = this.#parts;
    const { namespace, name } = report.regarding;
    const suffix = `.${toHex(entropy.bytes(8))}`;
    return await api.create(EVENTS, {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { namespace, name: `${name.slice(0, MAX_NAME - suffix.length)}${suffix}` },
      eventTime: microTime(clock.wall()),
      type: report.type,
      reason: report.reason.slice(0, MAX_WORD),
      action: report.action.slice(0, MAX_WORD),
      note: cutToBytes(report.note, MAX_NOTE_BYTES),
      regarding: { ...report.regarding },
      reportingController,
      reportingInstance: reportingInstance.slice(0, MAX_WORD),
    }, { signal: this.#stopped.signal, timeoutMs: WRITE_LIMIT_MS });
  }

  #forgetOldSeries(): void {
    const now = this.#parts.clock.monotonic();
    for (const [key, { atMs }] of this.#series) {
      if (now - atMs <= SERIES_MS) return;
      this.#series.delete(key);
    }
  }

  #fail({ reason, regarding }: EventReport, error: string): void {
    this.#parts.figures.failed();
    this.#parts.logger.debug("event not written", { reason, regarding: regarding.name, error });
  }
}

/** Which Events are the same one again. The note counts, so that two leases that were revoked are two Events. */
function seriesKey({ regarding, type, reason, action, note }: EventReport): string {
  const { apiVersion, kind, namespace, name, uid = "" } = regarding;
  return JSON.stringify([apiVersion, kind, namespace, name, uid, type, reason, action, note]);
}

/** The longest beginning of a text that fits into so many bytes of UTF-8, whole characters only. */
export function cutToBytes(text: string, most: number): string {
  const buffer = new Uint8Array(most);
  const { read } = new TextEncoder().encodeInto(text, buffer);
  return text.slice(0, read);
}
