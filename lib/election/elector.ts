/**
 * The elector: campaigns for a Lease, holds it, and gives it up.
 *
 * The rules are in `policy.ts`; here is the thin loop that reads, asks them, and writes. What it guarantees, and what it
 * does not, stands in `mod.ts`.
 *
 * @module
 */

import type { CallOptions } from "../kube/api.ts";
import { Announcer } from "./announcer.ts";
import { Cadence } from "./cadence.ts";
import { CallTrouble } from "./call_trouble.ts";
import { type Candidate, type Leadership, LeadershipCell } from "./leadership.ts";
import type { LeaseRecord } from "./lease_codec.ts";
import { LeaseHold } from "./lease_hold.ts";
import { type Failure, judgeFailure, LeaseStore } from "./lease_store.ts";
import { type LeaseNews, LeaseWatch } from "./lease_watch.ts";
import { ElectionMetrics } from "./metrics.ts";
import {
  checkNames,
  checkTiming,
  DEFAULT_TIMING,
  type ElectionTiming,
  type ElectorOptions,
} from "./options.ts";
import { believes, clockJumped, requestTimeoutMs } from "./policy.ts";
import { Pulse } from "./pulse.ts";
import { HeldTerm, type SendInstant, sendInstant, type Term } from "./term.ts";
import { TickSpans } from "./tick_spans.ts";
import { errorClass } from "../runtime/error_class.ts";

/** How often a release is tried: once more after a first try that says to look again. */
const RELEASE_TRIES = 2;

/**
 * Campaigns for one Lease, again and again, until it is stopped. Losing a term never ends it.
 *
 * ```ts
 * import type { ElectorOptions, Term } from "@holdfast/holdfast/election";
 *
 * async function campaign(options: ElectorOptions, work: (term: Term) => Promise<void>) {
 *   const elector = new Elector(options);
 *   elector.start();
 *   for await (const term of elector.terms()) await work(term);
 * }
 * ```
 */
export class Elector implements Candidate {
  readonly #options: ElectorOptions;
  readonly #timing: ElectionTiming;
  readonly #hold: LeaseHold;
  readonly #watch: LeaseWatch;
  readonly #metrics: ElectionMetrics;
  readonly #trouble: CallTrouble;
  readonly #cell: LeadershipCell;
  readonly #spans: TickSpans;
  readonly #announcer: Announcer;
  readonly #cadence: Cadence;
  readonly #alarm = new Pulse();
  /** Ends every call at once: the end of the budget, or an abort. */
  readonly #hard = new AbortController();
  #term: HeldTerm | null = null;
  #running: Promise<void> | null = null;
  #stopping = false;
  /** The watch told something to act on before the next look is due. */
  #act: "no" | "take" | "look" = "no";

