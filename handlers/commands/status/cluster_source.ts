/**
 * Reports from the cluster, for administrators: two lists, or two watches.
 *
 * @module
 */

import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../../../lib/group/types.ts";
import type { KubeObject, Watch } from "../../../lib/kube/api.ts";
import { NoClusterError } from "../../../lib/kube/connect_errors.ts";
import { ForbiddenError, KubeError, NotFoundError } from "../../../lib/kube/errors.ts";
import { type Lease, LEASES } from "../../../lib/kube/resources.ts";
import { timeForView } from "../../../lib/lease_time/lease_time.ts";
import { sleep } from "../../../lib/runtime/clock.ts";
import {
  ALL_LEASES_SELECTOR,
  clusterReport,
  LIVE_LEASES_SELECTOR,
} from "../../../lib/status/cluster_report.ts";
import type { StatusReport } from "../../../lib/status/report.ts";
import { Shelf } from "../../../lib/status/shelf.ts";
import { type AdministratorCluster, openCluster } from "../administrator.ts";
import { CommandFault, FAILED, NOT_AUTHORIZED } from "../faults.ts";
import type { System } from "../system.ts";
import { type StatusSource, TICK_MS } from "./source.ts";

/** What is to be looked at. */
export interface ClusterWish {
  /** @default {all groups} */
  readonly group?: string;
  /** @default {all namespaces} */
  readonly namespace?: string;
  /** Leases and operations that ended too. */
  readonly all: boolean;
}

/** Finds the cluster. @throws {CommandFault} There is none. @throws {ClusterConfigError} */
export async function clusterSource(
  system: System,
  wish: ClusterWish,
  signal: AbortSignal,
): Promise<StatusSource> {
  try {
    return new ClusterSource(system, wish, await openCluster(system, signal));
  } catch (error) {
    if (!(error instanceof NoClusterError)) throw error;
    const hint = "or HOLDFAST_URL must be set to look through the API";
    throw new CommandFault(`${error.message}, ${hint}`, FAILED, { cause: error });
  }
}

class ClusterSource implements StatusSource {
  readonly #system: System;
  readonly #wish: ClusterWish;
  readonly #cluster: AdministratorCluster;
  readonly #groups = new Shelf<MysqlFailoverGroup>();
  readonly #leases = new Shelf<Lease>();

  constructor(system: System, wish: ClusterWish, cluster: AdministratorCluster) {
    this.#system = system;
    this.#wish = wish;
    this.#cluster = cluster;
  }

  async read(signal: AbortSignal): Promise<StatusReport> {
    const { api } = this.#cluster;
    const { namespace, group } = this.#wish;
    try {
      const [groups, leases] = await Promise.all([
        api.list(MYSQL_FAILOVER_GROUPS, { namespace, signal }),
        api.list(LEASES, { ...this.#leaseSelection(), signal }),
      ]);
      this.#groups.fill(groups);
      this.#leases.fill(leases);
    } catch (error) {
      throw this.#explained(error);
    }
    const report = this.#report();
    if (group === undefined || report.groups.length > 0) return report;
    const where = namespace === undefined ? "any namespace" : `namespace ${namespace}`;
    throw new CommandFault(
      `Cannot find a MysqlFailoverGroup '${group}' in ${where}: it must exist`,
      FAILED,
    );
  }

  async follow(signal: AbortSignal, show: (report: StatusReport) => void): Promise<void> {
    const { api } = this.#cluster;
    const { namespace } = this.#wish;
    const ended = new AbortController();
    const both = AbortSignal.any([signal, ended.signal]);
    const tell = () => show(this.#report());
    try {
      await Promise.all([
        fill(this.#groups, api.watch(MYSQL_FAILOVER_GROUPS, { namespace, signal: both }), tell),
        fill(this.#leases, api.watch(LEASES, { ...this.#leaseSelection(), signal: both }), tell),
        this.#tick(both, tell),
      ]);
    } finally {
      ended.abort();
    }
  }

  [Symbol.dispose](): void {
    this.#cluster[Symbol.dispose]();
  }

  async #tick(signal: AbortSignal, tell: () => void): Promise<void> {
    const { clock } = this.#system;
    while (!signal.aborted) {
      await sleep(clock, TICK_MS, signal).catch(() => {});
      if (signal.aborted) return;
      await this.#keepTime(signal);
      tell();
    }
  }

  /** A quiet watch brings no time: an answer counts for a minute, so any call is made then. */
  async #keepTime(signal: AbortSignal): Promise<void> {
    const { api, leaseTime } = this.#cluster;
    if (leaseTime.reading() !== null) return;
    try {
      await api.version({ signal });
    } catch (error) {
      // The view goes on with this machine's time.
      if (!(error instanceof KubeError) && !signal.aborted) throw error;
    }
  }

  #report(): StatusReport {
    const snapshot = { groups: this.#groups.list(), leases: this.#leases.list() };
    const time = timeForView(this.#system.clock, this.#cluster.leaseTime);
    const report = clusterReport(snapshot, time, this.#wish);
    const troubles = [["groups", this.#groups.trouble], ["leases", this.#leases.trouble]]
      .filter(([, trouble]) => trouble !== "")
      .map(([what, trouble]) => `The watch of ${what} fails (${trouble}): this may be old`);
    return { ...report, problems: [...report.problems, ...troubles] };
  }

  #leaseSelection() {
    const { namespace, all } = this.#wish;
    return { namespace, labelSelector: all ? ALL_LEASES_SELECTOR : LIVE_LEASES_SELECTOR };
  }

  #explained(error: unknown): unknown {
    if (error instanceof NotFoundError) {
      return new CommandFault(
        "Cannot list the groups as this cluster has no kind MysqlFailoverGroup: install its definition, or check the current context of the kubeconfig",
        FAILED,
      );
    }
    if (error instanceof ForbiddenError && this.#wish.namespace === undefined) {
      return new CommandFault(
        `${error.message}, or look at one namespace with --namespace`,
        NOT_AUTHORIZED,
        { cause: error },
      );
    }
    return error;
  }
}

async function fill<T extends KubeObject>(
  shelf: Shelf<T>,
  watch: Watch<T>,
  tell: () => void,
): Promise<void> {
  for await (const event of watch) {
    shelf.apply(event);
    tell();
  }
}
