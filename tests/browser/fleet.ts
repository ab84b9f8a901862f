/**
 * Groups in many states, as a fleet has them: quiet ones, leases of both kinds, operations that wait, and faults.
 *
 * @module
 */

import type { FakeCluster } from "../../lib/testing/mod.ts";
import { PLANNED_FAILOVER_ANNOTATION } from "../../lib/group/types.ts";
import { ordersGroup, stableStatus } from "../service/orders.ts";
import { lagging, NAMESPACE, putGroup, putLease } from "./page_server.ts";

const NAMES = ["orders", "billing", "catalog", "customers", "inventory", "ledger", "mail", "media"];

/** The name of a group. @param index From 0. */
export function groupName(index: number): string {
  const name = NAMES[index % NAMES.length] ?? "orders";
  const round = Math.floor(index / NAMES.length);
  return round === 0 ? name : `${name}-${round + 1}`;
}

/** Puts groups in. Each eighth one from the second on has something to be seen. */
export function putFleet(fake: FakeCluster, count: number): void {
  for (let index = 0; index < count; index++) putOne(fake, groupName(index), index);
}

function putOne(fake: FakeCluster, name: string, index: number): void {
  switch (index % 16) {
    case 0:
      putGroup(fake, name);
      putLease(fake, name, { ttlMs: 95_000 });
      putLease(fake, name, { kind: "failover-hold", ttlMs: 48_000 });
      break;
    case 1: {
      const plannedFailover = {
        phase: "Deferred",
        reason: "DeploymentHold",
        target: "pdx",
        retryAfter: "2026-01-01T00:00:00Z",
      };
      putGroup(fake, name, { plannedFailover }, { [PLANNED_FAILOVER_ANNOTATION]: "pdx" });
      putLease(fake, name, { ttlMs: 70_000 });
      putLease(fake, name, { kind: "failover-hold", ttlMs: 70_000 });
      break;
    }
    case 2:
      putGroup(fake, name, broken());
      break;
    case 3:
      putGroup(fake, name, lagging(4));
      putLease(fake, name, { ttlMs: 20_000 });
      break;
    default:
      putGroup(fake, name, lagging(index % 3));
  }
}

function broken(more: { readonly secondsBehindSource?: number } = {}) {
  const [active] = stableStatus.sites;
  const degraded = { type: "Degraded", status: "True", reason: "ReplicationBroken", message: "" };
  const standby = { name: "pdx", state: "read-only", replicating: false, ...more };
  return { conditions: [...stableStatus.conditions, degraded], sites: [active, standby] };
}

/** Changes a group of the fleet a little: its lag, or the time of its lease. @param round Makes a difference. */
export function changeOne(fake: FakeCluster, index: number, round: number): void {
  const name = groupName(index);
  switch (index % 16) {
    case 0:
    case 1:
    case 3:
      putLease(fake, name, { ttlMs: 90_000 });
      break;
    case 2:
      putGroup(fake, name, broken({ secondsBehindSource: 100 + round }));
      break;
    default:
      putGroup(fake, name, lagging(100 + round));
  }
}

/** Puts in a group that its operator has never looked at: it has no status. */
export function putBareGroup(fake: FakeCluster, name: string): void {
  const { status: _status, ...group } = ordersGroup(NAMESPACE, name);
  fake.apply(group);
}
