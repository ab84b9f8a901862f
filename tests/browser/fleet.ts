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
    case 2: {
      const [active] = stableStatus.sites;
      const conditions = [
        ...stableStatus.conditions,
        { type: "Degraded", status: "True", reason: "ReplicationBroken", message: "" },
      ];
      const broken = { name: "pdx", state: "read-only", replicating: false };
      putGroup(fake, name, { conditions, sites: [active, broken] });
      break;
    }
    case 3:
      putGroup(fake, name, lagging(4));
      putLease(fake, name, { ttlMs: 20_000 });
      break;
    default:
      putGroup(fake, name, lagging(index % 3));
  }
}

/** Puts in a group that its operator has never looked at: it has no status. */
export function putBareGroup(fake: FakeCluster, name: string): void {
  const { status: _status, ...group } = ordersGroup(NAMESPACE, name);
  fake.apply(group);
}
