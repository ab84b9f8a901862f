/**
 * What an elector is made of, and the checks of it: kubernetes-plugin 2 and 5.
 *
 * @module
 */

import type { Registry } from "prom-client";
import type { KubeApi } from "../kube/api.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import type { Logger } from "../runtime/log.ts";
import type { Tracer } from "../tracing/tracer.ts";
import { MAX_LEASE_MS, timingProblem } from "./policy.ts";

/** The times of an election, in whole milliseconds. All candidates of a Lease should have the same. */
export interface ElectionTiming {
  /** Others take the Lease when it has not changed for this long: at most one hour. It is written in whole seconds. */
  readonly leaseDurationMs: number;
  /** How long a holder believes in its lead after it sent its last good write: below the lease duration. */
  readonly renewDeadlineMs: number;
  /** The pause between two tries, to which up to a fifth is added at random: below renew deadline / 1.2. */
  readonly retryPeriodMs: number;
}

/** 15 s, 10 s and 2 s: the times of Kubernetes' own components. */
export const DEFAULT_TIMING: ElectionTiming = {
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
};

/** The options of an `Elector`. */
export interface ElectorOptions {
  /** The cluster. Give the elector one with a connection of its own, so that no other call can queue in front of it. */
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly logger: Logger;
  /** Where the figures of the election are registered. Several electors may share one. */
  readonly metrics: Registry;
  /** The namespace of the Lease: a DNS label. */
  readonly namespace: string;
  /** The name of the Lease: a DNS subdomain. */
  readonly leaseName: string;
  /** Who this process is, in the Lease. Not blank. Two processes with the same one still exclude each other. */
  readonly identity: string;
  /** @default {DEFAULT_TIMING} */
  readonly timing?: ElectionTiming;
  /** Frees the Lease at the end of a term that was not lost. @default {true} */
  readonly releaseOnStop?: boolean;
  /** Puts each tick under a span `elector tick`. @default {undefined}, which costs nothing */
  readonly tracer?: Tracer;
}

/**
 * Checks the times.
 *
 * @throws {RangeError} With the rule that is broken and the three values.
 */
export function checkTiming(timing: ElectionTiming): void {
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = timing;
  const values =
    `current values are leaseDurationMs ${leaseDurationMs}, renewDeadlineMs ${renewDeadlineMs}, retryPeriodMs ${retryPeriodMs}`;
  for (const [name, value] of Object.entries(timing)) {
    if (!Number.isSafeInteger(value)) {
      throw new RangeError(
        `Cannot campaign as '${name}' must be a whole number of milliseconds: ${values}`,
      );
    }
  }
  const problem = timingProblem({
    leaseMs: leaseDurationMs,
    renewMs: renewDeadlineMs,
    retryMs: retryPeriodMs,
  });
  if (problem !== "none") {
    throw new RangeError(`Cannot campaign as ${rules[problem]}: ${values}`);
  }
}

const rules = {
  retry_not_positive: "'retryPeriodMs' must be above 0",
  lease_above_maximum: `'leaseDurationMs' must be at most ${MAX_LEASE_MS}`,
  lease_not_above_renew: "'leaseDurationMs' must be above 'renewDeadlineMs'",
  renew_not_above_retry: "'renewDeadlineMs' must be above 1.2 times 'retryPeriodMs'",
} as const;

const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * Checks the names: the namespace is a DNS-1123 label (63 characters), the Lease's name a DNS-1123 subdomain (253
 * characters), the identity not blank.
 *
 * @throws {RangeError} With the value and what would be right.
 */
export function checkNames(
  names: { readonly namespace: string; readonly leaseName: string; readonly identity: string },
): void {
  const { namespace, leaseName, identity } = names;
  if (!dnsLabel.test(namespace)) {
    throw new RangeError(
      `Cannot campaign as 'namespace' must be a DNS label of lower-case letters, digits and hyphens, at most 63 long: current value is ${
        shown(namespace)
      }`,
    );
  }
  if (leaseName.length > 253 || !leaseName.split(".").every((label) => dnsLabel.test(label))) {
    throw new RangeError(
      `Cannot campaign as 'leaseName' must be DNS labels joined by dots, at most 253 long: current value is ${
        shown(leaseName)
      }`,
    );
  }
  if (identity.trim() === "") {
    throw new RangeError(
      `Cannot campaign as 'identity' must not be blank: current value is ${shown(identity)}`,
    );
  }
}

/** A name for a log line or a message, cut, since nothing limits its length. */
export function clipped(name: string): string {
  return name.length > 300 ? `${name.slice(0, 300)}…` : name;
}

function shown(name: string): string {
  return JSON.stringify(clipped(name));
}
