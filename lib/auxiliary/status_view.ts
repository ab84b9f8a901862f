/**
 * What a group's status says, in the shapes of the auxiliary listener: deploy-api 14.
 *
 * Some members are in the memory of the operator alone. They are made from the status where it says enough, and left out
 * where it does not: nothing is made up.
 *
 * @module
 */

import { z } from "zod";
import { condition } from "../group/stability.ts";
import type { MysqlFailoverGroup } from "../group/types.ts";

type Status = NonNullable<MysqlFailoverGroup["status"]>;
type ObservedSite = NonNullable<Status["sites"]>[number];

/** A site of a group. An absent text is empty, an absent count is 0: what the operator leaves out is empty with it. */
export interface SiteView {
  readonly name: string;
  /** As the group declares it; empty for a site that it does not declare. */
  readonly role: string;
  /** `unknown` for a site that the operator has not observed. */
  readonly state: string;
  readonly sourceHost: string;
  readonly sourceConvergenceState: string;
  readonly sourceConvergenceReason: string;
  /** Made from the status: see {@linkcode servingHealthy}. Left out where it says too little. */
  readonly servingHealthy?: boolean;
  readonly recoveryState: string;
  readonly divergentGtid: string;
  readonly divergentTransactionCount: number;
}

/** A group in the answer of `/status`. */
export interface StatusView {
  readonly activeSite: string;
  readonly sites: readonly SiteView[];
  /** Made from the status: see {@linkcode pollTime}. Left out where no site was ever seen. */
  readonly pollTime?: string;
  readonly promotionGtidExecuted: string;
}

/** A message of `/ws/status`. Members with nothing in them are left out. */
export interface StatusMessage {
  readonly namespace: string;
  readonly group: string;
  readonly activeSite: string;
  readonly sites: readonly SiteView[];
  readonly lastFailover?: string;
  readonly lastFailoverTarget?: string;
  /** Made from the status: the message of the condition `Degraded` while it is true, or its reason. */
  readonly alert?: string;
  readonly updatePhase?: string;
  readonly pollTime?: string;
  readonly promotionGtidExecuted?: string;
}

/** Shows a group as `/status` does. */
export function statusView(group: MysqlFailoverGroup): StatusView {
  const polled = pollTime(group);
  return {
    activeSite: group.status?.activeSite ?? "",
    sites: siteViews(group),
    ...(polled === null ? {} : { pollTime: polled }),
    promotionGtidExecuted: group.status?.promotionGtidExecuted ?? "",
  };
}

/** Shows a group as `/ws/status` does. */
export function statusMessage(group: MysqlFailoverGroup): StatusMessage {
  const { namespace = "", name = "" } = group.metadata;
  const status = group.status ?? {};
  return {
    namespace,
    group: name,
    activeSite: status.activeSite ?? "",
    sites: siteViews(group),
    ...present({
      lastFailover: status.lastFailover,
      lastFailoverTarget: status.lastFailoverTarget,
      alert: alertOf(status),
      updatePhase: status.updatePhase,
      pollTime: pollTime(group),
      promotionGtidExecuted: status.promotionGtidExecuted,
    }),
  };
}

/** The sites that the group declares, in its order, and then those that were observed without being declared. */
function siteViews({ spec, status }: MysqlFailoverGroup): readonly SiteView[] {
  const observed = new Map((status?.sites ?? []).map((site) => [site.name, site]));
  const declared = (spec?.sites ?? []).map(({ name, role }) => {
    const site = observed.get(name) ?? { name };
    observed.delete(name);
    return siteView(site, role ?? "", status?.activeSite ?? "");
  });
  const others = [...observed.values()].map((site) => siteView(site, "", status?.activeSite ?? ""));
  return [...declared, ...others];
}

function siteView(site: ObservedSite, role: string, activeSite: string): SiteView {
  const healthy = servingHealthy(site, activeSite);
  return {
    name: site.name,
    role,
    state: site.state || "unknown",
    sourceHost: site.sourceHost ?? "",
    sourceConvergenceState: site.sourceConvergenceState ?? "",
    sourceConvergenceReason: site.sourceConvergenceReason ?? "",
    ...(healthy === null ? {} : { servingHealthy: healthy }),
    recoveryState: site.recoveryState ?? "",
    divergentGtid: site.divergentGtid ?? "",
    divergentTransactionCount: site.divergentTransactionCount ?? 0,
  };
}

/**
 * Says whether a site does what its place asks of it: the active one is writable; any other one is read-only, replicates,
 * and has nothing to recover from.
 *
 * @returns `null` where the site was not observed, so that nothing can be said.
 */
export function servingHealthy(site: ObservedSite, activeSite: string): boolean | null {
  switch (site.state) {
    case "writable":
      return site.name === activeSite;
    case "read-only":
      return site.name !== activeSite && site.replicating === true && !site.recoveryState;
    case "unreachable":
      return false;
    default:
      return null;
  }
}

/**
 * The time of the operator's last poll, as far as the status shows it: when the site was seen that was seen last.
 *
 * @returns As it stands in the status; `null` where no site has a time that can be read.
 */
export function pollTime({ status }: MysqlFailoverGroup): string | null {
  let newest: string | null = null;
  for (const { lastSeen } of status?.sites ?? []) {
    if (!lastSeen || Number.isNaN(Date.parse(lastSeen))) continue;
    if (newest === null || Date.parse(lastSeen) > Date.parse(newest)) newest = lastSeen;
  }
  return newest;
}

/** The schema of a group does not have this member, so that a strange one keeps no lease from being decided on. */
const WithMessage = z.looseObject({ message: z.string() });

function alertOf(status: Status): string | null {
  const degraded = condition(status, "Degraded");
  if (degraded?.status !== "True") return null;
  const parsed = WithMessage.safeParse(degraded);
  return (parsed.success ? parsed.data.message : "") || (degraded.reason ?? null);
}

/** The members that have something in them. */
function present<T extends Record<string, string | null | undefined>>(
  members: T,
): { [Name in keyof T]?: string } {
  const filled: { [Name in keyof T]?: string } = {};
  for (const name in members) {
    const text = members[name];
    if (text) filled[name] = text;
  }
  return filled;
}
