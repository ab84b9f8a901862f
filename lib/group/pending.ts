/**
 * For operators: says that a group's topology is about to change, before status can show it. State protocol 2.1.
 *
 * While the mark is set, the deployment API answers 423 for the group. It is a courtesy and not a lock: **never wait for
 * it**. An emergency needs nobody's leave, and a mark that could not be set changes nothing about safety, since the
 * change itself raises the generation and so ends every lease.
 *
 * ```ts
 * async function failOver(
 *   parts: Pick<TopologyPendingParts, "api" | "clock">,
 *   promote: () => Promise<void>,
 *   signal: AbortSignal,
 * ) {
 *   const group = { namespace: "database", name: "orders" };
 *   const marked = markTopologyPending({ ...parts, group, by: "my-operator" }, { signal });
 *   const told = marked.catch((error: Error) => `not marked: ${error.name}`);
 *   await promote();
 *   return await told;
 * }
 * ```
 *
 * The mark ends by itself once status confirms the change, and 60 s after it was set or renewed.
 *
 * @module
 */

import type { CallOptions, KubeApi } from "../kube/api.ts";
import type { Clock } from "../runtime/clock.ts";
import type { GateRecord } from "./gate_lease.ts";
import { GateContendedError, TopologyReader } from "./topology.ts";

/** Which group is to change, and who says so. */
export interface TopologyPendingParts {
  readonly api: KubeApi;
  /** Its wall time is written for people. Nothing is decided from it. */
  readonly clock: Clock;
  readonly group: { readonly namespace: string; readonly name: string };
  /** Who sets the mark, for people, and so that nobody clears the mark of another. Not empty. */
  readonly by: string;
}

/** How often a write that lost a race is made again. */
const TRIES = 3;

/**
 * Sets the mark, or renews it: call it again every 20 s or so while the change is under way.
 *
 * It first brings the gate up to date with status, so that only a change that comes later ends the mark.
 *
 * @throws {RangeError} `by` is empty.
 * @throws {GroupNotFoundError} @throws {GateError} @throws {GateContendedError} Others wrote the gate each time.
 */
export async function markTopologyPending(
  parts: TopologyPendingParts,
  options: CallOptions,
): Promise<void> {
  const { by, clock } = parts;
  if (by === "") {
    throw new RangeError(
      "Cannot mark topology as pending as 'by' must name who does it: current value is \"\"",
    );
  }
  const since = Temporal.Instant.fromEpochMilliseconds(Math.floor(clock.wall())).toString();
  await changePending(parts, () => ({ since, by }), options);
}

/**
 * Clears the mark, for a change that was given up. The mark of another stays.
 *
 * @throws {GroupNotFoundError} @throws {GateError} @throws {GateContendedError} Others wrote the gate each time.
 */
export async function clearTopologyPending(
  parts: TopologyPendingParts,
  options: CallOptions,
): Promise<void> {
  await changePending(
    parts,
    (pending) => pending?.by === parts.by ? null : pending,
    options,
  );
}

async function changePending(
  { api, clock, group }: TopologyPendingParts,
  change: (pending: GateRecord["pending"]) => GateRecord["pending"],
  options: CallOptions,
): Promise<void> {
  const reader = new TopologyReader({ api, clock, maxStatusAgeMs: 0 });
  for (let tries = 0; tries < TRIES; tries++) {
    const reads = await reader.read(group.namespace, group.name, options);
    const topology = await reader.confirm(reads, options);
    const { pending } = topology.gate.record;
    const next = change(pending);
    if (next === pending) return;
    if (await reader.change(topology, { pending: next }, options) !== null) return;
  }
  throw new GateContendedError(group.name);
}
