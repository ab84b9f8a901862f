/**
 * Deployment coordination, wired together: what answers requests, and what the leader does by itself.
 *
 * @module
 */

import type { Hono } from "hono";
import type { Registry } from "prom-client";
import { AccessControl } from "../../../lib/auth/access.ts";
import { DatabaseReader } from "../../../lib/auth/databases.ts";
import { reviewMetrics } from "../../../lib/auth/metrics.ts";
import { TokenReviewer } from "../../../lib/auth/token_review.ts";
import { type EventFigures, EventWriter } from "../../../lib/controllers/events.ts";
import { leaseRevoked, topologyRewound } from "../../../lib/controllers/group_events.ts";
import { GroupLoop } from "../../../lib/controllers/group_loop.ts";
import { Housekeeping } from "../../../lib/controllers/housekeeping.ts";
import { externalExecutor, PlannedController } from "../../../lib/controllers/planned.ts";
import { LeftBehindController, plannerName } from "../../../lib/controllers/planned_gate.ts";
import { PlannedReports } from "../../../lib/controllers/planned_reports.ts";
import { StatusExecutor } from "../../../lib/controllers/planned_status_executor.ts";
import { Retention } from "../../../lib/controllers/retention.ts";
import { RevocationController } from "../../../lib/controllers/revocation.ts";
import { RewindGuard } from "../../../lib/controllers/rewind_guard.ts";
import type { GroupController } from "../../../lib/controllers/group_controller.ts";
import { Planner } from "../../../lib/group/admission.ts";
import type { ControllerMetrics } from "../../../lib/controllers/metrics.ts";
import { TopologyReader } from "../../../lib/group/topology.ts";
import type { Host } from "../../../lib/host/hooks.ts";
import type { InFlight } from "../../../lib/host/in_flight.ts";
import type { HttpMetrics } from "../../../lib/host/metrics.ts";
import type { KubeApi } from "../../../lib/kube/api.ts";
import { LeaseCoordinator } from "../../../lib/lease/coordinator.ts";
import { LeaseMetrics } from "../../../lib/lease/metrics.ts";
import { KeyedQueue } from "../../../lib/lease/queue.ts";
import type { LeaseTime } from "../../../lib/lease_time/lease_time.ts";
import { LeaseStore } from "../../../lib/records/store.ts";
import type { CoordinatorParts } from "../../../lib/lease/turn.ts";
import type { Tracer } from "../../../lib/tracing/tracer.ts";
import { createDeployApi, type DeployApiParts } from "../../http/deploy.ts";
import type { DeployEnv } from "../../http/deploy_env.ts";
import { ServingTerm } from "./serving_term.ts";

/** How this program calls itself in Events. */
const REPORTING_CONTROLLER = "holdfast";

/** Milliseconds for the Events that wait when the process ends: kubernetes-plugin 11. */
const LAST_EVENTS_MS = 2_000;

/** Milliseconds that each phase of a planned failover lasts in the demo. */
const DEMO_STEP_MS = 400;

/** What the work of the service is made of. */
export interface ServiceParts {
  readonly host: Host;
  /** Gets the metrics of the service. */
  readonly registry: Registry;
  /** Count the Events of the whole process. */
  readonly events: EventFigures;
  readonly leaseTime: LeaseTime;
  readonly tracer: Tracer | null;
  /** A stop waits for these requests. */
  readonly inFlight: InFlight;
  /** Count the requests of all servers. */
  readonly http: HttpMetrics;
  /** Count what the watches of the whole process tell. */
  readonly controllers: ControllerMetrics;
  /** The calls of requests and controllers. */
  readonly api: KubeApi;
  /** This process in the election. */
  readonly identity: string;
}

/** What answers requests, and the two tasks of the leader. */
export interface ServiceWork {
  readonly deploy: Hono<DeployEnv>;
  readonly serving: ServingTerm;
  readonly loop: GroupLoop;
}

