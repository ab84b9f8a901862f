/**
 * A small world for election tests: one clock, one Lease, and candidates for it.
 *
 * @module
 */

import { Registry } from "prom-client";
import {
  Elector,
  type ElectorOptions,
  LeadershipLostError,
  type Term,
} from "../../lib/election/mod.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import type { LogFields, Logger } from "../../lib/runtime/log.ts";
import type { Stored } from "../../lib/kube/api.ts";
import { type Lease, LEASES } from "../../lib/kube/resources.ts";
import { FakeCluster, seededEntropy, TestClock } from "../../lib/testing/mod.ts";
import { Network } from "./network.ts";

/** The Lease of these tests. */
export const LEASE = "app.example.com";

/** 15 s, 10 s, 2 s. */
export const TIMING = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };

/** A line that was logged. */
export interface Line {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: LogFields;
}

/** Keeps what is logged. */
export class MemoryLog implements Logger {
  readonly lines: Line[] = [];
  debug(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: "debug", message, fields });
  }
  info(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: "info", message, fields });
  }
  warn(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: "warn", message, fields });
  }
  error(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: "error", message, fields });
  }
  at(level: Line["level"]): Line[] {
    return this.lines.filter((line) => line.level === level);
  }
}

/** One candidate, with its own client, log and figures. */
export class Candidate {
  readonly client: Network;
  readonly log = new MemoryLog();
  readonly registry = new Registry();
  readonly elector: Elector;
  /** Every term of it, in order. */
  readonly terms: Term[] = [];
  readonly #collecting = new AbortController();
  readonly #collected: Promise<void>;

  constructor(world: World, identity: string, seed: number, more: Partial<ElectorOptions>) {
    const { fake, clock } = world;
    this.client = new Network(fake, clock, more.clock ?? clock, `candidate-${seed}`);
    this.elector = new Elector({
      api: this.client.api,
      clock: world.clock,
      entropy: seededEntropy(seed),
      logger: this.log,
      metrics: this.registry,
      namespace: "default",
      leaseName: LEASE,
      identity,
      timing: TIMING,
      ...more,
    });
    this.#collected = this.#collect(world.tokens);
  }

  get leads(): boolean {
    return this.elector.leadership.isLeader();
  }

  /** The last term; throws when there was none. */
  get term(): Term {
    const term = this.terms.at(-1);
    if (term === undefined) throw new Error("Cannot show the term: there was none");
    return term;
  }

  /** Why each term ended. */
  get losses(): string[] {
    return this.terms.flatMap(({ signal }) =>
      signal.reason instanceof LeadershipLostError ? [signal.reason.reason] : []
    );
  }

  /** The value of a figure; `NaN` when there is none. */
  async figure(name: string): Promise<number> {
    const values = (await this.registry.getSingleMetric(name)?.get())?.values ?? [];
    return values[0]?.value ?? NaN;
  }

  /** Ends it like a crash. */
  async crash(): Promise<void> {
    this.elector.abort();
    await this.#end();
  }

  /** Ends it as a pod that gets its signal does. */
  async stop(budget: AbortSignal = new AbortController().signal): Promise<void> {
    await this.elector.stop(budget);
    await this.#end();
  }

  async #end(): Promise<void> {
    this.#collecting.abort();
    await this.#collected;
  }

  async #collect(tokens: string[]): Promise<void> {
    for await (const term of this.elector.terms(this.#collecting.signal)) {
      this.terms.push(term);
      tokens.push(term.token);
    }
  }
}

/** Looks at the Lease and writes it as a person with kubectl would: under no version. */
class Kubectl {
  readonly #fake: FakeCluster;

  constructor(fake: FakeCluster) {
    this.#fake = fake;
  }

  /** The Lease as it is; throws when it is missing. */
  read(name: string): Stored<Lease> {
    const lease = this.#fake.read(LEASES, { namespace: "default", name });
    const { uid, resourceVersion } = lease?.metadata ?? {};
    if (lease === null || uid === undefined || resourceVersion === undefined) {
      throw new Error(`Cannot read the Lease ${name}: it is missing`);
    }
    return { ...lease, metadata: { ...lease.metadata, name, uid, resourceVersion } };
  }

  has(name: string): boolean {
    return this.#fake.read(LEASES, { namespace: "default", name }) !== null;
  }

  /** Sets members of `metadata` and `spec`. */
  edit(name: string, change: { metadata?: Lease["metadata"]; spec?: Lease["spec"] }): void {
    const lease = this.read(name);
    this.#fake.seed(LEASES, {
      ...lease,
      metadata: { ...lease.metadata, ...change.metadata },
      spec: { ...lease.spec, ...change.spec },
    });
  }

  create(name: string, spec: Lease["spec"]): void {
    this.#fake.seed(LEASES, { metadata: { name, namespace: "default" }, spec });
  }

  delete(name: string): void {
    this.#fake.remove(LEASES, { namespace: "default", name });
  }
}

/** The clock, the cluster, and the candidates. */
export class World {
  readonly clock = new TestClock();
  readonly fake = new FakeCluster({ clock: this.clock, entropy: seededEntropy(99) });
  readonly leases = new Kubectl(this.fake);
  readonly candidates: Candidate[] = [];
  /** The tokens of all terms of all candidates, in the order in which the terms began. */
  readonly tokens: string[] = [];

  /** Makes a candidate; it has not started. */
  candidate(identity: string, more: Partial<ElectorOptions> & { clock?: Clock } = {}): Candidate {
    const candidate = new Candidate(this, identity, this.candidates.length + 1, more);
    this.candidates.push(candidate);
    return candidate;
  }

  /** Makes a candidate and starts it. */
  started(identity: string, more: Partial<ElectorOptions> = {}): Candidate {
    const candidate = this.candidate(identity, more);
    candidate.elector.start();
    return candidate;
  }

  /** Waits, on the test clock, until it holds; answers how long that took, in milliseconds. */
  async until(holds: () => boolean, limitMs = 120_000): Promise<number> {
    const start = this.clock.monotonic();
    await this.clock.advance(0);
    while (!holds()) {
      if (this.clock.monotonic() - start >= limitMs) throw new Error("Cannot wait any longer");
      await this.clock.advance(10);
    }
    return this.clock.monotonic() - start;
  }

  /** A Lease that another holds. */
  foreignLease(
    holder: string,
    seconds: number | undefined,
    more: Record<string, unknown> = {},
  ): void {
    this.leases.create(LEASE, {
      holderIdentity: holder,
      leaseDurationSeconds: seconds,
      acquireTime: "2025-12-31T23:59:00.000001Z",
      renewTime: "2025-12-31T23:59:00.000001Z",
      leaseTransitions: 3,
      ...more,
    });
  }
}

/** Runs a test in a world of its own; no candidate outlives it. */
export async function inWorld(body: (world: World) => Promise<void>): Promise<void> {
  const world = new World();
  try {
    await body(world);
  } finally {
    for (const candidate of world.candidates) await candidate.crash();
    await world.fake.close();
  }
}
