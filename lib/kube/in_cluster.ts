/**
 * The way to the API server from inside a pod.
 *
 * @module
 */

import { isIPv6 } from "node:net";
import { ClusterConfigError } from "./connect_errors.ts";
import { TokenFile, type TokenFileParts } from "./credentials.ts";
import type { ClusterAccess, Environment } from "./access.ts";

/** Where the kubelet puts a pod's credentials. */
export const SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount";

/** What the look takes. */
export interface InClusterOptions extends Omit<TokenFileParts, "path"> {
  /** Looks up a variable of the environment. */
  readonly env: Environment;
  /** @default {"/var/run/secrets/kubernetes.io/serviceaccount"} */
  readonly directory?: string;
}

/** The API server's host, as a pod's environment names it, or `undefined` outside a pod. It is what `NO_PROXY` needs. */
export function inClusterHost(env: Environment): string | undefined {
  return env("KUBERNETES_SERVICE_HOST") || undefined;
}

/**
 * Reads a pod's credentials.
 *
 * @returns How the API server is reached, or `null` outside a pod.
 * @throws {ClusterConfigError} This is a pod, and a file of its credentials cannot be read.
 */
export async function inClusterAccess(options: InClusterOptions): Promise<ClusterAccess | null> {
  const { env, readTextFile, directory = SERVICE_ACCOUNT_DIRECTORY } = options;
  const host = inClusterHost(env);
  if (host === undefined) return null;
  const port = env("KUBERNETES_SERVICE_PORT_HTTPS") || env("KUBERNETES_SERVICE_PORT") || "443";
  const authorityFile = `${directory}/ca.crt`;
  const credentials = new TokenFile({ ...options, path: `${directory}/token` });
  // Read now, so that a pod without a token is told at the start and not by the first call.
  await credentials.headers();
  return {
    mode: "in_cluster",
    baseUrl: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    namespace: await readNamespace(`${directory}/namespace`, readTextFile),
    credentials,
    connection: {
      authority: { pem: await readAuthority(authorityFile, readTextFile), from: authorityFile },
    },
    runsCommands: false,
  };
}

async function readAuthority(
  path: string,
  readTextFile: InClusterOptions["readTextFile"],
): Promise<string> {
  try {
    return await readTextFile(path);
  } catch {
    throw new ClusterConfigError(
      `Cannot read ${path}: it must be the certificate of the cluster's authority`,
    );
  }
}

async function readNamespace(
  path: string,
  readTextFile: InClusterOptions["readTextFile"],
): Promise<string> {
  try {
    return (await readTextFile(path)).trim() || "default";
  } catch {
    return "default";
  }
}
