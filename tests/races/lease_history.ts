/**
 * Every version of every deployment lease of a namespace and of its groups, as watches tell them, and the rules that hold
 * between them.
 *
 * An answer says what a service believes. The history says what happened: whatever a race did, no two operations may have
 * had the mutex, and nothing that ended may live again.
 *
 * @module
 */

import assert from "node:assert/strict";
import { z } from "zod";
import { admittedPhase } from "../../lib/group/phases.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../lib/group/types.ts";
import type { KubeApi, KubeObject, Stored, WatchEvent } from "../../lib/kube/api.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import {
  DEPLOYMENT_GATE_ANNOTATION,
  DEPLOYMENT_LEASE_ANNOTATION,
} from "../../lib/records/names.ts";
import { type LeaseRecord, parseRecord } from "../../lib/records/record.ts";
import { type Admission, type PlannedEvent, PlannedJudge } from "./planned_judge.ts";

const PATIENCE_MS = 20_000;
/** A Lease of the history's own, written to find out how far the watch is. */
const MARKER = "race-marker";
/** A member of status in which the operators of a race say whose phase they wrote. */
export const ADMISSION_MEMBER = "raceAdmission";

const gateForm = z.object({
  generation: z.number(),
  planned: z.object({ id: z.string(), state: z.string() }).nullable(),
});

/** One version of an object. */
export interface Version {
  readonly name: string;
  readonly version: bigint;
  readonly deleted: boolean;
  /** When it was written, in milliseconds of lease time. */
  readonly writtenMs: number;
  /** `null` for the gate. */
  readonly record: LeaseRecord | null;
  /** What the gate says; `null` for a lease. */
  readonly gate: { readonly generation: number; readonly planned: Admission | null } | null;
}

/** Reads a version from an object. */
export function versionOf(lease: Stored<Lease>, deleted: boolean): Version {
  const { name, resourceVersion, annotations = {} } = lease.metadata;
  const record = annotations[DEPLOYMENT_LEASE_ANNOTATION];
  const gate = annotations[DEPLOYMENT_GATE_ANNOTATION];
  return {
    name,
    version: BigInt(resourceVersion),
    deleted,
    writtenMs: Date.parse(lease.spec?.renewTime ?? ""),
    record: record === undefined ? null : parseRecord(record),
    gate: gate === undefined ? null : gateForm.parse(JSON.parse(gate)),
  };
}

/** What the rules of planned operations need of a version; `null` when they need nothing. */
function plannedEvent({ name, version, deleted, record, gate }: Version): PlannedEvent | null {
  if (gate !== null) return { type: "gate", version, planned: deleted ? null : gate.planned };
  if (record?.kind !== "failover-hold") return null;
  const tokenHash = !deleted && record.state === "active" ? record.tokenHash : null;
  return { type: "hold", version, name, tokenHash };
}

