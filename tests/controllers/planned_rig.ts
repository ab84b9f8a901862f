/**
 * A rig with the controllers of planned operations, and the hands of a user and of an operator.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Housekeeping } from "../../lib/controllers/housekeeping.ts";
import {
  externalExecutor,
  PlannedController,
  type PlannedExecutor,
} from "../../lib/controllers/planned.ts";
import { LeftBehindController, plannerName } from "../../lib/controllers/planned_gate.ts";
import { PlannedReports } from "../../lib/controllers/planned_reports.ts";
import { RevocationController } from "../../lib/controllers/revocation.ts";
import { Planner } from "../../lib/group/admission.ts";
import { type GateRecord, parseGate } from "../../lib/group/gate_lease.ts";
import {
  MYSQL_FAILOVER_GROUPS,
  type MysqlFailoverGroup,
  PLANNED_FAILOVER_ANNOTATION,
} from "../../lib/group/types.ts";
import type { Stored } from "../../lib/kube/api.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import { DEPLOYMENT_GATE_ANNOTATION, gateName } from "../../lib/records/names.ts";
import { grantedBody } from "../service/deployment_client.ts";
import { type InProcessService, NAMESPACE } from "../service/in_process.ts";
import { Rig, type RigOptions } from "./rig.ts";

const orders = { namespace: NAMESPACE, name: "orders" };
const gateOf = { namespace: NAMESPACE, name: gateName("orders") };

/** What differs between two rigs. */
export interface PlannedRigOptions extends RigOptions {
  /** Who this replica is. @default {"one"} */
  readonly identity?: string;
  /** Without the controller of the annotation. @default {false} */
  readonly withoutAnnotation?: boolean;
  /** Makes the executor. @default {external} */
  readonly executor?: (service: InProcessService, reports: PlannedReports) => PlannedExecutor;
}

/** A rig for planned operations. */
export class PlannedRig extends Rig {
  readonly planner: Planner;

  constructor(options: PlannedRigOptions = {}) {
    // The rig makes its loop from this list, and the controllers need what the rig makes.
    const controllers: NonNullable<RigOptions["controllers"]>[number][] = [];
    super({ ...options, controllers });
    const { service, events, guard: api } = this;
    const { adoption } = service.coordinator;
    this.planner = plannerOf(service, plannerName(options.identity ?? "one"));
    const reports = new PlannedReports({ registry: service.metrics.registry, events });
    controllers.push(
      new RevocationController({ api, adoption }),
      new Housekeeping({ coordinator: service.parts, adoption }),
      new LeftBehindController({ planner: this.planner }),
    );
    if (options.withoutAnnotation) return;
    const executor = options.executor?.(service, reports) ?? externalExecutor;
    controllers.push(new PlannedController({ api, planner: this.planner, executor, reports }));
  }

  get group(): Stored<MysqlFailoverGroup> {
    const group = this.service.fake.read(MYSQL_FAILOVER_GROUPS, orders);
    assert.ok(group);
    return group as Stored<MysqlFailoverGroup>;
  }

  /** `status.plannedFailover`. */
  get planned() {
    return this.group.status?.plannedFailover ?? {};
  }

  /** The annotation that asks, or `undefined`. */
  get asked(): string | undefined {
    return this.group.metadata.annotations?.[PLANNED_FAILOVER_ANNOTATION];
  }

  /** The gate. */
  get gate(): GateRecord {
    const lease = this.service.fake.read(LEASES, gateOf);
    assert.ok(lease);
    return parseGate(lease as Stored<Lease>, this.group.metadata.uid);
  }

  /** The reasons of the Events, in the order in which they came. */
  get reasons(): string[] {
    return this.stored.toSorted((a, b) =>
      Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion)
    ).map(({ reason }) => reason ?? "");
  }

  /** Asks for a planned failover, as a user would; `null` takes the request back. */
  async ask(value: string | null): Promise<void> {
    const { [PLANNED_FAILOVER_ANNOTATION]: _, ...others } = this.group.metadata.annotations ?? {};
    const annotations = value === null
      ? others
      : { ...others, [PLANNED_FAILOVER_ANNOTATION]: value };
    const { group } = this;
    const metadata = { ...group.metadata, annotations };
    this.service.fake.seed(MYSQL_FAILOVER_GROUPS, { ...group, metadata });
    await this.settle();
  }

  /** Writes status, as an operator would. */
  async operate(status: Readonly<Record<string, unknown>>): Promise<void> {
    const { group } = this;
    const next = { ...group, status: { ...group.status, ...status } };
    this.service.fake.seed(MYSQL_FAILOVER_GROUPS, next);
    await this.settle();
  }

  /** Changes spec, as a user would. */
  async specify(spec: Readonly<Record<string, unknown>>): Promise<void> {
    const { group } = this;
    const next = { ...group, spec: { ...group.spec, ...spec } };
    this.service.fake.seed(MYSQL_FAILOVER_GROUPS, next);
    await this.settle();
  }

  /** Puts an admission into the gate, as another planner would. */
  async admitAs(by: string, state: "admitted" | "withdrawing" = "admitted"): Promise<void> {
    const since = "2026-01-01T00:00:00Z";
    const planned = { operation: "PlannedFailover", id: "left", by, since, state };
    await this.#writeGate(JSON.stringify({ ...this.gate, seq: this.gate.seq + 1, planned }));
  }

  /** Makes the gate unreadable. */
  async breakGate(): Promise<void> {
    await this.#writeGate("{");
  }

  async #writeGate(record: string): Promise<void> {
    const lease = this.service.fake.read(LEASES, gateOf);
    assert.ok(lease);
    const annotations = { ...lease.metadata.annotations, [DEPLOYMENT_GATE_ANNOTATION]: record };
    this.service.fake.seed(LEASES, { ...lease, metadata: { ...lease.metadata, annotations } });
    await this.settle();
  }

  /** A deployment that holds the mutex and a hold. */
  async hold(operation = "op-1", ttlSeconds = 30): Promise<Hold> {
    const client = this.service.client();
    const migration = await client.grant(operation, "tenant", { ttlSeconds });
    assert.equal(migration.status, 201, migration.text);
    const granted = await client.grant(operation, "tenant", { kind: "failover-hold", ttlSeconds });
    assert.equal(granted.status, 201, granted.text);
    const tokens = [migration, granted].map(({ body }) => grantedBody.parse(body).token);
    const [migrationToken = "", holdToken = ""] = tokens;
    await this.settle();
    const after = async <T>(work: Promise<T>) => {
      const answer = await work;
      await this.settle();
      return answer;
    };
    return {
      renew: (seconds) =>
        after(client.renew(operation, holdToken, { kind: "failover-hold", ttlSeconds: seconds })),
      release: () => after(client.release(operation, holdToken, { kind: "failover-hold" })),
      releaseMigration: () => after(client.release(operation, migrationToken)),
    };
  }
}

/** What a deployment does with its hold. */
export interface Hold {
  renew(seconds: number): Promise<{ readonly status: number; readonly text: string }>;
  release(): Promise<{ readonly status: number }>;
  releaseMigration(): Promise<{ readonly status: number }>;
}

/** A planner of its own beside a service. */
export function plannerOf(service: InProcessService, by: string): Planner {
  return new Planner({
    ...service.parts,
    api: service.api,
    by,
    maxClockOffsetMs: service.parts.limits.maxClockOffsetMs,
  });
}
