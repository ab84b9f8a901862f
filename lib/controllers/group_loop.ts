/**
 * The leader's one loop over all groups: state protocol 2.4.
 *
 * One watch tells of groups, one of the Leases with the deployment labels. What they tell wakes the group that it is about,
 * and so does the time that a controller asked for. Each controller then looks at that group in the group's turn. Nothing
 * is polled, so an idle group costs no call.
 *
 * A watch event that got lost is caught by a list every ten minutes. A store that went back in time is found by its
 * versions, and both watches then begin anew.
 *
 * @module
 */

import { GroupNotFoundError } from "../group/topology.ts";
import { MYSQL_FAILOVER_GROUPS, type MysqlFailoverGroup } from "../group/types.ts";
import type { KubeApi } from "../kube/api.ts";
import { type Lease, LEASES } from "../kube/resources.ts";
import { DEPLOYMENT_KIND_LABEL } from "../records/names.ts";
import type { GroupIdentity } from "../records/store.ts";
import { type CoordinatorParts, inGroupTurn, NotLeaderError } from "../lease/turn.ts";
import { startDeadline } from "../runtime/clock.ts";
import type { Logger } from "../runtime/log.ts";
import { BoardWatch } from "./board_watch.ts";
import { GroupBoard, type GroupKey } from "./group_board.ts";
import type { Due, GroupController } from "./group_controller.ts";
import { GroupSchedule, type PassOutcome } from "./group_schedule.ts";
import type { ControllerMetrics } from "./metrics.ts";
import type { RewindGuard } from "./rewind_guard.ts";
import { errorClass } from "../runtime/error_class.ts";

/** How often all is listed anew, for what a watch may have missed. */
const CATCH_UP_MS = 600_000;

/** Milliseconds for one look at a group, its wait for the group's turn included. */
const PASS_LIMIT_MS = 10_000;

/** What a {@linkcode GroupLoop} is made of. */
export interface GroupLoopParts {
  readonly api: KubeApi;
  /** What the controllers' turns use. */
  readonly coordinator: CoordinatorParts;
  /** They are asked in this order. What one throws keeps none of the others from being asked. */
  readonly controllers: readonly GroupController[];
  readonly logger: Logger;
  readonly metrics: ControllerMetrics;
  /** Finds by the answers to all calls that the store went back in time. */
  readonly rewinds?: RewindGuard;
}

/** Looks after all groups while this process leads. It has the shape of a leader task. */
export class GroupLoop {
  readonly name = "group controllers";
  readonly #parts: GroupLoopParts;

  constructor(parts: GroupLoopParts) {
    this.#parts = parts;
  }

  /** Runs until the term's signal aborts. */
  async run(term: { readonly signal: AbortSignal }): Promise<void> {
    await new LoopTerm(this.#parts, term.signal).run();
  }
}

/** One term of the loop: it begins with nothing known. */
class LoopTerm {
  readonly #parts: GroupLoopParts;
  readonly #board = new GroupBoard();
  readonly #schedule: GroupSchedule;
  /** The groups that controllers were told of, so that they are told when one is gone. */
  readonly #told = new Map<GroupKey, GroupIdentity>();
  readonly #ended = new AbortController();
  readonly #signal: AbortSignal;
  readonly #watches: readonly [BoardWatch<MysqlFailoverGroup>, BoardWatch<Lease>];
  #cancelCatchUp = () => {};