  /**
   * @throws {RangeError} A time or a name breaks a rule; the message has the rule and the values.
   */
  constructor(options: ElectorOptions) {
    const { api, clock, entropy, logger, namespace, leaseName, identity } = options;
    const { timing = DEFAULT_TIMING } = options;
    checkNames(options);
    checkTiming(timing);
    this.#options = options;
    this.#timing = timing;
    this.#hold = new LeaseHold({
      store: new LeaseStore(api, namespace, leaseName),
      clock,
      entropy,
      identity,
      leaseMs: timing.leaseDurationMs,
    });
    this.#metrics = new ElectionMetrics(options.metrics, leaseName);
    this.#trouble = new CallTrouble({
      logger,
      metrics: this.#metrics,
      leaseName,
      longestWaitMs: timing.leaseDurationMs,
    });
    this.#cell = new LeadershipCell(identity, leaseName, clock);
    this.#spans = new TickSpans(options.tracer, leaseName, () => this.#cell.state.leading);
    this.#watch = new LeaseWatch({
      api,
      clock,
      logger,
      namespace,
      leaseName,
      silenceMs: timing.renewDeadlineMs,
      onNews: (news) => this.#hear(news),
    });
    const [cell, metrics] = [this.#cell, this.#metrics];
    this.#announcer = new Announcer({ cell, metrics, logger, leaseName, identity });
    const [hold, watch, trouble] = [this.#hold, this.#watch, this.#trouble];
    this.#cadence = new Cadence({ timing, clock, entropy, hold, watch, trouble });
  }

  get leadership(): Leadership {
    return this.#cell;
  }

  terms(signal?: AbortSignal): AsyncGenerator<Term, void> {
    return this.#cell.terms(signal);
  }

  /** Begins to campaign. A second call, or one after the stop, does nothing. */
  start(): void {
    if (this.#running === null && !this.#stopping) this.#running = this.#run();
  }

  async stop(budget: AbortSignal): Promise<void> {
    this.#stopping = true;
    this.#term?.end("stopped");
    this.#alarm.fire();
    const onBudgetEnd = () => this.abort();
    if (budget.aborted) this.abort();
    else budget.addEventListener("abort", onBudgetEnd, { once: true });
    await this.#running;
    budget.removeEventListener("abort", onBudgetEnd);
    this.#cell.close();
  }

  /** Ends the term and the elector at once, and does not release: like a crash. The Lease expires. */
  abort(): void {
    this.#stopping = true;
    this.#hard.abort();
    this.#term?.lose("stopped");
    this.#alarm.fire();
  }

  async #run(): Promise<void> {
    const watching = this.#watch.run(this.#hard.signal);
    try {
      while (!this.#stopping) {
        const term = await this.#campaign();
        if (term !== null) await this.#lead(term);
      }
      if (this.#options.releaseOnStop !== false) {
        await this.#spans.run("release", () => this.#release());
      }
    } catch (error) {
      this.#options.logger.error("The elector failed", {
        lease: this.#options.leaseName,
        error: errorClass(error),
      });
    } finally {
      this.abort();
      this.#cell.close();
      await watching;
    }
  }

  /** Looks at the Lease, and takes it when it may be taken. `null` when the elector stops first. */
  async #campaign(): Promise<HeldTerm | null> {
    this.#cadence.begin();
    while (!this.#stopping) {
      const seen = this.#alarm.count;
      const nowMs = this.#nowMs();
      const dueMs = this.#cadence.nextLookMs(this.#act !== "no");
      if (nowMs < dueMs) {
        const until = { clock: this.#options.clock, atMs: this.#cadence.wakeMs(dueMs, nowMs) };
        await this.#alarm.wait(seen, { until });
        continue;
      }
      const told = this.#act === "take";
      this.#act = "no";
      this.#cadence.looked(nowMs);
      const term = await this.#spans.run("follow", () => this.#tick(told));
      if (term !== null) return term;
    }
    return null;
  }

  /**
   * One look and at most one write: kubernetes-plugin 5.
   *
   * @param told The watch told the Lease just now. That stands for the look: the write carries the version of it.
   */
  async #tick(told: boolean): Promise<HeldTerm | null> {
    // 1. Belief will count from here, before anything is sent.
    const sent = sendInstant(this.#options.clock);
    try {
      // 2. Look.
      if (!told) await this.#hold.look(this.#call());
      this.#publish();
      // 3. Decide, and write under the version that was seen.
      const written = await this.#moveOn();
      this.#trouble.recovered();
      // 4. The answer may have come too late, or while this machine stood still.
      const leads = written !== null && this.#stillBelieves(sent) && !this.#stopping;
      return leads ? this.#beginTerm(written, sent) : null;
    } catch (error) {
      this.#failed(judgeFailure(error));
      return null;
    }
  }

  async #moveOn(): Promise<LeaseRecord | null> {
    const { held } = this.#hold;
    switch (this.#hold.move(this.#nowMs())) {
      case "renew":
        return held === null ? null : await this.#hold.renew(held, this.#call());
      case "acquire":
      case "create":
        return await this.#hold.take(this.#call());
      case "wait":
        return null;
    }
  }

  #beginTerm(written: LeaseRecord, sent: SendInstant): HeldTerm {
    const { clock, leaseName } = this.#options;
    const term = new HeldTerm({
      token: written.version,
      leaseName,
      clock,
      renewMs: this.#timing.renewDeadlineMs,
      sent,
      onChange: () => this.#onTermChange(),
    });
    this.#term = term;
    this.#metrics.renewed(clock.wall());
    this.#publish();
    return term;
  }

  /** Renews until belief is over, or until the work has settled after a stop. */
  async #lead(term: HeldTerm): Promise<void> {
    let dueMs = term.sentAtMs + this.#cadence.retryMs();
    while (term.isValid()) {
      const seen = this.#alarm.count;
      if (term.signal.aborted && term.settled) break;
      const nowMs = this.#nowMs();
      if (nowMs < dueMs && this.#act === "no") {
        await this.#alarm.wait(seen, { until: { clock: this.#options.clock, atMs: dueMs } });
        continue;
      }
      this.#act = "no";
      dueMs = nowMs + this.#cadence.retryMs();
      await this.#spans.run("lead", () => this.#renew(term));
    }
    if (term.lost === null) await this.#giveUp(term);
    else await this.#drain(term);
    term.close();
    this.#act = "no";
    this.#term = null;
    this.#publish();
  }

  /** Ends belief. A Lease that was given up is freed now, and that of a stop when the elector ends. */
  async #giveUp(term: HeldTerm): Promise<void> {
    const reason = term.endReason ?? "stopped";
    term.lose(reason);
    if (reason !== "resigned") return;
    // Another replica gets its turn, and a single one whose work fails at once does not spin.
    this.#cadence.rest();
    await this.#spans.run("release", () => this.#release());
  }

  /** One write under the version that this process wrote last; a read before it only when that is not known. */
  async #renew(term: HeldTerm): Promise<void> {
    const sent = sendInstant(this.#options.clock);
    const leftMs = Math.max(1, (term.validUntil ?? 0) - sent.atMs);
    const call = {
      signal: AbortSignal.any([this.#hard.signal, term.authority]),
      timeoutMs: Math.min(requestTimeoutMs(this.#timing.renewDeadlineMs), leftMs),
    };
    try {
      if (!this.#hold.sure || this.#hold.held === null) {
        this.#metrics.slowPath();
        await this.#hold.look(call);
      }
      const { held, seen } = this.#hold;
      if (held === null) return term.lose(seen === null ? "deleted" : "other_holder");
      await this.#hold.renew(held, call);
      this.#trouble.recovered();
      this.#metrics.renewed(this.#options.clock.wall());
      term.extend(sent);
    } catch (error) {
      const failure = judgeFailure(error);
      this.#failed(failure);
      term.noteFailure(failure.refused);
      if (failure.type === "conflict") term.lose("conflict");
      if (failure.type === "missing") this.#loseDeleted(term);
    }
  }

  #loseDeleted(term: HeldTerm): void {
    this.#hold.missing();
    term.lose("deleted");
  }

  /** Waits for the work of a lost term: until it has settled, an old task could overlap with the next term's. */
  async #drain(term: HeldTerm): Promise<void> {
    this.#publish();
    while (!term.settled && !this.#hard.signal.aborted) {
      await this.#alarm.wait(this.#alarm.count);
    }
  }

  /** Frees the Lease if this process holds it. A failure is counted, and the Lease then expires. */
  async #release(): Promise<void> {
    for (let tries = 0; tries < RELEASE_TRIES && !this.#hard.signal.aborted; tries++) {
      try {
        if (!this.#hold.sure) await this.#hold.look(this.#call());
        const { held } = this.#hold;
        if (held === null) return;
        await this.#hold.free(held, this.#call());
        return;
      } catch (error) {
        this.#failed(judgeFailure(error));
      }
    }
  }

  /** News of the watch. For a holder it can end belief early and nothing else; for a waiter it stands for a read. */
  #hear(news: LeaseNews): void {
    const term = this.#term;
    if (news.type === "look") this.#demand("look");
    else if (news.type === "health") this.#alarm.fire();
    else if (term !== null && term.lost === null) this.#hearAsHolder(term, news);
    else if (news.type === "found") {
      this.#hold.told(news.record);
      this.#publish();
      const free = this.#hold.seen?.holder === "" && this.#hold.move(this.#nowMs()) === "acquire";
      if (free) this.#demand("take");
      else this.#alarm.fire();
    } else if (this.#hold.seen?.uid === news.uid) {
      this.#hold.missing();
      this.#publish();
      this.#demand("look");
    }
  }

  #hearAsHolder(term: HeldTerm, news: LeaseNews & { type: "found" | "deleted" }): void {
    const { held } = this.#hold;
    if (held === null) return;
    if (news.type === "deleted") {
      if (news.uid === held.uid) this.#loseDeleted(term);
      return;
    }
    // Either the own object is gone, or this one is older: the watch lags behind writes.
    if (news.record.uid !== held.uid) return this.#demand("look");
    this.#hold.told(news.record);
    if (this.#hold.held === null) term.lose("other_holder");
  }

  #demand(act: "take" | "look"): void {
    this.#act = act;
    this.#alarm.fire();
  }

  #onTermChange(): void {
    this.#publish();
    this.#alarm.fire();
  }

  #publish(): void {
    this.#announcer.publish(this.#term, this.#hold.seen?.holder ?? "");
  }

  #failed(failure: Failure): void {
    // What an end at once cuts off has not failed.
    if (this.#hard.signal.aborted) return;
    this.#trouble.failed(failure);
    this.#spans.failed(failure.errorClass);
  }

  #stillBelieves(sent: SendInstant): boolean {
    const { clock } = this.#options;
    const belief = { holderIsMe: true, acknowledged: true, sentMs: sent.atMs };
    return believes(belief, this.#timing.renewDeadlineMs, Math.ceil(clock.monotonic())) &&
      !clockJumped(sent.wallOffsetMs, sendInstant(clock).wallOffsetMs);
  }

  #call(): CallOptions {
    return {
      signal: this.#hard.signal,
      timeoutMs: requestTimeoutMs(this.#timing.renewDeadlineMs),
    };
  }

  /** Now, for an age that must not be too great. */
  #nowMs(): number {
    return Math.floor(this.#options.clock.monotonic());
  }
}
