/**
 * The service as a part of a host: its ports, and what it does while it leads. `serve` runs it on a real cluster, and `demo`
 * on its own.
 *
 * @module
 */

import { Registry } from "prom-client";
import { ControllerMetrics } from "../../lib/controllers/metrics.ts";
import { startCertificateRotation } from "../../lib/host/certificate_rotation.ts";
import type { Host, HostPlugin } from "../../lib/host/hooks.ts";
import { InFlight } from "../../lib/host/in_flight.ts";
import { HttpMetrics } from "../../lib/host/metrics.ts";
import type { FetchHandler, Listener, ListenerOptions } from "../../lib/host/listener.ts";
import { startPlainListener } from "../../lib/host/plain_listener.ts";
import { startTlsListener } from "../../lib/host/tls_listener.ts";
import type { LeaseTime } from "../../lib/lease_time/lease_time.ts";
import { leaseTimeMetrics } from "../../lib/lease_time/metrics.ts";
import type { KubernetesPlugin } from "../../lib/plugin/plugin.ts";
import type { KubernetesContext } from "../../lib/plugin/runtime.ts";
import type { Tracer } from "../../lib/tracing/tracer.ts";
import { simpleError } from "../http/answers.ts";
import { createMetricsApp } from "../http/metrics.ts";
import { createProbes, stuckLeader } from "../http/probes.ts";
import { createTlsApp } from "../http/tls_app.ts";
import { createAuxiliaryService } from "./service/auxiliary.ts";
import { createEscrow } from "./service/escrow.ts";
import { createServiceWork, type ServiceWork } from "./service/work.ts";

/** What {@linkcode servicePlugin} takes. */
export interface ServiceOptions {
  /** Brings the cluster and the election, and runs the work of the leader. Install it before the service. */
  readonly kubernetes: KubernetesPlugin;
  /** Learns from the answers of the cluster. */
  readonly leaseTime: LeaseTime;
  /** `null` when tracing is off. */
  readonly tracer: Tracer | null;
}

/** How long a stopping listener waits for answers in flight: deploy-api 14. */
const LISTENER_GRACE_MS = 10_000;

/** Makes the service. Its ports are named `tls` (only with a certificate), `metrics`, `probes` and
 * `auxiliary`. */
export function servicePlugin(options: ServiceOptions): HostPlugin {
  return {
    name: "holdfast",
    install: (host) => install(host, options),
  };
}

function install(host: Host, { kubernetes, leaseTime, tracer }: ServiceOptions): void {
  const { config, logger } = host;
  const { enabled } = config.deploy_api;
  const registry = new Registry();
  host.addMetrics({ name: "service", registry });
  leaseTimeMetrics(registry, leaseTime);
  const inFlight = new InFlight();
  const http = new HttpMetrics(registry);
  const controllers = new ControllerMetrics(registry);

  let work: ServiceWork | null = null;
  /** A lead may begin before the hooks of the start are through, so whoever comes first makes the work. */
  const workOn = ({ api, leadership }: KubernetesContext): ServiceWork => {
    if (work !== null) return work;
    if (api === null || leadership === null) {
      throw new RangeError("Cannot serve without a cluster and its election: switch both on");
    }
    const { identity } = leadership;
    const { events } = kubernetes.metrics;
    return work = createServiceWork({
      host,
      registry,
      events,
      leaseTime,
      tracer,
      inFlight,
      http,
      controllers,
      api,
      identity,
    });
  };
  // Without an election nobody leads. The configuration allows that only while the deployment API is off.
  if (config.kubernetes.leader_election.enabled) {
    kubernetes.leaderTask({
      name: "deployment API",
      run: (term, context) => workOn(context).serving.run(term),
    });
  }
  if (enabled) {
    kubernetes.leaderTask({
      name: "group controllers",
      run: (term, context) => workOn(context).loop.run(term),
    });
  }

  const metricsApp = createMetricsApp({ metrics: host.metrics, logger });
  const probes = createProbes({
    live: () => stuckLeader(kubernetes.runtime?.leadership ?? null),
    ready: () => host.notReady(),
  });
  const deploy: FetchHandler = (request, env) =>
    work === null ? simpleError("not_leader") : work.deploy.fetch(request, env);
  const escrow = createEscrow({ host, registry, http, api: () => kubernetes.runtime?.api ?? null });
  const tlsApp = createTlsApp({ deploy: enabled ? deploy : null, escrow, inFlight });
  if (config.tls.cert_file !== "") addTls(host, registry, tlsApp);
  addPlain(host, "metrics", { handler: (request) => metricsApp.fetch(request) });
  addPlain(host, "probes", { handler: (request) => probes.fetch(request) });
  const auxiliary = createAuxiliaryService({
    host,
    registry,
    http,
    controllers,
    leaseTime,
    replica: () => kubernetes.runtime?.leadership?.identity ?? "this replica",
  });
  addPlain(host, "auxiliary", auxiliary);

  host.onStart("holdfast", () => {
    const { runtime } = kubernetes;
    if (runtime === null) throw new TypeError("Cannot serve: install the cluster's plugin first");
    if (runtime.leadership !== null) workOn(runtime);
    if (runtime.api !== null) auxiliary.start(runtime.api);
    logger.info("serving", { cluster: runtime.mode, deploy_api: enabled });
  });
}

function addPlain(
  host: Host,
  name: "metrics" | "probes" | "auxiliary",
  serving: Pick<ListenerOptions, "handler" | "onUpgrade">,
): void {
  host.addListener(name, async () => {
    const options = listenerOptions(host, name, serving.handler);
    return briefly(await startPlainListener({ ...options, onUpgrade: serving.onUpgrade }));
  });
}

function addTls(host: Host, registry: Registry, handler: FetchHandler): void {
  const { config, logger, system: { clock } } = host;
  const { cert_file: certFile, key_file: keyFile } = config.tls;
  host.addListener("tls", async () => {
    const files = { certFile, keyFile };
    const certificate = await startCertificateRotation({ ...files, clock, logger, registry });
    host.onShutdown("certificate", async () => await certificate[Symbol.asyncDispose]());
    const options = listenerOptions(host, "tls", handler);
    return briefly(await startTlsListener({ ...options, certificate }));
  });
}

function listenerOptions(
  { config, logger, system: { clock } }: Host,
  name: "tls" | "metrics" | "probes" | "auxiliary",
  handler: FetchHandler,
): ListenerOptions {
  return { name, address: config.listen[name], handler, clock, logger };
}

/** Holds the end of a listener to the contract, however long the host would wait. */
function briefly({ address, stop }: Listener): Listener {
  return { address, stop: (graceMs) => stop(Math.min(graceMs, LISTENER_GRACE_MS)) };
}
