/**
 * What was asked of the fake cluster, for tests that count calls.
 *
 * @module
 */

/** One call, in the terms of RBAC. */
export interface Call {
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`; for other paths the method in lower case. */
  readonly verb: string;
  /** `leases.coordination.k8s.io`, `configmaps`, `widgets.example.io/status`; for other paths the path. */
  readonly resource: string;
  /** Empty for the whole cluster. */
  readonly namespace: string;
  /** Empty when the URL has none. */
  readonly name: string;
  /** Who called, for example `system:serviceaccount:app:bot`. */
  readonly user: string;
  /** The query of the URL, without the question mark. */
  readonly query: string;
}

/** A call in the log. */
export interface LoggedCall extends Call {
  /** What was answered; `null` while there is no answer, and when it never came. */
  readonly status: number | null;
}

/**
 * What to count. Members that are left out match all. As in a fault's rule, a resource may leave its API group out:
 * `leases` matches `leases.coordination.k8s.io`.
 */
export type CallFilter = Partial<Omit<LoggedCall, "query">>;

/** True when a resource is the one that a test names, with its API group or without. */
export function namesResource(named: string, resource: string): boolean {
  return named === resource || named === resource.replace(/^([^./]+)\.[^/]*/, "$1");
}

/** The log keeps this many of the last calls; the counters count all. */
const KEPT_CALLS = 10_000;

/** The calls since the last reset. */
export class CallLog {
  #calls: { call: Call; status: number | null }[] = [];
  #total = 0;

  /** The calls in the order in which they came: the last 10,000 of them. */
  get entries(): readonly LoggedCall[] {
    return this.#calls.map(({ call, status }) => ({ ...call, status }));
  }

  /** How many calls there were, also those that the log keeps no more. */
  get total(): number {
    return this.#total;
  }

  /**
   * How many calls match, of those that the log keeps.
   *
   * ```ts
   * async function updatesOf(calls: CallLog, work: () => Promise<void>): Promise<number> {
   *   calls.reset();
   *   await work();
   *   return calls.count({ verb: "update", resource: "leases.coordination.k8s.io" });
   * }
   * ```
   */
  count(filter: CallFilter = {}): number {
    return this.entries.filter((call) =>
      (filter.verb ?? call.verb) === call.verb &&
      (filter.resource === undefined || namesResource(filter.resource, call.resource)) &&
      (filter.namespace ?? call.namespace) === call.namespace &&
      (filter.name ?? call.name) === call.name &&
      (filter.user ?? call.user) === call.user &&
      (filter.status === undefined || filter.status === call.status)
    ).length;
  }

  /** Forgets all calls. */
  reset(): void {
    this.#calls = [];
    this.#total = 0;
  }

  /** Notes a call. The function that it returns notes the status of its answer. */
  record(call: Call): (status: number) => void {
    const entry: { call: Call; status: number | null } = { call, status: null };
    this.#calls.push(entry);
    this.#total++;
    if (this.#calls.length > KEPT_CALLS * 2) this.#calls = this.#calls.slice(-KEPT_CALLS);
    return (status) => {
      entry.status = status;
    };
  }
}
