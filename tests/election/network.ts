/**
 * What lies between one candidate and the fake cluster: its own way there and back, with its own faults.
 *
 * @module
 */

import type { KubeApi } from "../../lib/kube/api.ts";
import { staticToken } from "../../lib/kube/credentials.ts";
import { HttpApi } from "../../lib/kube/http_api.ts";
import { type Clock, sleep } from "../../lib/runtime/clock.ts";
import type { FakeCluster, Fault as ClusterFault, FaultHandle } from "../../lib/testing/mod.ts";
import { seededEntropy } from "../../lib/testing/mod.ts";

/** What goes wrong with one call: at the server, or on the way. */
export type Fault =
  | ClusterFault
  | {
    /**
     * The request takes this long to the server, and the answer this long back. A request that was sent is served,
     * however long it takes, also when the caller has given up.
     */
    readonly type: "slow";
    readonly thereMs: number;
    readonly backMs: number;
  };

/** The verbs that the election uses. */
export type LeaseVerb = "get" | "create" | "patch" | "list" | "watch";

/** How the watch behaves. */
export type WatchMode = "works" | "forbidden" | "silent";

/** The way of one candidate to the API server. */
export class Network {
  readonly api: KubeApi;
  /** The verbs that were called, in order. */
  readonly calls: LeaseVerb[] = [];
  /** Asked for each call. */
  fault: (verb: LeaseVerb) => Fault | null = () => null;
  /** How long a call takes there, and back. */
  latencyMs = 0;
  /** How long what the watch tells takes. */
  watchDelayMs = 0;
  readonly #fake: FakeCluster;
  /** True time: what was sent arrives by it, whatever the sender's machine does. */
  readonly #truth: Clock;
  /** The candidate's time: what comes back is looked at by it. */
  readonly #clock: Clock;
  readonly #user: string;
  #watchFaults: FaultHandle[] = [];

  constructor(fake: FakeCluster, truth: Clock, clock: Clock, user: string) {
    this.#fake = fake;
    this.#truth = truth;
    this.#clock = clock;
    this.#user = user;
    this.api = new HttpApi({
      baseUrl: "https://fake",
      fetch: (request) => this.#send(request),
      credentials: staticToken(fake.userToken(user, ["system:masters"])),
      clock,
      entropy: seededEntropy(7),
      defaultNamespace: "default",
    });
  }

  count(verb: LeaseVerb): number {
    return this.calls.filter((call) => call === verb).length;
  }

  set watchMode(mode: WatchMode) {
    for (const handle of this.#watchFaults) handle.remove();
    const user = this.#user;
    const { faults } = this.#fake;
    switch (mode) {
      case "works":
        this.#watchFaults = [];
        break;
      case "silent":
        this.#watchFaults = [faults.add({ verb: "watch", user, fault: { type: "watch-silence" } })];
        break;
      case "forbidden":
        this.#watchFaults = ["list", "watch"].map((verb) =>
          faults.add({ verb, user, fault: { type: "status", code: 403 } })
        );
    }
  }

  async #send(request: Request): Promise<Response> {
    const verb = verbOf(request);
    this.calls.push(verb);
    const fault = this.fault(verb);
    if (verb === "watch") return this.#delayed(request, await this.#serve(request, fault));
    if (fault?.type === "slow") return await this.#travel(request, fault);
    if (fault !== null || this.latencyMs === 0) return await this.#serve(request, fault);
    return await this.#travel(request, { thereMs: this.latencyMs, backMs: this.latencyMs });
  }

  /** Lets the server serve a request, with a fault for this one call. */
  async #serve(request: Request, fault: Fault | null): Promise<Response> {
    if (fault === null || fault.type === "slow") return await this.#fake.fetch(request);
    // It stays in the book once it has hit: to remove it would let an answer go on that is to stop in its body.
    this.#fake.faults.add({ user: this.#user, count: 1, fault });
    return await this.#fake.fetch(request);
  }

  async #travel(
    request: Request,
    { thereMs, backMs }: { readonly thereMs: number; readonly backMs: number },
  ): Promise<Response> {
    const { method, headers, signal, url } = request;
    const body = method === "GET" ? null : await request.text();
    const answer = Promise.withResolvers<Response>();
    // Nobody may be there any more to hear how it ended.
    answer.promise.catch(() => {});
    this.#truth.timer(thereMs, () => {
      this.#fake.fetch(new Request(url, { method, headers, body }))
        .then(answer.resolve, answer.reject);
    });
    const gone = Promise.withResolvers<never>();
    const onAbort = () => gone.reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const response = await Promise.race([answer.promise, gone.promise]);
      await sleep(this.#clock, backMs, signal);
      return response;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #delayed({ signal }: Request, response: Response): Response {
    const { body, status, headers } = response;
    if (this.watchDelayMs === 0 || body === null) return response;
    const delay = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform: async (chunk, controller) => {
        await sleep(this.#clock, this.watchDelayMs, signal);
        controller.enqueue(chunk);
      },
    });
    return new Response(body.pipeThrough(delay), { status, headers });
  }
}

function verbOf({ method, url }: Request): LeaseVerb {
  if (method === "PUT") return "create";
  if (method === "PATCH") return "patch";
  const { pathname, searchParams } = new URL(url);
  if (searchParams.has("watch")) return "watch";
  return pathname.endsWith("/leases") ? "list" : "get";
}
