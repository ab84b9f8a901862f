/**
 * The status page of a cluster in memory, on a port of its own: the shipped page, view, WebSockets and listener. What is
 * left out is the rest of the service.
 *
 * @module
 */

import { createPageService, type PageService } from "../../handlers/commands/service/page.ts";
import { readDefinitions } from "../../handlers/commands/demo/crds.ts";
import { createAuxiliary } from "../../handlers/http/auxiliary.ts";
import { WS_PAGE_PATH } from "../../handlers/http/status_page.tsx";
import { LiveGroups } from "../../lib/auxiliary/mod.ts";
import { gateObject } from "../../lib/group/gate_lease.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { libraryPurpose, loadConfig } from "../../lib/config/layers.ts";
import type { FetchHandler, Listener } from "../../lib/host/listener.ts";
import { createMetrics, HttpMetrics } from "../../lib/host/metrics.ts";
import { startPlainListener } from "../../lib/host/plain_listener.ts";
import { createWebSockets, type WebSocketTable } from "../../lib/host/web_sockets.ts";
import { LEASES } from "../../lib/kube/resources.ts";
import { exactLeaseTime } from "../../lib/lease_time/lease_time.ts";
import { leaseObject } from "../../lib/records/lease_object.ts";
import {
  DEPLOYMENT_LEASE_ANNOTATION,
  gateName,
  holdName,
  slotName,
} from "../../lib/records/names.ts";
import { formatTime, hashToken, type LeaseRecord, parseRecord } from "../../lib/records/record.ts";
import { connectTo, FakeCluster, seededEntropy } from "../../lib/testing/mod.ts";
import { fakeSystem } from "../handlers/commands/fake_system.ts";
import { realClock, recordingLogger } from "../host/support.ts";
import { ordersGroup, stableStatus } from "../service/orders.ts";

/** The namespace of all groups. */
export const NAMESPACE = "database";

/** A running page. */
export class PageServer implements AsyncDisposable {
  readonly fake: FakeCluster;
  readonly #page: PageService;
  readonly #sockets: WebSocketTable;
  readonly #handler: FetchHandler;
  readonly #end = new AbortController();
  readonly #running: Promise<unknown>;
  readonly #ownsFake: boolean;
  #listener: Listener | null = null;

  private constructor(fake: FakeCluster | undefined, replica: string) {
    this.fake = fake ?? newCluster();
    this.#ownsFake = fake === undefined;
    const logger = recordingLogger();
    const system = fakeSystem();
    const { clock } = system;
    const { config } = loadConfig({
      env: {},
      readTextFile: () => undefined,
      purpose: libraryPurpose,
    });
    const counters = { restarted: () => {}, undecodable: () => {} };
    const groups = new LiveGroups({ clock, logger, metrics: counters, leases: true });
    this.#page = createPageService({
      host: { config, system },
      groups,
      leaseTime: exactLeaseTime(clock),
      replica: () => replica,
    });
    const metrics = createMetrics({ clock });
    const app = createAuxiliary({
      groups,
      cutoffOf: () => Promise.resolve(null),
      clock,
      logger,
      metrics: new HttpMetrics(metrics.registry),
      page: this.#page.app,
    });
    metrics[Symbol.dispose]();
    this.#handler = (request, env) => app.fetch(request, env);
    this.#sockets = createWebSockets({
      paths: new Map([[WS_PAGE_PATH, this.#page.webSocket]]),
      handler: this.#handler,
      clock,
      logger,
    });
    const api = connectTo(this.fake, { clock, entropy: seededEntropy(2) });
    this.#running = Promise.all([
      groups.run(api, this.#end.signal),
      this.#page.run(this.#end.signal),
    ]);
  }

  /** Starts it. @param port @default {any free one} */
  static async start(
    { fake, port = 0, replica = "holdfast-0" }: {
      readonly fake?: FakeCluster;
      readonly port?: number;
      readonly replica?: string;
    } = {},
  ): Promise<PageServer> {
    const server = new PageServer(fake, replica);
    await server.listen(port);
    return server;
  }

  get port(): number {
    return this.#listener?.address.port ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  async listen(port: number): Promise<void> {
    this.#listener = await startPlainListener({
      name: "auxiliary",
      address: { host: "127.0.0.1", port },
      handler: this.#handler,
      clock: realClock,
      logger: recordingLogger(),
      onUpgrade: this.#sockets.onUpgrade,
    });
  }

  /** Cuts all connections and takes none, until it listens again. @returns The port that it had. */
  async cut(): Promise<number> {
    const { port } = this;
    await this.#listener?.stop(0);
    return port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cut();
    this.#end.abort();
    await this.#running;
    if (this.#ownsFake) await this.fake[Symbol.asyncDispose]();
  }
}

