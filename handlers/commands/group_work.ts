/**
 * Deployment coordination, wired together: what requests use, and what the leader does by itself.
 *
 * @module
 */

import { EventWriter } from "../../lib/controllers/events.ts";
import { leaseRevoked, topologyRewound } from "../../lib/controllers/group_events.ts";
import { GroupLoop } from "../../lib/controllers/group_loop.ts";
import { Housekeeping } from "../../lib/controllers/housekeeping.ts";
import { ControllerMetrics, eventFigures } from "../../lib/controllers/metrics.ts";
import { externalExecutor, PlannedController } from "../../lib/controllers/planned.ts";
import { LeftBehindController, plannerName } from "../../lib/controllers/planned_gate.ts";
import { PlannedReports } from "../../lib/controllers/planned_reports.ts";
import { StatusExecutor } from "../../lib/controllers/planned_status_executor.ts";
import { Retention } from "../../lib/controllers/retention.ts";
import { RevocationController } from "../../lib/controllers/revocation.ts";
import { RewindGuard } from "../../lib/controllers/rewind_guard.ts";
import type { GroupController } from "../../lib/controllers/group_controller.ts";
import { Planner } from "../../lib/group/admission.ts";
import { TopologyReader } from "../../lib/group/topology.ts";
import type { KubeApi } from "../../lib/kube/api.ts";
import { LeaseCoordinator } from "../../lib/lease/coordinator.ts";
import { LeaseMetrics } from "../../lib/lease/metrics.ts";
import { KeyedQueue } from "../../lib/lease/queue.ts";
import { LeaseStore } from "../../lib/records/store.ts";
import type { CoordinatorParts } from "../../lib/lease/turn.ts";
import type { ServiceParts } from "./service.ts";

/** How this program calls itself in Events. */
const REPORTING_CONTROLLER = "holdfast";

/** Milliseconds for the Events that wait when the process ends: kubernetes-plugin 11. */
const LAST_EVENTS_MS = 2_000;

/** Milliseconds that each phase of a planned failover lasts in the demo. */
const DEMO_STEP_MS = 400;

/** What requests use, and the loop of the leader. */
export interface GroupWork {
  readonly coordinator: LeaseCoordinator;
  readonly leases: LeaseMetrics;
  readonly loop: GroupLoop;
}

/** Makes the parts of deployment coordination. `leads` says whether this process leads and may serve. */
export function createGroupWork(parts: ServiceParts, leads: () => boolean): GroupWork {
  const { config, clock, entropy, logger, leaseTime, lifecycle, metrics, identity } = parts;
  const { max_clock_offset, max_hold_age, max_status_age, terminal_hold_retention } =
    config.deploy_api;
  const api = new RewindGuard(parts.api);
  const events = new EventWriter({
    api,
    clock,
    entropy,
    logger,
    figures: eventFigures(metrics.registry),
    reportingController: REPORTING_CONTROLLER,
    reportingInstance: identity,
  });
  lifecycle.onShutdown("events", async () => await events.stop(LAST_EVENTS_MS));

  const leases = new LeaseMetrics(metrics.registry, clock);
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
    metrics: new ControllerMetrics(metrics.registry),
    rewinds: api,
  });
  return { coordinator, leases, loop };
}

/** What the leader does about planned operations: the annotation when it is asked to, and the gate always. */
function plannedControllers(
  { config, metrics, identity }: ServiceParts,
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
  const reports = new PlannedReports({ registry: metrics.registry, events });
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
