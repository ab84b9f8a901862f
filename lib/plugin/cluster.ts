/**
 * Finds the cluster, and says in which mode the plugin runs: kubernetes-plugin 8.
 *
 * @module
 */

import type { KubeConfig } from "@kubernetes/client-node";
import type { AnswerObserver, KubeApi } from "../kube/api.ts";
import type { Environment } from "../kube/access.ts";
import { loadClientNodeConfig } from "../kube/client_node.ts";
import { NoClusterError } from "../kube/connect_errors.ts";
import { connect } from "../kube/connect.ts";
import { noProxyWith } from "../kube/connection.ts";
import type { CallReport } from "../kube/exchange.ts";
import type { HostSystem } from "../host/hooks.ts";
import { inClusterHost } from "../kube/in_cluster.ts";
import type { Logger } from "../runtime/log.ts";
import { NoKubeConfigError } from "./errors.ts";

/**
 * Where the cluster is from. `kubeconfig`: a kubeconfig exists; it is tried first. `in_cluster`: this is a pod. `custom`:
 * the program brought a client. `detached`: there is no cluster, and none is required. `disabled`: it was switched off.
 */
export type ClusterMode = "kubeconfig" | "in_cluster" | "custom" | "detached" | "disabled";

/** A cluster, or the lack of one. */
export interface OpenCluster extends Disposable {
  readonly mode: ClusterMode;
  /** `null` when detached or disabled. */
  readonly api: KubeApi | null;
  /**
   * Calls of the election, on sockets of their own where there are any, so that no other call can queue in front of a
   * renewal.
   */
  readonly electionApi: KubeApi | null;
  /**
   * The configuration of the same cluster for `@kubernetes/client-node`, which is loaded with the first call.
   *
   * @throws {NoKubeConfigError} There is no cluster, or the program brought its own client.
   */
  kubeConfig(): Promise<KubeConfig>;
}

/**
 * Makes a client of the program's own choice.
 *
 * @param podName The pod's name, where it is known.
 * @throws {NoClusterError} There is no cluster: the plugin runs detached, unless one is required.
 */
export type Connector = (podName: string | undefined) => KubeApi | Promise<KubeApi>;

/** What {@linkcode openCluster} takes. */
export interface OpenClusterOptions {
  readonly system: HostSystem;
  readonly logger: Logger;
  readonly enabled: boolean;
  readonly required: boolean;
  readonly podName: string | undefined;
  /** Brings the client. @default {the kubeconfig, then the pod's credentials} */
  readonly connector?: Connector | undefined;
  readonly onCall: (report: CallReport) => void;
  /** Sees every answer of both clients. */
  readonly observer?: AnswerObserver | undefined;
  /** Ends the search. */
  readonly signal: AbortSignal;
}

/**
 * Finds the cluster. No call is made to it.
 *
 * @throws {NoClusterError} There is none, and one is required.
 * @throws {ClusterConfigError} Something says where it is and cannot be used: that is not "no cluster".
 */
export async function openCluster(options: OpenClusterOptions): Promise<OpenCluster> {
  if (!options.enabled) return without("disabled");
  try {
    return await (options.connector === undefined ? find(options) : custom(options.connector));
  } catch (error) {
    if (!(error instanceof NoClusterError) || options.required) throw error;
    return without("detached");
  }

  async function custom(connector: Connector): Promise<OpenCluster> {
    const api = await connector(options.podName);
    return { ...without("custom"), api, electionApi: api };
  }
}

async function find(options: OpenClusterOptions): Promise<OpenCluster> {
  const { system, logger, signal, onCall, observer } = options;
  const env = (name: string) => system.env[name];
  const cluster = await connect({
    env,
    clock: system.clock,
    entropy: system.entropy,
    logger,
    signal,
    onCall,
    observer,
    readTextFile: (path) => {
      const text = system.readTextFile(path);
      if (text !== undefined) return Promise.resolve(text);
      return Promise.reject(new Deno.errors.NotFound(`Cannot read ${path} as it does not exist`));
    },
  });
  if (cluster.mode === "in_cluster") warnOfProxy(env, logger);
  // HTTP/1.1: a dead socket then takes only its own call with it.
  const election = cluster.another({ http2: false, onCall, observer });
  const { mode, api } = cluster;
  return {
    mode,
    api,
    electionApi: election.api,
    kubeConfig: () =>
      loadClientNodeConfig({ mode, env, readTextFile: (path) => system.readTextFile(path) }),
    [Symbol.dispose]() {
      election.close();
      cluster.close();
    },
  };
}

/**
 * The platform follows `HTTPS_PROXY` for the API server of the pod too, and reads `NO_PROXY` from the process before the
 * first connection: too early for this place to set it.
 */
function warnOfProxy(env: Environment, logger: Logger): void {
  const host = inClusterHost(env);
  const noProxy = env("NO_PROXY") ?? env("no_proxy");
  const proxied = (env("HTTPS_PROXY") ?? env("https_proxy") ?? "") !== "";
  if (!proxied || host === undefined || noProxyWith(host, noProxy) === noProxy) return;
  logger.warn("calls to the API server may go to the proxy: put its host into NO_PROXY", { host });
}

function without(mode: ClusterMode): OpenCluster {
  return {
    mode,
    api: null,
    electionApi: null,
    kubeConfig: () => Promise.reject(new NoKubeConfigError(mode)),
    [Symbol.dispose]() {},
  };
}
