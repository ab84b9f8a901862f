/**
 * The cluster as an administrator reaches it: by a kubeconfig, or from a pod.
 *
 * @module
 */

import { connect, type ConnectedClient } from "../../lib/kube/mod.ts";
import { LeaseTime } from "../../lib/lease_time/lease_time.ts";
import type { System } from "./system.ts";

/** A cluster that was found, and its time. */
export interface AdministratorCluster extends Disposable {
  readonly api: ConnectedClient["api"];
  /** Where the access is from. */
  readonly mode: ConnectedClient["mode"];
  /** Learns the API server's time from its answers. */
  readonly leaseTime: LeaseTime;
}

/**
 * Finds the cluster. No call is made.
 *
 * @param signal Ends the search, for example the run of an exec plug-in.
 * @throws {NoClusterError} @throws {ClusterConfigError}
 */
export async function openCluster(
  system: System,
  signal: AbortSignal,
): Promise<AdministratorCluster> {
  const { clock, entropy, env } = system;
  const leaseTime = new LeaseTime({ clock });
  const { api, mode, close } = await connect({
    env: (name) => env[name],
    clock,
    entropy,
    signal,
    observer: leaseTime.observe,
    readTextFile: (path) => readTextFile(system, path),
  });
  return { api, mode, leaseTime, [Symbol.dispose]: close };
}

/** Reads a file. @throws {Deno.errors.NotFound} There is none. */
export async function readTextFile(system: System, path: string): Promise<string> {
  const text = await Promise.try(() => system.readTextFile(path));
  if (text !== undefined) return text;
  throw new Deno.errors.NotFound(`Cannot read ${path} as it does not exist`);
}
