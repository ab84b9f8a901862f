/**
 * The edge of the fake cluster: from an HTTP request to a call and back, with the faults on both ways.
 *
 * @module
 */

import { type Clock, sleep } from "../runtime/clock.ts";
import { ApiError, unauthorized } from "./api_server/api_error.ts";
import type { ApiServer, ServerAnswer } from "./api_server/api_server.ts";
import type { JsonObject } from "./api_server/json.ts";
import { type Route, routeOf } from "./api_server/routes.ts";
import { API_AUDIENCE, type Tokens } from "./api_server/tokens.ts";
import { ANONYMOUS, resourceName, type User } from "./api_server/users.ts";
import type { Call, CallLog } from "./calls.ts";
import { type ActiveFault, ConnectionLostError, type FaultBook } from "./faults.ts";

/** The largest body that the API server takes, in bytes. */
const MAX_BODY_BYTES = 3 * 1024 * 1024;

/** The user of a caller in this process that shows no token. */
const ADMIN: User = {
  username: "admin",
  uid: "admin",
  groups: ["system:masters", "system:authenticated"],
};

/** What the edge is made of. */
export interface HttpFrontOptions {
  readonly server: ApiServer;
  readonly tokens: Tokens;
  readonly faults: FaultBook;
  readonly calls: CallLog;
  readonly clock: Clock;
  /** The server's wall time, in milliseconds since 1970. */
  readonly now: () => number;
}

/** Handles requests. */
export class HttpFront {
  readonly #options: HttpFrontOptions;
  readonly #closed = new AbortController();

  constructor(options: HttpFrontOptions) {
    this.#options = options;
  }

  /** Ends all that runs. */
  close(): void {
    this.#closed.abort(new ConnectionLostError());
  }

