/**
 * The service of the demo: the shipped one, as `serve` runs it, with a configuration that only names what the demo made.
 *
 * @module
 */

import { demoPurpose, loadConfig } from "../../../lib/config/layers.ts";
import type { Authority } from "../../../lib/testing/mod.ts";
import type { ApplicationHost } from "../../../lib/host/host.ts";
import { openService } from "../serve.ts";
import type { System } from "../system.ts";
import { AUDIENCE, GROUP, SERVICE_ACCOUNT } from "./cast.ts";
import type { DemoCluster } from "./cluster.ts";
import { type DemoFolder, kubeconfig } from "./folder.ts";
import { type DemoPorts, HOST, serviceListenError } from "./ports.ts";

/** What the service is started with. */
export interface DemoServiceParts {
  readonly system: System;
  /** Signs the service's certificate. */
  readonly authority: Authority;
  readonly cluster: DemoCluster;
  readonly folder: DemoFolder;
  readonly ports: DemoPorts;
}

/** A running service. Its disposal asks it to stop and waits until it has. */
export interface DemoService extends AsyncDisposable {
  /** What it lives on. */
  readonly host: ApplicationHost;
  /** The base URL, without a slash at its end. */
  readonly url: string;
  /** The URL of the story's group. */
  readonly groupUrl: string;
  /** The URL of its metrics. */
  readonly metricsUrl: string;
  /** The URL of its status page. */
  readonly statusUrl: string;
}

/**
 * Starts the service. It signs in to the cluster with a kubeconfig of its own service account, and listens for the signals
 * of the system by itself.
 *
 * @throws {RefusalError} A port is taken.
 */
export async function startDemoService(parts: DemoServiceParts): Promise<DemoService> {
  const { system, authority, cluster, folder, ports } = parts;
  const { certPem, keyPem } = await authority.issue({ ipAddresses: [HOST] });
  const certFile = await folder.write("service.crt", certPem);
  const keyFile = await folder.write("service.key", keyPem);
  const ownKubeconfig = await folder.write(
    "service.kubeconfig",
    kubeconfig({
      server: cluster.url,
      caPem: authority.caPem,
      token: await cluster.tokenOf(SERVICE_ACCOUNT),
      namespace: SERVICE_ACCOUNT.namespace,
    }),
  );
  const { config, sources } = loadConfig({
    // The user's own variables and files are for `serve`: the demo is the same on every machine.
    env: {},
    readTextFile: () => undefined,
    purpose: demoPurpose,
    options: settings({
      "listen.tls": `${HOST}:${ports.tls}`,
      "listen.metrics": `${HOST}:${ports.metrics}`,
      "listen.probes": `${HOST}:${ports.probes}`,
      "listen.auxiliary": `${HOST}:${ports.auxiliary}`,
      "auxiliary.status_page": "true",
      "tls.cert_file": certFile,
      "tls.key_file": keyFile,
      "deploy_api.enabled": "true",
      "deploy_api.audience": AUDIENCE,
      "planned_operations.enabled": "true",
      // There is no operator here, and no database: the service writes the group's status itself.
      "planned_operations.executor": "status",
      "host.prestop_grace_secs": "0",
      "log.format": "text",
    }),
  });
  const host = await openService({
    config,
    sources,
    system: { ...system, env: { KUBECONFIG: ownKubeconfig, POD_NAME: "holdfast-demo" } },
    writeLog: folder.writeLog,
  }).catch((error: unknown) => {
    throw serviceListenError(error, ports);
  });
  const tls = host.address("tls");
  const metrics = host.address("metrics");
  const auxiliary = host.address("auxiliary");
  if (tls === undefined || metrics === undefined || auxiliary === undefined) {
    await host.done;
    throw new Error("Cannot play the story as the service was stopped while it started");
  }
  const url = `https://${HOST}:${tls.port}`;
  return {
    host,
    url,
    groupUrl: `${url}/deploy/v1/groups/${GROUP.name}`,
    metricsUrl: `http://${HOST}:${metrics.port}/metrics`,
    statusUrl: `http://${HOST}:${auxiliary.port}/`,
    async [Symbol.asyncDispose]() {
      await host.stop("the demo is over");
    },
  };
}

function settings(values: Readonly<Record<string, string>>) {
  return Object.entries(values).map(([key, text]) => ({ option: "demo", key, text }));
}
