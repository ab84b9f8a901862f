/**
 * A deployment client of a test: the calls of the API as `curl` would make them, over verified TLS.
 *
 * @module
 */

import { z } from "zod";

/** An answer, read whole. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The members of the body; empty when there is none. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** What a grant answers with. */
export const grantedBody = z.strictObject({
  kind: z.string(),
  operationId: z.string(),
  token: z.string().regex(/^[0-9a-f]{64}$/),
  expiresAt: z.string(),
  topologyGeneration: z.number(),
});

/** Where a client calls, and who it is. */
export interface DeploymentClientOptions {
  /** The address of the service, for example `https://127.0.0.1:8443`. */
  readonly url: string;
  readonly token: string;
  readonly group: string;
  /** Sends a request: `fetch` with the authority of the service, or the app itself. */
  readonly send: (url: string, init: RequestInit) => Promise<Response>;
}

/** One caller. */
export class DeploymentClient {
  readonly #options: DeploymentClientOptions;

  constructor(options: DeploymentClientOptions) {
    this.#options = options;
  }

  /** The same place with other words. */
  with(changes: Partial<DeploymentClientOptions>): DeploymentClient {
    return new DeploymentClient({ ...this.#options, ...changes });
  }

  observe(): Promise<Answer> {
    return this.call("GET", "");
  }

  grant(
    operationId: string,
    instance: string,
    { kind = "migration", ttlSeconds = 30 } = {},
  ): Promise<Answer> {
    const body = JSON.stringify({ kind, operationId, instance, ttlSeconds });
    return this.call("POST", "/leases", { body });
  }

  renew(
    operationId: string,
    token: string,
    { kind = "migration", ttlSeconds = 30 } = {},
  ): Promise<Answer> {
    const body = JSON.stringify({ token, ttlSeconds });
    return this.call("PUT", `/leases/${kind}/${encodeURIComponent(operationId)}`, { body });
  }

  release(operationId: string, token: string, { kind = "migration" } = {}): Promise<Answer> {
    const headers = { "X-Lease-Token": token };
    return this.call("DELETE", `/leases/${kind}/${encodeURIComponent(operationId)}`, { headers });
  }

  /** Any call below the group. */
  async call(method: string, path: string, init: RequestInit = {}): Promise<Answer> {
    const { url, token, group, send } = this.#options;
    const response = await send(`${url}/deploy/v1/groups/${group}${path}`, {
      ...init,
      method,
      headers: { Authorization: `Bearer ${token}`, ...init.headers },
    });
    const text = await response.text();
    const body = text === "" ? {} : z.record(z.string(), z.unknown()).parse(JSON.parse(text));
    return { status: response.status, headers: response.headers, text, body };
  }
}
