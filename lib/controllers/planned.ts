/**
 * The controller of the `planned-failover` annotation: deploy-api 8.1 to 8.3 over the admission of state protocol 2.2.
 *
 * 1. Read the group, its gate and its holds, and decide (`planned_rules.ts`).
 * 2. While a hold is in the way, status says `Deferred` and until when; each renewal moves that on.
 * 3. With no hold left and a good request: admit, write `Pending`, clear the gate, remove the annotation.
 * 4. An executor takes over from `Pending`. From there on this controller only looks after second requests.
 *
 * It runs in the group's turn, so that in one process no request of the group is served in between. Safety rests on the
 * gate alone, for there may be other processes.
 *
 * @module
 */

import type { Admitted, PhaseResult, Planner } from "../group/admission.ts";
import { refusalReason } from "../group/admission_rules.ts";
import type { PlannedAdmission } from "../group/gate_lease.ts";
import {
  changesNothing,
  pending,
  type PlannedRequest,
  type PlannedStatusChange,
} from "../group/planned_request.ts";
import {
  MYSQL_FAILOVER_GROUPS,
  type MysqlFailoverGroup,
  PLANNED_FAILOVER_ANNOTATION,
} from "../group/types.ts";
import type { KubeApi, Stored } from "../kube/api.ts";
import { ConflictError } from "../kube/errors.ts";
import { DEPLOYMENT_KIND_LABEL, DEPLOYMENT_STATE_LABEL } from "../records/names.ts";
import type { GroupIdentity } from "../records/store.ts";
import { ContendedError, TRIES, type Turn } from "../lease/turn.ts";
import type { Due, GroupController, GroupSight } from "./group_controller.ts";
import { isOwnPlanner, plannedOf } from "./planned_gate.ts";
import type { PlannedReports } from "./planned_reports.ts";
import {
  annotationOf,
  decidePlanned,
  nothingToLookAt,
  type PlannedDecision,
} from "./planned_rules.ts";

/** Who carries out a planned failover once status says `Pending`. */
export interface PlannedExecutor {
  /** The value of `planned_operations.executor`. */
  readonly name: string;
  /**
   * Does the next step of a run that was admitted. It is called at every look at such a group, in the group's turn.
   *
   * @returns When to be asked again, or `null` when only a change can bring work.
   */
  advance(turn: Turn, group: Stored<MysqlFailoverGroup>): Promise<Due | null>;
}

/** An operator carries it out: it sees `Pending` in status and goes on from there. */
export const externalExecutor: PlannedExecutor = {
  name: "external",
  advance: () => Promise.resolve(null),
};

/** What a {@linkcode PlannedController} is made of. */
export interface PlannedControllerParts {
  readonly api: KubeApi;
  readonly planner: Planner;
  readonly executor: PlannedExecutor;
  readonly reports: PlannedReports;
}

/** The admission is refused for now: the loop asks again after a pause that grows (deploy-api 8.3). */
export class PlannedRefusedError extends Error {
  override readonly name = "PlannedRefusedError";
  /** The reason of the 423 of deploy-api 7.7. */
  readonly reason: string;

  constructor(reason: string) {
    super(`Cannot admit the planned failover now: ${reason}`);
    this.reason = reason;
  }
}

/** The least time between two looks while a hold is in the way: deploy-api 8.3. */
const LEAST_PAUSE_MS = 1_000;

/** What one try comes to: when to look again, or at once. */
type Outcome = { readonly again: true } | { readonly again: false; readonly due: Due | null };

const AGAIN: Outcome = { again: true };

/** Serves the annotation. */
export class PlannedController implements GroupController {
  readonly name = "planned failover";
  readonly #parts: PlannedControllerParts;

  constructor(parts: PlannedControllerParts) {
    this.#parts = parts;
  }

  /** @throws {PlannedRefusedError} @throws {ContendedError} Others wrote in between each time. */
  async reconcile(turn: Turn, sight: GroupSight): Promise<Due | null> {
    const { group } = sight;
    const own = isOwnPlanner(plannedOf(sight)?.by);
    if (nothingToLookAt(group, own, anyHold(sight))) {
      return await this.#parts.executor.advance(turn, group);
    }
    for (let tries = 0; tries < TRIES; tries++) {
      const outcome = await this.#try(turn);
      if (!outcome.again) return outcome.due;
      turn.parts.metrics.retried("planned");
    }
    throw new ContendedError("serve the planned failover");
  }

