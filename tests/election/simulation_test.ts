/**
 * Three candidates on machines of their own, with everything that goes wrong in a cluster, from a seed.
 *
 * The shipped code runs; only time, chance and the API server are simulated.
 */

import assert from "node:assert/strict";
import { seededEntropy } from "../../lib/testing/entropy.ts";
import { HostClock } from "./host_clock.ts";
import type { Fault, LeaseVerb } from "./network.ts";
import { type Candidate, LEASE, World } from "./world.ts";

const SAMPLES = 1_500;

/** One machine: its candidate is replaced after a crash and after a stop. */
interface Host {
  readonly clock: HostClock;
  candidate: Candidate;
  cutOffUntilMs: number;
}

class Simulation {
  readonly world = new World();
  readonly #entropy;
  readonly hosts: Host[] = [];
  readonly #ending: Promise<void>[] = [];

  constructor(seed: number) {
    this.#entropy = seededEntropy(seed);
    for (let index = 0; index < 3; index++) {
      const clock = new HostClock(this.world.clock);
      this.hosts.push({ clock, candidate: this.#boot(clock, index), cutOffUntilMs: 0 });
    }
    for (const host of this.hosts) this.#wire(host);
  }

  /** Runs on, and lets things go wrong. */
  async step(): Promise<void> {
    await this.world.clock.advance(this.#below(400));
    const host = this.hosts[this.#below(3)];
    if (host === undefined) return;
    const dice = this.#below(1_000);
    if (host.clock.stands) {
      if (dice < 60) host.clock.goOn();
    } else if (dice < 6) host.clock.stand("stopped");
    else if (dice < 12) host.clock.stand("suspended");
    else if (dice < 16) host.clock.jumpWall(this.#below(20_000) - 10_000);
    else if (dice < 24) host.cutOffUntilMs = this.world.clock.monotonic() + this.#below(25_000);
    else if (dice < 27) this.#replace(host, host.candidate.crash());
    else if (dice < 31) this.#replace(host, host.candidate.stop());
    else if (dice < 34) host.candidate.terms.at(-1)?.resign();
    else if (dice < 40 && this.world.leases.has(LEASE)) {
      this.world.leases.edit(LEASE, { metadata: { labels: { touched: String(dice) } } });
    }
  }

  /** Every elector ends; a stopped machine goes on first, so that it can. */
  async end(): Promise<void> {
    for (const { clock } of this.hosts) if (clock.stands) clock.goOn();
    const ended = Promise.all([...this.#ending, ...this.world.candidates.map((c) => c.crash())]);
    await this.world.clock.advance(60_000);
    await ended;
  }

  /** Who believes, of those that can be asked: a machine that stands still answers nothing. */
  believers(): Candidate[] {
    const asleep = new Set(this.hosts.filter((h) => h.clock.stands).map((h) => h.clock));
    return this.world.candidates.filter((candidate) =>
      !asleep.has(this.#clocks.get(candidate) ?? new HostClock(this.world.clock)) &&
      (candidate.leads || candidate.terms.some((term) => term.isValid()))
    );
  }

  readonly #clocks = new Map<Candidate, HostClock>();

  #boot(clock: HostClock, index: number): Candidate {
    // Half of them are configured with one and the same identity.
    const identity = this.#below(2) === 0 ? "same" : `host-${index}`;
    const candidate = this.world.candidate(identity, { clock });
    this.#clocks.set(candidate, clock);
    candidate.client.watchDelayMs = 1 + this.#below(300);
    candidate.client.watchMode =
      (["works", "works", "forbidden", "silent"] as const)[this.#below(4)] ??
        "works";
    return candidate;
  }

  #wire(host: Host): void {
    host.candidate.client.fault = (verb) => this.#fault(host, verb);
    host.candidate.elector.start();
  }

  #replace(host: Host, ending: Promise<void>): void {
    this.#ending.push(ending);
    host.candidate = this.#boot(host.clock, this.hosts.indexOf(host));
    this.#wire(host);
  }

  #fault(host: Host, verb: LeaseVerb): Fault {
    const write = verb !== "get";
    if (this.world.clock.monotonic() < host.cutOffUntilMs) return { type: "hang" };
    const dice = this.#below(100);
    if (dice < 2) return { type: "hang" };
    if (dice < 4 && write) return { type: "lost-answer", as: "hang" };
    if (dice < 6) return { type: "slow", thereMs: this.#below(9_000), backMs: this.#below(4_000) };
    if (dice < 8) return { type: "status", code: 503, retryAfterSeconds: 1 };
    if (dice < 9) return { type: "status", code: 409 };
    return { type: "slow", thereMs: 1 + this.#below(30), backMs: 1 + this.#below(30) };
  }

  #below(limit: number): number {
    return Math.floor(this.#entropy.fraction() * limit);
  }
}

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  Deno.test(`three candidates with crashes, pauses, lost answers and clock jumps: never two leaders (seed ${seed})`, async () => {
    const simulation = new Simulation(seed);
    let led = 0;
    try {
      for (let sample = 0; sample < SAMPLES; sample++) {
        await simulation.step();
        const believers = simulation.believers();
        assert.ok(
          believers.length <= 1,
          `sample ${sample}: ${believers.length} leaders at ${simulation.world.clock.monotonic()}`,
        );
        led += believers.length;
      }
    } finally {
      await simulation.end();
    }
    const { tokens } = simulation.world;
    for (const [index, token] of tokens.entries()) {
      assert.ok(BigInt(token) > BigInt(tokens[index - 1] ?? 0), "every term has a greater token");
    }
    assert.ok(led > SAMPLES / 2, `only ${led} samples had a leader`);
    assert.ok(tokens.length >= 5, `only ${tokens.length} terms`);
    const winners = simulation.world.candidates.filter((candidate) => candidate.terms.length > 0);
    assert.ok(winners.length >= 3, `only ${winners.length} candidates ever led`);
  });
}
