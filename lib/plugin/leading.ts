/**
 * This replica's part in the election, and its leader tasks: kubernetes-plugin 5 to 7.
 *
 * @module
 */

import type { Registry } from "prom-client";
import type { Config } from "../config/schema.ts";
import {
  type Candidate,
  type ElectionTiming,
  Elector,
  type IsolatedLeaderTask,
  type Leadership,
  type LeaderTask,
  type LeaderTaskError,
  runLeaderTasks,
  staticLeadership,
} from "../election/mod.ts";
import type { KubeApi } from "../kube/api.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import type { Logger } from "../runtime/log.ts";
import type { Tracer } from "../tracing/tracer.ts";

/** What {@linkcode createElection} takes. */
export interface ElectionParts {
  readonly election: Config["kubernetes"]["leader_election"];
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly identity: string;
  /** Absent when tracing is off. */
  readonly tracer?: Tracer;
}

/** Where the Lease is. */
export interface LeasePlace {
  readonly api: KubeApi;
  readonly namespace: string;
}

/**
 * Makes the candidate. It does not campaign yet.
 *
 * @param place `null` without a cluster: the candidate then always leads, as long as it is not stopped.
 * @throws {RangeError} A name or a time breaks a rule.
 */
export function createElection(parts: ElectionParts, place: LeasePlace | null): Candidate {
  const { election, clock, identity } = parts;
  const leaseName = election.lease_name;
  if (place === null) return staticLeadership({ clock, identity, leaseName });
  return new Elector({
    api: place.api,
    namespace: place.namespace,
    clock,
    entropy: parts.entropy,
    logger: parts.logger,
    metrics: parts.registry,
    leaseName,
    identity,
    releaseOnStop: election.release_on_shutdown,
    timing: timingOf(election),
    tracer: parts.tracer,
  });
}

/** The times of an election, from its configuration. */
export function timingOf(election: Config["kubernetes"]["leader_election"]): ElectionTiming {
  return {
    leaseDurationMs: election.lease_duration_secs * 1_000,
    renewDeadlineMs: election.renew_deadline_secs * 1_000,
    retryPeriodMs: election.retry_period_secs * 1_000,
  };
}

/** What {@linkcode Leading} takes. */
export interface LeadingParts {
  readonly candidate: Candidate;
  readonly tasks: readonly (LeaderTask | IsolatedLeaderTask)[];
  readonly timing: ElectionTiming;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onTaskError: (error: LeaderTaskError) => void;
  readonly exit: (code: number) => void;
}

/** A candidate that campaigns, and the tasks of its terms. */
export class Leading {
  readonly #parts: LeadingParts;
  readonly #working: Promise<void>;
  #stopped: Promise<void> | null = null;

  /** Begins to campaign. */
  constructor(parts: LeadingParts) {
    this.#parts = parts;
    this.#working = parts.tasks.length === 0 ? Promise.resolve() : runLeaderTasks(parts);
    parts.candidate.start();
  }

  /** The handle of the election. */
  get leadership(): Leadership {
    return this.#parts.candidate.leadership;
  }

  /**
   * Stops the tasks, waits until they have, and frees the Lease. A second call gives the first one's promise.
   *
   * @param budget When it aborts, what still runs is left alone and the Lease is *not* freed: it runs out by itself, after
   * the work that it protects.
   */
  stop(budget: AbortSignal): Promise<void> {
    return this.#stopped ??= this.#stop(budget);
  }

  /** Stops like a crash: tasks are told, nothing is waited for, and the Lease is not freed. */
  abort(): void {
    void this.stop(AbortSignal.abort());
  }

  async #stop(budget: AbortSignal): Promise<void> {
    await this.#parts.candidate.stop(budget);
    const over = new Promise<void>((resolve) => {
      if (budget.aborted) resolve();
      else budget.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([this.#working, over]);
  }
}
