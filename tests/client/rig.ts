/**
 * A client and the service in one process, on one test clock, with a network between them that a test can break.
 *
 * @module
 */

import type { Fetch } from "../../lib/client/calls.ts";
import { HoldfastClient } from "../../lib/client/client.ts";
import { MYSQL_FAILOVER_GROUPS } from "../../lib/group/types.ts";
import { seededEntropy, type TestClock } from "../../lib/testing/mod.ts";
import { AUDIENCE, DEPLOYER, InProcessService, NAMESPACE } from "../service/in_process.ts";
import { setStatus } from "../service/orders.ts";

/**
 * What the network does with a request: lets it pass, refuses the connection, swallows it, or delivers it and loses the
 * answer.
 */
export type Weather = "fine" | "refused" | "black_hole" | "answer_lost";

/** One request as it was sent. */
export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly headers: Headers;
  /** On the test clock. */
  readonly atMs: number;
}

/** What a test may say about a request. */
export type Forecast = (sent: Sent) => Weather | Response | Promise<Weather | Response>;

/** A service, and what is needed to call it. */
export class Rig implements Disposable {
  readonly service = new InProcessService();
  readonly sent: Sent[] = [];
  /** Decides about each request. */
  forecast: Forecast = () => "fine";
  /** Gives the token; a test may replace it. */
  token: () => string | Promise<string>;
  readonly #ofTheService = this.service.clock.pendingTimers;
  #seed = 7;

  constructor() {
    const token = this.service.fake.tokenFor({ ...DEPLOYER, audiences: [AUDIENCE] });
    this.token = () => token;
  }

  get clock(): TestClock {
    return this.service.clock;
  }

  /** How many timers of clients wait. */
  get clientTimers(): number {
    return this.clock.pendingTimers - this.#ofTheService;
  }

  /** The requests of one method. */
  of(method: string): readonly Sent[] {
    return this.sent.filter((one) => one.method === method);
  }

  /** A client of its own; each draws other random numbers. */
  client({ instance = "tenant", group = "orders" } = {}): HoldfastClient {
    return new HoldfastClient({
      url: "https://service",
      group,
      instance,
      token: () => this.token(),
      fetch: this.#fetch,
      clock: this.clock,
      entropy: seededEntropy(this.#seed++),
    });
  }

  /** Writes members of the group's status, as its operator would. */
  async setStatus(status: Readonly<Record<string, unknown>>): Promise<void> {
    const name = { namespace: NAMESPACE, name: "orders" };
    await setStatus(this.service.api, name, status, new AbortController().signal);
  }

  /** Sets an annotation of the group. */
  async annotate(annotations: Readonly<Record<string, string>>): Promise<void> {
    await this.service.api.patch(
      MYSQL_FAILOVER_GROUPS,
      { namespace: NAMESPACE, name: "orders" },
      { type: "merge", body: { metadata: { annotations } } },
      { signal: new AbortController().signal },
    );
  }

  /** Moves time on in small steps, and lets the requests of each step settle. */
  async pass(durationMs: number): Promise<void> {
    const until = this.clock.monotonic() + durationMs;
    for (;;) {
      await this.settle();
      const left = until - this.clock.monotonic();
      if (left <= 0) return;
      await this.clock.advance(Math.min(250, left));
    }
  }

  /** Moves time on until a promise has settled, and gives what it came to. */
  async until<T>(promise: Promise<T>, limitMs = 120_000): Promise<T> {
    let open = true;
    const close = () => void (open = false);
    promise.then(close, close);
    const until = this.clock.monotonic() + limitMs;
    await this.settle();
    while (open) {
      if (this.clock.monotonic() >= until) throw new Error("Cannot wait any longer");
      await this.pass(100);
    }
    return await promise;
  }

  /** Lets requests settle that need no time: the service's own work takes turns of the event loop. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 12; turn++) {
      await this.clock.advance(0);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  [Symbol.dispose](): void {
    this.service[Symbol.dispose]();
  }

  readonly #fetch: Fetch = async (url, init) => {
    const { pathname } = new URL(url);
    const body: unknown = typeof init.body === "string" ? JSON.parse(init.body) : undefined;
    const sent: Sent = {
      method: init.method ?? "GET",
      path: pathname.replace("/deploy/v1/groups/orders", ""),
      body,
      headers: new Headers(init.headers),
      atMs: this.clock.monotonic(),
    };
    this.sent.push(sent);
    const weather = await this.forecast(sent);
    if (weather instanceof Response) return weather;
    if (weather === "refused") throw refused();
    if (weather === "black_hole") return await swallowed(init.signal);
    const answer = await this.service.send(url, init);
    // As the listener does it.
    answer.headers.set("Date", new Date(this.clock.wall()).toUTCString());
    if (weather === "answer_lost") return await swallowed(init.signal);
    return answer;
  };
}

function refused(): Error {
  return Object.assign(new TypeError("refused"), { code: "ECONNREFUSED" });
}

function swallowed(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
