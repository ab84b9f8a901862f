/**
 * The page as it is now, kept from what the watches tell, and every change of it as a message for all that look at it.
 *
 * A change of the cluster is looked at once and its part of the page is drawn once, however many clients there are. What
 * comes within a fifth of a second goes out together.
 *
 * @module
 */

import type { ChangeCause, GroupChange, WholeView } from "../auxiliary/mod.ts";
import type { WebSocketClient } from "../host/web_socket_client.ts";
import { type LeaseInstant, middleOf } from "../lease_time/lease_time.ts";
import type { Clock } from "../runtime/clock.ts";
import { addChanges, happenedBetween, MOST_CHANGES, type PageChange } from "./changes.ts";
import {
  CHANGES_ID,
  difference,
  GROUPS_ID,
  type PagePatch,
  type PageState,
  placeChange,
  type Placed,
  placeGroup,
  placeProblems,
  placeSource,
  placeSummary,
} from "./difference.ts";
import { lookAt, type PageGroup } from "./model.ts";
import { summaryOf } from "./overview.ts";

/** How long changes are collected before they go out, in milliseconds. */
const COLLECT_MS = 200;

/** How often a client hears that this replica is alive, and what time it is, in milliseconds. */
export const BEAT_MS = 10_000;

/** What a {@linkcode LivePage} is made of. */
export interface LivePageParts {
  readonly view: WholeView;
  readonly clock: Clock;
  /** Lease time, or what stands in for it while it is not known. */
  readonly time: () => LeaseInstant;
  /** The name of this replica, once it has one. */
  readonly replica: () => string;
  /** Names this page among those of other replicas and of earlier processes. */
  readonly epoch: string;
  /** Draws a part as HTML. */
  readonly render: (part: Placed) => string;
}

/** Which page it is, and how new. */
export interface PageVersion {
  readonly epoch: string;
  /** Counts the times that changes went out. */
  readonly sequence: number;
}

/** What a client has: it gets what changed since. */
export interface KnownPage extends PageVersion {
  /** The number of the newest line of its time line; 0 for none. */
  readonly change: number;
}

/** The page. */
export class LivePage {
  readonly #parts: LivePageParts;
  readonly #clients = new Set<WebSocketClient>();
  /** The groups as they were looked at last, and when each will look different by itself. */
  readonly #groups = new Map<string, PageGroup>();
  readonly #nexts = new Map<string, number>();
  readonly #touched = new Set<string>();
  /** The sequence with which each group was changed last. */
  readonly #changedWith = new Map<string, number>();
  #removedWith = 0;
  #changes: readonly PageChange[] = [];
  /** What went out last. */
  #state: PageState;
  #sequence = 0;
  readonly #sinceMs: number;
  #cancelFlush: (() => void) | null = null;
  #cancelNext = () => {};

  constructor(parts: LivePageParts) {
    this.#parts = parts;
    this.#sinceMs = middleOf(parts.time());
    this.#state = this.#newState();
  }

