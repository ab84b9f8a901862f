/**
 * The running service: the parts, wired together. `serve` runs it on a real cluster, and `demo` on its own.
 *
 * @module
 */

import { AccessControl } from "../../lib/auth/access.ts";
import { DatabaseReader } from "../../lib/auth/databases.ts";
import { reviewMetrics } from "../../lib/auth/metrics.ts";
import { TokenReviewer } from "../../lib/auth/token_review.ts";
import type { Config } from "../../lib/config/schema.ts";
import {
  type ElectionTiming,
  Elector,
  type Leadership,
  runLeaderTasks,
} from "../../lib/election/mod.ts";
import { startCertificateRotation } from "../../lib/host/certificate_rotation.ts";
import { InFlight } from "../../lib/host/in_flight.ts";
import type { Lifecycle } from "../../lib/host/lifecycle.ts";
import type { ListenAddress } from "../../lib/config/listen_address.ts";
import type { FetchHandler, Listener } from "../../lib/host/listener.ts";
import type { Metrics } from "../../lib/host/metrics.ts";
import { startPlainListener } from "../../lib/host/plain_listener.ts";
import { startTlsListener } from "../../lib/host/tls_listener.ts";
import type { KubeApi } from "../../lib/kube/api.ts";
import type { LeaseTime } from "../../lib/lease_time/lease_time.ts";
import { leaseTimeMetrics } from "../../lib/lease_time/metrics.ts";
import { type Clock, sleep, startDeadline } from "../../lib/runtime/clock.ts";
import type { Entropy } from "../../lib/runtime/entropy.ts";
import type { Logger } from "../../lib/runtime/log.ts";
import type { Tracer } from "../../lib/tracing/tracer.ts";
import { createDeployApi } from "../http/deploy.ts";
import { createMetricsApp } from "../http/metrics.ts";
import { createProbes } from "../http/probes.ts";
import { createTlsApp } from "../http/tls_app.ts";
import { createGroupWork } from "./group_work.ts";
import { ServingTerm } from "./serving_term.ts";

/** What the service is made of. */
export interface ServiceParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** The end of the service is registered here. */
  readonly lifecycle: Lifecycle;
  /** The calls of requests. */
  readonly api: KubeApi;
  /** The calls of the election, on connections of their own, so that nothing queues in front of a renewal. */
  readonly electionApi: KubeApi;
  /** Learns from the answers of `api`. */
  readonly leaseTime: LeaseTime;
  /** The namespace of the election Lease. */
  readonly namespace: string;
  /** This process in the election. */
  readonly identity: string;
  /** Absent when tracing is off. */
  readonly tracer?: Tracer;
}

/** A service that runs. */
export interface Service {
  readonly addresses: ServiceAddresses;
  readonly leadership: Leadership;
}

/** The addresses that were bound. */
export interface ServiceAddresses {
  readonly metrics: ListenAddress;
  readonly probes: ListenAddress;
  /** `null` without a certificate. */
  readonly tls: ListenAddress | null;
}

/** How long a stopping listener waits for answers in flight: deploy-api 14. */
const LISTENER_GRACE_MS = 10_000;

/**
 * Starts the service. Its end is registered with the lifecycle, in the order that leaves no gap in a rolling update:
 * refuse new requests, let those in flight settle, give up the lead, wait until the traffic has moved, stop listening.
 *
 * @throws {CertificateError} @throws {ListenError} @throws {RangeError} The lifecycle stops what was started before.
 */