  constructor(parts: GroupLoopParts, signal: AbortSignal) {
    this.#parts = parts;
    this.#signal = AbortSignal.any([signal, this.#ended.signal]);
    const { clock, entropy, time } = parts.coordinator;
    this.#schedule = new GroupSchedule({
      clock,
      entropy,
      time,
      pass: (key, begun) => this.#pass(key, begun),
    });
    this.#watches = [this.#watchGroups(), this.#watchLeases()];
  }

  async run(): Promise<void> {
    const { rewinds, metrics } = this.#parts;
    rewinds?.begin(this.#board, () => this.#restart());
    this.#planCatchUp();
    try {
      await Promise.all(this.#watches.map((watch) => watch.run()));
    } finally {
      this.#ended.abort();
      this.#cancelCatchUp();
      rewinds?.end();
      await this.#schedule.stop();
      metrics.groups(0);
    }
  }

  #watchGroups(): BoardWatch<MysqlFailoverGroup> {
    const board = this.#board;
    return new BoardWatch({
      ...this.#parts,
      resource: "mysqlfailovergroups",
      watch: this.#parts.api.watch(MYSQL_FAILOVER_GROUPS, { signal: this.#signal }),
      listed: (list) => {
        board.setGroups(list);
        this.#wakeAll();
      },
      changed: (group, deleted) => {
        this.#wake([deleted ? board.removeGroup(group) : board.setGroup(group)]);
      },
      unreadable: ({ name }) => this.#logFailure(name, "DecodeError"),
    });
  }

  #watchLeases(): BoardWatch<Lease> {
    const board = this.#board;
    return new BoardWatch({
      ...this.#parts,
      resource: "leases",
      watch: this.#parts.api.watch(LEASES, {
        signal: this.#signal,
        labelSelector: DEPLOYMENT_KIND_LABEL,
      }),
      listed: (list) => {
        board.setLeases(list);
        this.#wakeAll();
      },
      changed: (lease, deleted) => {
        this.#wake(deleted ? board.removeLease(lease) : board.setLease(lease));
      },
      unreadable: ({ name }) => this.#logFailure(name, "DecodeError"),
    });
  }

  /** Lists all anew: no timer of a longer life than a term, and no call that grows with the groups. */
  #planCatchUp(): void {
    this.#cancelCatchUp = this.#parts.coordinator.clock.timer(CATCH_UP_MS, () => {
      this.#restart();
      this.#planCatchUp();
    });
  }

  #restart(): void {
    for (const watch of this.#watches) watch.restart();
  }

  #wakeAll(): void {
    this.#wake([...this.#board.keys(), ...this.#told.keys()]);
  }

  #wake(keys: readonly GroupKey[]): void {
    // What one watch shows is half of the picture before the other one has listed.
    if (!this.#watches.every((watch) => watch.synced)) return;
    this.#parts.metrics.groups(this.#board.size);
    for (const key of keys) this.#schedule.wake(key);
  }

  async #pass(key: GroupKey, begun: () => void): Promise<PassOutcome> {
    const known = this.#board.sight(key);
    if (known === null) {
      begun();
      this.#forget(key);
      return { type: "gone" };
    }
    const { namespace = "", name } = known.group.metadata;
    const { coordinator } = this.#parts;
    using limit = startDeadline(coordinator.clock, PASS_LIMIT_MS, this.#signal);
    try {
      const dues = await inGroupTurn(
        coordinator,
        { namespace, name },
        limit.signal,
        async (turn) => {
          begun();
          const sight = this.#board.sight(key);
          if (sight === null) return [];
          this.#tell(key, { namespace, name, uid: sight.group.metadata.uid });
          return await this.#reconcile((controller) => controller.reconcile(turn, sight));
        },
      );
      return { type: "done", dues };
    } catch (error) {
      // A group that is gone comes as an event, and a lead that is lost ends the term.
      if (error instanceof GroupNotFoundError) return { type: "done", dues: [] };
      if (!this.#signal.aborted && !(error instanceof NotLeaderError)) {
        this.#logFailure(name, errorClass(error));
      }
      return { type: "failed" };
    }
  }

  /** Asks all controllers, and throws what the first of those that failed threw. */
  async #reconcile(
    ask: (controller: GroupController) => Promise<Due | null>,
  ): Promise<readonly Due[]> {
    const dues: Due[] = [];
    const failures: unknown[] = [];
    for (const controller of this.#parts.controllers) {
      try {
        const due = await ask(controller);
        if (due !== null) dues.push(due);
      } catch (error) {
        failures.push(error);
        if (this.#signal.aborted) break;
        if (!(error instanceof GroupNotFoundError) && !(error instanceof NotLeaderError)) {
          this.#parts.metrics.failed(controller.name);
        }
      }
    }
    if (failures.length > 0) throw failures[0];
    return dues;
  }

  /** Notes a group that controllers are told of. One that took the name of another is another. */
  #tell(key: GroupKey, group: GroupIdentity): void {
    if (this.#told.get(key)?.uid !== group.uid) this.#forget(key);
    this.#told.set(key, group);
  }

  #forget(key: GroupKey): void {
    const group = this.#told.get(key);
    if (group === undefined) return;
    this.#told.delete(key);
    for (const controller of this.#parts.controllers) controller.forget?.(group);
  }

  #logFailure(group: string, error: string): void {
    this.#parts.logger.warn("deployment lease housekeeping failed", { group, error });
  }
}
