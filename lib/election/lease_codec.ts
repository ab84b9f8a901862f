/**
 * A Lease object as the election sees it, and back.
 *
 * Kubernetes writes times as MicroTime: RFC 3339 in UTC with exactly six fraction digits. What others wrote is read with
 * any number of digits and any offset, and a value that makes no sense is read as absent: the Lease of another is never a
 * reason to fail.
 *
 * @module
 */

import type { Stored } from "../kube/api.ts";
import type { Lease } from "../kube/resources.ts";
import { MAX_TRANSITIONS } from "./policy.ts";

/** What the election knows of a Lease. */
export interface LeaseRecord {
  /** The object's uid: another one means another object of the same name. */
  readonly uid: string;
  /** The object's `resourceVersion`. */
  readonly version: string;
  /** The identity of the holder; empty when the Lease is free. */
  readonly holder: string;
  /** The duration in seconds as it stands in the object; 0 when it is absent. */
  readonly durationSeconds: number;
  /** The acquire time in microseconds since 1970; {@linkcode NO_TIME} when it is absent or unreadable. */
  readonly acquiredMicros: number;
  /** How often the holder changed: 0 to 2147483647. */
  readonly transitions: number;
}

/** What the election writes: five members of `spec`, and no other. */
export interface LeaseSpec {
  /** The identity of the holder; empty frees the Lease. */
  readonly holder: string;
  /** The duration in milliseconds. It is written in whole seconds, rounded up, and at least 1. */
  readonly durationMs: number;
  /** The acquire time in microseconds since 1970. */
  readonly acquiredMicros: number;
  /** The renew time in microseconds since 1970. */
  readonly renewedMicros: number;
  /** How often the holder changed. */
  readonly transitions: number;
}

/** Stands for a time that is absent or unreadable. */
export const NO_TIME = -1;

const microTime = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d+))?([Zz]|[+-]\d{2}:\d{2})$/;

/**
 * Reads a MicroTime.
 *
 * @param text For example `2026-01-01T00:00:00.123456Z`; fewer or more digits are read too.
 * @returns Microseconds since 1970; {@linkcode NO_TIME} for a text that is no time, lies before 1970, or lies so far
 * ahead (past the year 2255) that its microseconds are no safe integer.
 */
export function parseMicroTime(text: string): number {
  const match = microTime.exec(text);
  if (match === null) return NO_TIME;
  const [, date = "", time = "", fraction = "", zone = ""] = match;
  const ms = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  if (Number.isNaN(ms)) return NO_TIME;
  const micros = ms * 1000 + Number(fraction.padEnd(6, "0").slice(0, 6));
  return Number.isSafeInteger(micros) && micros >= 0 ? micros : NO_TIME;
}

/**
 * Writes a MicroTime with exactly six fraction digits, as the API server does.
 *
 * @param micros Microseconds since 1970, a safe integer of 0 or more.
 */
export function formatMicroTime(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  const fraction = String(micros - seconds * 1_000_000).padStart(6, "0");
  return new Date(seconds * 1000).toISOString().replace(".000Z", `.${fraction}Z`);
}

/** Reads what a Lease says about its holder. Members that make no sense are read as absent. */
export function decodeLease(lease: Stored<Lease>): LeaseRecord {
  const { spec } = lease;
  return {
    uid: lease.metadata.uid,
    version: lease.metadata.resourceVersion,
    holder: spec?.holderIdentity ?? "",
    durationSeconds: spec?.leaseDurationSeconds ?? 0,
    acquiredMicros: parseMicroTime(spec?.acquireTime ?? ""),
    transitions: Math.min(Math.max(spec?.leaseTransitions ?? 0, 0), MAX_TRANSITIONS),
  };
}

/**
 * The `spec` to write. In a merge patch `null` removes the holder, and members that are not here stay as they are.
 *
 * A duration is rounded up to whole seconds: others then wait a little longer than this process believes.
 */
export function encodeSpec(spec: LeaseSpec): NonNullable<Lease["spec"]> {
  return {
    holderIdentity: spec.holder === "" ? null : spec.holder,
    leaseDurationSeconds: Math.max(1, Math.ceil(spec.durationMs / 1000)),
    acquireTime: formatMicroTime(spec.acquiredMicros),
    renewTime: formatMicroTime(spec.renewedMicros),
    leaseTransitions: Math.min(spec.transitions, MAX_TRANSITIONS),
  };
}
