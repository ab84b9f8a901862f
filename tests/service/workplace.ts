/**
 * All that a test of the running service needs on a cluster: a namespace with the group, a role for the service and no
 * more than it needs, certificates, tokens, processes and clients.
 *
 * @module
 */

import { serviceRoles } from "../../lib/manifests/service/roles.ts";
import { createAuthority } from "../../lib/testing/mod.ts";
import type { RoleRule } from "../cluster/access.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { DeploymentClient } from "./deployment_client.ts";
import { seedOrders } from "./orders.ts";
import { type Program, ServiceProcess, type ServiceProcessOptions } from "./service_process.ts";

/** The audience of deployment tokens unless it is configured. */
export const AUDIENCE = "bloodraven-deploy";

/** What is granted in the whole cluster: the generated roles of what is switched on. */
const serviceRules: readonly RoleRule[] = serviceRoles({
  deployApi: true,
  plannedOperations: false,
  keyringEscrow: null,
  auxiliary: true,
  statusPage: false,
  own: {},
}).flatMap(({ rules }) => rules);

/** A place to work in. Give it back when the test is over. */
export class Workplace implements AsyncDisposable {
  readonly cluster: Cluster;
  /** The namespace of the group, the service and the callers. */
  readonly namespace: string;
  readonly #folder: string;
  readonly #http: Deno.HttpClient;
  readonly #services: ServiceProcess[] = [];

  private constructor(cluster: Cluster, namespace: string, folder: string, http: Deno.HttpClient) {
    this.cluster = cluster;
    this.namespace = namespace;
    this.#folder = folder;
    this.#http = http;
  }

  /** Makes the namespace, the group `orders` with the databases `tenant` and `billing`, and the accounts. */
  static async open(cluster: Cluster, name: string): Promise<Workplace> {
    const namespace = `${name}-${crypto.randomUUID().slice(0, 8)}`;
    await cluster.createNamespace(namespace);
    for (const account of ["holdfast", "deployer", "stranger"]) {
      await cluster.createServiceAccount(namespace, account);
    }
    const subject = { namespace, serviceAccount: "holdfast" };
    await cluster.grant({ subject, rules: serviceRules });
    const { signal } = new AbortController();
    const clients = [{ namespace, serviceAccount: "deployer" }];
    const databases = { tenant: clients, billing: clients };
    await seedOrders(cluster.adminApi, { namespace, databases, signal });

    const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
    const { certPem, keyPem } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
    const folder = await Deno.makeTempDir({ prefix: "holdfast-" });
    await Deno.writeTextFile(`${folder}/tls.crt`, certPem);
    await Deno.writeTextFile(`${folder}/tls.key`, keyPem);
    const token = await cluster.token(subject);
    await Deno.writeTextFile(`${folder}/kubeconfig`, cluster.kubeconfig({ token }, namespace));
    // Below the 60 s after which the service closes an idle connection: a request that is sent just then gets no answer.
    const http = Deno.createHttpClient({ caCerts: [authority.caPem], poolIdleTimeout: 20_000 });
    return new Workplace(cluster, namespace, folder, http);
  }

  /** How a service of this place is started. */
  serviceOptions(env: Readonly<Record<string, string>> = {}): ServiceProcessOptions {
    return {
      kubeconfig: `${this.#folder}/kubeconfig`,
      certFile: `${this.#folder}/tls.crt`,
      keyFile: `${this.#folder}/tls.key`,
      namespace: this.namespace,
      env,
    };
  }

  /** Starts a service, by default as its task does; it ends with this place. */
  async startService(
    env: Readonly<Record<string, string>> = {},
    program?: Program,
  ): Promise<ServiceProcess> {
    const service = await ServiceProcess.start({ ...this.serviceOptions(env), program });
    this.#services.push(service);
    return service;
  }

  /** A client of a service, with a token from the token request subresource. */
  async client(
    service: ServiceProcess,
    { serviceAccount = "deployer", audience = AUDIENCE } = {},
  ): Promise<DeploymentClient> {
    const { namespace } = this;
    const token = await this.cluster.token({ namespace, serviceAccount, audiences: [audience] });
    return new DeploymentClient({
      url: `https://${service.address("tls")}`,
      token,
      group: "orders",
      send: (url, init) => fetch(url, { ...init, client: this.#http }),
    });
  }

  /** Sends any request to the TLS listener of a service. */
  async send(service: ServiceProcess, path: string, init: RequestInit): Promise<Response> {
    return await fetch(`https://${service.address("tls")}${path}`, { ...init, client: this.#http });
  }

  /** A token of the service's own account, for the API server. */
  serviceToken(): Promise<string> {
    return this.cluster.token({ namespace: this.namespace, serviceAccount: "holdfast" });
  }

  /** Waits until a service leads, as a client sees it: it asks every `pauseMs` milliseconds. */
  async untilLeading(client: DeploymentClient, pauseMs = 50): Promise<void> {
    const until = performance.now() + 30_000;
    while ((await client.observe()).body.error === "not_leader") {
      if (performance.now() > until) throw new Error("Cannot go on as nobody leads");
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const service of this.#services) await service[Symbol.asyncDispose]();
    this.#http.close();
    await Deno.remove(this.#folder, { recursive: true });
  }
}
