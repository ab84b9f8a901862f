/**
 * Watches: a stream of changes, from a version on.
 *
 * @module
 */

import type { Entropy } from "../../runtime/entropy.ts";
import type { CancelTimer, Clock } from "../../runtime/clock.ts";
import { ConnectionLostError, type WatchFaults } from "../faults.ts";
import { ApiError, badRequest, expired } from "./api_error.ts";
import type { JsonObject } from "./json.ts";
import { apiVersionOf, type Kind, kindKey } from "./kinds.ts";
import { integerIn } from "./reads.ts";
import { type Predicate, selectionOf } from "./selectors.ts";
import { type Change, type Store, type StoreListener, withRevision } from "./store.ts";

/** A watch that falls so many events behind is ended, as the server does with a slow client. */
const MAX_PENDING = 10_000;

/** How long a watch lasts that does not say it: between this and twice this. */
const DEFAULT_TIMEOUT_SECONDS = 1_800;

/** What a watch needs beside its query. */
export interface WatchContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly bookmarkIntervalMs: number;
  /** Ends the watch: the client went away, or the server closes. */
  readonly signal: AbortSignal;
  /** The faults that the test asked for. */
  readonly faults: WatchFaults;
  /** The form of an object in an event: itself, or a table. */
  readonly present: (object: JsonObject) => JsonObject;
  /** The watches that are open: each puts itself in, and takes itself out. */
  readonly open: Set<WatchStream>;
}

interface WatchPlan {
  readonly kind: Kind;
  readonly namespace: string;
  readonly matches: Predicate;
  readonly hasBookmarks: boolean;
  readonly timeoutMs: number;
  readonly wantsInitialEnd: boolean;
  /** `null`: begin with the state of now. */
  readonly from: number | null;
}

/** Starts a watch. @throws {ApiError} 400 or 500 for a query that cannot be read. */
export function openWatch(
  kind: Kind,
  namespace: string,
  query: URLSearchParams,
  context: WatchContext,
): WatchStream {
  const version = query.get("resourceVersion") ?? "";
  if (version !== "" && !/^\d+$/.test(version)) {
    throw new ApiError(
      500,
      "",
      `resourceVersion: Invalid value: "${version}": strconv.ParseUint: parsing "${version}": invalid syntax`,
    );
  }
  if (query.get("continue")) throw badRequest("continue is not allowed for a watch");
  const seconds = integerIn(query, "timeoutSeconds") ??
    DEFAULT_TIMEOUT_SECONDS * (1 + context.entropy.fraction());
  return new WatchStream({
    kind,
    namespace,
    matches: selectionOf(query, kind),
    hasBookmarks: query.get("allowWatchBookmarks") === "true" ||
      query.get("allowWatchBookmarks") === "1",
    timeoutMs: seconds * 1000,
    wantsInitialEnd: query.get("sendInitialEvents") === "true",
    from: version === "" || version === "0" ? null : Number(version),
  }, context);
}

