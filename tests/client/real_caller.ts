/**
 * A caller of the program itself: a namespace, a running service, and the files that a deployment client has.
 *
 * @module
 */

import { fromEnvironment } from "../../handlers/commands/client.ts";
import type { EffectiveSettings } from "../../lib/client/settings.ts";
import { UnreachableError } from "../../lib/client/errors.ts";
import { createAuthority } from "../../lib/testing/mod.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { seedOrders } from "../service/orders.ts";
import { ServiceProcess, type ServiceProcessOptions } from "../service/service_process.ts";
import { AUDIENCE, Workplace } from "../service/workplace.ts";

/** The databases of each group, by their place in its name. */
const INSTANCES = ["tenant", "billing"] as const;

/** How a service of a caller differs from the usual one. */
export type ServiceDifference = Pick<ServiceProcessOptions, "env" | "preload">;

/** A caller with its service. Give it back when the test is over. */
export class RealCaller implements AsyncDisposable {
  readonly namespace: string;
  readonly settings: EffectiveSettings;
  /** A folder of this caller, for a test's own files too. */
  readonly folder: string;
  readonly #parts: CallerParts;
  readonly #services: ServiceProcess[];

  constructor(parts: CallerParts) {
    this.#parts = parts;
    this.#services = [parts.service];
    this.folder = parts.folder;
    this.settings = parts.settings;
    this.namespace = parts.place.namespace;
  }

  /** The settings as a program finds them in its environment. */
  get env(): Readonly<Record<string, string>> {
    return environmentOf(this.settings);
  }

  /** The cluster that it is on. */
  get cluster(): Cluster {
    return this.#parts.place.cluster;
  }

  /** The service that was started first. */
  get service(): ServiceProcess {
    return this.#parts.service;
  }

  /** Starts another service for the same groups, with the same certificate and the same election. */
  async startService(difference: ServiceDifference = {}): Promise<ServiceProcess> {
    const service = await ServiceProcess.start({ ...this.#parts.serviceOptions, ...difference });
    this.#services.push(service);
    return service;
  }

  /** Makes a stable group with two databases of its own: the settings are for the first, `billing-NAME` is the other. */
  async openGroup(name: string): Promise<EffectiveSettings> {
    const clients = [{ namespace: this.namespace, serviceAccount: "deployer" }];
    await seedOrders(this.cluster.adminApi, {
      namespace: this.namespace,
      group: name,
      databases: Object.fromEntries(INSTANCES.map((one) => [`${one}-${name}`, clients])),
      signal: new AbortController().signal,
    });
    return { ...this.settings, group: name, instance: `tenant-${name}` };
  }

  /** Puts the token of a service account into the token file. */
  async writeToken(serviceAccount: string): Promise<void> {
    const { namespace } = this;
    const token = await this.cluster.token({ namespace, serviceAccount, audiences: [AUDIENCE] });
    await Deno.writeTextFile(this.settings.tokenFile, `${token}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const service of this.#services) await service[Symbol.asyncDispose]();
    await this.#parts.place[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }
}

interface CallerParts {
  readonly place: Workplace;
  readonly service: ServiceProcess;
  readonly serviceOptions: ServiceProcessOptions;
  readonly folder: string;
  readonly settings: EffectiveSettings;
}

/** Settings as a program finds them in its environment. */
export function environmentOf(settings: EffectiveSettings): Readonly<Record<string, string>> {
  const { url, caFile, tokenFile, group, instance } = settings;
  return {
    HOLDFAST_URL: url,
    HOLDFAST_CA_FILE: caFile,
    HOLDFAST_TOKEN_FILE: tokenFile,
    HOLDFAST_GROUP: group,
    HOLDFAST_INSTANCE: instance,
  };
}

/** Starts a service and makes what a caller needs; answers once it leads. */
export async function callerOf(
  cluster: Cluster,
  name: string,
  difference: ServiceDifference = {},
): Promise<RealCaller> {
  const place = await Workplace.open(cluster, name);
  const folder = await Deno.makeTempDir({ prefix: "holdfast-caller-" });
  const authority = await createAuthority({ webCrypto: crypto, nowMs: Date.now() });
  const { certPem, keyPem } = await authority.issue({ ipAddresses: ["127.0.0.1"] });
  const certFile = `${folder}/tls.crt`;
  const keyFile = `${folder}/tls.key`;
  const caFile = `${folder}/ca.crt`;
  await Deno.writeTextFile(certFile, certPem);
  await Deno.writeTextFile(keyFile, keyPem);
  await Deno.writeTextFile(caFile, authority.caPem);
  const serviceOptions = { ...place.serviceOptions(difference.env), certFile, keyFile };
  const service = await ServiceProcess.start({ ...serviceOptions, preload: difference.preload });
  const settings = {
    url: `https://${service.address("tls")}`,
    caFile,
    tokenFile: `${folder}/token`,
    group: "orders",
    instance: "tenant",
  };
  const caller = new RealCaller({ place, service, serviceOptions, folder, settings });
  try {
    await caller.writeToken("deployer");
    await untilLeading(settings);
    return caller;
  } catch (error) {
    await caller[Symbol.asyncDispose]();
    throw error;
  }
}

async function untilLeading(settings: EffectiveSettings): Promise<void> {
  const client = await fromEnvironment(settings);
  for (let tries = 0;; tries++) {
    try {
      await client.observe();
      return;
    } catch (error) {
      if (!(error instanceof UnreachableError) || tries === 3) throw error;
    }
  }
}