export async function startService(parts: ServiceParts): Promise<Service> {
  const { config, clock, logger, lifecycle, metrics } = parts;
  const inFlight = new InFlight();
  leaseTimeMetrics(metrics.registry, parts.leaseTime);
  const leads = () => !lifecycle.stopping.aborted && serving.serves();
  const { coordinator, leases, loop } = createGroupWork(parts, leads);
  const serving = new ServingTerm(coordinator, inFlight);

  const deploy = config.deploy_api.enabled
    ? createDeployApi({
      clock,
      logger,
      metrics: metrics.http,
      leads,
      requestTimeoutMs: config.deploy_api.request_timeout,
      reviewer: createReviewer(parts),
      access: new AccessControl({
        databases: new DatabaseReader({ api: parts.api, clock, log: logger }),
        clock,
      }),
      coordinator,
      leases,
      tracer: parts.tracer,
    })
    : null;

  const elector = createElector(parts);
  const { leadership } = elector;
  const addresses = await startListeners(parts, leadership, createTlsApp({ deploy, inFlight }));

  lifecycle.onShutdown("prestop grace", async ({ signal }) => {
    await sleep(clock, config.host.prestop_grace_secs * 1000, signal);
  });
  const leading = runLeaderTasks({
    candidate: elector,
    tasks: config.deploy_api.enabled ? [serving, loop] : [serving],
    timing: electionTiming(parts),
    clock,
    logger,
    // It is logged, and the next term begins anew.
    onTaskError: () => {},
    exit: () => void lifecycle.stop("a leader task overran"),
  });
  elector.start();
  lifecycle.onShutdown("election", async ({ signal }) => {
    // Requests end with their own deadline. What is not settled then keeps the Lease, which runs out by itself.
    using budget = startDeadline(clock, config.deploy_api.request_timeout, signal);
    await elector.stop(budget.signal);
    await leading;
  });
  return { addresses, leadership };
}

function createReviewer({ config, clock, api, metrics }: ServiceParts): TokenReviewer {
  const { audience } = config.deploy_api;
  return new TokenReviewer({ api, clock, audience, metrics: reviewMetrics(metrics.registry) });
}

function createElector(parts: ServiceParts): Elector {
  const { config, clock, entropy, logger, metrics, namespace, identity } = parts;
  const election = config.kubernetes.leader_election;
  return new Elector({
    api: parts.electionApi,
    clock,
    entropy,
    logger,
    metrics: metrics.registry,
    namespace,
    leaseName: election.lease_name,
    identity,
    releaseOnStop: election.release_on_shutdown,
    timing: electionTiming(parts),
    tracer: parts.tracer,
  });
}

function electionTiming({ config }: ServiceParts): ElectionTiming {
  const election = config.kubernetes.leader_election;
  return {
    leaseDurationMs: election.lease_duration_secs * 1000,
    renewDeadlineMs: election.renew_deadline_secs * 1000,
    retryPeriodMs: election.retry_period_secs * 1000,
  };
}

async function startListeners(
  parts: ServiceParts,
  leadership: Leadership,
  tlsApp: FetchHandler,
): Promise<ServiceAddresses> {
  const { config, clock, logger, lifecycle, metrics } = parts;
  const { registry } = metrics;
  const keep = (name: string, listener: Listener): ListenAddress => {
    lifecycle.onShutdown(`listener ${name}`, async () => {
      await listener.stop(LISTENER_GRACE_MS);
    });
    return listener.address;
  };
  const plain = async (name: "metrics" | "probes", handler: FetchHandler) => {
    const address = config.listen[name];
    return keep(name, await startPlainListener({ name, address, handler, clock, logger }));
  };
  const metricsApp = createMetricsApp({ registry, logger });
  const probes = createProbes({
    live: () => {
      const stuck = leadership.state.leading && !leadership.isLeader();
      return stuck ? "leads and has not renewed in time" : undefined;
    },
    ready: () => lifecycle.stopping.aborted ? "stopping" : undefined,
  });
  const tls = await startTls(parts, tlsApp);
  return {
    tls: tls && keep("tls", tls),
    metrics: await plain("metrics", (request) => metricsApp.fetch(request)),
    probes: await plain("probes", (request) => probes.fetch(request)),
  };
}

/** Starts the TLS listener when there is a certificate. */
async function startTls(parts: ServiceParts, handler: FetchHandler): Promise<Listener | null> {
  const { config, clock, logger, lifecycle, metrics } = parts;
  const { cert_file: certFile, key_file: keyFile } = config.tls;
  if (certFile === "") return null;
  const { registry } = metrics;
  const certificate = await startCertificateRotation({
    certFile,
    keyFile,
    clock,
    logger,
    registry,
  });
  lifecycle.onShutdown("certificate", async () => await certificate[Symbol.asyncDispose]());
  const address = config.listen.tls;
  return await startTlsListener({ name: "tls", address, handler, clock, logger, certificate });
}
