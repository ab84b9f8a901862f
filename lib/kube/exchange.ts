/**
 * One call to the API server: requests with credentials and time limits, until one decides.
 *
 * @module
 */

import { type Clock, type Deadline, sleep, startDeadline } from "../runtime/clock.ts";
import { type Answer, errorOfAnswer, readHttpDate, readRetryAfter } from "./answers.ts";
import type { AnswerObserver, CallOptions } from "./api.ts";
import type { Call } from "./calls.ts";
import type { CallSlots } from "./call_slots.ts";
import { connectionFault, wasNotSent } from "./connection_faults.ts";
import type { Credentials } from "./credentials.ts";
import {
  type CallIdentity,
  CredentialsError,
  KubeError,
  type KubeErrorClass,
  KubeTimeoutError,
  UnavailableError,
} from "./errors.ts";
import { type Failure, nextStep, NO_TRIES } from "./retry.ts";
import { abandon, orAbort, readText } from "./streams.ts";

/**
 * Sends one request. It rejects when the request's signal aborts, and it breaks the answer's body off then. The `fetch`
 * of the platform is one, and so is a server in the same process.
 */
export type SendRequest = (request: Request) => Promise<Response>;

/** One request as it was sent, for a metric. */
export interface CallReport {
  /** The RBAC verb. */
  readonly verb: string;
  /** The plural with its API group, with a subresource `x/status`. */
  readonly resource: string;
  /** `ok`, the class of the error, or `aborted` when the caller gave up. */
  readonly outcome: "ok" | "aborted" | KubeErrorClass;
  /** Milliseconds from the sending to the end of the answer (of a watch: to its head). */
  readonly durationMs: number;
}

/** What an {@linkcode Exchange} is made of. */
export interface ExchangeParts {
  /** Where the API server is, with no slash at the end. */
  readonly baseUrl: string;
  readonly fetch: SendRequest;
  readonly credentials: Credentials;
  readonly clock: Clock;
  readonly userAgent: string;
  readonly defaultTimeoutMs: number;
  /** Places for requests that are read whole; a stream takes none, since it may last for ever. */
  readonly slots: CallSlots;
  readonly observer: AnswerObserver;
  readonly onCall: (report: CallReport) => void;
}

/** How one request ended. */
type Attempt<R> = { readonly taken: R } | { readonly failure: Failure };

/** A call under way. */
interface Flight {
  /** Ends the waiting for credentials, heads of answers and pauses. */
  readonly deadline: Deadline;
  /** The signal of the requests: for a stream it outlives the deadline. */
  readonly signal: AbortSignal;
  /** Where each request takes a place, until its answer was read; `null` for a stream, which may last for ever. */
  readonly slots: CallSlots | null;
  /** True while a write is out of which nobody knows whether the server ran it. */
  mayHaveLanded: boolean;
}

/** Sends calls. */
export class Exchange {
  readonly #parts: ExchangeParts;
  /** True while the last request was answered: a break after that may be the server closing an idle connection. */
  #served = false;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  /**
   * Sends a call and reads its answer whole.
   *
   * @returns The text of a successful answer.
   * @throws {KubeError} An abort rejects with the signal's reason.
   * @throws {RangeError} `timeoutMs` is not a positive number.
   */
  send(call: Call, options: CallOptions): Promise<string> {
    return this.within(call.identity, options, (send) => send(call));
  }

  /**
   * Sends several calls within one time limit.
   *
   * @param identity What they are together, for the error of the time limit.
   * @param work Sends them.
   * @throws {KubeError} An abort rejects with the signal's reason.
   * @throws {RangeError} `timeoutMs` is not a positive number.
   */
  async within<R>(
    identity: CallIdentity,
    { signal, timeoutMs = this.#parts.defaultTimeoutMs }: CallOptions,
    work: (send: (call: Call) => Promise<string>) => Promise<R>,
  ): Promise<R> {
    if (!(timeoutMs > 0 && timeoutMs < Infinity)) {
      throw new RangeError(
        `Cannot ${identity.verb} as 'timeoutMs' must be a positive number: current value is ${timeoutMs}`,
      );
    }
    const { clock, slots } = this.#parts;
    using deadline = startDeadline(clock, timeoutMs, signal);
    const flight: Flight = {
      deadline,
      signal: deadline.signal,
      slots,
      mayHaveLanded: false,
    };
    return await this.#ending(
      identity,
      timeoutMs,
      flight,
      () =>
        work((call) =>
          this.#untilDecided(call, flight, (response) => readText(response, deadline.signal))
        ),
    );
  }