/** A cluster in memory with the definitions of the operator's kinds. */
export function newCluster(): FakeCluster {
  const fake = new FakeCluster({
    clock: realClock,
    entropy: seededEntropy(1),
    namespaces: [NAMESPACE],
  });
  for (const definition of readDefinitions()) fake.apply(definition);
  return fake;
}

/** Puts a stable group in with its gate, or changes its status. The gate follows, as the service would see to it. */
export function putGroup(
  fake: FakeCluster,
  name: string,
  change: Readonly<Record<string, unknown>> = {},
  annotations: Readonly<Record<string, string>> = {},
): void {
  const plain = ordersGroup(NAMESPACE, name);
  const status = { ...stableStatus, ...change };
  const { activeSite: site, topologyGeneration: generation } = status;
  const metadata = { ...plain.metadata, annotations };
  const group = fake.seed(MYSQL_FAILOVER_GROUPS, { ...plain, metadata, status });
  const { uid = "", resourceVersion = "" } = group.metadata;
  const gate = gateObject({ ...group, metadata: { ...metadata, name, uid, resourceVersion } }, {
    seq: 1,
    site,
    generation,
    observedGeneration: generation,
    restoreFencing: false,
    pending: null,
    planned: null,
  });
  const stored = fake.read(LEASES, { namespace: NAMESPACE, name: gateName(name) });
  if (stored?.spec?.leaseTransitions !== gate.spec?.leaseTransitions) fake.apply(gate);
}

/** The status of a group whose standby lags. */
export function lagging(seconds: number): Readonly<Record<string, unknown>> {
  const [active, standby] = stableStatus.sites;
  return { sites: [active, { ...standby, secondsBehindSource: seconds }] };
}

/** Puts a lease of a group in, or changes it: the same operation keeps the time of its grant. */
export function putLease(
  fake: FakeCluster,
  group: string,
  change: Partial<LeaseRecord> & { readonly ttlMs?: number } = {},
): void {
  const { ttlMs = 30_000, ...fields } = change;
  const nowMs = realClock.wall();
  const kind = change.kind ?? "migration";
  const operationId = change.operationId ?? `${group}-release-7`;
  const name = kind === "migration" ? slotName(group) : holdName(group, operationId);
  const before = fake.read(LEASES, { namespace: NAMESPACE, name })?.metadata
    .annotations?.[DEPLOYMENT_LEASE_ANNOTATION];
  const earlier = before === undefined ? null : parseRecord(before);
  const record: LeaseRecord = {
    kind,
    operationId,
    instance: `${group}-app`,
    expiresAt: formatTime(nowMs + ttlMs),
    topologyGeneration: 7,
    namespace: `${group}-app`,
    serviceAccount: "deployer",
    tokenHash: hashToken("token"),
    createdAt: earlier?.operationId === operationId ? earlier.createdAt : formatTime(nowMs),
    state: "active",
    ...fields,
  };
  const uid = uidOf(fake, group);
  fake.apply(
    leaseObject({ name, namespace: NAMESPACE, group: { name: group, uid }, record, nowMs }),
  );
}

function uidOf(fake: FakeCluster, group: string): string {
  const owner = fake.read(MYSQL_FAILOVER_GROUPS, { namespace: NAMESPACE, name: group });
  return owner?.metadata.uid ?? "";
}
