/**
 * The service without sockets: the app, the coordinator and an API server in memory, on one test clock.
 *
 * It is the shipped code: what is left out is the listener and the election, for which `leads` stands.
 *
 * @module
 */

import { createDeployApi } from "../../handlers/http/deploy.ts";
import { AccessControl } from "../../lib/auth/access.ts";
import { DatabaseReader } from "../../lib/auth/databases.ts";
import { TokenReviewer } from "../../lib/auth/token_review.ts";
import { TopologyReader } from "../../lib/group/topology.ts";
import { createLogger } from "../../lib/host/log.ts";
import type { ListenerEnv } from "../../lib/host/raw_target.ts";
import { createMetrics, HttpMetrics, type Metrics } from "../../lib/host/metrics.ts";
import { HttpApi, staticToken } from "../../lib/kube/mod.ts";
import type { KubeApi } from "../../lib/kube/api.ts";
import type { SendRequest } from "../../lib/kube/exchange.ts";
import { LeaseCoordinator } from "../../lib/lease/coordinator.ts";
import { exactLeaseTime, type LeaseClock } from "../../lib/lease_time/lease_time.ts";
import { LeaseMetrics } from "../../lib/lease/metrics.ts";
import { KeyedQueue } from "../../lib/lease/queue.ts";
import { LeaseStore } from "../../lib/records/store.ts";
import type { CoordinatorLimits, CoordinatorParts } from "../../lib/lease/turn.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { MYSQL_DATABASES, MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { readDefinitions } from "../../handlers/commands/demo/crds.ts";
import { DeploymentClient } from "./deployment_client.ts";
import { ordersDatabase, ordersGroup, stableStatus } from "./orders.ts";

/** The audience of tokens. */
export const AUDIENCE = "bloodraven-deploy";
/** The namespace of the group: deploy-api 16, fixture conventions. */
export const NAMESPACE = "database-ns";
/** Who deploys. */
export const DEPLOYER = { namespace: "app-ns", serviceAccount: "deployer" };

/** What differs between two services. */
export interface InProcessOptions {
  /** A cluster to share with another service. @default {a new one, with the group `orders`} */
  readonly fake?: FakeCluster;
  readonly clock?: TestClock;
  /** @default {exact} */
  readonly time?: LeaseClock;
  readonly limits?: Partial<CoordinatorLimits>;
  readonly onRevoked?: CoordinatorParts["onRevoked"];
  readonly maxStatusAgeMs?: number;
  readonly audience?: string;
  /** Wraps the way to the API server: for a test that acts between two calls. */
  readonly send?: (send: SendRequest) => SendRequest;
  /** @default {1} */
  readonly seed?: number;
}

/** A service in this process. */
export class InProcessService implements Disposable {
  readonly clock: TestClock;
  readonly fake: FakeCluster;
  readonly api: KubeApi;
  /** What the coordinator is made of: for what works beside it. */
  readonly parts: CoordinatorParts;
  readonly coordinator: LeaseCoordinator;
  /** The log, a line each. */
  readonly lines: string[] = [];
  /** Whether this replica leads. */
  leads = true;
  readonly metrics: Metrics;
  readonly #app: ReturnType<typeof createDeployApi>;

  constructor(options: InProcessOptions = {}) {
    const clock = this.clock = options.clock ?? new TestClock();
    const entropy = seededEntropy(options.seed ?? 1);
    const fake = this.fake = options.fake ?? new FakeCluster({ clock, entropy });
    if (options.fake === undefined) seedCluster(fake);
    const metrics = this.metrics = createMetrics({ clock });
    const logger = createLogger({ write: (line) => this.lines.push(line), clock });
    const api = this.api = new HttpApi({
      baseUrl: "https://fake",
      fetch: options.send?.(fake.fetch) ?? fake.fetch,
      credentials: staticToken(fake.adminToken),
      clock,
      entropy,
      defaultNamespace: NAMESPACE,
    });
    const leases = new LeaseMetrics(metrics.registry, clock);
    const leads = () => this.leads;
    this.parts = {
      store: new LeaseStore(api),
      topology: new TopologyReader({ api, clock, maxStatusAgeMs: options.maxStatusAgeMs ?? 0 }),
      time: options.time ?? exactLeaseTime(clock),
      clock,
      entropy,
      queue: new KeyedQueue(),
      metrics: leases,
      leads,
      limits: { maxClockOffsetMs: 1_000, maxHoldAgeMs: 0, ...options.limits },
      onRevoked: options.onRevoked,
    };
    this.coordinator = new LeaseCoordinator(this.parts);
    this.#app = createDeployApi({
      clock,
      logger,
      metrics: new HttpMetrics(metrics.registry),
      leads,
      requestTimeoutMs: 10_000,
      reviewer: new TokenReviewer({ api, clock, audience: options.audience ?? AUDIENCE }),
      access: new AccessControl({
        databases: new DatabaseReader({ api, clock, log: logger }),
        clock,
      }),
      coordinator: this.coordinator,
      leases,
    });
  }

  /**
   * Sends a request to the app.
   *
   * @param env The request line as a socket would have brought it; without it the URL stands in.
   */
  readonly send = async (url: string, init?: RequestInit, env?: ListenerEnv): Promise<Response> =>
    await this.#app.request(url, init, env);

  /** A caller of this service. */
  client(
    { namespace, serviceAccount } = DEPLOYER,
    { group = "orders", audience = AUDIENCE } = {},
  ): DeploymentClient {
    const token = this.fake.tokenFor({ namespace, serviceAccount, audiences: [audience] });
    return new DeploymentClient({ url: "https://service", token, group, send: this.send });
  }

  /** The value of a series as a scrape shows it, for example `x_total{group="orders"}`; `null` when it is not there. */
  async metric(series: string): Promise<number | null> {
    const text = await this.metrics.registry.metrics();
    const line = text.split("\n").find((found) => found.startsWith(`${series} `));
    return line === undefined ? null : Number(line.slice(series.length + 1));
  }

  [Symbol.dispose](): void {
    this.metrics[Symbol.dispose]();
  }
}

const crds = readDefinitions();

/** Gives a cluster the operator's kinds, the group `orders` and its databases `tenant` and `billing`. */
export function seedCluster(fake: FakeCluster): void {
  for (const crd of crds) fake.apply(crd);
  seedGroup(fake, "orders", ["tenant", "billing"]);
}

/** Gives a cluster a stable group and its databases, which name the deployer. */
export function seedGroup(fake: FakeCluster, group: string, databases: readonly string[]): void {
  fake.seed(MYSQL_FAILOVER_GROUPS, { ...ordersGroup(NAMESPACE, group), status: stableStatus });
  for (const name of databases) {
    fake.seed(MYSQL_DATABASES, ordersDatabase(NAMESPACE, name, group, [DEPLOYER]));
  }
}
