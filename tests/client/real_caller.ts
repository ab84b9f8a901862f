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
import { ServiceProcess } from "../service/service_process.ts";
import { AUDIENCE, Workplace } from "../service/workplace.ts";

/** A caller with its service. Give it back when the test is over. */
export class RealCaller implements AsyncDisposable {
  readonly namespace: string;
  readonly settings: EffectiveSettings;
  /** A folder of this caller, for a test's own files too. */
  readonly folder: string;
  readonly #place: Workplace;
  readonly #service: ServiceProcess;

  constructor(
    parts: {
      readonly place: Workplace;
      readonly service: ServiceProcess;
      readonly folder: string;
      readonly settings: EffectiveSettings;
    },
  ) {
    this.#place = parts.place;
    this.#service = parts.service;
    this.folder = parts.folder;
    this.settings = parts.settings;
    this.namespace = parts.place.namespace;
  }

  /** The settings as a program finds them in its environment. */
  get env(): Readonly<Record<string, string>> {
    const { url, caFile, tokenFile, group, instance } = this.settings;
    return {
      HOLDFAST_URL: url,
      HOLDFAST_CA_FILE: caFile,
      HOLDFAST_TOKEN_FILE: tokenFile,
      HOLDFAST_GROUP: group,
      HOLDFAST_INSTANCE: instance,
    };
  }

  /** The cluster that it is on. */
  get cluster(): Cluster {
    return this.#place.cluster;
  }

  /** The service. */
  get service(): ServiceProcess {
    return this.#service;
  }

  /** Puts the token of a service account into the token file. */
  async writeToken(serviceAccount: string): Promise<void> {
    const { namespace } = this;
    const token = await this.cluster.token({ namespace, serviceAccount, audiences: [AUDIENCE] });
    await Deno.writeTextFile(this.settings.tokenFile, `${token}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service[Symbol.asyncDispose]();
    await this.#place[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** Starts a service and makes what a caller needs; answers once it leads. */
export async function callerOf(cluster: Cluster, name: string): Promise<RealCaller> {
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
  const service = await ServiceProcess.start({ ...place.serviceOptions(), certFile, keyFile });
  const settings = {
    url: `https://${service.address("tls")}`,
    caFile,
    tokenFile: `${folder}/token`,
    group: "orders",
    instance: "tenant",
  };
  const caller = new RealCaller({ place, service, folder, settings });
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