  /** What clients have by now. */
  get version(): PageVersion {
    return { epoch: this.#parts.epoch, sequence: this.#sequence };
  }

  /** The page as of {@linkcode LivePage.version}. */
  get state(): PageState {
    return this.#state;
  }

  /** Follows the view until the signal aborts. Call it once. */
  run(signal: AbortSignal): Promise<void> {
    const { view } = this.#parts;
    const end = view.subscribe((changes, cause) => this.#take(changes, cause));
    for (const key of [...view.keys(), ...view.unreadable.keys()]) this.#look(key, "initial");
    this.#flush();
    let cancelBeat = this.#planBeat((cancel) => cancelBeat = cancel);
    return new Promise((resolve) => {
      const stop = () => {
        end();
        cancelBeat();
        this.#cancelNext();
        this.#cancelFlush?.();
        resolve();
      };
      if (signal.aborted) stop();
      else signal.addEventListener("abort", stop, { once: true });
    });
  }

  /**
   * Gives a client what it lacks, and remembers it for what comes.
   *
   * @param has What it has; `null` for nothing.
   */
  open(client: WebSocketClient, has: KnownPage | null): void {
    if (client.gone.aborted) return;
    const current = has?.epoch === this.#parts.epoch && has.sequence <= this.#sequence;
    const known = current ? has.sequence : -1;
    const { source, groups, changes, summary, problems } = this.#state;
    // What a client shows and is not among these is gone.
    if (known < this.#removedWith) {
      this.#keep(client, GROUPS_ID, [...groups.values()].map(placeGroup));
    }
    if (!current) {
      this.#keep(client, CHANGES_ID, changes.map(placeChange));
      this.#put(client, placeSource(source));
    }
    if (known < this.#sequence) {
      for (const placed of [placeSummary(summary), placeProblems(problems)]) {
        this.#put(client, placed);
      }
      for (const group of groups.values()) {
        if ((this.#changedWith.get(group.key) ?? 0) > known) this.#put(client, placeGroup(group));
      }
      const lines = changes.filter(({ number }) => !current || number > has.change);
      for (const change of lines.toReversed()) this.#put(client, placeChange(change));
    }
    this.#tellVersion([client]);
    this.#clients.add(client);
    client.gone.addEventListener("abort", () => this.#clients.delete(client), { once: true });
  }

  #take(changes: readonly GroupChange[], cause: ChangeCause): void {
    for (const { key } of changes) this.#look(key, cause);
    this.#cancelFlush ??= this.#parts.clock.timer(COLLECT_MS, () => this.#flush());
  }

  #look(key: string, cause: ChangeCause | "time"): void {
    const { view, time } = this.#parts;
    this.#touched.add(key);
    const sight = view.sight(key);
    const unreadable = view.unreadable.get(key);
    const look = lookAt({
      groups: {
        items: sight === null ? [] : [sight.group],
        undecodable: unreadable === undefined ? [] : [unreadable],
      },
      leases: {
        items: sight === null ? [] : [...sight.leases, ...sight.strangers],
        undecodable: [],
      },
    }, time());
    if (look === null) {
      this.#groups.delete(key);
      this.#nexts.delete(key);
      return;
    }
    const before = this.#groups.get(key) ?? null;
    if (cause !== "initial") {
      this.#changes = addChanges(
        this.#changes,
        happenedBetween(before, look.group),
        middleOf(time()),
      );
    }
    this.#groups.set(key, look.group);
    if (look.nextMs === null) this.#nexts.delete(key);
    else this.#nexts.set(key, look.nextMs);
  }

  /** Sends what changed since the last time. */
  #flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = null;
    const before = this.#state;
    const after = this.#newState();
    const touched = [...this.#touched];
    this.#touched.clear();
    const patches = difference(before, after, touched);
    this.#state = after;
    if (patches.length > 0) {
      this.#sequence++;
      for (const key of touched) this.#note(key, before, after);
      for (const patch of patches) this.#send(patch);
      this.#tellVersion(this.#clients);
    }
    this.#planNext();
  }

  #note(key: string, before: PageState, after: PageState): void {
    if (after.groups.has(key)) {
      this.#changedWith.set(key, this.#sequence);
      return;
    }
    this.#changedWith.delete(key);
    if (before.groups.has(key)) this.#removedWith = this.#sequence;
  }

  #newState(): PageState {
    const { view } = this.#parts;
    return {
      source: { replica: this.#parts.replica(), sinceMs: this.#sinceMs },
      groups: new Map([...this.#groups].sort(([a], [b]) => a < b ? -1 : 1)),
      summary: summaryOf(this.#groups.values()),
      changes: this.#changes,
      problems: [
        ...(view.synced ? [] : ["This replica has not seen the cluster yet"]),
        ...view.troubles,
      ],
    };
  }

  /** Looks again at what looks different once some time is over. */
  #planNext(): void {
    this.#cancelNext();
    this.#cancelNext = () => {};
    if (this.#nexts.size === 0) return;
    const { clock, time } = this.#parts;
    const waitMs = Math.min(...this.#nexts.values()) - middleOf(time());
    this.#cancelNext = clock.timer(Math.max(COLLECT_MS, waitMs), () => {
      const nowMs = middleOf(time());
      for (const [key, atMs] of [...this.#nexts]) if (atMs <= nowMs) this.#look(key, "time");
      this.#flush();
    });
  }

  #planBeat(planned: (cancel: () => void) => void): () => void {
    return this.#parts.clock.timer(BEAT_MS, () => {
      // What troubles a watch is told by no event.
      this.#flush();
      this.#tellVersion(this.#clients);
      planned(this.#planBeat(planned));
    });
  }

  #send(patch: PagePatch): void {
    if (this.#clients.size === 0) return;
    const text = patch.type === "put" ? this.#draw(patch) : this.#message({ id: patch.id });
    for (const client of this.#clients) client.put(lineKey(patch), text);
  }

  #put(client: WebSocketClient, placed: Placed): void {
    client.put(lineKey({ type: "put", ...placed }), this.#draw(placed));
  }

  #keep(client: WebSocketClient, into: string, parts: readonly Placed[]): void {
    client.put(into, this.#message({ into, keep: parts.map(({ id }) => id) }));
  }

  #draw(placed: Placed): string {
    const { id, into } = placed;
    return this.#message({ id, into, html: this.#parts.render(placed) });
  }

  /** How new the page is, which is true behind all that came before it. */
  #tellVersion(clients: Iterable<WebSocketClient>): void {
    const { epoch, time } = this.#parts;
    const text = this.#message({ epoch, at: Math.round(middleOf(time())) });
    for (const client of clients) client.put("version", text, "last");
  }

  #message(content: Readonly<Record<string, unknown>>): string {
    return JSON.stringify({ sequence: this.#sequence, ...content });
  }
}

/** By what a client's waiting messages are told apart: lines of the time line share as many places as are kept. */
function lineKey(patch: PagePatch): string {
  if (patch.type === "put" && patch.part.part === "change") {
    return `change:${patch.part.change.number % MOST_CHANGES}`;
  }
  return patch.id;
}
