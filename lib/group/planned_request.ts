/**
 * Planned failovers that are asked for by annotation: what is asked, whether it is possible, and what status says of it.
 * deploy-api 8.1 to 8.3. Pure functions.
 *
 * @module
 */

import { parseDuration } from "../config/duration.ts";
import type { LeaseRecord } from "../records/record.ts";
import type { MysqlFailoverGroup } from "./types.ts";

const MINUTE_MS = 60_000;

/** The operator's defaults: deploy-api 8.2. */
const DEFAULT_MAX_LAG_WAIT_MS = 5 * MINUTE_MS;
const DEFAULT_DRAIN_TIMEOUT_MS = 30_000;
const DEFAULT_COOLDOWN_MS = 5 * MINUTE_MS;

/** Annotation of the operator: a keyring rotation is asked for and not done. */
const ROTATE_KEYRING_ANNOTATION = "bloodraven.shipstream.io/rotate-keyring";
/** Annotation of the operator: when it failed over last, in case status was lost. */
const LAST_FAILOVER_ANNOTATION = "bloodraven.shipstream.io/last-failover";

/** The reason in status while a hold is in the way. */
export const DEPLOYMENT_HOLD = "DeploymentHold";
/** The reason in status while the last failover is too recent. */
export const COOLDOWN_ACTIVE = "CooldownActive";

/** What a user asks for. */
export interface PlannedRequest {
  /** The site that is to become active. It may be empty: that is for the validation to refuse. */
  readonly target: string;
  /** Milliseconds; `null` takes the group's own value. */
  readonly maxLagWaitMs: number | null;
}

/** Why a planned failover cannot be done, or not now: deploy-api 8.2. */
export type RejectReason =
  | "InvalidAnnotation"
  | "UnknownSite"
  | "KeyringRotation"
  | "TargetUnhealthy"
  | "ConcurrentOperation"
  | "InvalidFailoverState";

/** What the validation comes to. */
export type Validation =
  | { readonly type: "accepted" }
  | { readonly type: "already_active" }
  | { readonly type: "rejected"; readonly reason: RejectReason | typeof COOLDOWN_ACTIVE }
  /** `onCooldown: defer`: not before `untilMs`, in milliseconds since 1970. */
  | { readonly type: "cooldown"; readonly untilMs: number };

type PlannedStatus = NonNullable<NonNullable<MysqlFailoverGroup["status"]>["plannedFailover"]>;

/** The members of `status.plannedFailover`; `null` takes a member away. */
export type PlannedStatusChange = Readonly<Record<string, string | null>>;

/**
 * Reads the value of the annotation: a site, then parts after colons, of which `maxLagWait` is the only one.
 *
 * ```ts
 * parseRequest("pdx:maxLagWait=2m"); // { target: "pdx", maxLagWaitMs: 120000 }
 * parseRequest("pdx:fast"); // null
 * ```
 *
 * @returns `null` for an unknown key, a part without `=`, a duration that is none or not above 0 (Go's form, in whole
 * milliseconds), or nothing at all.
 */
export function parseRequest(value: string): PlannedRequest | null {
  const [target = "", ...parts] = value.split(":").map((part) => part.trim());
  const given = parts.filter((part) => part !== "");
  if (target === "" && given.length === 0) return null;
  let maxLagWaitMs: number | null = null;
  for (const part of given) {
    const [key, ...rest] = part.split("=");
    const duration = parseDuration(rest.join("=").replace(/^\+/, ""));
    if (key !== "maxLagWait" || rest.length === 0 || !duration) return null;
    maxLagWaitMs = duration;
  }
  return { target, maxLagWaitMs };
}

/** Writes a request as an annotation's value, with the wait that is in effect. */
export function formatRequest(target: string, maxLagWait: string): string {
  return `${target}:maxLagWait=${maxLagWait}`;
}

