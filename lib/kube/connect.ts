/**
 * From the environment to a client: finds the cluster and opens a connection to it.
 *
 * @module
 */

import type { Clock } from "../runtime/clock.ts";
import type { Entropy } from "../runtime/entropy.ts";
import { type Logger, silentLogger } from "../runtime/log.ts";
import type { ClusterAccess, Environment } from "./access.ts";
import { NoClusterError } from "./connect_errors.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import type { ReadTextFile } from "./credentials.ts";
import { HttpApi, type HttpApiParts } from "./http_api.ts";
import { inClusterAccess } from "./in_cluster.ts";
import { kubeconfigAccess } from "./kubeconfig.ts";

/** What differs between two clients of one program. */
export type ClientOptions =
  & Pick<HttpApiParts, "observer" | "onCall" | "defaultTimeoutMs" | "userAgent">
  & Pick<ConnectionOptions, "http2" | "maxIdleSockets">;

/** What {@linkcode connect} takes. */
export interface ConnectOptions extends ClientOptions {
  /** Looks up a variable of the environment. */
  readonly env: Environment;
  /** Where to look; `auto` takes the kubeconfig first and the pod's credentials next. @default {"auto"} */
  readonly mode?: "auto" | ClusterAccess["mode"];
  readonly clock: Clock;
  readonly entropy: Entropy;
  /** @default {silentLogger} */
  readonly logger?: Logger;
  /** Ends the search, for example the run of an exec plug-in. */
  readonly signal: AbortSignal;
  /** Reads a file. @default {Deno.readTextFile} */
  readonly readTextFile?: ReadTextFile;
  /** Where the kubelet puts a pod's credentials. @default {"/var/run/secrets/kubernetes.io/serviceaccount"} */
  readonly serviceAccountDirectory?: string;
  /** The separator of the list in `KUBECONFIG`. @default {":", and ";" on Windows} */
  readonly pathSeparator?: string;
}

/** A client and the sockets that belong to it. */
export interface Client extends Disposable {
  readonly api: HttpApi;
  /** Closes its idle sockets. Calls under way end undisturbed. */
  close(): void;
}

/** A cluster that was found, and the first client of it. */
export interface ConnectedClient extends Client {
  /** Where the access to the cluster is from. */
  readonly mode: ClusterAccess["mode"];
  /** True when credentials come from a command that this program runs: it must keep the permission to. */
  readonly runsCommands: boolean;
  /**
   * Opens another client with the same credentials and with sockets of its own, so that neither waits for the other: for
   * the elector's writes, say.
   *
   * @throws {ClusterConfigError}
   */
  another(options?: ClientOptions): Client;
}

/**
 * Finds a cluster and makes a client for it. No call is made: the first one shows whether the cluster answers.
 *
 * ```ts
 * async function serverVersion(options: ConnectOptions): Promise<string> {
 *   using cluster = await connect(options);
 *   return (await cluster.api.version({ signal: options.signal })).gitVersion;
 * }
 * ```
 *
 * In a pod, put the API server's host into `NO_PROXY` before: see `noProxyWith` and `inClusterHost`.
 *
 * @throws {NoClusterError} There is no kubeconfig, and this is not a pod.
 * @throws {ClusterConfigError} A kubeconfig or a pod's credentials are there and cannot be used.
 */
export async function connect(options: ConnectOptions): Promise<ConnectedClient> {
  const access = await findAccess(options);
  const connections = new Set<Connection>();
  access.onClientCertificate?.((certificate) => {
    for (const connection of connections) connection.useClientCertificate(certificate);
  });
  const open = (client: ClientOptions): Client => {
    const { http2, maxIdleSockets } = client;
    const connection = new Connection({ ...access.connection, http2, maxIdleSockets });
    connections.add(connection);
    const close = () => {
      connections.delete(connection);
      connection.close();
    };
    const api = new HttpApi({
      baseUrl: access.baseUrl,
      fetch: connection.fetch,
      credentials: access.credentials,
      defaultNamespace: access.namespace,
      clock: options.clock,
      entropy: options.entropy,
      observer: client.observer,
      onCall: client.onCall,
      defaultTimeoutMs: client.defaultTimeoutMs,
      userAgent: client.userAgent,
    });
    return { api, close, [Symbol.dispose]: close };
  };
  const { mode, runsCommands } = access;
  return { ...open(options), mode, runsCommands, another: (own = options) => open(own) };
}

async function findAccess(options: ConnectOptions): Promise<ClusterAccess> {
  const {
    env,
    mode = "auto",
    clock,
    signal,
    logger = silentLogger,
    readTextFile = (path) => Deno.readTextFile(path),
    pathSeparator = Deno.build.os === "windows" ? ";" : ":",
    serviceAccountDirectory: directory,
  } = options;
  const reading = { env, clock, logger, readTextFile };
  if (mode !== "in_cluster") {
    const access = await kubeconfigAccess({ ...reading, signal, pathSeparator });
    if (access !== null) return access;
  }
  if (mode !== "kubeconfig") {
    const access = await inClusterAccess({ ...reading, directory });
    if (access !== null) return access;
  }
  const wish = {
    auto:
      "KUBECONFIG must name a kubeconfig, or ~/.kube/config must exist, or this must run in a pod",
    kubeconfig: "KUBECONFIG must name a kubeconfig, or ~/.kube/config must exist",
    in_cluster: "this must run in a pod, where KUBERNETES_SERVICE_HOST is set",
  };
  throw new NoClusterError(`Cannot find a cluster: ${wish[mode]}`);
}
