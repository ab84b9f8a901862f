/**
 * The figures of an election: kubernetes-plugin 12, and the two standard names of Kubernetes' own components.
 *
 * @module
 */

import { Counter, Gauge, type Metric, type Registry } from "prom-client";

/** Counts what one elector does. All are there from the start, with 0, but for the time of the last renewal. */
export class ElectionMetrics {
  readonly #lease: string;
  readonly #leader: Gauge<"lease">;
  readonly #master: Gauge<"name">;
  readonly #acquired: Counter<"lease">;
  readonly #lost: Counter<"lease">;
  readonly #errors: Counter<"lease">;
  readonly #conflicts: Counter<"lease">;
  readonly #slowPath: Counter<"name">;
  readonly #renewed: Gauge<"lease">;

  /**
   * @param registry Where the figures are registered. Those of an elector for another Lease are shared.
   * @param leaseName The value of the label `lease`, or `name`.
   */
  constructor(registry: Registry, leaseName: string) {
    this.#lease = leaseName;
    const gauge = <L extends string>(name: string, help: string, label: L): Gauge<L> =>
      shared(
        registry,
        name,
        Gauge<L>,
        () => new Gauge({ name, help, labelNames: [label], registers: [registry] }),
      );
    const counter = <L extends string>(name: string, help: string, label: L): Counter<L> =>
      shared(
        registry,
        name,
        Counter<L>,
        () => new Counter({ name, help, labelNames: [label], registers: [registry] }),
      );
    this.#leader = gauge(
      "kubernetes_leader",
      "1 while this replica believes that it leads",
      "lease",
    );
    this.#master = gauge(
      "leader_election_master_status",
      "1 while this replica believes that it leads, under the name of Kubernetes' own components",
      "name",
    );
    this.#acquired = counter("kubernetes_leader_acquired_total", "Terms that began", "lease");
    this.#lost = counter("kubernetes_leader_lost_total", "Terms that ended", "lease");
    this.#errors = counter(
      "kubernetes_lease_errors_total",
      "Calls about the Lease that failed, lost races aside",
      "lease",
    );
    this.#conflicts = counter(
      "kubernetes_lease_conflicts_total",
      "Writes of the Lease that lost a race",
      "lease",
    );
    this.#slowPath = counter(
      "leader_election_slowpath_total",
      "Renewals that had to read the Lease first",
      "name",
    );
    this.#renewed = gauge(
      "holdfast_leader_renewed_timestamp_seconds",
      "When this replica, while it led, last wrote the Lease, in seconds since 1970",
      "lease",
    );
    this.#setLeading(0);
    for (const family of [this.#acquired, this.#lost, this.#errors, this.#conflicts]) {
      family.inc({ lease: leaseName }, 0);
    }
    this.#slowPath.inc({ name: leaseName }, 0);
  }

  /** This replica began to lead. */
  acquired(): void {
    this.#setLeading(1);
    this.#acquired.inc({ lease: this.#lease });
  }

  /** The Lease was written by its holder. @param wallMs When, by this machine's wall clock, in milliseconds since 1970. */
  renewed(wallMs: number): void {
    this.#renewed.set({ lease: this.#lease }, wallMs / 1_000);
  }

  /** This replica stopped leading. */
  lost(): void {
    this.#setLeading(0);
    this.#lost.inc({ lease: this.#lease });
  }

  /** A call failed. */
  error(): void {
    this.#errors.inc({ lease: this.#lease });
  }

  /** A write lost a race. */
  conflict(): void {
    this.#conflicts.inc({ lease: this.#lease });
  }

  /** A holder had to read before it could renew. */
  slowPath(): void {
    this.#slowPath.inc({ name: this.#lease });
  }

  #setLeading(value: 0 | 1): void {
    this.#leader.set({ lease: this.#lease }, value);
    this.#master.set({ name: this.#lease }, value);
  }
}

/** The metric of that name when it is registered already, or a new one. */
function shared<M extends Metric>(
  registry: Registry,
  name: string,
  kind: abstract new (...args: never[]) => M,
  make: () => M,
): M {
  const present = registry.getSingleMetric(name);
  if (present === undefined) return make();
  if (present instanceof kind) return present;
  throw new TypeError(
    `Cannot register the metric '${name}' as it must be of the kind ${kind.name}: the registry has another one of that name`,
  );
}