/**
 * Judges a request, once no hold is in the way: deploy-api 8.2, in its order.
 *
 * The contract names two reasons whose facts are the operator's own. `KeyringRotation` is concluded from its annotation,
 * and `InvalidFailoverState` from a status without a writable active site.
 *
 * @param nowMs The earliest that the API server's clock can show, so that a cooldown never ends early.
 */
export function validateRequest(
  group: MysqlFailoverGroup,
  { target }: PlannedRequest,
  nowMs: number,
): Validation {
  const status = group.status ?? {};
  if (target === "") return { type: "rejected", reason: "InvalidAnnotation" };
  const site = group.spec?.sites?.find(({ name }) => name === target);
  // A site for disaster recovery is promoted by hand, and this is by hand. One that only reads is never promoted.
  if (site === undefined || site.role === "read-only") {
    return { type: "rejected", reason: "UnknownSite" };
  }
  if (status.activeSite === target) return { type: "already_active" };
  if (group.metadata.annotations?.[ROTATE_KEYRING_ANNOTATION] !== undefined) {
    return { type: "rejected", reason: "KeyringRotation" };
  }
  const observed = status.sites?.find(({ name }) => name === target);
  if (observed?.state !== "read-only" || observed.replicating !== true) {
    return { type: "rejected", reason: "TargetUnhealthy" };
  }
  const restore = status.restoreInPlace?.phase ?? "";
  if (status.updatePhase || !["", "Succeeded", "Failed"].includes(restore)) {
    return { type: "rejected", reason: "ConcurrentOperation" };
  }
  const active = status.sites?.find(({ name }) => name === status.activeSite);
  if (active?.state !== "writable") return { type: "rejected", reason: "InvalidFailoverState" };
  const untilMs = cooldownEndMs(group);
  if (nowMs >= untilMs) return { type: "accepted" };
  return group.spec?.plannedFailover?.onCooldown === "defer"
    ? { type: "cooldown", untilMs }
    : { type: "rejected", reason: COOLDOWN_ACTIVE };
}

/** When the pause after the last failover ends, in milliseconds since 1970; `-Infinity` when there was none. */
function cooldownEndMs({ metadata, spec, status }: MysqlFailoverGroup): number {
  const known = [status?.lastFailover, metadata.annotations?.[LAST_FAILOVER_ANNOTATION]];
  const lastMs = known.map((text) => Date.parse(text ?? "")).filter((ms) => !Number.isNaN(ms));
  return Math.max(-Infinity, ...lastMs) +
    (parseDuration(spec?.failoverCooldown ?? "") ?? DEFAULT_COOLDOWN_MS);
}

/** What status says while a hold is in the way: deploy-api 8.3. */
export function deferredByHold(
  group: MysqlFailoverGroup,
  request: PlannedRequest,
  hold: LeaseRecord,
  nowMs: number,
): PlannedStatusChange {
  return change(group, {
    ...run(group, request, nowMs),
    phase: "Deferred",
    reason: DEPLOYMENT_HOLD,
    message:
      `Planned failover to ${request.target} is held by the deployment ${hold.operationId} of ${hold.instance} until ${
        statusTime(Date.parse(hold.expiresAt))
      }`,
    retryAfter: statusTime(Date.parse(hold.expiresAt)),
  });
}

/** What status says while the last failover is too recent. */
export function deferredByCooldown(
  group: MysqlFailoverGroup,
  request: PlannedRequest,
  untilMs: number,
  nowMs: number,
): PlannedStatusChange {
  return change(group, {
    ...run(group, request, nowMs),
    phase: "Deferred",
    reason: COOLDOWN_ACTIVE,
    message: `Planned failover to ${request.target} waits for the end of the cooldown at ${
      statusTime(untilMs)
    }`,
    retryAfter: statusTime(untilMs),
  });
}

/** What status says of a planned failover that was admitted and handed over. */
export function pending(
  group: MysqlFailoverGroup,
  request: PlannedRequest,
  nowMs: number,
): PlannedStatusChange {
  return change(group, {
    ...run(group, request, nowMs),
    phase: "Pending",
    message: `Planned failover to ${request.target} is admitted: no deployment holds it`,
  });
}