  /**
   * Handles one request.
   *
   * @param tokenless Who a caller without a token is.
   * @throws The reason of the request's signal; {@linkcode ConnectionLostError} when the connection is to break.
   */
  async handle(request: Request, tokenless: "admin" | "anonymous"): Promise<Response> {
    const { calls, faults } = this.#options;
    const signal = AbortSignal.any([request.signal, this.#closed.signal]);
    signal.throwIfAborted();
    const url = new URL(request.url);
    const route = routeOf(request.method, url);
    const user = this.#userOf(request, tokenless);
    const call = callOf(route, url, user);
    const answered = calls.record(call);
    const active = faults.strike(call);
    for (const fault of active) {
      const refusal = await this.#before(fault, signal);
      if (refusal === null) continue;
      answered(refusal.status);
      return refusal;
    }
    let response = await this.#respond(request, { route, url, user, call, signal });
    for (const fault of active) response = await this.#after(fault, response, signal);
    answered(response.status);
    return response;
  }

  /** `null` for a token that is none. */
  #userOf(request: Request, tokenless: "admin" | "anonymous"): User | null {
    const token = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
    if (token === undefined) return tokenless === "admin" ? ADMIN : ANONYMOUS;
    const verdict = this.#options.tokens.judge(token, [API_AUDIENCE]);
    return verdict.valid ? verdict.user : null;
  }

  async #respond(
    request: Request,
    { route, url, user, call, signal }: {
      readonly route: Route;
      readonly url: URL;
      readonly user: User | null;
      readonly call: Call;
      readonly signal: AbortSignal;
    },
  ): Promise<Response> {
    const { server, faults } = this.#options;
    try {
      const body = await request.text();
      if (body.length > MAX_BODY_BYTES) {
        throw new ApiError(
          413,
          "RequestEntityTooLarge",
          `Request entity too large: limit is ${MAX_BODY_BYTES}`,
        );
      }
      if (user === null) throw unauthorized();
      signal.throwIfAborted();
      return this.#toResponse(server.serve({
        route,
        query: url.searchParams,
        user,
        accept: request.headers.get("accept") ?? "",
        mediaType: (request.headers.get("content-type") ?? "").split(";")[0]?.trim() ?? "",
        body,
        signal,
        watchFaults: faults.forWatch(call),
      }));
    } catch (error) {
      if (error instanceof ApiError) return this.#refusal(error);
      throw error;
    }
  }

  /** What a fault does before the call is served: `null` lets it be served. */
  async #before({ fault, removed }: ActiveFault, signal: AbortSignal): Promise<Response | null> {
    switch (fault.type) {
      case "latency":
        await sleep(this.#options.clock, fault.ms, signal);
        return null;
      case "status":
        return this.#refusal(faultError(fault.code, fault.retryAfterSeconds));
      case "hang":
        await untilRemoved(removed, signal);
        return null;
      case "reset":
        throw new ConnectionLostError();
      default:
        return null;
    }
  }

  /** What a fault does to an answer. */
  async #after(
    { fault, removed }: ActiveFault,
    response: Response,
    signal: AbortSignal,
  ): Promise<Response> {
    switch (fault.type) {
      case "delayed-answer":
        await sleep(this.#options.clock, fault.ms, signal);
        return response;
      case "lost-answer":
        if (fault.as === "reset") throw new ConnectionLostError();
        await untilRemoved(removed, signal);
        return response;
      case "hang-body":
        return new Response(stalling(await response.arrayBuffer(), removed, signal), response);
      default:
        return response;
    }
  }

  #toResponse(answer: ServerAnswer): Response {
    switch (answer.type) {
      case "watch":
        return new Response(answer.stream.body, {
          headers: this.#headers("application/json"),
        });
      case "text":
        return this.#whole(answer.status, answer.body, "text/plain; charset=utf-8");
      case "json": {
        const response = this.#whole(answer.status, answer.body, "application/json");
        for (const warning of answer.warnings) {
          response.headers.append("warning", `299 - ${JSON.stringify(warning)}`);
        }
        return response;
      }
    }
  }

  #whole(status: number, content: JsonObject | string, contentType: string): Response {
    const text = typeof content === "string" ? content : JSON.stringify(content);
    const body = new TextEncoder().encode(text);
    const headers = this.#headers(contentType);
    headers.set("content-length", String(body.length));
    return new Response(body, { status, headers });
  }

  #refusal(error: ApiError): Response {
    const response = this.#whole(error.code, error.toStatus(), "application/json");
    const seconds = error.details?.retryAfterSeconds;
    if (seconds !== undefined) response.headers.set("retry-after", String(seconds));
    return response;
  }

  /** Every answer says what time the server believes it is. */
  #headers(contentType: string): Headers {
    return new Headers({
      "content-type": contentType,
      "cache-control": "no-cache, private",
      date: new Date(this.#options.now()).toUTCString(),
    });
  }
}

function callOf(route: Route, url: URL, user: User | null): Call {
  return {
    verb: route.verb,
    resource: resourceName(route),
    namespace: route.type === "resource" ? route.namespace : "",
    name: route.type === "resource" ? route.name : "",
    user: user?.username ?? "",
    query: url.search.replace(/^\?/, ""),
  };
}

const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  410: "Expired",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

function faultError(code: number, retryAfterSeconds: number | undefined): ApiError {
  const details = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return new ApiError(code, REASONS[code] ?? "", "a fault was injected", details);
}

/** Waits until a fault is removed. @throws The signal's reason, when the caller goes first. */
function untilRemoved(removed: AbortSignal, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    if (removed.aborted) return resolve();
    const onAbort = () => {
      removed.removeEventListener("abort", onRemoved);
      reject(signal.reason);
    };
    const onRemoved = () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    removed.addEventListener("abort", onRemoved, { once: true });
  });
}

/** A body that stops in its middle until the fault is removed. */
function stalling(body: ArrayBuffer, removed: AbortSignal, signal: AbortSignal) {
  const bytes = new Uint8Array(body);
  const middle = Math.floor(bytes.length / 2);
  const gone = new AbortController();
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    async start(controller) {
      controller.enqueue(bytes.slice(0, middle));
      try {
        await untilRemoved(removed, AbortSignal.any([signal, gone.signal]));
        controller.enqueue(bytes.slice(middle));
        controller.close();
      } catch (error) {
        if (!gone.signal.aborted) controller.error(error);
      }
    },
    cancel: () => gone.abort(),
  });
}
