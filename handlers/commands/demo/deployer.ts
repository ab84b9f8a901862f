/**
 * One who deploys: the calls of a deployment client, as any HTTP client makes them.
 *
 * @module
 */

import type { LeaseKind } from "../../../lib/records/names.ts";
import { type Clock, startDeadline } from "../../../lib/runtime/clock.ts";

/** How long a call may take: the request limit of the service and a little more. */
const CALL_MS = 15_000;

/** An answer, read whole. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** What the body says, as JSON; `undefined` when it is empty. */
  readonly body: unknown;
}

/** Who calls whom. */
export interface DeployerParts {
  /** The database that is deployed to. */
  readonly instance: string;
  /** The URL of the group. */
  readonly groupUrl: string;
  /** The service account's token, made for the audience of the service. */
  readonly token: string;
  /** Sends a request: `fetch` with the authority that signed the service's certificate. */
  readonly send: (url: string, init: RequestInit) => Promise<Response>;
  readonly clock: Clock;
  /** Ends all calls. */
  readonly signal: AbortSignal;
}

/** A deployment client of one database. Every call rejects as `fetch` does, also with the reason of the signal. */
export class Deployer {
  /** The database that is deployed to. */
  readonly instance: string;
  readonly #parts: DeployerParts;

  constructor(parts: DeployerParts) {
    this.instance = parts.instance;
    this.#parts = parts;
  }

  /** Looks at the group. */
  look(): Promise<Answer> {
    return this.#call("GET", "");
  }

  /** Asks for a lease. @param ttlSeconds 5 to 120. @param kind @default {"migration"} */
  take(
    operationId: string,
    ttlSeconds: number,
    kind: LeaseKind = "migration",
  ): Promise<Answer> {
    const { instance } = this;
    const body = JSON.stringify({ kind, operationId, instance, ttlSeconds });
    return this.#call("POST", "/leases", { body });
  }

  /** Keeps a lease for longer. @param ttlSeconds From now, 5 to 120. @param kind @default {"migration"} */
  renew(
    operationId: string,
    leaseToken: string,
    ttlSeconds: number,
    kind: LeaseKind = "migration",
  ): Promise<Answer> {
    const body = JSON.stringify({ token: leaseToken, ttlSeconds });
    return this.#call("PUT", `/leases/${kind}/${operationId}`, { body });
  }

  /** Gives a lease back. @param kind @default {"migration"} */
  release(
    operationId: string,
    leaseToken: string,
    kind: LeaseKind = "migration",
  ): Promise<Answer> {
    const headers = { "X-Lease-Token": leaseToken };
    return this.#call("DELETE", `/leases/${kind}/${operationId}`, { headers });
  }

  async #call(method: string, path: string, init: RequestInit = {}): Promise<Answer> {
    const { groupUrl, token, send, clock } = this.#parts;
    using limit = startDeadline(clock, CALL_MS, this.#parts.signal);
    const response = await send(`${groupUrl}${path}`, {
      ...init,
      method,
      headers: { Authorization: `Bearer ${token}`, ...init.headers },
      signal: limit.signal,
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: readJson(text) };
  }
}

function readJson(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Whoever looks at the body says what it lacks.
    return text;
  }
}