  /** Drops the figures of a group that is gone. */
  forget(group: GroupIdentity): void {
    this.#parts.reports.forget(group);
  }

  async #try(turn: Turn): Promise<Outcome> {
    const { planner, executor } = this.#parts;
    const topology = await turn.confirm(await turn.readTopology());
    const { group, gate } = topology;
    const hold = await planner.earliestHold(group, turn.options);
    const time = turn.now();
    const planned = gate.record.planned;
    const own = isOwnPlanner(planned?.by) ? planned : null;
    const decision = decidePlanned({
      group,
      own,
      refusal: refusalReason({
        group,
        planned: own === null ? planned : null,
        admission: topology.admission(time),
      }, "PlannedFailover"),
      hold,
      earliestMs: time.earliestMs,
      latestMs: time.latestMs,
    });
    turn.mustLead();
    try {
      switch (decision.type) {
        case "nothing":
          return { again: false, due: await executor.advance(turn, group) };
        case "refused":
          throw new PlannedRefusedError(decision.reason);
        case "withdraw":
          await planner.withdraw(group, decision.admission, turn.options);
          return AGAIN;
        case "discard":
          return await this.#discard(turn, group, decision.why);
        case "defer":
          return await this.#defer(turn, group, decision);
        case "fail":
          return await this.#fail(turn, group, decision);
        case "admit":
          return await this.#admit(turn, group, decision);
      }
    } catch (error) {
      if (error instanceof ConflictError) return AGAIN;
      throw error;
    }
  }

  async #discard(
    turn: Turn,
    group: Stored<MysqlFailoverGroup>,
    why: Extract<PlannedDecision, { type: "discard" }>["why"],
  ): Promise<Outcome> {
    const { reports } = this.#parts;
    await this.#annotate(turn, group, null);
    const who = identityOf(group);
    const value = annotationOf(group) ?? "";
    if (why === "invalid") {
      const note = `The value of the annotation is not SITE or SITE:maxLagWait=DURATION: ${value}`;
      reports.event(who, "PlannedFailoverRejected", note);
      reports.ended("", "rejected");
    }
    if (why === "second") {
      const note = `Another planned failover is under way: ${value}`;
      reports.event(who, "PlannedFailoverRejected", note);
    }
    if (why === "already_active") {
      reports.event(who, "PlannedFailoverSkipped", `The site is active already: ${value}`);
    }
    return { again: false, due: null };
  }

  async #defer(
    turn: Turn,
    group: Stored<MysqlFailoverGroup>,
    decision: Extract<PlannedDecision, { type: "defer" }>,
  ): Promise<Outcome> {
    const { reports } = this.#parts;
    // The annotation first: a run that waits without one counts as cancelled.
    const known = decision.restore === null
      ? group
      : await this.#annotate(turn, group, decision.restore);
    if (!changesNothing(known, decision.change)) {
      await this.#writeStatus(turn, known, decision.change);
    }
    if (decision.first) {
      const who = identityOf(group);
      reports.event(who, "PlannedFailoverDeferred", decision.change.message ?? "");
      reports.deferred(who, decision.reason);
    }
    // A hold that is past its time stays in the way until that is stored.
    const past = turn.now().earliestMs > decision.untilMs;
    const due = past ? { inMs: LEAST_PAUSE_MS } : { afterMs: decision.untilMs };
    return { again: false, due };
  }

  async #fail(
    turn: Turn,
    group: Stored<MysqlFailoverGroup>,
    { change, reason, target }: Extract<PlannedDecision, { type: "fail" }>,
  ): Promise<Outcome> {
    const { reports } = this.#parts;
    const written = await this.#writeStatus(turn, group, change);
    const who = identityOf(group);
    if (reason === "AlreadyActive") {
      reports.event(who, "PlannedFailoverSkipped", change.message ?? "");
    } else {
      const kind = reason === "Cancelled" ? "PlannedFailoverFailed" : "PlannedFailoverRejected";
      reports.event(who, kind, change.message ?? "");
    }
    reports.ended(target, "rejected");
    await this.#annotate(turn, written, null);
    return { again: false, due: null };
  }

  async #admit(
    turn: Turn,
    group: Stored<MysqlFailoverGroup>,
    { request, left }: Extract<PlannedDecision, { type: "admit" }>,
  ): Promise<Outcome> {
    const { planner, reports, executor } = this.#parts;
    const admitted = await this.#admission(turn, group, left);
    // A hold or another operation came in between: the next try says so in status.
    if (admitted === null) return AGAIN;
    const phase = await this.#writePhase(turn, admitted, request);
    if (phase.type === "lost") return AGAIN;
    await planner.clear(group, admitted.admission, turn.options);
    const note = `Planned failover to ${request.target} starts`;
    reports.event(identityOf(group), "PlannedFailoverStarted", note);
    const handedOver = await this.#annotate(turn, phase.group, null);
    return { again: false, due: await executor.advance(turn, handedOver) };
  }

  /** An admission without a phase closes the group to deployments: who cannot write the phase takes it back. */
  async #writePhase(turn: Turn, admitted: Admitted, request: PlannedRequest): Promise<PhaseResult> {
    const { planner } = this.#parts;
    const nowMs = turn.now().latestMs;
    try {
      return await planner.writePhase(
        admitted,
        (fresh) => ({ plannedFailover: pending(fresh, request, nowMs) }),
        turn.options,
      );
    } catch (error) {
      // Should that fail too, the controller of what is left behind does it: the first fault is the one to tell.
      await planner.withdraw(admitted.group, admitted.admission, turn.options).catch(() => {});
      throw error;
    }
  }

  async #admission(
    turn: Turn,
    group: Stored<MysqlFailoverGroup>,
    left: PlannedAdmission | null,
  ): Promise<Admitted | null> {
    const { planner } = this.#parts;
    if (left !== null) return await planner.takeOver(group, left, turn.options);
    const result = await planner.admitPlanned(group, "PlannedFailover", turn.options);
    return result.type === "admitted" ? result : null;
  }

  /** Writes `status.plannedFailover` under the version that was read. @throws {ConflictError} */
  async #writeStatus(
    turn: Turn,
    group: Stored<MysqlFailoverGroup>,
    plannedFailover: PlannedStatusChange,
  ): Promise<Stored<MysqlFailoverGroup>> {
    return await this.#patch(turn, group, { status: { plannedFailover } });
  }

  /** Sets the annotation, or takes it away, under the version that was read. @throws {ConflictError} */
  async #annotate(
    turn: Turn,
    group: Stored<MysqlFailoverGroup>,
    value: string | null,
  ): Promise<Stored<MysqlFailoverGroup>> {
    if ((annotationOf(group) ?? null) === value) return group;
    return await this.#patch(turn, group, {
      metadata: { annotations: { [PLANNED_FAILOVER_ANNOTATION]: value } },
    });
  }

  async #patch(
    turn: Turn,
    { metadata: { namespace, name, uid, resourceVersion } }: Stored<MysqlFailoverGroup>,
    change: { readonly metadata?: object; readonly status?: object },
  ): Promise<Stored<MysqlFailoverGroup>> {
    turn.mustLead();
    const body = { ...change, metadata: { uid, resourceVersion, ...change.metadata } };
    return await this.#parts.api.patch(
      MYSQL_FAILOVER_GROUPS,
      { namespace, name },
      { type: "merge", body },
      { ...turn.options, ...(change.status !== undefined && { subresource: "status" }) },
    );
  }
}

function identityOf({ metadata: { namespace = "", name, uid } }: Stored<MysqlFailoverGroup>) {
  return { namespace, name, uid };
}

function anyHold({ leases }: GroupSight): boolean {
  return leases.some(({ metadata: { labels } }) =>
    labels?.[DEPLOYMENT_KIND_LABEL] === "failover-hold" &&
    labels[DEPLOYMENT_STATE_LABEL] === "active"
  );
}
