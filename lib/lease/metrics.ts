/**
 * The figures of deployment coordination: deploy-api 10, exact names and labels, and ours beside them.
 *
 * @module
 */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Clock } from "../runtime/clock.ts";
import type { LeaseKind, LeaseRecord } from "../records/record.ts";

/** How a grant ended, as far as the contract counts it. */
export type GrantResult = "granted" | "conflict" | "unstable" | "unauthorized";

/** Both kinds, so that a gauge of one that is gone goes back to 0. */
const kinds: readonly LeaseKind[] = ["migration", "failover-hold"];

/** The oldest lease of a kind of a group: how old it was at a moment of the monotonic clock. */
interface Oldest {
  readonly group: string;
  readonly kind: LeaseKind;
  readonly ageMs: number;
  readonly atMs: number;
}

/** Counts what the coordinator does. */
export class LeaseMetrics {
  readonly #active: Gauge<"group" | "kind">;
  /** By group and kind; only where there is a lease, so that ages grow without anybody looking. */
  readonly #oldest = new Map<string, Oldest>();
  readonly #age: Gauge<"group" | "kind">;
  readonly #clock: Clock;
  readonly #grants: Counter<"group" | "kind" | "result">;
  readonly #expirations: Counter<"group" | "kind">;
  readonly #revocations: Counter<"group" | "kind" | "reason">;
  readonly #retries: Counter<"request">;
  readonly #retractions: Counter<"result">;
  readonly #queueWait: Histogram;

  /**
   * @param registry Where the figures are registered; a second instance needs another one.
   * @param clock Counts the ages on.
   */
  constructor(registry: Registry, clock: Clock) {
    const registers = [registry];
    const oldest = this.#oldest;
    this.#clock = clock;
    this.#active = new Gauge({
      name: "bloodraven_deploy_leases_active",
      help: "Active deployment leases",
      labelNames: ["group", "kind"],
      registers,
    });
    this.#age = new Gauge({
      name: "bloodraven_deploy_lease_age_seconds",
      help: "Age of the oldest active deployment lease, 0 if there is none",
      labelNames: ["group", "kind"],
      registers,
      collect() {
        for (const { group, kind, ageMs, atMs } of oldest.values()) {
          this.set({ group, kind }, (ageMs + clock.monotonic() - atMs) / 1000);
        }
      },
    });
    this.#grants = new Counter({
      name: "bloodraven_deploy_lease_grants_total",
      help: "Grant requests by result",
      labelNames: ["group", "kind", "result"],
      registers,
    });
    this.#expirations = new Counter({
      name: "bloodraven_deploy_lease_expirations_total",
      help: "Leases that ran out",
      labelNames: ["group", "kind"],
      registers,
    });
    this.#revocations = new Counter({
      name: "bloodraven_deploy_lease_revocations_total",
      help: "Leases that were revoked",
      labelNames: ["group", "kind", "reason"],
      registers,
    });
    this.#retries = new Counter({
      name: "holdfast_decide_retries_total",
      help: "Requests that were decided again since somebody else wrote in between",
      labelNames: ["request"],
      registers,
    });
    this.#retractions = new Counter({
      name: "holdfast_retractions_total",
      help: "Grants that were stored and then taken back in the same request",
      labelNames: ["result"],
      registers,
    });
    this.#queueWait = new Histogram({
      name: "holdfast_group_queue_wait_seconds",
      help: "Time that a request waited for its turn in its group",
      buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
      registers,
    });
  }

  /** Counts the end of a grant request; `group` is empty for a caller that is not authorized, to bound cardinality. */
  grant(group: string, kind: LeaseKind, result: GrantResult): void {
    this.#grants.inc({ group, kind, result });
  }

  /** Counts a lease that left `active` by time or by revocation, once its new state is stored. */
  ended(group: string, record: LeaseRecord): void {
    const { kind } = record;
    if (record.state === "expired") this.#expirations.inc({ group, kind });
    if (record.state === "revoked") {
      this.#revocations.inc({ group, kind, reason: record.reason ?? "operator_revoked" });
    }
  }

  /** Shows the active leases of a group, as a complete look found them. */
  show(group: string, active: readonly LeaseRecord[], nowMs: number): void {
    for (const kind of kinds) {
      const found = active.filter((record) => record.kind === kind);
      this.showKind(group, kind, found, nowMs);
    }
  }

  /** Shows the active leases of one kind of a group. */
  showKind(group: string, kind: LeaseKind, active: readonly LeaseRecord[], nowMs: number): void {
    const key = JSON.stringify([group, kind]);
    this.#active.set({ group, kind }, active.length);
    if (active.length === 0) {
      this.#oldest.delete(key);
      this.#age.set({ group, kind }, 0);
      return;
    }
    const createdMs = Math.min(...active.map((record) => Date.parse(record.createdAt)));
    const ageMs = Math.max(0, nowMs - createdMs);
    this.#oldest.set(key, { group, kind, ageMs, atMs: this.#clock.monotonic() });
  }

  /** Drops the gauges: of a group that is gone, or of all groups by a leader that leads no more. */
  forget(group?: string): void {
    if (group === undefined) {
      this.#active.reset();
      this.#oldest.clear();
      this.#age.reset();
      return;
    }
    for (const kind of kinds) {
      this.#active.remove({ group, kind });
      this.#oldest.delete(JSON.stringify([group, kind]));
      this.#age.remove({ group, kind });
    }
  }

  /** Counts a request that was decided once more. */
  retried(request: string): void {
    this.#retries.inc({ request });
  }

  /** Counts a retraction: `restored`, `released`, or `failed` (then the lease ends by its time to live). */
  retraction(result: "restored" | "released" | "failed"): void {
    this.#retractions.inc({ result });
  }

  /** Notes how long a request waited for its turn. */
  waited(seconds: number): void {
    this.#queueWait.observe(seconds);
  }
}
