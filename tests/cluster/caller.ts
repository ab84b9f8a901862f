/**
 * Somebody who calls a test cluster.
 *
 * @module
 */

import { systemClock, systemEntropy } from "../../handlers/commands/system.ts";
import {
  type AnswerObserver,
  HttpApi,
  NO_CREDENTIALS,
  type SendRequest,
  staticToken,
} from "../../lib/kube/mod.ts";
import { type RawClient, rawClient } from "./raw_client.ts";

/** What an API of a {@linkcode Caller} may differ in. */
export interface CallerApiOptions {
  /** @default {"default"} */
  readonly defaultNamespace?: string;
  readonly observer?: AnswerObserver;
}

/** One user of a cluster, over verified TLS. */
export class Caller implements Disposable {
  /** Sends a request as it is, without a token. */
  readonly send: SendRequest;
  /** Sends requests that `KubeApi` rules out. */
  readonly raw: RawClient;
  readonly #url: string;
  readonly #token: string | undefined;
  readonly #client: Deno.HttpClient;

  /**
   * @param url The base URL of the API server.
   * @param client Carries the requests.
   * @param token The bearer token. Without one `client` shows a certificate, and it is closed with the caller.
   */
  constructor(url: string, client: Deno.HttpClient, token?: string) {
    this.#url = url;
    this.#token = token;
    this.#client = client;
    this.send = (request) => fetch(request, { client });
    this.raw = rawClient(url, this.send, token);
  }

  /** The cluster as this user sees it through the product's own client. */
  api(options: CallerApiOptions = {}): HttpApi {
    return new HttpApi({
      baseUrl: this.#url,
      fetch: this.send,
      credentials: this.#token === undefined ? NO_CREDENTIALS : staticToken(this.#token),
      clock: systemClock,
      entropy: systemEntropy,
      defaultNamespace: options.defaultNamespace ?? "default",
      observer: options.observer,
    });
  }

  [Symbol.dispose](): void {
    if (this.#token === undefined) this.#client.close();
  }
}
