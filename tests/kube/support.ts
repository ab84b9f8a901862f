/**
 * An API server of canned answers, in memory.
 *
 * @module
 */

import type { AnswerObservation } from "../../lib/kube/api.ts";
import { type Credentials, NO_CREDENTIALS } from "../../lib/kube/credentials.ts";
import type { CallReport } from "../../lib/kube/exchange.ts";
import { HttpApi, type HttpApiParts } from "../../lib/kube/http_api.ts";
import { seededEntropy } from "../../lib/testing/entropy.ts";
import { TestClock } from "../../lib/testing/test_clock.ts";

/** Answers one request. */
export type Answerer = (request: Request) => Response | Promise<Response>;

/** A request as the server saw it. */
export interface SeenRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Headers;
  readonly body: unknown;
}

/** The `Date` of every canned answer: 2026-01-01T00:00:00Z. */
export const ANSWER_DATE = "Thu, 01 Jan 2026 00:00:00 GMT";

/** A client whose requests are answered one after the other, each by the next of `answers`. */
export interface Setup {
  readonly api: HttpApi;
  readonly clock: TestClock;
  readonly seen: SeenRequest[];
  readonly observed: AnswerObservation[];
  readonly calls: CallReport[];
  /** Adds answers for later requests. */
  answer(...answers: Answerer[]): void;
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
}

/** Makes a {@linkcode Setup}. */
export function setup(
  answers: readonly Answerer[],
  parts: Partial<HttpApiParts> & { readonly credentials?: Credentials } = {},
): Setup {
  const clock = new TestClock();
  const queue = [...answers];
  const seen: SeenRequest[] = [];
  const observed: AnswerObservation[] = [];
  const calls: CallReport[] = [];
  const controller = new AbortController();
  const api = new HttpApi({
    baseUrl: "https://cluster.test/",
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url);
      const text = await request.text();
      seen.push({
        method: request.method,
        path: pathname + search,
        headers: request.headers,
        body: text === "" ? undefined : JSON.parse(text),
      });
      const next = queue.shift();
      if (next === undefined) {
        throw new Error(`no answer left for ${request.method} ${request.url}`);
      }
      return await next(request);
    },
    credentials: NO_CREDENTIALS,
    clock,
    entropy: seededEntropy(1),
    defaultNamespace: "database",
    observer: (observation) => observed.push(observation),
    onCall: (report) => calls.push(report),
    ...parts,
  });
  return {
    api,
    clock,
    seen,
    observed,
    calls,
    answer: (...more) => void queue.push(...more),
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
  };
}

/** Answers with JSON. */
export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Answerer {
  return () => Response.json(value, { status, headers: { date: ANSWER_DATE, ...headers } });
}

/** Answers with a Kubernetes `Status`, whose message is a secret that must not get out. */
export function status(
  code: number,
  reason: string,
  details: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Answerer {
  return json(
    { kind: "Status", apiVersion: "v1", code, reason, message: SECRET_TEXT, details },
    code,
    headers,
  );
}

/** What the server's own texts hold. */
export const SECRET_TEXT = "upstream-secret-text";

/** Breaks the connection before an answer. */
export function broken(): Promise<Response> {
  return Promise.reject(new TypeError(`fetch failed: ${SECRET_TEXT}`));
}

/** Never answers; ends with the request. */
export function hangs(request: Request): Promise<Response> {
  return new Promise((_, reject) =>
    request.signal.addEventListener("abort", () => reject(request.signal.reason))
  );
}

/** Never answers, whatever happens to the request. */
export function ignoresAbort(): Promise<Response> {
  return new Promise(() => {});
}

/** A body that a test writes piece by piece. */
export class Stream {
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** How often the reader asked for more. */
  pulls = 0;
  cancelled = false;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> = new ReadableStream({
    start: (controller) => {
      this.#controller = controller;
    },
    pull: () => {
      this.pulls++;
    },
    cancel: () => {
      this.cancelled = true;
    },
  }, { highWaterMark: 0 });

  /** Answers a request with this body. */
  readonly answer: Answerer = () =>
    new Response(this.body, { headers: { date: ANSWER_DATE, "content-type": "application/json" } });

  /** Writes bytes or text. */
  write(chunk: string | Uint8Array): void {
    this.#controller?.enqueue(typeof chunk === "string" ? this.#encoder.encode(chunk) : chunk);
  }

  /** Writes one line of JSON. */
  line(value: unknown): void {
    this.write(`${JSON.stringify(value)}\n`);
  }

  /** Ends the body. */
  end(): void {
    this.#controller?.close();
  }

  /** Breaks the body off. */
  break(): void {
    this.#controller?.error(new TypeError(`connection reset: ${SECRET_TEXT}`));
  }
}

/** A Lease as the server has it. */
export function lease(name: string, resourceVersion: string, spec: Record<string, unknown> = {}) {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name, namespace: "database", uid: `uid-${name}`, resourceVersion },
    spec,
  };
}

/** A list of objects as the server answers it: the items lack their kind. */
export function listOf(resourceVersion: string, items: unknown[] = [], next?: string) {
  return { kind: "List", apiVersion: "v1", metadata: { resourceVersion, continue: next }, items };
}
