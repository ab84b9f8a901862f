/**
 * What the tests of the contract share: short words for what a caller expects, and for what an operator does.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { GateRecord } from "../../lib/group/gate_lease.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../lib/group/types.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import { leaseObject } from "../../lib/records/lease_object.ts";
import { gateName, holdName, slotName } from "../../lib/records/names.ts";
import { formatTime, hashToken, type LeaseRecord, parseRecord } from "../../lib/records/record.ts";
import { type Answer, type DeploymentClient, grantedBody } from "../service/deployment_client.ts";
import { DEPLOYER, type InProcessService, NAMESPACE } from "../service/in_process.ts";

/** The annotation that carries a record. */
export const RECORD_ANNOTATION = "bloodraven.shipstream.io/deployment-lease";
const GATE_ANNOTATION = "bloodraven.shipstream.io/deployment-gate";
/** The annotation that asks for a revocation. */
export const REVOKE = "bloodraven.shipstream.io/revoke-deployment-leases";
/** Options of a hold. */
export const HOLD = { kind: "failover-hold" } as const;

/** Insists on a status, and on the name of the error. */
export function mustBe(answer: Answer, status: number, error?: string): Answer {
  assert.equal(answer.status, status, answer.text);
  if (error !== undefined) assert.equal(answer.body.error, error);
  return answer;
}

/** Insists on 409 `revoked` with a reason. */
export function mustBeRevoked(answer: Answer, reason: string, generation = 7): void {
  mustBe(answer, 409);
  assert.deepEqual(answer.body, { error: "revoked", reason, topologyGeneration: generation });
}

/** Insists on 423 `unstable` with a reason. */
export function mustBeUnstable(answer: Answer, reason: string): void {
  mustBe(answer, 423);
  assert.deepEqual(answer.body, { error: "unstable", reason, retryAfterSeconds: 1 });
}

/** The token of a grant's answer. */
export function tokenOf(answer: Answer): string {
  return grantedBody.parse(answer.body).token;
}

/** Grants a new lease and returns its token. */
export async function granted(
  client: DeploymentClient,
  operation = "op-1",
  options: { readonly kind?: string; readonly ttlSeconds?: number } = {},
): Promise<string> {
  return tokenOf(mustBe(await client.grant(operation, "tenant", options), 201));
}

/** The group as it is stored. */
export function storedGroup({ fake }: InProcessService, name = "orders"): MysqlFailoverGroup {
  const group = fake.read(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name });
  assert.ok(group);
  return group;
}

/** Changes members of the group's status, as its operator would. */
export function setStatus(service: InProcessService, status: MysqlFailoverGroup["status"]): void {
  const group = storedGroup(service);
  service.fake.seed(MYSQL_FAILOVER_GROUPS, { ...group, status: { ...group.status, ...status } });
}

/** Puts an annotation on the group, or takes it off. */
export function annotate(
  service: InProcessService,
  name: string,
  value: string | null,
  of = "orders",
): void {
  const group = storedGroup(service, of);
  const { [name]: _, ...rest } = group.metadata.annotations ?? {};
  const annotations = value === null ? rest : { ...rest, [name]: value };
  service.fake.seed(MYSQL_FAILOVER_GROUPS, {
    ...group,
    metadata: { ...group.metadata, annotations },
  });
}

/** A Lease as it is stored. */
export function storedLease({ fake }: InProcessService, name: string): Lease | null {
  return fake.read(LEASES, { namespace: NAMESPACE, name });
}

/** The record of a Lease as it is stored. */
export function storedRecord(service: InProcessService, name = slotName("orders")): LeaseRecord {
  const annotation = storedLease(service, name)?.metadata.annotations?.[RECORD_ANNOTATION];
  return parseRecord(annotation ?? "");
}

/** Changes members of the gate's record, as a planner or an operator would. */
export function changeGate(service: InProcessService, change: Partial<GateRecord>): void {
  const name = gateName("orders");
  const gate = storedLease(service, name);
  assert.ok(gate);
  const { [GATE_ANNOTATION]: text = "", ...annotations } = gate.metadata.annotations ?? {};
  const record: unknown = JSON.parse(text);
  const changed = JSON.stringify({ ...Object(record), ...change });
  const metadata = {
    ...gate.metadata,
    annotations: { ...annotations, [GATE_ANNOTATION]: changed },
  };
  service.fake.seed(LEASES, { ...gate, metadata });
}

/** Stores so many active holds of other operations, as earlier deployments would have left them. */
export function seedHolds(service: InProcessService, count: number): void {
  const { uid = "" } = storedGroup(service).metadata;
  const nowMs = service.clock.wall();
  for (let index = 0; index < count; index++) {
    const operationId = `earlier-${index}`;
    const name = holdName("orders", operationId);
    service.fake.seed(
      LEASES,
      leaseObject({
        name,
        namespace: NAMESPACE,
        group: { name: "orders", uid },
        nowMs,
        record: {
          kind: "failover-hold",
          operationId,
          instance: "tenant",
          ...DEPLOYER,
          expiresAt: formatTime(nowMs + 60_000 + index),
          topologyGeneration: 7,
          tokenHash: hashToken(operationId),
          createdAt: formatTime(nowMs),
          state: "active",
        },
      }),
    );
  }
}
