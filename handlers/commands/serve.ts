/**
 * `holdfast serve`: the service on a real cluster, until it is asked to stop.
 *
 * @module
 */

import { CertificateError } from "../../lib/host/certificate.ts";
import { type ApplicationHost, createHost } from "../../lib/host/host.ts";
import { ListenError } from "../../lib/host/listener.ts";
import { createLogger } from "../../lib/host/log.ts";
import { ClusterConfigError, NoClusterError } from "../../lib/kube/mod.ts";
import { LeaseTime } from "../../lib/lease_time/lease_time.ts";
import { ClusterUnavailableError } from "../../lib/plugin/errors.ts";
import { kubernetes } from "../../lib/plugin/plugin.ts";
import { createTracer } from "../../lib/tracing/create_tracer.ts";
import { RefusalError, type ServeOptions } from "./options.ts";
import { servicePlugin } from "./service.ts";

/** Milliseconds to free the Lease, after the last request that began before the stop has met its deadline. */
const RELEASE_MS = 1_000;

/**
 * Runs the service until a signal asks it to stop.
 *
 * @returns The exit code: 0, or 1 when the stop overran its budget.
 * @throws {RefusalError} It cannot start, for a reason that its user can put right.
 * @throws {ConfigError} The configuration breaks a rule that only the start can check.
 */
export async function serve(options: ServeOptions): Promise<number> {
  const host = await openService(options);
  return await host.done;
}

/**
 * Finds the cluster and starts the service on it. A start that a signal ended does not throw.
 *
 * @returns What the service lives on. Its ports are named `tls`, `metrics` and `probes`.
 * @throws {RefusalError} @throws {ConfigError} What was started before is stopped.
 */
export async function openService(options: ServeOptions): Promise<ApplicationHost> {
  const { config, system } = options;
  const { clock } = system;
  const logger = createLogger({ write: options.writeLog, clock, ...config.log });
  const tracer = createTracer({ config: config.tracing, logger }) ?? null;
  const leaseTime = new LeaseTime({ clock });
  const cluster = kubernetes({
    // Only the leader serves. So the next one must be there before this one's port is gone.
    giveUpLead: "before_grace",
    // Requests end with their own deadline. What is not settled then keeps the Lease, which runs out by itself.
    giveUpLeadMs: config.deploy_api.request_timeout + RELEASE_MS,
    observer: leaseTime.observe,
    tracer,
  });
  const service = servicePlugin({ kubernetes: cluster, leaseTime, tracer });
  try {
    const plugins = [cluster, service];
    const host = createHost({ system, config, logger, listen: null, plugins });
    await host.start();
    return host;
  } catch (error) {
    throw refusal(error);
  }
}

/** Faults that the user can put right, as one line. Anything else is a fault of ours, and stays what it is. */
function refusal(error: unknown): unknown {
  const known = error instanceof CertificateError || error instanceof ListenError ||
    error instanceof NoClusterError || error instanceof ClusterConfigError ||
    error instanceof ClusterUnavailableError || error instanceof RangeError;
  return known ? new RefusalError(error.message, { cause: error }) : error;
}
