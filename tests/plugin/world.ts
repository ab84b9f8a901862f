/** A small world for plugin tests: one clock, one cluster in memory, and applications in its pods. */

import { type Config, configSchema } from "../../lib/config/schema.ts";
import { type Event, EVENTS, type Lease, LEASES } from "../../lib/kube/resources.ts";
import type { PodInfo } from "../../lib/plugin/pod_info.ts";
import type { KubernetesRuntime } from "../../lib/plugin/runtime.ts";
import { type KubernetesParts, startKubernetes } from "../../lib/plugin/start.ts";
import { connectTo, FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { TestSystem } from "../../lib/testing/test_system.ts";
import { MemoryLog } from "../election/world.ts";

/** The Lease of these tests. */
export const LEASE = "app.example.com";

/** The pod of these tests. */
export const POD: PodInfo = {
  name: "web-1",
  namespace: "default",
  uid: "u-1",
  labels: {},
  inCluster: true,
};

export const never = new AbortController().signal;

/** An application in a pod: a runtime, and what it runs on. */
export interface App {
  readonly runtime: KubernetesRuntime;
  readonly system: TestSystem;
  readonly log: MemoryLog;
  /** The user name with which it calls. */
  readonly user: string;
}

/** What an application starts with. */
export interface AppParts extends KubernetesParts {
  readonly system: TestSystem;
  readonly user: string;
  readonly log: MemoryLog;
}

/** What differs from an application that takes part in the election. */
export interface AppOptions extends Partial<Omit<KubernetesParts, "config" | "system">> {
  readonly env?: Record<string, string>;
  readonly kubernetes?: Record<string, unknown>;
  readonly host?: Record<string, unknown>;
}

/** The section `kubernetes` with an election, and what differs. */
export function withElection(more: Record<string, unknown> = {}): Record<string, unknown> {
  return { leader_election: { enabled: true, lease_name: LEASE, ...more } };
}

export class World {
  readonly clock = new TestClock();
  readonly entropy = seededEntropy(77);
  readonly fake = new FakeCluster({ clock: this.clock, entropy: this.entropy });
  readonly apps: App[] = [];
  #users = 0;

  /** The client of a user of its own, so that a fault can hit it alone. */
  client(user: string) {
    const { clock, entropy } = this;
    return connectTo(this.fake, {
      clock,
      entropy,
      token: this.fake.userToken(user, ["system:masters"]),
    });
  }

  /** What `startKubernetes` takes for an application in the pod {@linkcode POD}. */
  parts(options: AppOptions = {}): AppParts {
    const { kubernetes = {}, host = {}, env, ...more } = options;
    const user = `app-${++this.#users}`;
    const api = this.client(user);
    const log = new MemoryLog();
    const config: Config = configSchema.parse({ kubernetes, host });
    return {
      config,
      logger: log,
      signal: never,
      podInfo: POD,
      connector: () => api,
      ...more,
      system: new TestSystem({ clock: this.clock, entropy: seededEntropy(this.#users), env }),
      user,
      log,
    };
  }

  /** Starts an application. */
  async start(options: AppOptions = {}): Promise<App> {
    const parts = this.parts(options);
    const runtime = await startKubernetes(parts);
    const { user, log, system } = parts;
    const app = { runtime, user, log, system };
    this.apps.push(app);
    await this.clock.advance(0);
    return app;
  }

  /** Waits, on the test clock, until it holds; answers how long that took, in milliseconds. */
  async until(holds: () => boolean, limitMs = 120_000): Promise<number> {
    const start = this.clock.monotonic();
    await this.clock.advance(0);
    while (!holds()) {
      if (this.clock.monotonic() - start >= limitMs) throw new Error("Cannot wait any longer");
      await this.clock.advance(10);
    }
    return this.clock.monotonic() - start;
  }

  /** Moves time on until the work has settled. */
  async settle<T>(work: Promise<T>, limitMs = 60_000): Promise<T> {
    let settled = false;
    const mark = () => void (settled = true);
    work.then(mark, mark);
    await this.until(() => settled, limitMs);
    return await work;
  }

  lease(): Lease | null {
    return this.fake.read(LEASES, { namespace: "default", name: LEASE });
  }

  /** The Events about pods, in the order in which they were written. */
  async events(namespace = "default"): Promise<Event[]> {
    const { items } = await this.client("reader").list(EVENTS, { namespace, signal: never });
    return items.toSorted((a, b) =>
      Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion)
    );
  }

  async reasons(): Promise<(string | undefined)[]> {
    return (await this.events()).map(({ reason }) => reason);
  }

  /** The value of a figure; `undefined` when there is no sample of it. */
  async figure(app: App, name: string): Promise<number | undefined> {
    return (await app.runtime.metrics.snapshot()).find((sample) => sample.name === name)?.value;
  }
}

/** Runs a test in a world of its own; no application outlives it. */
export async function inWorld(body: (world: World) => Promise<void>): Promise<void> {
  const world = new World();
  try {
    await body(world);
  } finally {
    for (const { runtime } of world.apps) runtime.abort();
    await world.clock.advance(1);
    await world.fake.close();
  }
}
