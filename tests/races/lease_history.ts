/**
 * Every version of every deployment lease of a namespace, as a watch tells it, and the rules that hold between them.
 *
 * An answer says what a service believes. The history says what happened: whatever a race did, no two operations may have
 * had the mutex, and nothing that ended may live again.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { KubeApi, Stored, WatchEvent } from "../../lib/kube/api.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import {
  DEPLOYMENT_GATE_ANNOTATION,
  DEPLOYMENT_LEASE_ANNOTATION,
} from "../../lib/records/names.ts";
import { type LeaseRecord, parseRecord } from "../../lib/records/record.ts";

const PATIENCE_MS = 20_000;
/** A Lease of the history's own, written to find out how far the watch is. */
const MARKER = "race-marker";

/** One version of an object. */
export interface Version {
  readonly name: string;
  readonly version: bigint;
  readonly deleted: boolean;
  /** When it was written, in milliseconds of lease time. */
  readonly writtenMs: number;
  /** `null` for the gate. */
  readonly record: LeaseRecord | null;
  /** The generation of the gate; `null` for a lease. */
  readonly gateGeneration: number | null;
}

/** Reads a version from an object. */
export function versionOf(lease: Stored<Lease>, deleted: boolean): Version {
  const { name, resourceVersion, annotations = {} } = lease.metadata;
  const record = annotations[DEPLOYMENT_LEASE_ANNOTATION];
  const gate: unknown = JSON.parse(annotations[DEPLOYMENT_GATE_ANNOTATION] ?? "null");
  return {
    name,
    version: BigInt(resourceVersion),
    deleted,
    writtenMs: Date.parse(lease.spec?.renewTime ?? ""),
    record: record === undefined ? null : parseRecord(record),
    gateGeneration: gate === null ? null : Number(Object(gate).generation),
  };
}

/**
 * The rules between versions, told one after the other:
 *
 * - The mutex goes from one operation to another only when the first one's time was over, or it is in its tombstone.
 * - A revoked record is never changed by its own operation again: not extended, not active.
 * - A token that ended, or whose object was deleted, is never active again: renewals neither revive nor recreate.
 * - Nothing is revoked for its generation while the gate knows no newer one.
 */
export class HistoryJudge {
  readonly #found: string[] = [];
  readonly #latest = new Map<string, Version>();
  readonly #endedTokens = new Set<string>();
  readonly #buried = new Set<string>();
  #generation = 0;

  /** What is wrong so far; empty when nothing is. */
  get violations(): readonly string[] {
    return this.#found;
  }

  /** Takes the next version. */
  take(next: Version): void {
    const previous = this.#latest.get(next.name);
    this.#latest.set(next.name, next);
    this.#generation = Math.max(this.#generation, next.gateGeneration ?? 0);
    if (next.record === null) return;
    const { kind, operationId, state, tokenHash } = next.record;
    if (kind === "migration" && state === "revoked") this.#buried.add(operationId);
    if (!next.deleted) {
      const before = previous?.deleted === true ? null : previous?.record ?? null;
      for (const what of this.#faults(before, next.record, next.writtenMs)) {
        this.#found.push(`${next.name} ${operationId}: ${what}`);
      }
    }
    if (next.deleted || state !== "active") this.#endedTokens.add(tokenHash);
  }

  *#faults(before: LeaseRecord | null, after: LeaseRecord, writtenMs: number): Iterable<string> {
    const { operationId, state, tokenHash, reason } = after;
    if (state === "active" && this.#endedTokens.has(tokenHash)) {
      yield "is active again with a token that ended";
    }
    if (before === null) return;
    if (before.operationId !== operationId) {
      const over = Date.parse(before.expiresAt) < writtenMs || this.#buried.has(before.operationId);
      if (before.state === "active" && !over) yield "took the mutex of another";
      return;
    }
    if (before.state === "revoked" && JSON.stringify(before) !== JSON.stringify(after)) {
      yield "changed after its revocation";
    }
    const byGeneration = before.state === "active" && reason === "topology_changed";
    if (byGeneration && this.#generation <= before.topologyGeneration) {
      yield "was revoked for a generation that nobody stored";
    }
  }
}