/** One running watch. */
export class WatchStream implements StoreListener {
  /** The body of the answer: one JSON object a line. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #plan: WatchPlan;
  readonly #context: WatchContext;
  readonly #cleanups: (() => void)[] = [];
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | null = null;
  #pending: Uint8Array<ArrayBuffer>[] = [];
  #isSilent = false;
  #isEnding = false;
  #isDone = false;
  #cancelBookmark: CancelTimer = () => {};

  constructor(plan: WatchPlan, context: WatchContext) {
    this.#plan = plan;
    this.#context = context;
    this.body = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
        this.#begin();
      },
      pull: () => this.#flush(),
      cancel: () => this.#cleanUp(),
    });
  }

  onChange(change: Change): void {
    const { kind, namespace, matches, from } = this.#plan;
    if (change.kindKey !== kindKey(kind)) return;
    if (namespace !== "" && !change.key.startsWith(`${namespace}/`)) return;
    // A version that is not reached yet: nothing is told before it is.
    if (from !== null && change.revision <= from) return;
    const isIn = change.type !== "DELETED" && matches(change.object);
    const wasIn = change.previous !== null && matches(change.previous);
    if (isIn) this.#send(wasIn ? "MODIFIED" : "ADDED", change.object);
    else if (wasIn && change.previous !== null) {
      // An object that stops matching is shown as it matched last, with the version of the change.
      this.#send("DELETED", withRevision(change.previous, change.revision));
    }
  }

  onRestore(): void {
    this.#break();
  }

  /** Sends a bookmark now, when the watch asked for them. */
  bookmark(annotations: JsonObject = {}): void {
    const { kind, hasBookmarks } = this.#plan;
    if (!hasBookmarks) return;
    const hasAnnotations = Object.keys(annotations).length > 0;
    this.#line({
      type: "BOOKMARK",
      object: {
        kind: kind.kind,
        apiVersion: apiVersionOf(kind),
        metadata: {
          resourceVersion: String(this.#context.store.revision),
          ...(hasAnnotations ? { annotations } : {}),
        },
      },
    });
  }

  #begin(): void {
    const { store, clock, signal, faults } = this.#context;
    const { kind, namespace, matches, from, timeoutMs } = this.#plan;
    if (signal.aborted) {
      this.#fail(signal.reason);
      return;
    }
    const onAbort = () => this.#fail(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#context.open.add(this);
    this.#cleanups.push(
      () => this.#context.open.delete(this),
      () => signal.removeEventListener("abort", onAbort),
      clock.timer(timeoutMs, () => this.#end()),
      () => this.#cancelBookmark(),
      store.subscribe(this),
    );
    this.#scheduleBookmark();
    if (from === null) {
      for (const object of store.list(kindKey(kind), namespace)) {
        if (matches(object)) this.#send("ADDED", object);
      }
      if (this.#plan.wantsInitialEnd) this.bookmark({ "k8s.io/initial-events-end": "true" });
    } else {
      const missed = store.changesAfter(kindKey(kind), from);
      if (missed === null) {
        this.#gone(`too old resource version: ${from} (${store.revision})`);
      } else for (const change of missed) this.onChange(change);
    }
    if (this.#isDone) return;
    this.#cleanups.push(faults.attach({
      silence: () => {
        this.#isSilent = true;
      },
      resume: () => {
        this.#isSilent = false;
        this.#flush();
      },
      break: () => this.#break(),
      gone: () => this.#gone("too old resource version"),
    }));
  }

  #scheduleBookmark(): void {
    if (!this.#plan.hasBookmarks) return;
    const { clock, bookmarkIntervalMs } = this.#context;
    this.#cancelBookmark = clock.timer(bookmarkIntervalMs, () => {
      this.bookmark();
      this.#scheduleBookmark();
    });
  }

  #send(type: string, object: JsonObject): void {
    this.#line({ type, object: this.#context.present(object) });
  }

  #line(event: JsonObject): void {
    if (this.#isDone || this.#isEnding) return;
    this.#pending.push(this.#encoder.encode(`${JSON.stringify(event)}\n`));
    if (this.#pending.length > MAX_PENDING) this.#break();
    else this.#flush();
  }

  /** Hands on as much as the reader takes. A reader that waits asks for more in the middle of it, and so calls it again. */
  #flush(): void {
    const controller = this.#controller;
    if (controller === null || this.#isSilent) return;
    while (this.#pending.length > 0 && (controller.desiredSize ?? 0) > 0) {
      const line = this.#pending.shift();
      if (line) controller.enqueue(line);
    }
    if (this.#pending.length === 0 && this.#isEnding && !this.#isDone) {
      this.#cleanUp();
      controller.close();
    }
  }

  /** 410 as an event, after which the server ends the stream. */
  #gone(message: string): void {
    this.#line({ type: "ERROR", object: expired(message).toStatus() });
    this.#end();
  }

  #end(): void {
    this.#isEnding = true;
    this.#flush();
  }

  #break(): void {
    this.#fail(new ConnectionLostError());
  }

  #fail(reason: unknown): void {
    if (this.#isDone) return;
    this.#cleanUp();
    this.#controller?.error(reason);
  }

  #cleanUp(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#pending = [];
    for (const cleanup of this.#cleanups.splice(0)) cleanup();
  }
}
