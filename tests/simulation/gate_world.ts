/**
 * The processes that meet at a group's gate, running the shipped code: hold grants, planners, withdrawers and a direct
 * revocation, each in a process of its own, against one API server in memory.
 *
 * @module
 */

import type { Access } from "../../lib/auth/access.ts";
import { Planner } from "../../lib/group/admission.ts";
import { parseGate } from "../../lib/group/gate_lease.ts";
import { admittedPhase, type PlannedOperation } from "../../lib/group/phases.ts";
import { TopologyReader } from "../../lib/group/topology.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../lib/group/types.ts";
import { createMetrics, type Metrics } from "../../lib/host/metrics.ts";
import type { KubeApi, KubeObject, Stored } from "../../lib/kube/api.ts";
import { HttpApi, staticToken } from "../../lib/kube/mod.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import { Adoption } from "../../lib/lease/adoption.ts";
import { LeaseCoordinator } from "../../lib/lease/coordinator.ts";
import { exactLeaseTime } from "../../lib/lease_time/lease_time.ts";
import { LeaseMetrics } from "../../lib/lease/metrics.ts";
import { gateName, holdName } from "../../lib/records/names.ts";
import { KeyedQueue } from "../../lib/lease/queue.ts";
import { hashToken } from "../../lib/records/record.ts";
import { readForRevocation, revokeGroup } from "../../lib/lease/revoke.ts";
import { LeaseStore } from "../../lib/records/store.ts";
import { type CoordinatorParts, inGroupTurn } from "../../lib/lease/turn.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { readDefinitions } from "../../handlers/commands/demo/crds.ts";
import { ordersGroup, stableStatus } from "../service/orders.ts";
import { ScheduledApi, Scheduler } from "./scheduler.ts";

/** How many processes of each kind there are. */
export interface Cast {
  readonly planners?: readonly PlannedOperation[];
  readonly grants?: number;
  readonly withdrawers?: number;
  readonly revokers?: number;
}

/** Which kind of process a {@linkcode Fault} is in. */
export type Role = "planner" | "grant" | "withdrawer" | "revoker";

/** Changes the way of one kind of process to the cluster, so that it breaks a rule of the protocol. */
export interface Fault {
  readonly role: Role;
  readonly wrap: (api: KubeApi) => KubeApi;
}

/** Where the group is. */
export const NAMESPACE = "database-ns";
/** The group. */
export const GROUP = "orders";
const OPERATION = "op-1";
const CALLER = { namespace: "app-ns", serviceAccount: "deployer" };
const INSTANCE = "tenant";

const groupName = { namespace: NAMESPACE, name: GROUP };
const signal = new AbortController().signal;
const options = { signal };
const crds = readDefinitions();

const access: Access = {
  caller: CALLER,
  group: GROUP,
  namespace: () => Promise.resolve(NAMESPACE),
  confirm: () => Promise.resolve({ namespace: NAMESPACE, instances: [INSTANCE], sole: INSTANCE }),
  granted: null,
};

