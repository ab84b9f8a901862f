/**
 * What the status page shows of a group: the report that `holdfast status` makes, and what the operator tells of each
 * site. Pure.
 *
 * Nothing in it passes by itself: ages and countdowns are left to whoever shows it, so that two models differ only where
 * something happened.
 *
 * @module
 */

import type { MysqlFailoverGroup } from "../group/types.ts";
import type { Stored } from "../kube/api.ts";
import type { Lease } from "../kube/resources.ts";
import type { LeaseInstant } from "../lease_time/lease_time.ts";
import { DEPLOYMENT_STATE_LABEL } from "../records/names.ts";
import { expiresAtMs } from "../records/record.ts";
import {
  clusterReport,
  type ClusterSnapshot,
  PENDING_LIFETIME_MS,
} from "../status/cluster_report.ts";
import { inPlainWords } from "../status/reasons.ts";
import type { GroupStatus, LeaseStatus } from "../status/report.ts";

/** How long a lease is still shown after its end, in milliseconds: a look away from the page must not miss it. */
export const LINGER_MS = 60_000;

/** A site of a group. What the operator does not tell is `null`, or empty, and never guessed. */
export interface PageSite {
  readonly name: string;
  /** It is the active site. */
  readonly active: boolean;
  /** The operator's word, for example `writable`; empty when it tells none. */
  readonly state: string;
  readonly replicating: boolean | null;
  /** Seconds behind the source. */
  readonly lagSeconds: number | null;
  /** What is wrong with it, in plain words; empty when nothing is known to be. */
  readonly trouble: string;
}

/** A lease, without what passes. */
export type PageLease = Omit<LeaseStatus, "ageSeconds" | "leftSeconds">;

/** A group. */
export interface PageGroup extends Omit<GroupStatus, "leases"> {
  /** Its namespace and its name, joined by a slash. */
  readonly key: string;
  /** Those that the operator observed, in its order, then those that are only declared. */
  readonly sites: readonly PageSite[];
  /** The largest lag of a site that is not active; `null` when none is told. */
  readonly lagSeconds: number | null;
  /** Those that count, and those that ended within {@linkcode LINGER_MS}. */
  readonly leases: readonly PageLease[];
}

/** A group, and the instant from which on the same objects look different. */
export interface GroupLook {
  readonly group: PageGroup;
  /** Milliseconds since 1970, by lease time; `null` when time alone changes nothing. */
  readonly nextMs: number | null;
}

/**
 * Shows one group.
 *
 * @param snapshot That group, and the Leases that concern it.
 * @returns `null` when the snapshot holds no group.
 */
export function lookAt(snapshot: ClusterSnapshot, time: LeaseInstant): GroupLook | null {
  const nowMs = (time.earliestMs + time.latestMs) / 2;
  const items = snapshot.leases.items.filter((lease) => nowMs < goneAt(lease));
  const leases = { items, undecodable: snapshot.leases.undecodable };
  const [status] = clusterReport({ groups: snapshot.groups, leases }, time, { all: true }).groups;
  if (status === undefined) return null;
  const sites = sitesOf(snapshot.groups.items[0]);
  const lags = sites.filter(({ active }) => !active).flatMap(({ lagSeconds }) => lagSeconds ?? []);
  const pendingMs = Date.parse(status.pendingTopology?.since ?? "") + PENDING_LIFETIME_MS;
  const nexts = [
    ...(pendingMs > nowMs ? [pendingMs] : []),
    ...items.map(goneAt).filter(Number.isFinite),
    ...status.leases.filter(({ state }) => state === "active").map(overAt(time)),
  ];
  return {
    group: {
      ...status,
      key: `${status.namespace}/${status.name}`,
      sites,
      lagSeconds: lags.length === 0 ? null : Math.max(...lags),
      leases: status.leases.map(({ ageSeconds: _age, leftSeconds: _left, ...lease }) => lease),
      operations: status.operations.filter(({ ended }) => !ended),
    },
    nextMs: nexts.length === 0 ? null : Math.min(...nexts),
  };
}

/** When a Lease is shown no longer: its end was its last write. */
function goneAt({ metadata, spec }: Stored<Lease>): number {
  const state = metadata.labels?.[DEPLOYMENT_STATE_LABEL];
  if (state !== "expired" && state !== "released" && state !== "revoked") return Infinity;
  const endedMs = Date.parse(spec?.renewTime ?? "");
  return Number.isNaN(endedMs) ? 0 : endedMs + LINGER_MS;
}

/** When a lease is over for sure: lease time is known as a span, and its earlier end must have passed the expiry. */
function overAt({ earliestMs, latestMs }: LeaseInstant) {
  return (lease: LeaseStatus) => expiresAtMs(lease) + 1 + (latestMs - earliestMs) / 2;
}

function sitesOf(group: MysqlFailoverGroup | undefined): readonly PageSite[] {
  const status = group?.status ?? {};
  const observed = status.sites ?? [];
  const names = new Set(observed.map(({ name }) => name));
  return [
    ...observed.map((site): PageSite => ({
      name: site.name,
      active: site.name === status.activeSite,
      state: site.state ?? "",
      replicating: site.replicating ?? null,
      lagSeconds: site.secondsBehindSource ?? null,
      trouble: troubleOf(site),
    })),
    ...(group?.spec?.sites ?? []).filter(({ name }) => !names.has(name)).map(({ name }) => ({
      name,
      active: name === status.activeSite,
      state: "",
      replicating: null,
      lagSeconds: null,
      trouble: "not observed yet",
    })),
  ];
}

type ObservedSite = NonNullable<NonNullable<MysqlFailoverGroup["status"]>["sites"]>[number];

function troubleOf(site: ObservedSite): string {
  const convergence = site.sourceConvergenceState;
  const texts = [
    ...(site.recoveryState ? [inPlainWords(site.recoveryState)] : []),
    ...(convergence === "Pending" || convergence === "Blocked"
      ? [inPlainWords(`SourceConvergence${convergence}`)]
      : []),
    ...(site.sourceConvergenceReason ? [site.sourceConvergenceReason] : []),
  ];
  return texts.join("; ");
}
