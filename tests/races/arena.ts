/**
 * Where races are run: two services that both believe they lead, their callers, and an operator.
 *
 * @module
 */

import type { Planner } from "../../lib/group/admission.ts";
import { parseGate, type PlannedAdmission } from "../../lib/group/gate_lease.ts";
import {
  MYSQL_FAILOVER_GROUPS,
  type MysqlFailoverGroup,
  REVOKE_ANNOTATION,
} from "../../lib/group/types.ts";
import type { KubeApi, Stored } from "../../lib/kube/api.ts";
import { ConflictError, NotFoundError } from "../../lib/kube/errors.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { gateName, slotName } from "../../lib/records/names.ts";
import type { LeaseRecord } from "../../lib/records/record.ts";
import { LeaseStore, type StoredRecord } from "../../lib/records/store.ts";
import type { DeploymentClient } from "../service/deployment_client.ts";
import { setStatus } from "../service/orders.ts";
import { ADMISSION_MEMBER, type LeaseHistory } from "./lease_history.ts";

/** The name of the group. */
export const GROUP = "orders";

/** What an {@linkcode Arena} is made of. */
export interface ArenaParts {
  /** The way of the operator and of people with `kubectl`. */
  readonly api: KubeApi;
  readonly namespace: string;
  /** The same caller at each of the two services. */
  readonly clients: readonly [DeploymentClient, DeploymentClient];
  /** Two operators that would change the same group. */
  readonly planners: readonly [Planner, Planner];
  readonly history: LeaseHistory;
  /** Waits a little, never twice the same. */
  readonly pause: () => Promise<void>;
  /** Lease time in milliseconds since 1970, as far as a test needs it. */
  readonly nowMs: () => number;
  /** A number of 0 or more and less than 1. */
  readonly random: () => number;
}

/** The place of a race. */
export class Arena {
  readonly parts: ArenaParts;
  readonly #store: LeaseStore;
  readonly #signal = new AbortController().signal;
  #uid: string | null = null;

  constructor(parts: ArenaParts) {
    this.parts = parts;
    this.#store = new LeaseStore(parts.api);
  }

  /** The two ways in, in an order that changes. */
  get clients(): readonly [DeploymentClient, DeploymentClient] {
    const [a, b] = this.parts.clients;
    return this.parts.random() < 0.5 ? [a, b] : [b, a];
  }

  /** Does all of it at about the same time: each begins after a pause of its own. */
  together<T extends readonly (() => Promise<unknown>)[]>(
    ...works: T
  ): Promise<{ [K in keyof T]: Awaited<ReturnType<T[K]>> }>;
  async together(...works: readonly (() => Promise<unknown>)[]): Promise<unknown[]> {
    return await Promise.all(works.map((work) => this.parts.pause().then(work)));
  }

  /** Writes members of the group's status. */
  setStatus(status: Readonly<Record<string, unknown>>): Promise<Stored<MysqlFailoverGroup>> {
    return setStatus(this.parts.api, this.#name, status, this.#signal);
  }

  /** The group as it is stored. */
  group(): Promise<Stored<MysqlFailoverGroup>> {
    return this.parts.api.get(MYSQL_FAILOVER_GROUPS, this.#name, { signal: this.#signal });
  }

  /** Sets the next generation, and returns it with the version of that write. */
  async raiseGeneration(): Promise<{ readonly generation: number; readonly version: bigint }> {
    const generation = ((await this.group()).status?.topologyGeneration ?? 0) + 1;
    const { metadata } = await this.setStatus({ topologyGeneration: generation });
    return { generation, version: BigInt(metadata.resourceVersion) };
  }

  /**
   * Puts the annotation on the group that asks for a revocation, or takes it off. Each request has a value of its own: by
   * its value alone whoever completes a revocation knows that it is still the same one (deploy-api 7.8).
   *
   * @returns The version of that write.
   */
  async askForRevocation(value: string | null): Promise<bigint> {
    const { metadata } = await this.parts.api.patch(MYSQL_FAILOVER_GROUPS, this.#name, {
      type: "merge",
      body: { metadata: { annotations: { [REVOKE_ANNOTATION]: value } } },
    }, { signal: this.#signal });
    return BigInt(metadata.resourceVersion);
  }

  /** What is stored under a name. */
  async stored(name: string = slotName(GROUP)): Promise<StoredRecord | null> {
    const options = { signal: this.#signal };
    const lease = await this.#store.get(this.parts.namespace, name, options);
    return this.#store.parse(lease, await this.#groupUid());
  }

  /** The record that is stored under a name. */
  async record(name?: string): Promise<LeaseRecord | null> {
    return (await this.stored(name))?.record ?? null;
  }

  /** The admission that the gate carries, or `null`. */
  async planned(): Promise<PlannedAdmission | null> {
    const name = gateName(GROUP);
    const gate = await this.#store.get(this.parts.namespace, name, { signal: this.#signal });
    return gate && parseGate(gate, await this.#groupUid()).planned;
  }

  /** Ends whatever operation the status shows, as an operator whose work is done. */
  endPhases(): Promise<Stored<MysqlFailoverGroup>> {
    return this.setStatus({
      updatePhase: null,
      plannedFailover: null,
      restoreInPlace: null,
      [ADMISSION_MEMBER]: null,
    });
  }

  /** As `kubectl delete lease`: whatever is there, in whatever version. */
  async kubectlDelete(name: string = slotName(GROUP)): Promise<void> {
    const options = { signal: this.#signal };
    for (;;) {
      const lease = await this.#store.get(this.parts.namespace, name, options);
      if (lease === null) return;
      try {
        await this.parts.api.delete(
          LEASES,
          { namespace: this.parts.namespace, name },
          lease.metadata,
          options,
        );
        return;
      } catch (error) {
        if (error instanceof NotFoundError) return;
        if (!(error instanceof ConflictError)) throw error;
      }
    }
  }

  /** Revokes one operation directly: its mutex first, and the hold that is there when that is written. */
  async revokeDirectly(operationId: string, hold: string): Promise<void> {
    for (const name of [slotName(GROUP), hold]) await this.#revoke(name, operationId);
  }

  /** Gives the next round a group that is stable and a free mutex. */
  async clear(): Promise<void> {
    await Promise.all([
      this.endPhases(),
      this.askForRevocation(null),
      this.kubectlDelete(),
    ]);
  }

  get #name() {
    return { namespace: this.parts.namespace, name: GROUP };
  }

  async #groupUid(): Promise<string> {
    return this.#uid ??= (await this.group()).metadata.uid;
  }

  async #revoke(name: string, operationId: string): Promise<void> {
    const uid = await this.#groupUid();
    for (;;) {
      const stored = await this.stored(name);
      if (stored?.record.operationId !== operationId || stored.record.state !== "active") return;
      const record: LeaseRecord = {
        ...stored.record,
        state: "revoked",
        reason: "operator_revoked",
      };
      const written = await this.#store.write(
        { namespace: this.parts.namespace, name: GROUP, uid },
        name,
        record,
        stored,
        this.parts.nowMs(),
        { signal: this.#signal },
      );
      if (written.type === "stored") return;
    }
  }
}