/** Makes the work of the service. Call it once: it registers metrics, and its end with the host. */
export function createServiceWork(parts: ServiceParts): ServiceWork {
  const { host, registry, leaseTime } = parts;
  const { config, logger, system: { clock, entropy } } = host;
  const { max_clock_offset, max_hold_age, max_status_age, terminal_hold_retention } =
    config.deploy_api;
  const api = new RewindGuard(parts.api);
  const events = createEvents(parts, api);
  const leads = () => !host.stopping.aborted && serving.serves();
  const leases = new LeaseMetrics(registry, clock);
  const coordinatorParts: CoordinatorParts = {
    store: new LeaseStore(api),
    topology: new TopologyReader({
      api,
      clock,
      maxStatusAgeMs: max_status_age,
      onRewound: (group) => events.report(topologyRewound(group)),
    }),
    time: leaseTime,
    clock,
    entropy,
    queue: new KeyedQueue(),
    metrics: leases,
    leads,
    limits: { maxClockOffsetMs: max_clock_offset, maxHoldAgeMs: max_hold_age },
    onRevoked: (group, record) => events.report(leaseRevoked(group, record)),
  };
  const coordinator = new LeaseCoordinator(coordinatorParts);
  const serving = new ServingTerm(coordinator, parts.inFlight);
  const { adoption } = coordinator;
  const loop = new GroupLoop({
    api,
    coordinator: coordinatorParts,
    controllers: [
      // First, so that whatever fails later keeps no revocation from being served (deploy-api 7.8).
      new RevocationController({ api, adoption }),
      new Housekeeping({ coordinator: coordinatorParts, adoption }),
      new Retention({ api, terminalHoldRetentionMs: terminal_hold_retention }),
      ...plannedControllers(parts, api, coordinatorParts, events),
    ],
    logger,
    metrics: parts.controllers,
    rewinds: api,
  });
  const deploy = createDeploy(parts, { coordinator, leases, leads });
  return { deploy, serving, loop };
}

function createEvents(
  { host, events: figures, identity }: ServiceParts,
  api: KubeApi,
): EventWriter {
  const { logger, system: { clock, entropy } } = host;
  const events = new EventWriter({
    api,
    clock,
    entropy,
    logger,
    figures,
    reportingController: REPORTING_CONTROLLER,
    reportingInstance: identity,
  });
  host.onShutdown("events", async () => await events.stop(LAST_EVENTS_MS));
  return events;
}

function createDeploy(
  { host, registry, http, api, tracer }: ServiceParts,
  work: Pick<DeployApiParts, "coordinator" | "leases" | "leads">,
): Hono<DeployEnv> {
  const { config, logger, system: { clock } } = host;
  const { audience, request_timeout } = config.deploy_api;
  return createDeployApi({
    ...work,
    clock,
    logger,
    metrics: http,
    requestTimeoutMs: request_timeout,
    reviewer: new TokenReviewer({ api, clock, audience, metrics: reviewMetrics(registry) }),
    access: new AccessControl({
      databases: new DatabaseReader({ api, clock, log: logger }),
      clock,
    }),
    tracer: tracer ?? undefined,
  });
}

/** What the leader does about planned operations: the annotation when it is asked to, and the gate always. */
function plannedControllers(
  { host: { config }, registry, identity }: ServiceParts,
  api: KubeApi,
  coordinator: CoordinatorParts,
  events: EventWriter,
): readonly GroupController[] {
  const { enabled, executor } = config.planned_operations;
  const planner = new Planner({
    ...coordinator,
    api,
    by: plannerName(identity),
    maxClockOffsetMs: coordinator.limits.maxClockOffsetMs,
    onExpired: (group, record) => coordinator.metrics.ended(group.name, record),
  });
  const leftBehind = new LeftBehindController({ planner });
  if (!enabled) return [leftBehind];
  const reports = new PlannedReports({ registry, events });
  return [
    leftBehind,
    new PlannedController({
      api,
      planner,
      reports,
      executor: executor === "status"
        ? new StatusExecutor({ api, reports, stepMs: DEMO_STEP_MS })
        : externalExecutor,
    }),
  ];
}