/** Watches a namespace. */
export class LeaseHistory implements AsyncDisposable {
  readonly #api: KubeApi;
  readonly #namespace: string;
  readonly #judge = new HistoryJudge();
  readonly #stop = new AbortController();
  readonly #waiting = new Set<() => void>();
  readonly #watching: Promise<void>;
  /** Which write gave an object its expiry, for the versions of the last two checks. */
  #expiries: [older: Map<string, bigint>, newer: Map<string, bigint>] = [new Map(), new Map()];
  #seen = -1n;
  #count = 0;

  private constructor(api: KubeApi, namespace: string) {
    this.#api = api;
    this.#namespace = namespace;
    this.#watching = this.#watch();
  }

  /** Starts to watch, and returns when every later change will be seen. */
  static async start(api: KubeApi, namespace: string): Promise<LeaseHistory> {
    const { signal } = new AbortController();
    await api.createNamed(LEASES, { metadata: { name: MARKER, namespace } }, { signal });
    const history = new LeaseHistory(api, namespace);
    await history.#until(0n);
    return history;
  }

  /** How many versions of leases were seen. */
  get count(): number {
    return this.#count;
  }

  /** The version that gave an operation's lease this expiry; `null` when it was not seen lately. */
  versionOf(name: string, operationId: string, expiresAt: string): bigint | null {
    const key = JSON.stringify([name, operationId, expiresAt]);
    const [older, newer] = this.#expiries;
    return older.get(key) ?? newer.get(key) ?? null;
  }

  /** Waits until all that is stored now was seen, and insists that the rules held. */
  async check(): Promise<void> {
    const { signal } = this.#stop;
    const name = { namespace: this.#namespace, name: MARKER };
    // The watch tells all leases in the order of their versions: what is older than the mark was told before it.
    const mark = await this.#api.patch(LEASES, name, {
      type: "merge",
      body: { metadata: { annotations: { mark: crypto.randomUUID() } } },
    }, { signal });
    await this.#until(BigInt(mark.metadata.resourceVersion));
    const [, newer] = this.#expiries;
    this.#expiries = [newer, new Map()];
    assert.deepEqual(this.#judge.violations, []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stop;
    for await (const event of this.#api.watch(LEASES, { namespace: this.#namespace, signal })) {
      this.#take(event);
      for (const wake of this.#waiting) wake();
    }
  }

  #take(event: WatchEvent<Lease>): void {
    switch (event.type) {
      case "initial":
      case "restarted":
        for (const item of event.list.items) this.#takeOne(item, false);
        break;
      case "added":
      case "modified":
      case "deleted":
        this.#takeOne(event.object, event.type === "deleted");
    }
  }

  #takeOne(lease: Stored<Lease>, deleted: boolean): void {
    const version = versionOf(lease, deleted);
    if (version.version > this.#seen) this.#seen = version.version;
    // Leases of others, such as those of the election, are none of ours.
    if (version.record === null && version.gateGeneration === null) return;
    this.#count++;
    const { operationId = "", expiresAt = "" } = version.record ?? {};
    if (this.versionOf(version.name, operationId, expiresAt) === null) {
      const key = JSON.stringify([version.name, operationId, expiresAt]);
      this.#expiries[1].set(key, version.version);
    }
    this.#judge.take(version);
  }

  async #until(version: bigint): Promise<void> {
    const deadline = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      deadline.reject(new Error("Cannot see all changes: the watch is behind"));
    }, PATIENCE_MS);
    try {
      while (this.#seen < version) {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#waiting.add(resolve);
        await Promise.race([promise, deadline.promise]);
        this.#waiting.delete(resolve);
      }
    } finally {
      clearTimeout(timer);
    }
  }
}
