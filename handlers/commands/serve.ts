/**
 * `holdfast serve`: the service on a real cluster, until it is asked to stop.
 *
 * @module
 */

import { CertificateError } from "../../lib/host/certificate.ts";
import { createLifecycle, type Lifecycle } from "../../lib/host/lifecycle.ts";
import { ListenError } from "../../lib/host/listener.ts";
import { createLogger } from "../../lib/host/log.ts";
import { createMetrics } from "../../lib/host/metrics.ts";
import {
  ClusterConfigError,
  connect,
  type ConnectedClient,
  type ConnectOptions,
  KubeError,
  NoClusterError,
} from "../../lib/kube/mod.ts";
import { callMetrics } from "../../lib/kube/metrics.ts";
import { LeaseTime } from "../../lib/lease_time/lease_time.ts";
import { startDeadline } from "../../lib/runtime/clock.ts";
import { toHex } from "../../lib/runtime/entropy.ts";
import type { Logger } from "../../lib/runtime/log.ts";
import { createTracer } from "../../lib/tracing/create_tracer.ts";
import { RefusalError, type ServeOptions } from "./options.ts";
import { type Service, startService } from "./service.ts";
import type { System } from "./system.ts";

/** How long the cluster may take to show that it is there: kubernetes-plugin 1. */
const FIRST_CALL_MS = 5_000;

/** A service that was opened on a cluster. */
export interface OpenedService extends Service {
  /** Stops it, and tells when it has stopped. */
  readonly lifecycle: Lifecycle;
}

/**
 * Runs the service until a signal asks it to stop.
 *
 * @returns The exit code: 0, or 1 when the stop overran its budget.
 * @throws {RefusalError} It cannot start, for a reason that its user can put right.
 */
export async function serve(options: ServeOptions): Promise<number> {
  const { lifecycle } = await openService(options);
  return await lifecycle.done;
}

/**
 * Finds the cluster and starts the service on it.
 *
 * @throws {RefusalError} What was started before is stopped.
 */
export async function openService(options: ServeOptions): Promise<OpenedService> {
  const { config, system } = options;
  const { clock } = system;
  const logger = createLogger({ write: options.writeLog, clock, ...config.log });
  const lifecycle = createLifecycle({
    clock,
    logger,
    onSignal: (handler) => listenForSignals(system, handler),
    budgetMs: (config.host.prestop_grace_secs + config.host.shutdown_timeout_secs) * 1000,
  });
  try {
    const service = await start(options, logger, lifecycle);
    return { ...service, lifecycle };
  } catch (error) {
    await lifecycle.stop("the start failed");
    throw refusal(error);
  }
}

async function start(
  { config, system }: ServeOptions,
  logger: Logger,
  lifecycle: Lifecycle,
): Promise<Service> {
  const { clock, entropy } = system;
  const metrics = createMetrics({ clock });
  lifecycle.onShutdown("metrics", () => metrics[Symbol.dispose]());
  const leaseTime = new LeaseTime({ clock });
  const watched = { observer: leaseTime.observe, onCall: callMetrics(metrics.registry) };
  const cluster = await findCluster(system, logger, lifecycle, watched);
  const { leader_election, namespace } = config.kubernetes;
  if (!leader_election.enabled) {
    throw new RefusalError(
      "Cannot start as only a leader serves: set kubernetes.leader_election.enabled to true",
    );
  }
  if (config.kubernetes.required) await mustAnswer(cluster, system);
  // A socket of its own: no other call can queue in front of a renewal, and a dead HTTP/2 connection cannot take it down.
  const election = cluster.another({ ...watched, http2: false });
  lifecycle.onShutdown("election sockets", () => election.close());
  const service = await startService({
    config,
    clock,
    entropy,
    logger,
    metrics,
    lifecycle,
    api: cluster.api,
    electionApi: election.api,
    leaseTime,
    namespace: namespace || cluster.api.defaultNamespace,
    identity: leader_election.identity || ownIdentity(system),
    tracer: createTracer({ config: config.tracing, logger }),
  });
  logger.info("serving", { cluster: cluster.mode, deploy_api: config.deploy_api.enabled });
  return service;
}

async function findCluster(
  { clock, entropy, env, readTextFile }: System,
  logger: Logger,
  lifecycle: Lifecycle,
  watched: Pick<ConnectOptions, "observer" | "onCall">,
): Promise<ConnectedClient> {
  const cluster = await connect({
    env: (name) => env[name],
    clock,
    entropy,
    logger,
    signal: lifecycle.stopping,
    ...watched,
    readTextFile: (path) => {
      const text = readTextFile(path);
      return text === undefined
        ? Promise.reject(new Deno.errors.NotFound(`Cannot read ${path} as it does not exist`))
        : Promise.resolve(text);
    },
  });
  lifecycle.onShutdown("cluster sockets", () => cluster.close());
  return cluster;
}

/** Asks for the version: a service without its cluster would only seem to run. */
async function mustAnswer({ api, mode }: ConnectedClient, { clock }: System): Promise<void> {
  using limit = startDeadline(clock, FIRST_CALL_MS);
  try {
    await api.version({ signal: limit.signal });
  } catch (error) {
    if (!(error instanceof KubeError) && !limit.expired) throw error;
    const why = error instanceof KubeError ? error.kind : "timeout";
    throw new RefusalError(
      `Cannot start as the API server of the cluster (${mode}) does not answer (${why}): check its address and the credentials, or set kubernetes.required to false`,
    );
  }
}

/** A name that no other process has: kubernetes-plugin 2. */
function ownIdentity({ env, entropy }: System): string {
  const host = env.POD_NAME?.trim() || env.HOSTNAME?.trim() || "holdfast";
  return `${host}-${toHex(entropy.bytes(4))}`;
}

function listenForSignals(system: System, handler: (signal: string) => void): () => void {
  const stops = (["SIGINT", "SIGTERM"] as const).map((signal) =>
    system.onSignal(signal, () => handler(signal))
  );
  return () => stops.forEach((stop) => stop());
}

/** Faults that the user can put right, as one line. Anything else is a fault of ours, and stays what it is. */
function refusal(error: unknown): unknown {
  const known = error instanceof CertificateError || error instanceof ListenError ||
    error instanceof NoClusterError || error instanceof ClusterConfigError ||
    error instanceof RangeError;
  return known ? new RefusalError(error.message, { cause: error }) : error;
}
