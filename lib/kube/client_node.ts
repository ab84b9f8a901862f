/**
 * The way from here to `@kubernetes/client-node`, for what this library does not do: other kinds, port forwarding, exec.
 *
 * @module
 */

import type { KubeConfig } from "@kubernetes/client-node";
import { dirname } from "node:path";
import type { ClusterAccess, Environment } from "./access.ts";
import { ClusterConfigError } from "./connect_errors.ts";
import { kubeconfigPaths } from "./kubeconfig.ts";

/** What {@linkcode loadClientNodeConfig} takes. */
export interface ClientNodeOptions {
  /** Where the cluster was found. */
  readonly mode: ClusterAccess["mode"];
  /** Looks up a variable of the environment. */
  readonly env: Environment;
  /** The text of a file, or `undefined` where there is none. */
  readonly readTextFile: (path: string) => string | undefined;
  /** The separator of the list in `KUBECONFIG`. @default {":", and ";" on Windows} */
  readonly pathSeparator?: string;
}

/**
 * Makes client-node's own configuration of the same cluster. It loads that package, which costs 80 MB and half a second:
 * call it only where it is needed.
 *
 * @throws {ClusterConfigError} A kubeconfig is not there any more, or client-node cannot read it.
 */
export async function loadClientNodeConfig(options: ClientNodeOptions): Promise<KubeConfig> {
  const client = await import("@kubernetes/client-node");
  const config = new client.KubeConfig();
  if (options.mode === "in_cluster") {
    config.loadFromCluster();
    return config;
  }
  const { env, readTextFile, pathSeparator = Deno.build.os === "windows" ? ";" : ":" } = options;
  let loaded = false;
  for (const path of kubeconfigPaths(env, pathSeparator).paths) {
    const text = readTextFile(path);
    if (text === undefined) continue;
    try {
      const one = new client.KubeConfig();
      one.loadFromString(text);
      one.makePathsAbsolute(dirname(path));
      // Of several current contexts the first counts, as in kubectl.
      config.mergeConfig(one, Boolean(config.currentContext));
    } catch {
      // The parser's text may quote the file, which holds secrets.
      throw new ClusterConfigError(`Cannot read the kubeconfig ${path}: client-node refuses it`);
    }
    loaded = true;
  }
  if (loaded) return config;
  throw new ClusterConfigError("Cannot read a kubeconfig: none is there any more");
}