/** A world that begins anew as often as it is asked. */
export class GateWorld implements Disposable {
  readonly #clock = new TestClock();
  readonly #fake = new FakeCluster({
    clock: this.#clock,
    entropy: seededEntropy(1),
    historyLimit: 50,
  });
  readonly #api: KubeApi;
  readonly #metrics: Metrics = createMetrics({ clock: this.#clock });
  readonly #leaseMetrics = new LeaseMetrics(this.#metrics.registry, this.#clock);
  readonly #cast: Cast;
  readonly #fault: Fault | undefined;
  #start: { readonly group: MysqlFailoverGroup; readonly leases: readonly Lease[] } | null = null;
  #scheduler = this.#newScheduler();
  /** What each process was answered so far: with the same answers it is in the same state. */
  readonly #answers = new Map<string, string[]>();
  /** How often each object was written, by version: versions themselves differ from run to run. */
  readonly #versions = new Map<string, string>();
  readonly #writes = new Map<string, number>();
  readonly #tokens = new Set<string>();
  readonly #stored = new Set<string>();
  #revokedAll = false;

  constructor(cast: Cast, fault?: Fault) {
    this.#cast = cast;
    this.#fault = fault;
    for (const crd of crds) this.#fake.apply(crd);
    this.#api = new HttpApi({
      baseUrl: "https://fake",
      fetch: this.#fake.fetch,
      credentials: staticToken(this.#fake.adminToken),
      clock: this.#clock,
      entropy: seededEntropy(2),
      defaultNamespace: NAMESPACE,
    });
  }

  get scheduler(): Scheduler {
    return this.#scheduler;
  }

  /** Puts everything back to the start: a stable group, its gate, and the mutex held by the operation of the grants. */
  async begin(): Promise<void> {
    await this.#reset();
    this.#scheduler = this.#newScheduler();
    for (const [role, count] of this.#counts()) {
      for (let index = 0; index < count; index++) void this.#run(role, index);
    }
    await this.#settle();
  }

  /** Lets a waiting call through. With `lost` it is served, and its answer never comes. */
  async step(index: number, lost = false): Promise<string> {
    const call = this.#scheduler.choices[index];
    if (call === undefined) throw new RangeError(`Cannot step as there is no call ${index}`);
    await this.#scheduler.step(call, lost);
    await this.#settle();
    return lost ? `${call.label} (answer lost)` : call.label;
  }

  /** What is wrong in this state, or `null`. */
  violation(): string | null {
    const group = this.#group();
    const phase = admittedPhase(group);
    const live = this.#fake.readAll(LEASES, NAMESPACE).some((lease) => {
      if (lease.metadata.name !== holdName(GROUP, OPERATION)) return false;
      const record = JSON.parse(
        lease.metadata.annotations?.["bloodraven.shipstream.io/deployment-lease"] ?? "{}",
      );
      return record.state === "active" && this.#tokens.has(record.tokenHash);
    });
    if (live && phase !== null) return `a hold was granted and is active beside ${phase}`;
    if (this.#stored.size > 1) return "two admissions wrote their phase";
    if (live && this.#revokedAll) return "a hold is active after all were revoked";
    return null;
  }

  /** The admission that the gate carries, or `null`. */
  planned() {
    const gate = this.#fake.read(LEASES, { namespace: NAMESPACE, name: gateName(GROUP) });
    if (gate === null) return null;
    return parseGate(stored(gate), this.#group().metadata.uid ?? "").planned;
  }

  /** True when a grant was answered with a lease. */
  get granted(): boolean {
    return this.#tokens.size > 0;
  }

  /** True when status shows a phase that only an admission writes. */
  phaseInStatus(): boolean {
    return admittedPhase(this.#group()) !== null;
  }

  /** True when a planner knows that its phase is written. */
  get phaseWritten(): boolean {
    return this.#stored.size > 0;
  }

  /** Two runs with the same key go on in the same way. */
  key(): string {
    return JSON.stringify([
      [...this.#answers].toSorted(([a], [b]) => a < b ? -1 : 1),
      this.#scheduler.waiting,
      this.#fake.readAll(LEASES, NAMESPACE).map((lease) => this.#canonical(lease)),
      this.#canonical(this.#group()),
    ]);
  }

  [Symbol.dispose](): void {
    this.#metrics[Symbol.dispose]();
  }

  #counts(): readonly (readonly [Role, number])[] {
    const { planners = [], grants = 0, withdrawers = 0, revokers = 0 } = this.#cast;
    return [
      ["planner", planners.length],
      ["grant", grants],
      ["withdrawer", withdrawers],
      ["revoker", revokers],
    ];
  }

  async #run(role: Role, index: number): Promise<void> {
    const name = `${role}-${index}`;
    const scheduled = new ScheduledApi(this.#api, this.#scheduler, name);
    const api = this.#fault?.role === role ? this.#fault.wrap(scheduled) : scheduled;
    try {
      if (role === "planner") await this.#plan(api, name, index);
      if (role === "grant") await this.#grant(api, name);
      if (role === "withdrawer") await this.#withdraw(api, name);
      if (role === "revoker") await this.#revoke(api, name);
    } catch {
      // A process that gives up after its tries: the state that it leaves is judged like any other.
    }
  }

  async #plan(api: KubeApi, name: string, index: number): Promise<void> {
    const planner = this.#planner(api, name);
    const operation = this.#cast.planners?.[index] ?? "PlannedFailover";
    const result = await planner.admitPlanned(stored(this.#group()), operation, options);
    if (result.type !== "admitted") return;
    const phase = await planner.writePhase(result, () => phaseOf(operation), options);
    if (phase.type !== "stored") return;
    this.#stored.add(result.admission.id);
    await planner.clear(result.group, result.admission, options);
  }

  async #grant(api: KubeApi, name: string): Promise<void> {
    const coordinator = new LeaseCoordinator(this.#parts(api, name));
    const input = {
      kind: "failover-hold",
      operationId: OPERATION,
      instance: INSTANCE,
      ttlSeconds: 30,
    } as const;
    const result = await coordinator.grant(access, input, signal);
    if (result.type === "granted") this.#tokens.add(hashToken(result.token));
  }

  /** Takes back whatever admission it finds. */
  async #withdraw(api: KubeApi, name: string): Promise<void> {
    const found = await this.#scheduler.wait(
      name,
      "finds an admission",
      () => Promise.resolve(this.planned()),
      () => this.planned() !== null,
    );
    if (found === null) return;
    await this.#planner(api, name).withdraw(stored(this.#group()), found, options);
  }

  /** A direct revocation: it writes the mutex first, and then the holds that are listed. */
  async #revoke(api: KubeApi, name: string): Promise<void> {
    const parts = this.#parts(api, name);
    await inGroupTurn(parts, { namespace: NAMESPACE, name: GROUP }, signal, async (turn) => {
      const topology = await readForRevocation(turn, new Adoption());
      await revokeGroup(turn, topology, { reason: "operator_revoked" });
    });
    this.#revokedAll = true;
  }

  #planner(api: KubeApi, name: string): Planner {
    return new Planner({ ...this.#parts(api, name), api, by: name, maxClockOffsetMs: 1_000 });
  }

  #parts(api: KubeApi, name: string): CoordinatorParts {
    const clock = this.#clock;
    return {
      store: new LeaseStore(api),
      topology: new TopologyReader({ api, clock, maxStatusAgeMs: 0 }),
      time: exactLeaseTime(clock),
      clock,
      entropy: seededEntropy(seedOf(name)),
      queue: new KeyedQueue(),
      metrics: this.#leaseMetrics,
      leads: () => true,
      limits: { maxClockOffsetMs: 1_000, maxHoldAgeMs: 0 },
    };
  }

  /** Reads of what only the reader itself writes have no order with others: they are not worth a choice. */
  async #settle(): Promise<void> {
    for (;;) {
      const own = this.#cast.revokers || (this.#cast.grants ?? 0) > 1 ? undefined : (
        this.#scheduler.choices.find(({ label }) =>
          label.startsWith("grant-") && label.endsWith(`get leases ${holdName(GROUP, OPERATION)}`)
        )
      );
      if (own === undefined) return;
      await this.#scheduler.step(own);
    }
  }

  async #reset(): Promise<void> {
    this.#answers.clear();
    this.#versions.clear();
    this.#writes.clear();
    this.#tokens.clear();
    this.#stored.clear();
    this.#revokedAll = false;
    const start = this.#start ??= await this.#makeStart();
    for (const { metadata } of this.#fake.readAll(LEASES, NAMESPACE)) {
      this.#fake.remove(LEASES, { namespace: NAMESPACE, name: metadata.name ?? "" });
    }
    this.#fake.seed(MYSQL_FAILOVER_GROUPS, start.group);
    for (const lease of start.leases) this.#fake.seed(LEASES, lease);
  }

  async #makeStart() {
    this.#fake.seed(MYSQL_FAILOVER_GROUPS, {
      ...ordersGroup(NAMESPACE, GROUP),
      status: stableStatus,
    });
    const input = { kind: "migration", operationId: OPERATION, instance: INSTANCE } as const;
    const coordinator = new LeaseCoordinator(this.#parts(this.#api, "start"));
    await coordinator.grant(access, { ...input, ttlSeconds: 120 }, signal);
    return { group: this.#group(), leases: this.#fake.readAll(LEASES, NAMESPACE) };
  }

  #newScheduler(): Scheduler {
    return new Scheduler((process, label, outcome) => {
      const answers = this.#answers.get(process) ?? [];
      // Calls that were made at once are awaited together: the order of their answers leaves no trace in a process.
      const nth = answers.filter((answer) => answer.startsWith(`${label} #`)).length;
      answers.push(`${label} #${nth} = ${this.#canonical(outcome)}`);
      answers.sort();
      this.#answers.set(process, answers);
    });
  }

  #group(): MysqlFailoverGroup {
    const group = this.#fake.read(MYSQL_FAILOVER_GROUPS, groupName);
    if (group === null) throw new Error("Cannot go on as the group is gone");
    return group;
  }

  /** Text in which a version is the number of writes of its object, and an identity that was drawn is left out. */
  #canonical(value: unknown): string {
    return JSON.stringify(value, (key, member) => {
      // The version of a list is the count of all writes everywhere: nobody here uses it.
      if (key === "uid" || key === "resourceVersion") return undefined;
      const metadata = metadataOf(member);
      if (metadata === null) return member;
      const { resourceVersion, ...rest } = metadata;
      return { ...member, metadata: { ...rest, version: this.#count(rest.name, resourceVersion) } };
    });
  }

  #count(name = "", version = ""): string {
    const known = this.#versions.get(version);
    if (known !== undefined) return known;
    const count = this.#writes.get(name) ?? 0;
    this.#writes.set(name, count + 1);
    this.#versions.set(version, `${name}@${count}`);
    return `${name}@${count}`;
  }
}

function metadataOf(value: unknown): KubeObject["metadata"] | null {
  if (typeof value !== "object" || value === null || !("metadata" in value)) return null;
  const { metadata } = value as KubeObject;
  return metadata.resourceVersion === undefined || metadata.name === undefined ? null : metadata;
}

function phaseOf(operation: PlannedOperation): Readonly<Record<string, unknown>> {
  if (operation === "PlannedFailover") return { plannedFailover: { phase: "Pending" } };
  if (operation === "OrderedUpdate") return { updatePhase: "UpdateReplica" };
  return { restoreInPlace: { phase: "Fencing" } };
}

function stored<T extends KubeObject>(object: T): Stored<T> {
  return object as Stored<T>;
}

function seedOf(name: string): number {
  return [...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0) | 0, 7);
}
