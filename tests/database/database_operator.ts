/**
 * An operator of a real database: it watches its group and its primary, carries out the planned failovers that are handed
 * over to it, and fails over when the primary is gone. It asks nobody for the latter.
 *
 * @module
 */

import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import type { KubeApi } from "../../lib/kube/api.ts";
import { GroupOperator, type GroupStatus } from "../supervisor/group_operator.ts";
import type { SitePair } from "./site_pair.ts";

/** How often the primary is asked whether it lives, in milliseconds. */
const PROBE_MS = 100;
/** How many probes in a row must fail. */
const FAILED_PROBES = 2;

/** What the operator did, in order. */
export interface Step {
  readonly what: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

/** The sites in status. @param other How the one is that is not active. */
function sitesOf(active: string, other: Readonly<Record<string, unknown>>) {
  return ["iad", "pdx"].map((name) => ({
    name,
    ...(name === active ? { state: "writable", replicating: false } : other),
  }));
}

/** A running operator. */
export class DatabaseOperator implements AsyncDisposable {
  readonly steps: Step[] = [];
  readonly #pair: SitePair;
  readonly #group: GroupOperator;
  readonly #stop = new AbortController();
  readonly #working: Promise<unknown>;
  #status: GroupStatus = {};
  /** One change of topology at a time. */
  #changing: Promise<void> = Promise.resolve();

  /** @param api With the rights of the operator. */
  constructor(api: KubeApi, namespace: string, group: string, pair: SitePair) {
    this.#pair = pair;
    this.#group = new GroupOperator(api, namespace, group);
    this.#working = Promise.all([this.#watch(api, namespace, group), this.#probe()]);
    // Whoever disposes of it learns of a fault.
    this.#working.catch(() => {});
  }

  /** Waits until it did something, and says when. */
  async did(what: string): Promise<number> {
    const untilMs = performance.now() + 60_000;
    for (;;) {
      const found = this.steps.find((step) => step.what === what);
      if (found !== undefined) return found.atMs;
      if (performance.now() > untilMs) {
        throw new Error(`Cannot see the operator do "${what}": ${JSON.stringify(this.steps)}`);
      }
      await Promise.race([new Promise((resolve) => setTimeout(resolve, 20)), this.#working]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#working;
    await this.#changing;
  }

  #note(what: string): void {
    this.steps.push({ what, atMs: Date.now() });
  }

  async #watch(api: KubeApi, namespace: string, name: string): Promise<void> {
    const { signal } = this.#stop;
    for await (const event of api.watch(MYSQL_FAILOVER_GROUPS, { namespace, signal })) {
      const objects = "list" in event
        ? event.list.items
        : event.type === "added" || event.type === "modified"
        ? [event.object]
        : [];
      const status = objects.find(({ metadata }) => metadata.name === name)?.status;
      if (!status) continue;
      this.#status = status;
      const { phase, target } = status.plannedFailover ?? {};
      if (phase === "Pending" && target) {
        await this.#change(() => this.#switchOver(target));
      }
    }
  }

  async #probe(): Promise<void> {
    let failed = 0;
    while (!this.#stop.signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, PROBE_MS));
      const { activeSite } = this.#status;
      if (!activeSite) continue;
      failed = await this.#pair.site(activeSite).isUp() ? 0 : failed + 1;
      if (failed < FAILED_PROBES) continue;
      failed = 0;
      const other = activeSite === "iad" ? "pdx" : "iad";
      this.#note(`found ${activeSite} dead`);
      await this.#change(() => this.#failOver(other));
    }
  }

  async #change(work: () => Promise<void>): Promise<void> {
    this.#changing = this.#changing.then(work);
    await this.#changing;
  }

  /** The old primary stops writing, the new one gets all that it wrote, and only then writes itself. */
  async #switchOver(to: string): Promise<void> {
    const { status } = await this.#group.read();
    if (status?.plannedFailover?.phase !== "Pending") return;
    const from = status.activeSite ?? "";
    await this.#group.write({ plannedFailover: { phase: "Draining" } });
    await this.#pair.site(from).sql("SET GLOBAL read_only = 1");
    await this.#pair.untilCaughtUp(to, from);
    await this.#group.write({ plannedFailover: { phase: "Promoting" } });
    await this.#promote(to, (status.topologyGeneration ?? 0) + 1);
    await this.#pair.follow(from, to, "MASTER_DEMOTE_TO_SLAVE = 1");
    await this.#moved(to, { plannedFailover: { phase: "Succeeded" } });
    this.#note(`switched over to ${to}`);
  }

  async #failOver(to: string): Promise<void> {
    const { status } = await this.#group.read();
    if (status?.activeSite === to) return;
    await this.#promote(to, (status?.topologyGeneration ?? 0) + 1);
    // The other one is gone, and the status says so: the group is not stable until it is repaired.
    const gone = sitesOf(to, { state: "unreachable", replicating: false });
    await this.#moved(to, { sites: gone });
    this.#note(`failed over to ${to}`);
  }

  /** Tells that the other site is a replica again. */
  async repaired(): Promise<void> {
    const { activeSite } = (await this.#group.read()).status ?? {};
    const replica = { state: "read-only", replicating: true, secondsBehindSource: 0 };
    await this.#group.write({ sites: sitesOf(activeSite ?? "", replica) });
  }

  /** Raises the fence before the server takes writes: docs/fencing.md. */
  async #promote(to: string, generation: number): Promise<void> {
    await this.#pair.site(to).sql(
      `STOP SLAVE; RESET SLAVE ALL; CALL holdfast.raise_generation(${generation});
      SET GLOBAL read_only = 0`,
    );
    this.#note(`promoted ${to}`);
  }

  async #moved(to: string, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
    await this.#group.moved(to, more);
    this.#status = (await this.#group.read()).status ?? {};
  }
}
