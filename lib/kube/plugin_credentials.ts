/**
 * Credentials that come from a command or from another server: the exec plug-ins and auth providers of a kubeconfig.
 *
 * This file alone loads `@kubernetes/client-node`, which costs 80 MB and half a second: import it lazily.
 *
 * @module
 */

import { KubeConfig } from "@kubernetes/client-node";
import { z } from "zod";
import { ClusterConfigError } from "./connect_errors.ts";
import type { ClientCertificate } from "./connection.ts";
import type { Credentials } from "./credentials.ts";
import { orAbort } from "./streams.ts";

/** A user of a kubeconfig whose credentials must be obtained. */
export interface PluginUser {
  readonly name: string;
  /** The kubeconfig, for errors. */
  readonly from: string;
  /** The `exec` member, its command resolved. */
  readonly exec?: Readonly<Record<string, unknown>>;
  /** The `auth-provider` member. */
  readonly authProvider?: Readonly<Record<string, unknown>>;
}

/** What a plug-in gave. */
interface Obtained {
  readonly headers: Readonly<Record<string, string>>;
  readonly clientCertificate: ClientCertificate | undefined;
}

/** What the library writes into the options of a request. */
const optionsSchema = z.looseObject({
  headers: z.looseObject({ Authorization: z.string().optional() }).optional(),
  cert: z.string().optional(),
  key: z.string().optional(),
});

/** Runs a plug-in when its credentials are needed, and keeps them until they expire. */
export class PluginCredentials implements Credentials {
  readonly #user: PluginUser;
  #config: KubeConfig;
  #obtaining: Promise<Obtained> | null = null;
  #certificatePem: string | null = null;
  readonly #listeners: ((certificate: ClientCertificate) => void)[] = [];

  constructor(user: PluginUser) {
    this.#user = user;
    this.#config = configOf(user);
  }

  /**
   * Obtains the first credentials.
   *
   * @returns The client certificate that the plug-in gave, if it did.
   * @throws {ClusterConfigError} The plug-in failed. What it wrote is left out: it may be secret.
   */
  async start(signal: AbortSignal): Promise<ClientCertificate | undefined> {
    try {
      return (await orAbort(this.#obtain(), signal)).clientCertificate;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ClusterConfigError) throw error;
      throw new ClusterConfigError(
        `Cannot get credentials for user ${this.#user.name} of the kubeconfig ${this.#user.from}: its exec plug-in or auth provider must succeed`,
      );
    }
  }

  /** Tells of every client certificate after the first. */
  onClientCertificate(changed: (certificate: ClientCertificate) => void): void {
    this.#listeners.push(changed);
  }

  async headers(): Promise<Readonly<Record<string, string>>> {
    return (await this.#obtain()).headers;
  }

  async refresh(): Promise<boolean> {
    // The library keeps what a plug-in gave: a new one has nothing kept.
    this.#config = configOf(this.#user);
    await this.#obtain();
    return true;
  }

  /** Asks the library; calls at the same time share one run of the plug-in. */
  #obtain(): Promise<Obtained> {
    this.#obtaining ??= this.#obtainOnce().finally(() => this.#obtaining = null);
    return this.#obtaining;
  }

  async #obtainOnce(): Promise<Obtained> {
    const filled: Parameters<KubeConfig["applyToHTTPSOptions"]>[0] = {};
    await this.#config.applyToHTTPSOptions(filled);
    const { headers, cert, key } = optionsSchema.parse(filled);
    const authorization = headers?.Authorization;
    const from = `the exec plug-in of user ${this.#user.name}`;
    const clientCertificate = cert !== undefined && key !== undefined
      ? { certificate: { pem: cert, from }, key: { pem: key, from } }
      : undefined;
    this.#tell(clientCertificate);
    return {
      headers: authorization === undefined ? {} : { authorization },
      clientCertificate,
    };
  }

  #tell(clientCertificate: ClientCertificate | undefined): void {
    if (clientCertificate === undefined) return;
    const { pem } = clientCertificate.certificate;
    const changed = this.#certificatePem !== null && pem !== this.#certificatePem;
    this.#certificatePem = pem;
    if (changed) { for (const listener of this.#listeners) listener(clientCertificate); }
  }
}

function configOf({ name, exec, authProvider }: PluginUser): KubeConfig {
  const config = new KubeConfig();
  config.loadFromOptions({
    currentContext: name,
    contexts: [{ name, cluster: name, user: name }],
    // Only the user counts here; the connection is made elsewhere.
    clusters: [{ name, server: "https://cluster.invalid", skipTLSVerify: false }],
    users: [{ name, exec, authProvider }],
  });
  return config;
}
