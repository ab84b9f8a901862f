/**
 * Faults on purpose: what goes wrong, for which calls, and how often.
 *
 * @module
 */

import { type Call, namesResource } from "./calls.ts";

/** What goes wrong. */
export type Fault =
  | {
    /** The call is served this much later. */
    readonly type: "latency";
    /** Milliseconds on the injected clock. */
    readonly ms: number;
  }
  | {
    /** The call is refused, and not served. */
    readonly type: "status";
    /** For example 403, 409, 429, 500 or 503. */
    readonly code: number;
    /** Sets `Retry-After`. Without it there is no such header. */
    readonly retryAfterSeconds?: number;
  }
  /** No answer begins, and the call is not served. When the fault is removed it is served, as by a network that thaws. */
  | { readonly type: "hang" }
  /** The call is served; its answer stops in the middle of its body until the fault is removed. */
  | { readonly type: "hang-body" }
  /** The connection breaks before the call is served. */
  | { readonly type: "reset" }
  | {
    /** The call is served and a write is stored, but its answer is lost. */
    readonly type: "lost-answer";
    /** `reset`: the connection breaks. `hang`: nothing comes until the fault is removed, and then the answer. */
    readonly as: "hang" | "reset";
  }
  | {
    /** The call is served and a write is stored; the answer comes this much later. */
    readonly type: "delayed-answer";
    /** Milliseconds on the injected clock. */
    readonly ms: number;
  }
  /** Running and new watches fall silent, and stay open. When the fault is removed, what happened meanwhile is told. */
  | { readonly type: "watch-silence" }
  /** Running and new watches break. */
  | { readonly type: "watch-break" }
  /** Running and new watches get a 410 `ERROR` event and end. */
  | { readonly type: "watch-gone" };

/** A fault and the calls that it hits. Members that are left out match all. */
export interface FaultRule {
  readonly fault: Fault;
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`. */
  readonly verb?: string;
  /** `leases` or `leases.coordination.k8s.io`; a subresource is named: `widgets/status`. `/version` for a path. */
  readonly resource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** The user name of the caller. */
  readonly user?: string;
  /** How many calls it hits; all of them when it is left out. */
  readonly count?: number;
  /** How many matching calls pass before the first is hit. @default {0} */
  readonly skip?: number;
}

/** A fault that was added. */
export interface FaultHandle {
  /** How many calls it hit so far. */
  readonly hits: number;
  /** Ends the fault: calls that hang go on. */
  remove(): void;
}

/** The connection is gone, as `fetch` tells it: without a status. */
export class ConnectionLostError extends TypeError {
  override readonly name = "ConnectionLostError";
  constructor() {
    super("The connection was reset");
  }
}

/** A fault that hit one call. */
export interface ActiveFault {
  readonly fault: Fault;
  /** Aborts when the fault is removed. */
  readonly removed: AbortSignal;
}

/** What can be done to a running watch. */
export interface FaultyWatch {
  silence(): void;
  resume(): void;
  break(): void;
  gone(): void;
}

/** The faults of one watch. */
export interface WatchFaults {
  /** Puts the watch under the rules: at once, and for those that come. Returns a function that ends it. */
  attach(watch: FaultyWatch): () => void;
}

interface ActiveRule {
  readonly rule: FaultRule;
  readonly controller: AbortController;
  skipped: number;
  hits: number;
}

const WATCH_FAULTS: readonly Fault["type"][] = ["watch-silence", "watch-break", "watch-gone"];

/** The faults that are there now. */
export class FaultBook {
  readonly #rules = new Set<ActiveRule>();
  readonly #watches = new Map<FaultyWatch, Call>();

  /**
   * Adds a fault. It holds until it is removed, or its count is used up.
   *
   * ```ts
   * // `fake.faults` of a FakeCluster
   * function loseOneAnswer(faults: FaultBook): FaultHandle {
   *   return faults.add({
   *     verb: "update",
   *     resource: "leases",
   *     count: 1,
   *     fault: { type: "lost-answer", as: "reset" },
   *   });
   * }
   * ```
   */
  add(rule: FaultRule): FaultHandle {
    checkRule(rule);
    const active: ActiveRule = { rule, controller: new AbortController(), skipped: 0, hits: 0 };
    this.#rules.add(active);
    if (isWatchFault(rule)) {
      for (const [watch, call] of [...this.#watches]) this.#strike(active, watch, call);
    }
    return {
      get hits() {
        return active.hits;
      },
      remove: () => this.#remove(active),
    };
  }

  /** Removes all faults. */
  clear(): void {
    for (const rule of [...this.#rules]) this.#remove(rule);
  }

  /** The faults that hit a call, in the order in which they were added. Those of running watches are not among them. */
  strike(call: Call): ActiveFault[] {
    return [...this.#rules]
      .filter((active) => !isWatchFault(active.rule) && hits(active, call))
      .map((active) => ({ fault: active.rule.fault, removed: active.controller.signal }));
  }

  /** The faults of the watch that a call starts. */
  forWatch(call: Call): WatchFaults {
    return {
      attach: (watch) => {
        this.#watches.set(watch, call);
        for (const active of [...this.#rules]) {
          if (isWatchFault(active.rule)) this.#strike(active, watch, call);
        }
        return () => this.#watches.delete(watch);
      },
    };
  }

  #strike(active: ActiveRule, watch: FaultyWatch, call: Call): void {
    if (!hits(active, call)) return;
    switch (active.rule.fault.type) {
      case "watch-silence":
        watch.silence();
        active.controller.signal.addEventListener("abort", () => watch.resume(), { once: true });
        break;
      case "watch-break":
        watch.break();
        break;
      default:
        watch.gone();
    }
  }

  #remove(active: ActiveRule): void {
    this.#rules.delete(active);
    active.controller.abort();
  }
}

function isWatchFault(rule: FaultRule): boolean {
  return WATCH_FAULTS.includes(rule.fault.type);
}

function hits(active: ActiveRule, call: Call): boolean {
  const { rule } = active;
  if (!matches(rule, call) || active.hits >= (rule.count ?? Infinity)) return false;
  if (active.skipped < (rule.skip ?? 0)) {
    active.skipped++;
    return false;
  }
  active.hits++;
  return true;
}

function matches(rule: FaultRule, call: Call): boolean {
  return (rule.verb ?? call.verb) === call.verb &&
    (rule.namespace ?? call.namespace) === call.namespace &&
    (rule.name ?? call.name) === call.name &&
    (rule.user ?? call.user) === call.user &&
    (rule.resource === undefined || namesResource(rule.resource, call.resource));
}

function checkRule({ count, skip, fault }: FaultRule): void {
  for (const [name, value] of [["count", count], ["skip", skip]] as const) {
    if (value !== undefined && !(Number.isInteger(value) && value >= 0)) {
      throw new RangeError(
        `Cannot add fault as '${name}' must be a whole number of 0 or more: current value is ${value}`,
      );
    }
  }
  if ("ms" in fault && !(fault.ms >= 0)) {
    throw new RangeError(
      `Cannot add fault as 'ms' must be 0 or more: current value is ${fault.ms}`,
    );
  }
  if (fault.type === "status" && !(fault.code >= 400 && fault.code <= 599)) {
    throw new RangeError(
      `Cannot add fault as 'code' must be a status from 400 to 599: current value is ${fault.code}`,
    );
  }
}