/** What status says of a planned failover that came to nothing. */
export function failed(
  group: MysqlFailoverGroup,
  request: PlannedRequest | null,
  reason: string,
  nowMs: number,
): PlannedStatusChange {
  const known = group.status?.plannedFailover;
  const members = request === null
    ? {
      target: known?.target ?? "",
      sourcePrimary: known?.sourcePrimary ?? "",
      startTime: startTime(known, nowMs),
      maxLagWait: known?.maxLagWait ?? "",
      drainTimeout: known?.drainTimeout ?? "",
    }
    : run(group, request, nowMs);
  return change(group, {
    ...members,
    phase: "Failed",
    reason,
    message: `Planned failover to ${members.target} is not done: ${reason}`,
    completionTime: statusTime(nowMs),
  });
}

/** True when this is the first time that this run is deferred for this reason: an Event and a count (deploy-api 8.3). */
export function isFirstDeferral(group: MysqlFailoverGroup, reason: string): boolean {
  const known = group.status?.plannedFailover;
  return known?.phase !== "Deferred" || known.reason !== reason;
}

/** True when the change would write what is there already. */
export function changesNothing(group: MysqlFailoverGroup, change: PlannedStatusChange): boolean {
  const known: Readonly<Record<string, unknown>> = group.status?.plannedFailover ?? {};
  return Object.entries(change).every(([key, value]) => (known[key] ?? null) === value);
}

/** The members that every state of a run has. */
function run(group: MysqlFailoverGroup, request: PlannedRequest, nowMs: number) {
  const own = group.spec?.plannedFailover;
  const maxLagWaitMs = request.maxLagWaitMs ?? positive(own?.maxLagWait, DEFAULT_MAX_LAG_WAIT_MS);
  return {
    target: request.target,
    sourcePrimary: group.status?.activeSite ?? "",
    startTime: startTime(group.status?.plannedFailover, nowMs),
    maxLagWait: goDuration(maxLagWaitMs),
    drainTimeout: goDuration(positive(own?.drainTimeout, DEFAULT_DRAIN_TIMEOUT_MS)),
  };
}

/** A run that waits goes on with its start; one that ended, or that never noted it, begins now. */
function startTime(known: PlannedStatus | null | undefined, nowMs: number): string {
  const waits = ["Deferred", "Pending", "Validating"].includes(known?.phase ?? "");
  return waits && known?.startTime ? known.startTime : statusTime(nowMs);
}

function positive(text: string | null | undefined, otherwise: number): number {
  return parseDuration(text ?? "") || otherwise;
}

/** The new members, and those of an earlier run taken away. */
function change(
  group: MysqlFailoverGroup,
  members: Readonly<Record<string, string>>,
): PlannedStatusChange {
  const gone = Object.keys(group.status?.plannedFailover ?? {}).map((key) => [key, null]);
  const kept = Object.entries(members).filter(([, value]) => value !== "");
  return { ...Object.fromEntries(gone), ...Object.fromEntries(kept) };
}

/** An instant as status shows it: RFC 3339 in UTC, whole seconds. @param ms Milliseconds since 1970. */
export function statusTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** A duration as Go prints it: `5m0s`, `30s`, `1.5s`, `250ms`. Operators that are written in Go compare the text. */
export function goDuration(ms: number): string {
  if (ms < 1_000) return ms === 0 ? "0s" : `${ms}ms`;
  const hours = Math.floor(ms / (60 * MINUTE_MS));
  const minutes = Math.floor(ms / MINUTE_MS) % 60;
  const rest = `${(ms % MINUTE_MS) / 1_000}s`;
  if (hours > 0) return `${hours}h${minutes}m${rest}`;
  return minutes > 0 ? `${minutes}m${rest}` : rest;
}
