/**
 * The four calls of the deployment API: deploy-api 2. Each is one request with a time limit, and never throws for what
 * came back.
 *
 * @module
 */

import type { z } from "zod";
import { type Clock, DeadlineExceededError, startDeadline } from "../runtime/clock.ts";
import {
  type Answer,
  emptySchema,
  type GrantedBody,
  grantedSchema,
  type GroupView,
  groupViewSchema,
  readAnswer,
  type RenewedBody,
  renewedSchema,
} from "./answers.ts";
import { CredentialError } from "./errors.ts";
import { safeFaultCode } from "./fault_code.ts";

/** The kinds of leases. */
export type LeaseKind = "migration" | "failover-hold";

/**
 * Sends a request as the global `fetch` does: it rejects when the signal aborts, and must verify the certificate. Its
 * errors may carry a `code`, or a `cause` with one.
 */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** What the calls are made of. */
export interface CallParts {
  /** The base URL of the service, `https:`. */
  readonly url: string;
  readonly group: string;
  readonly fetch: Fetch;
  /** Gives the bearer token. It is asked before each request, since the token is replaced from time to time. */
  readonly token: () => string | Promise<string>;
  readonly clock: Clock;
}

/** How a call went. */
export interface Reply<T> {
  /** When the request was sent, in milliseconds on the monotonic clock. */
  readonly sentMs: number;
  readonly answer: Answer<T>;
}

/** What a call sends. */
interface Sent<T> {
  readonly method: string;
  /** Behind the group. */
  readonly path: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly successes: readonly number[];
  readonly schema: z.ZodType<T>;
}

/** Sends the calls of one client for one group. */
export class DeployCalls {
  readonly #parts: CallParts;

  constructor(parts: CallParts) {
    this.#parts = parts;
  }

  /** Looks at the group. @throws {CredentialError} @throws The signal's reason. */
  observe(limitMs: number, signal?: AbortSignal): Promise<Reply<GroupView>> {
    const sent = { method: "GET", path: "", successes: [200], schema: groupViewSchema };
    return this.#send(sent, limitMs, signal);
  }

  /** Asks for a lease. @throws {CredentialError} */
  grant(
    body: {
      readonly kind: LeaseKind;
      readonly operationId: string;
      readonly instance: string;
      readonly ttlSeconds: number;
    },
    limitMs: number,
  ): Promise<Reply<GrantedBody>> {
    const successes = [200, 201];
    const sent = { method: "POST", path: "/leases", body, successes, schema: grantedSchema };
    return this.#send(sent, limitMs);
  }

  /** Keeps a lease for longer. @throws {CredentialError} @throws The signal's reason. */
  renew(
    kind: LeaseKind,
    operationId: string,
    body: { readonly token: string; readonly ttlSeconds: number },
    limitMs: number,
    signal: AbortSignal,
  ): Promise<Reply<RenewedBody>> {
    const path = leasePath(kind, operationId);
    const sent = { method: "PUT", path, body, successes: [200], schema: renewedSchema };
    return this.#send(sent, limitMs, signal);
  }

  /** Gives a lease back. @throws {CredentialError} */
  release(
    kind: LeaseKind,
    operationId: string,
    leaseToken: string,
    limitMs: number,
  ): Promise<Reply<undefined>> {
    const path = leasePath(kind, operationId);
    const headers = { "X-Lease-Token": leaseToken };
    const sent = { method: "DELETE", path, headers, successes: [204], schema: emptySchema };
    return this.#send(sent, limitMs);
  }

  async #send<T>(sent: Sent<T>, limitMs: number, signal?: AbortSignal): Promise<Reply<T>> {
    const { clock, fetch, group, url } = this.#parts;
    signal?.throwIfAborted();
    const authorization = `Bearer ${await this.#token()}`;
    using limit = startDeadline(clock, limitMs, signal);
    const sentMs = clock.monotonic();
    try {
      const response = await fetch(`${url}/deploy/v1/groups/${group}${sent.path}`, {
        method: sent.method,
        headers: {
          Accept: "application/json",
          Authorization: authorization,
          ...(sent.body === undefined ? {} : { "Content-Type": "application/json" }),
          ...sent.headers,
        },
        ...(sent.body === undefined ? {} : { body: JSON.stringify(sent.body) }),
        // The lease's token must not follow to another host.
        redirect: "error",
        signal: limit.signal,
      });
      const { status, headers } = response;
      const wire = { status, headers, text: await response.text() };
      return { sentMs, answer: readAnswer(wire, sent.successes, sent.schema) };
    } catch (error) {
      signal?.throwIfAborted();
      const timedOut = limit.expired || error instanceof DeadlineExceededError;
      const why = timedOut ? "timeout" : "connection";
      return { sentMs, answer: { type: "no_answer", why, code: faultCode(error) } };
    }
  }

  async #token(): Promise<string> {
    let token: string;
    try {
      token = (await this.#parts.token()).trim();
    } catch (cause) {
      throw new CredentialError({ cause });
    }
    // A header cannot carry a line end, and the platform's complaint about it would quote the token.
    if (!/^[\x21-\x7e]+$/.test(token)) throw new CredentialError();
    return token;
  }
}

function leasePath(kind: LeaseKind, operationId: string): string {
  return `/leases/${kind}/${encodeURIComponent(operationId)}`;
}

function faultCode(error: unknown): string {
  for (const one of [error, error instanceof Error ? error.cause : undefined]) {
    const code = one instanceof Error && "code" in one ? safeFaultCode(one.code) : "";
    if (code !== "") return code;
  }
  return "";
}
