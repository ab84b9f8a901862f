/**
 * The leader's work without sockets: the service of `in_process.ts`, and beside it the loop over all groups, on one test
 * clock.
 *
 * @module
 */

import { EventWriter } from "../../lib/controllers/events.ts";
import type { GroupController } from "../../lib/controllers/group_controller.ts";
import { leaseRevoked } from "../../lib/controllers/group_events.ts";
import { GroupLoop } from "../../lib/controllers/group_loop.ts";
import { Housekeeping } from "../../lib/controllers/housekeeping.ts";
import { ControllerMetrics, eventFigures } from "../../lib/controllers/metrics.ts";
import { Retention } from "../../lib/controllers/retention.ts";
import { RevocationController } from "../../lib/controllers/revocation.ts";
import { RewindGuard } from "../../lib/controllers/rewind_guard.ts";
import { createLogger } from "../../lib/host/log.ts";
import { type Event, EVENTS } from "../../lib/kube/resources.ts";
import { seededEntropy } from "../../lib/testing/mod.ts";
import { type InProcessOptions, InProcessService, NAMESPACE } from "../service/in_process.ts";

/** What differs between two rigs. */
export interface RigOptions extends InProcessOptions {
  /** @default {those of the service} */
  readonly controllers?: readonly GroupController[];
  /** @default {a day} */
  readonly retentionMs?: number;
}

/** A service, and the loop of its leader. It runs from `start` to `stop`. */
export class Rig implements AsyncDisposable {
  readonly service: InProcessService;
  readonly loop: GroupLoop;
  readonly events: EventWriter;
  /** The way of the loop and its controllers to the API server. */
  readonly guard: RewindGuard;
  #term: AbortController | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: RigOptions = {}) {
    const service = this.service = new InProcessService({
      onRevoked: (group, record) => this.events.report(leaseRevoked(group, record)),
      ...options,
    });
    const { clock, coordinator, metrics } = service;
    const api = this.guard = new RewindGuard(service.api);
    const logger = createLogger({ write: (line) => service.lines.push(line), clock });
    this.events = new EventWriter({
      api,
      clock,
      entropy: seededEntropy(3),
      logger,
      figures: eventFigures(metrics.registry),
      reportingController: "holdfast",
      reportingInstance: "test",
    });
    const { adoption } = coordinator;
    this.loop = new GroupLoop({
      api,
      coordinator: service.parts,
      controllers: options.controllers ?? [
        new RevocationController({ api, adoption }),
        new Housekeeping({ coordinator: service.parts, adoption }),
        new Retention({ api, terminalHoldRetentionMs: options.retentionMs ?? 86_400_000 }),
      ],
      logger,
      metrics: new ControllerMetrics(metrics.registry),
      rewinds: api,
    });
  }

  /** Begins a term, and lets what follows from it settle. */
  async start(): Promise<void> {
    this.#term = new AbortController();
    this.service.coordinator.beginTerm();
    this.#running = this.loop.run({ signal: this.#term.signal });
    await this.settle();
  }

  /** Ends the term. */
  async stop(): Promise<void> {
    this.#term?.abort();
    await this.#running;
    this.service.coordinator.endTerm();
  }

  /** Lets everything settle that needs no time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 10; turn++) await this.service.clock.advance(0);
  }

  /** Moves time on, and lets everything settle. */
  async advance(ms: number): Promise<void> {
    await this.service.clock.advance(ms);
    await this.settle();
  }

  /** The Events that are stored. */
  get stored(): Event[] {
    return this.service.fake.readAll(EVENTS, NAMESPACE);
  }

  /** The parsed log lines of a message. */
  logged(message: string): Record<string, unknown>[] {
    const lines: Record<string, unknown>[] = this.service.lines.map((line) => JSON.parse(line));
    return lines.filter((line) => line.msg === message);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.events.stop(1_000);
    await this.service.fake.close();
    this.service[Symbol.dispose]();
  }
}