/** The phase that a group shows. One that no admission wrote is not under the rules of planned operations. */
function phaseEvent(group: Stored<MysqlFailoverGroup>, deleted: boolean): PlannedEvent {
  const id = z.string().nullish().parse(group.status?.[ADMISSION_MEMBER]) ?? null;
  const phaseOf = deleted || admittedPhase(group) === null ? null : id;
  return { type: "group", version: BigInt(group.metadata.resourceVersion), phaseOf };
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
    this.#generation = Math.max(this.#generation, next.gate?.generation ?? 0);
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
  readonly #plannedJudge = new PlannedJudge();
  /** What two watches and the answers told and nobody judged yet: it is judged in the order of its versions. */
  #pending: PlannedEvent[] = [];
  readonly #stop = new AbortController();
  readonly #waiting = new Set<() => void>();
  readonly #watching: Promise<unknown>;
  /** Which write gave an object its expiry, for the versions of the last two checks. */
  #expiries: [older: Map<string, bigint>, newer: Map<string, bigint>] = [new Map(), new Map()];
  #seen = -1n;
  #seenGroup = -1n;
  #count = 0;

  private constructor(api: KubeApi, namespace: string) {
    this.#api = api;
    this.#namespace = namespace;
    this.#watching = Promise.all([this.#watchLeases(), this.#watchGroups()]);
  }

  /** Starts to watch, and returns when every later change will be seen. */
  static async start(api: KubeApi, namespace: string): Promise<LeaseHistory> {
    const { signal } = new AbortController();
    await api.createNamed(LEASES, { metadata: { name: MARKER, namespace } }, { signal });
    const history = new LeaseHistory(api, namespace);
    await history.#until(() => history.#seen >= 0n && history.#seenGroup >= 0n);
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

  /** Notes that a caller was told of a lease: all that is stored from here on is after that answer. */
  async answered(tokenHash: string): Promise<void> {
    this.#pending.push({ type: "answer", version: await this.#mark(), tokenHash });
  }

  /** Waits until all that is stored now was seen, and insists that the rules held. */
  async check(): Promise<void> {
    // A watch tells its objects in the order of their versions: what is older than the mark was told before it.
    const mark = await this.#mark();
    const groups = await this.#api.list(MYSQL_FAILOVER_GROUPS, {
      namespace: this.#namespace,
      signal: this.#stop.signal,
    });
    const newest = groups.items.map(({ metadata }) => BigInt(metadata.resourceVersion));
    await this.#until(() =>
      this.#seen >= mark && newest.every((version) => this.#seenGroup >= version)
    );
    const [, newer] = this.#expiries;
    this.#expiries = [newer, new Map()];
    const settled = this.#pending.filter(({ version }) => version <= mark);
    this.#pending = this.#pending.filter(({ version }) => version > mark);
    settled.sort((a, b) => a.version < b.version ? -1 : 1);
    for (const event of settled) this.#plannedJudge.take(event);
    assert.deepEqual([...this.#judge.violations, ...this.#plannedJudge.violations], []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  async #watchLeases(): Promise<void> {
    const { signal } = this.#stop;
    for await (const event of this.#api.watch(LEASES, { namespace: this.#namespace, signal })) {
      for (const [lease, deleted] of told(event)) this.#takeLease(lease, deleted);
      for (const wake of this.#waiting) wake();
    }
  }

  async #watchGroups(): Promise<void> {
    const options = { namespace: this.#namespace, signal: this.#stop.signal };
    for await (const event of this.#api.watch(MYSQL_FAILOVER_GROUPS, options)) {
      for (const [group, deleted] of told(event)) {
        const seen = phaseEvent(group, deleted);
        this.#pending.push(seen);
        this.#seenGroup = seen.version;
      }
      for (const wake of this.#waiting) wake();
    }
  }

  /** Writes the marker, and returns the version of that write. */
  async #mark(): Promise<bigint> {
    const mark = await this.#api.patch(LEASES, { namespace: this.#namespace, name: MARKER }, {
      type: "merge",
      body: { metadata: { annotations: { mark: crypto.randomUUID() } } },
    }, { signal: this.#stop.signal });
    return BigInt(mark.metadata.resourceVersion);
  }

  #takeLease(lease: Stored<Lease>, deleted: boolean): void {
    const version = versionOf(lease, deleted);
    if (version.version > this.#seen) this.#seen = version.version;
    // Leases of others, such as those of the election, are none of ours.
    if (version.record === null && version.gate === null) return;
    this.#count++;
    const { operationId = "", expiresAt = "" } = version.record ?? {};
    if (this.versionOf(version.name, operationId, expiresAt) === null) {
      const key = JSON.stringify([version.name, operationId, expiresAt]);
      this.#expiries[1].set(key, version.version);
    }
    this.#judge.take(version);
    const planned = plannedEvent(version);
    if (planned !== null) this.#pending.push(planned);
  }

  async #until(isSo: () => boolean): Promise<void> {
    const deadline = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      deadline.reject(new Error("Cannot see all changes: the watch is behind"));
    }, PATIENCE_MS);
    try {
      while (!isSo()) {
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

/** The objects that an event of a watch tells of, and whether they are gone. */
function told<T extends KubeObject>(
  event: WatchEvent<T>,
): readonly (readonly [object: Stored<T>, deleted: boolean])[] {
  switch (event.type) {
    case "initial":
    case "restarted":
      return event.list.items.map((item) => [item, false] as const);
    case "added":
    case "modified":
    case "deleted":
      return [[event.object, event.type === "deleted"]];
    default:
      return [];
  }
}