  /**
   * Starts a stream. The time limit counts to the head of the answer only.
   *
   * @param signal Ends the start, and the stream after it.
   * @returns The body of a successful answer. Whoever gets it reads it to its end or cancels it.
   * @throws {KubeError} An abort rejects with the signal's reason.
   */
  async open(call: Call, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const limitMs = this.#parts.defaultTimeoutMs;
    using deadline = startDeadline(this.#parts.clock, limitMs, signal);
    const streamSignal = AbortSignal.any([deadline.signal, signal]);
    const flight: Flight = {
      deadline,
      signal: streamSignal,
      slots: null,
      mayHaveLanded: false,
    };
    return await this.#ending(call.identity, limitMs, flight, () =>
      this.#untilDecided(
        call,
        flight,
        ({ body }) => Promise.resolve(body ?? new Blob().stream()),
      ));
  }

  /** Tells an end by time, and one by the caller, from the other failures. */
  async #ending<R>(
    identity: CallIdentity,
    limitMs: number,
    flight: Flight,
    work: () => Promise<R>,
  ): Promise<R> {
    try {
      return await work();
    } catch (error) {
      const { deadline, mayHaveLanded } = flight;
      if (error instanceof KubeError || !deadline.signal.aborted) throw error;
      if (!deadline.expired) throw deadline.signal.reason;
      throw new KubeTimeoutError(identity, limitMs, { mayHaveLanded });
    }
  }

  /** Sends requests until one decides, and takes its answer. */
  async #untilDecided<R>(
    call: Call,
    flight: Flight,
    take: (response: Response) => Promise<R>,
  ): Promise<R> {
    const { clock, credentials } = this.#parts;
    const { deadline } = flight;
    let tries = NO_TRIES;
    for (;;) {
      const attempt = await this.#attempt(call, flight, take);
      if ("taken" in attempt) return attempt.taken;
      const { error } = attempt.failure;
      const leftMs = deadline.at - clock.monotonic();
      const next = nextStep(attempt.failure, call.intent.writes, tries, leftMs);
      if (next.step === "fail") throw error;
      tries = next.tries;
      if (next.step === "wait") await sleep(clock, next.waitMs, deadline.signal);
      if (next.step === "refresh") {
        const ask = (signal: AbortSignal) => credentials.refresh(signal);
        if (!await this.#secret(call, deadline.signal, ask)) throw error;
      }
    }
  }

  /** Sends one request, and tells the metric of it. It throws only when the call's time is over. */
  async #attempt<R>(
    call: Call,
    flight: Flight,
    take: (response: Response) => Promise<R>,
  ): Promise<Attempt<R>> {
    const { clock, onCall } = this.#parts;
    const { deadline, signal } = flight;
    const request = await this.#request(call, flight);
    using _place = await flight.slots?.enter(deadline.signal);
    const servedBefore = this.#served;
    const sentMs = clock.monotonic();
    let outcome: CallReport["outcome"] = "aborted";
    let answered = false;
    flight.mayHaveLanded = call.intent.writes;
    try {
      const response = await this.#head(call, request, sentMs, signal);
      answered = true;
      if (!response.ok) {
        throw errorOfAnswer(call.identity, call.intent, await readAnswer(response, signal));
      }
      const taken = await take(response);
      outcome = "ok";
      return { taken };
    } catch (cause) {
      if (!(cause instanceof KubeError) && deadline.signal.aborted) {
        if (deadline.expired) outcome = "timeout";
        throw cause;
      }
      const error = cause instanceof KubeError ? cause : unanswered(call, cause);
      outcome = error.kind;
      flight.mayHaveLanded = false;
      return { failure: { error, answered, servedBefore } };
    } finally {
      const { verb, resource } = call.identity;
      onCall({ verb, resource, outcome, durationMs: clock.monotonic() - sentMs });
    }
  }

  /** Waits for the head of the answer, and tells the observer of it. */
  async #head(
    call: Call,
    request: Request,
    sentMs: number,
    signal: AbortSignal,
  ): Promise<Response> {
    const { clock, fetch, observer } = this.#parts;
    let response: Response;
    try {
      response = await orAbort(fetch(request), signal, ({ body }) => {
        if (body !== null) abandon(body);
      });
    } catch (error) {
      this.#served = false;
      throw error;
    }
    this.#served = true;
    observer({
      sentMs,
      receivedMs: clock.monotonic(),
      serverDateMs: readHttpDate(response.headers.get("date")),
      status: response.status,
      verb: call.identity.verb,
      resource: call.identity.resource,
    });
    return response;
  }

  async #request(call: Call, { deadline, signal }: Flight): Promise<Request> {
    const { baseUrl, credentials, userAgent } = this.#parts;
    const { method, path, body, contentType } = call;
    const headers = new Headers({ accept: "application/json", "user-agent": userAgent });
    if (body !== undefined) headers.set("content-type", contentType ?? "application/json");
    const ask = async (signal: AbortSignal) => headersOf(await credentials.headers(signal));
    const secret = await this.#secret(call, deadline.signal, ask);
    for (const [name, value] of secret) headers.set(name, value);
    return new Request(baseUrl + path, {
      method,
      headers,
      body: body ?? null,
      signal,
      // The API server sends no redirect, and credentials must not follow one.
      redirect: "manual",
    });
  }

  /** Asks for credentials. What a failure of theirs says may be secret. */
  async #secret<S>(
    call: Call,
    signal: AbortSignal,
    ask: (signal: AbortSignal) => Promise<S>,
  ): Promise<S> {
    try {
      return await orAbort(ask(signal), signal);
    } catch (cause) {
      if (signal.aborted) throw cause;
      throw new CredentialsError(call.identity, { cause });
    }
  }
}

/** The error of a connection that failed before its answer was read whole. */
function unanswered({ identity, intent }: Call, cause: unknown): UnavailableError {
  const fault = connectionFault(cause);
  const mayHaveLanded = intent.writes && !wasNotSent(fault);
  return new UnavailableError(identity, { cause, fault, mayHaveLanded });
}

async function readAnswer(response: Response, signal: AbortSignal): Promise<Answer> {
  const { status, headers } = response;
  const serverDateMs = readHttpDate(headers.get("date"));
  return {
    status,
    body: await readText(response, signal),
    retryAfterMs: readRetryAfter(headers.get("retry-after"), serverDateMs),
  };
}

/** The platform quotes a value that no header can hold, and these are secret. */
function headersOf(secret: Readonly<Record<string, string>>): Headers {
  try {
    return new Headers({ ...secret });
  } catch {
    throw new TypeError("Cannot send the credentials as a header must be able to hold them");
  }
}
