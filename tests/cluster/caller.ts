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
  /** Carries the requests: for a test that breaks what comes and goes. @default {the caller's own} */
  readonly send?: SendRequest;
}

/** One user of a cluster. */
export class Caller implements Disposable {
  /** The base URL of the API server, without a slash at its end. */
  readonly url: string;
  /** Sends a request as it is, without a token. */
  readonly send: SendRequest;
  /** Sends requests that `KubeApi` rules out. */
  readonly raw: RawClient;
  readonly #token: string | undefined;
  readonly #onDispose: () => void;

  /**
   * @param url The base URL of the API server.
   * @param send Carries the requests.
   * @param token The bearer token, where `send` itself does not say who calls.
   * @param onDispose Gives back what `send` needs.
   */
  constructor(url: string, send: SendRequest, token?: string, onDispose: () => void = () => {}) {
    this.url = url;
    this.send = send;
    this.#token = token;
    this.#onDispose = onDispose;
    this.raw = rawClient(url, send, token);
  }

  /** Starts a request whose answer is read bit by bit: a watch. The signal ends it. */
  open(path: string, signal: AbortSignal): Promise<Response> {
    const headers = new Headers({ accept: "application/json" });
    if (this.#token !== undefined) headers.set("authorization", `Bearer ${this.#token}`);
    return this.send(new Request(`${this.url}${path}`, { headers, signal }));
  }

  /** The cluster as this user sees it through the product's own client. */
  api(options: CallerApiOptions = {}): HttpApi {
    return new HttpApi({
      baseUrl: this.url,
      fetch: options.send ?? this.send,
      credentials: this.#token === undefined ? NO_CREDENTIALS : staticToken(this.#token),
      clock: systemClock,
      entropy: systemEntropy,
      defaultNamespace: options.defaultNamespace ?? "default",
      observer: options.observer,
    });
  }

  [Symbol.dispose](): void {
    this.#onDispose();
  }
}
