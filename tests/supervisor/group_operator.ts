/**
 * What the operator of a database does to its group, and what people ask of it.
 *
 * @module
 */

import { z } from "zod";
import {
  MYSQL_FAILOVER_GROUPS,
  type MysqlFailoverGroup,
  PLANNED_FAILOVER_ANNOTATION,
} from "../../lib/group/types.ts";
import type { KubeApi, Stored } from "../../lib/kube/api.ts";
import { ConflictError } from "../../lib/kube/errors.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { DEPLOYMENT_GATE_ANNOTATION, gateName } from "../../lib/records/names.ts";
import { setStatus } from "../service/orders.ts";

const options = { signal: new AbortController().signal };
const gateRecord = z.looseObject({ seq: z.number() });

/** How long anything may take to come. Generous: the machine may be busy. */
const PATIENCE_MS = 60_000;

/** The status of a group. */
export type GroupStatus = NonNullable<MysqlFailoverGroup["status"]>;

/** What the status tells of a planned failover. */
export type PlannedFailover = NonNullable<GroupStatus["plannedFailover"]>;

/** One group, in the hands of its operator. */
export class GroupOperator {
  readonly #api: KubeApi;
  readonly #name: { readonly namespace: string; readonly name: string };

  constructor(api: KubeApi, namespace: string, group: string) {
    this.#api = api;
    this.#name = { namespace, name: group };
  }

  /** The group as it is now. */
  async read(): Promise<Stored<MysqlFailoverGroup>> {
    return await this.#api.get(MYSQL_FAILOVER_GROUPS, this.#name, options);
  }

  /** Asks for a planned failover, as a person does with `kubectl annotate`. */
  async request(site: string): Promise<void> {
    await this.#api.patch(MYSQL_FAILOVER_GROUPS, this.#name, {
      type: "merge",
      body: { metadata: { annotations: { [PLANNED_FAILOVER_ANNOTATION]: site } } },
    }, options);
  }

  /** Waits until the planned failover is in a phase. */
  async untilPhase(phase: string): Promise<PlannedFailover> {
    const untilMs = performance.now() + PATIENCE_MS;
    for (;;) {
      const found = (await this.read()).status?.plannedFailover;
      if (found?.phase === phase) return found;
      if (performance.now() > untilMs) {
        throw new Error(`Cannot go on without phase ${phase}: it is ${found?.phase}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Writes members of the status. */
  async write(status: Readonly<Record<string, unknown>>): Promise<void> {
    await setStatus(this.#api, this.#name, status, options.signal);
  }

  /** Writes that a site is the primary from now on, under the next generation. */
  async moved(to: string, more: Readonly<Record<string, unknown>> = {}): Promise<number> {
    const { status } = await this.read();
    const topologyGeneration = (status?.topologyGeneration ?? 0) + 1;
    const others = (status?.sites ?? []).filter(({ name }) => name !== to);
    await this.write({
      activeSite: to,
      topologyGeneration,
      sites: [
        { name: to, state: "writable", replicating: false },
        ...others.map(({ name }) => ({
          name,
          state: "read-only",
          replicating: true,
          secondsBehindSource: 0,
        })),
      ],
      ...more,
    });
    return topologyGeneration;
  }

  /** Announces a change of topology in the gate, or takes the announcement back: docs/operator-integration.md. */
  async announce(pending: boolean): Promise<void> {
    const name = { namespace: this.#name.namespace, name: gateName(this.#name.name) };
    for (;;) {
      const gate = await this.#api.get(LEASES, name, options);
      const text = gate.metadata.annotations?.[DEPLOYMENT_GATE_ANNOTATION] ?? "";
      const record = gateRecord.parse(JSON.parse(text));
      const changed = {
        ...record,
        seq: record.seq + 1,
        pending: pending ? { since: new Date().toISOString(), by: "test-operator" } : null,
      };
      const { uid, resourceVersion } = gate.metadata;
      const annotations = { [DEPLOYMENT_GATE_ANNOTATION]: JSON.stringify(changed) };
      try {
        await this.#api.patch(LEASES, name, {
          type: "merge",
          body: { metadata: { uid, resourceVersion, annotations } },
        }, options);
        return;
      } catch (error) {
        if (!(error instanceof ConflictError)) throw error;
      }
    }
  }
}
